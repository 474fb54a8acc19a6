"""Definitions of a group and its queries, from YAML and JSON files or plain mappings, and back.

What loads can run: every query is bound to the group and planned. Of several errors the first in the file is raised,
pointing at its place.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skyband.errors import DefinitionError
from skyband.files.yaml_places import Places, read_json, read_yaml
from skyband.model.definitions import Definitions
from skyband.model.document import earliest, items, read_mapping, under
from skyband.model.group import Group
from skyband.model.group_form import GroupForm, dump_group, read_group_form
from skyband.model.planner import plan
from skyband.model.query import Query
from skyband.model.query_form import dump_query, read_query

__all__ = ["dump_definitions", "load_definitions"]


def load_definitions(source: str | Path | Mapping[str, Any]) -> Definitions:
    """Read definitions from a file (``.json``: JSON, else YAML), from a text that has a line break, or from a mapping.

    Raises DefinitionError, with file, line and column in `place` and the line in `pointer()`; NotServedError for a
    question that cannot be answered.
    """
    if isinstance(source, Mapping):
        return _definitions(source)
    data, places = _parse(source)
    try:
        return _definitions(data)
    except DefinitionError as error:
        raise places.point(error) from None


def dump_definitions(definitions: Definitions) -> dict[str, Any]:
    """Return the document of `definitions`, without what is default; `load_definitions` reads it back as equal."""
    group = dump_group(definitions.group)
    group["streams"] = [_brief(_brief_attributes(stream), _STREAM_DEFAULTS) for stream in group["streams"]]
    for stream, form in zip(definitions.group.streams, group["streams"], strict=True):
        # The default differs between attribute streams and object streams.
        if form.get("aggregate") == ("latest" if stream.is_object_stream else "best"):
            del form["aggregate"]
    largest = max((q.window.size for q in definitions.queries if q.window.in_rows), default=0)
    return {
        "group": _brief(group, {**_GROUP_DEFAULTS, "retention_rows": largest}),
        "queries": [_brief(dump_query(query), _QUERY_DEFAULTS) for query in definitions.queries],
    }


def _parse(source: str | Path) -> tuple[object, Places]:
    if isinstance(source, str) and "\n" in source:
        return read_yaml(source, "definitions")
    path = Path(source)
    name = str(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DefinitionError("there is no such file; name a file of definitions, .yaml or .json", place=name) from None
    except OSError as error:
        raise DefinitionError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=name) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        places = Places(name, before + "�")
        message = f"is not UTF-8: byte 0x{content[error.start]:02x} begins no character; save it as UTF-8"
        raise places.at(DefinitionError(message), len(before), len(before) + 1) from None
    data, places = read_json(text, name) if path.suffix.lower() == ".json" and text.strip() else read_yaml(text, name)
    if data is None:
        raise places.at(DefinitionError("is empty; write a group and its queries (group: …, queries: …)"), 0, 1)
    return data, places


def _definitions(document: object) -> Definitions:
    """Read everything that can be read, then raise the error that comes first in the document."""
    errors: list[DefinitionError] = []
    forms: list[GroupForm] = []
    queries: dict[int, Query] = {}

    def read_form(value: object, path: str) -> None:
        try:
            forms.append(read_group_form(value, path))
        except DefinitionError as error:
            errors.append(error)

    def read_one(value: object, path: str) -> None:
        try:
            queries[int(path[path.rfind("[") + 1 : -1])] = read_query(value, path)
        except DefinitionError as error:
            errors.append(error)

    try:
        converters = {"group": read_form, "queries": items(read_one)}
        read_mapping(document, "", "the document", converters, required=("group",))
    except DefinitionError as error:
        errors.append(error)
    errors += _duplicates(queries)
    group = None
    if forms and (queries or "retention_us" in forms[0].found or not errors):
        try:
            group = forms[0].complete(queries.values())
        except DefinitionError as error:
            errors.append(error)
    if group is not None:
        errors += _unfit(group, queries)
    if errors:
        raise earliest(errors, document)
    assert group is not None
    return Definitions(group, tuple(queries.values()))


def _duplicates(queries: Mapping[int, Query]) -> Iterator[DefinitionError]:
    seen: set[str] = set()
    for index, query in queries.items():
        if query.name in seen:
            message = f"two queries are named {query.name!r}; give each a name of its own"
            yield DefinitionError(message, field=f"queries[{index}].name")
        seen.add(query.name)


def _unfit(group: Group, queries: Mapping[int, Query]) -> Iterator[DefinitionError]:
    """Yield why queries cannot be bound or planned."""
    for index, query in queries.items():
        try:
            for position, name in enumerate(query.require):
                _check_required(group, name, position)
            plan(group, query)
        except DefinitionError as error:
            yield under(error, f"queries[{index}]")


def _check_required(group: Group, name: str, position: int) -> None:
    known = [stream.name for stream in group.streams]
    if name not in known:
        raise DefinitionError(
            f"require names {name!r}, which is not a stream of group {group.name!r}; streams are {', '.join(known)}",
            field=f"require[{position}]",
        )


def _brief(document: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    brief: dict[str, Any] = {}
    for key, value in document.items():
        default = defaults.get(key)
        if isinstance(value, dict) and isinstance(default, dict):
            value = _brief(value, default)
            if not value:
                continue
        elif value == default:
            continue
        brief[key] = value
    return brief


def _brief_attributes(stream: dict[str, Any]) -> dict[str, Any]:
    if "attributes" not in stream:
        return stream
    return stream | {"attributes": [_brief(attribute, _STREAM_DEFAULTS) for attribute in stream["attributes"]]}


_GROUP_DEFAULTS = {"pane": "1s", "shards": 1, "max_drift": "1m"}
_STREAM_DEFAULTS = {
    "lo": 0.0,
    "hi": "inf",
    "out_of_range": "reject",
    "missing": "worst",
    "identity": "object",
    "max_delay": "0s",
    "late": "apply",
    "idle": {"after": "10s", "then": "flush"},
    "max_ahead": "5m",
    "topic": "",
    "format": "avro",
    "schema": "",
    "fields": {"object_id": "object_id", "event_time": "event_time", "value": "value", "time_unit": "us"},
}
_QUERY_DEFAULTS = {"kind": "rank", "order": "highest", "require": "any", "algorithm": "auto"}
