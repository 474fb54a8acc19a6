"""Definitions text as plain data, with the place of every key and value.

YAML is read by its marks and not by PyYAML's constructors, so that a whole number is what JSON calls one (``1e3`` is a
number, ``010``, ``0x10`` and ``1:30`` are not), a key given twice is an error, and nothing but plain data comes out.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from skyband.errors import DefinitionError
from skyband.files.scalar_places import token_span
from skyband.model.document import parents

__all__ = ["Places", "read_json", "read_yaml"]

_INT = re.compile(r"[-+]?(0|[1-9][0-9_]{0,400})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = {_TAG + name for name in ("null", "bool", "int", "float", "str", "timestamp", "value", "merge")}


_TOKENS = {
    "'<stream end>'": "the end of the file",
    "'<scalar>'": "a value",
    "'<block mapping start>'": "a mapping",
    "'<block sequence start>'": "a list",
    "<block end>": "the end of the block",
}


class _Loader(yaml.SafeLoader):
    """A loader that refuses aliases: they could make a small text an endless document."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            problem = f"alias *{event.anchor}; write the value out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)


@dataclass
class Places:
    """Where each path of a document stands in its text. `name` is the file's, as errors show it."""

    name: str
    text: str
    values: dict[str, yaml.Node] = field(default_factory=dict)
    keys: dict[str, yaml.Node] = field(default_factory=dict)

    def point(self, error: DefinitionError) -> DefinitionError:
        """Return `error` with the place of its field, or of what is nearest to it, and the source line."""
        path = next((path for path in parents(error.field or "") if path in self.values), "")
        if not self.values:
            return self.at(error, 0, 1)
        node, key = self.values[path], self.keys.get(path)
        inside = path == error.field and error.source_text is not None
        if inside and isinstance(node, yaml.ScalarNode) and node.value == error.source_text:
            if error.column is None:
                return self.at(error, *_node_span(node))
            return self.at(error, *token_span(self.text, node, error.column, error.length))
        if inside and key is not None:
            return self.at(error, *_node_span(key))
        return self.at(error, *_node_span(node))

    def at(self, error: DefinitionError, start: int, stop: int) -> DefinitionError:
        """Return `error` pointing at characters [start, stop) of the text, as far as they are on one line."""
        line_start = self.text.rfind("\n", 0, start) + 1
        line_stop = self.text.find("\n", start)
        line = self.text[line_start : len(self.text) if line_stop < 0 else line_stop].rstrip("\r")
        column = min(start - line_start, len(line))
        error.source_text = line.replace("\t", " ")
        error.column = column
        error.length = max(1, min(stop - start, len(line.rstrip()) - column))
        error.place = f"{self.name}:{self.text.count(chr(10), 0, start) + 1}:{column + 1}"
        return error


def read_json(text: str, name: str) -> tuple[object, Places]:
    """Return the data of a JSON text and its places. Raises DefinitionError."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        where = Places(name, text)
        raise where.at(DefinitionError(f"not readable as JSON: {error.msg}"), error.pos, error.pos + 1) from None
    except RecursionError:
        raise _too_deep(Places(name, text)) from None
    # Outside of strings, where JSON allows none, a tab is a blank; YAML would refuse it.
    data, places = read_yaml(text.replace("\t", " "), name)
    return data, places


def read_yaml(text: str, name: str) -> tuple[object, Places]:
    """Return the data of a YAML text and its places; an empty text gives None. Raises DefinitionError."""
    places = Places(name, text)
    try:
        root = yaml.compose(text, Loader=_Loader)
        return (None if root is None else _plain(root, "", places)), places
    except yaml.reader.ReaderError as error:
        message = f"holds the control character U+{int(str(error.character)):04X}; remove it"
        raise places.at(DefinitionError(message), error.position, error.position + 1) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, places) from None
    except RecursionError:
        raise _too_deep(places) from None


def _too_deep(places: Places) -> DefinitionError:
    return places.at(DefinitionError("is nested too deeply; definitions need six levels at most"), 0, 1)


def _syntax_error(error: yaml.MarkedYAMLError, places: Places) -> DefinitionError:
    problem = error.problem or "unknown problem"
    if "'\\t'" in problem:
        problem = "a tab in the indentation; use blanks"
    elif "block end" in problem or "mapping values are not allowed" in problem:
        problem += "; check the indentation, and quote a text that holds ': '"
    elif problem == "but found another document":
        problem = "a second document; keep one group with its queries in a file"
    for token, words in _TOKENS.items():
        problem = problem.replace(token, words)
    context = f" {error.context}" if error.context and error.context.startswith("while") else ""
    marks = [mark for mark in (error.problem_mark, error.context_mark) if mark]
    # What is missing at the end of the file is best shown where it was opened.
    index = next((m.index for m in marks if m.index < len(places.text.rstrip())), 0)
    return places.at(DefinitionError(f"not readable as YAML{context}: {problem}"), index, index + 1)


def _plain(node: yaml.Node, path: str, places: Places) -> object:
    places.values[path] = node
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(node, path, places)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, f"{path}[{index}]", places) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return _scalar(node, places)


def _plain_mapping(node: yaml.MappingNode, path: str, places: Places) -> dict[object, object]:
    found: dict[object, object] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise places.at(DefinitionError("a key must be a text, not a list or a mapping"), *_node_span(key_node))
        key = _scalar(key_node, places)
        place = f"{path}.{key}" if path else str(key)
        if key in found:
            line = places.text.count("\n", 0, places.keys[place].start_mark.index) + 1
            message = f"key {key_node.value!r} is given twice, first in line {line}; keep one"
            raise places.at(DefinitionError(message, field=place), *_node_span(key_node))
        places.keys[place] = key_node
        found[key] = _plain(value_node, place, places)
    return found


def _scalar(node: yaml.ScalarNode, places: Places) -> object:
    if node.tag not in _SCALAR_TAGS:
        tag = node.tag.replace(_TAG, "!!")
        raise places.at(DefinitionError(f"tag {tag} is not read here; remove it"), *_node_span(node))
    value: str = node.value
    if node.style is not None:
        # JSON writes characters beyond 16 bits as two escapes.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if node.tag == _TAG + "null":
        return None
    if node.tag == _TAG + "bool":
        return value.lower() in ("true", "yes", "on")
    if _INT.fullmatch(value):
        return int(value)
    if _FLOAT.fullmatch(value) and not re.match(r"[-+]?0[0-9_]", value):
        return float(value.replace("_", ""))
    if infinity := _INFINITY.fullmatch(value):
        return float(infinity[1] + "inf")
    return float("nan") if value.lower() == ".nan" else value


def _node_span(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index
