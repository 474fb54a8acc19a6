"""Typed reading of plain documents: mappings, lists, texts and numbers as YAML, JSON or a dict give them.

A *path* names a place in a document (``queries[0].window.slide``); every error carries the path of what is wrong, so
that whoever knows the text behind the document can point at it. Keys are read in document order: the first thing wrong
is the one reported.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from skyband.errors import DefinitionError
from skyband.model.duration import parse_duration

__all__ = [
    "Convert",
    "bound",
    "byte_size",
    "duration",
    "earliest",
    "items",
    "number",
    "one_of",
    "parents",
    "read_mapping",
    "show",
    "text",
    "under",
    "whole",
]

Convert = Callable[[object, str], Any]

_SHOWN = 40
_BYTES = {"B": 1, "kB": 1_000, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


def read_mapping(
    value: object, path: str, what: str, converters: Mapping[str, Convert], required: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the converted values of a mapping, in its own order; keys that are not there stay away.

    Raises DefinitionError for what is no mapping, for an unknown, empty or missing key, and what the converters raise.
    """
    if not isinstance(value, Mapping):
        raise DefinitionError(f"{what} must be a mapping of keys to values, not {show(value)}", field=path)
    found: dict[str, Any] = {}
    for key, item in value.items():
        place = _join(path, str(key))
        if key not in converters:
            raise _unknown_key(key, item, place, what, converters)
        if item is None:
            raise _at_key(f"{key} of {what} is empty; give it a value, or remove it", place, str(key))
        found[key] = converters[key](item, place)
    for key in required:
        if key not in found:
            raise DefinitionError(f"{what} has no {key}; add {key}: …", field=path)
    return found


def under(error: DefinitionError, path: str) -> DefinitionError:
    """Return `error` with its field placed under `path`."""
    error.field = _join(path, error.field) if error.field else path
    return error


def earliest(errors: Iterable[DefinitionError], document: object) -> DefinitionError:
    """Return the error whose field comes first in `document`; one that is not there counts as its nearest parent."""
    order = {path: index for index, path in enumerate(_walk(document, ""))}

    def place(error: DefinitionError) -> int:
        return next((order[path] for path in parents(error.field or "") if path in order), 0)

    return min(errors, key=place)


def parents(path: str) -> Iterator[str]:
    """Yield `path` and the paths that hold it, innermost first; the last is the whole document, ``""``."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    yield ""


def text(value: object, path: str) -> str:
    """Return a text; YAML's bare numbers and yes, no, on, off are no texts."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise DefinitionError(
            f"{_label(path)} must be text, but bare yes, no, on, off, true, false are truth values in YAML; quote it",
            field=path,
        )
    hint = "; quote it" if isinstance(value, (int, float)) else ""
    raise DefinitionError(f"{_label(path)} must be text, not {show(value)}{hint}", field=path)


def whole(value: object, path: str) -> int:
    """Return a whole number; 1e3 is one, 1.5 is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    raise DefinitionError(f"{_label(path)} must be a whole number, not {show(value)}{_quotes(value)}", field=path)


def number(value: object, path: str) -> float:
    """Return a finite number."""
    found = bound(value, path)
    if not math.isfinite(found):
        raise DefinitionError(f"{_label(path)} must be a finite number, not {show(value)}", field=path)
    return found


def bound(value: object, path: str) -> float:
    """Return a number or an infinity, also written as the text ``inf`` or ``-inf``."""
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise DefinitionError(f"{_label(path)} must be a number, not {show(value)}{_quotes(value)}", field=path)
    try:
        return float(value)
    except OverflowError:
        raise DefinitionError(f"{_label(path)} is too large for a number", field=path) from None


def duration(value: object, path: str) -> int:
    """Return a duration in microseconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value != 0:
        hint = f"write for example {value}s"
        raise DefinitionError(f"{_label(path)} must be a duration with its unit, not {show(value)}; {hint}", field=path)
    if isinstance(value, bool) or (value != 0 and not isinstance(value, str)):
        hint = "write for example 90s"
        raise DefinitionError(f"{_label(path)} must be a duration, not {show(value)}; {hint}", field=path)
    try:
        return parse_duration("0" if value == 0 else value, field=_label(path))
    except DefinitionError as error:
        error.field = path
        raise


def byte_size(value: object, path: str) -> int:
    """Return a number of bytes: a whole number, or one with its unit (``512KB``, ``64MB``, ``2GB``; of 1,000)."""
    if not isinstance(value, str):
        return whole(value, path)
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(B|kB|KB|MB|GB)?\s*", value)
    if found is None:
        raise DefinitionError(f"{_label(path)} must be a size such as 64MB, not {show(value)}", field=path)
    return round(float(found[1]) * _BYTES[found[2] or "B"])


def one_of(kind: type[StrEnum]) -> Convert:
    """Return a converter to the members of `kind`."""
    choices = [member.value for member in kind]

    def convert(value: object, path: str) -> StrEnum:
        name = text(value, path)
        if name not in choices:
            near = difflib.get_close_matches(name, choices, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            known = ", ".join(choices)
            raise DefinitionError(f"{_label(path)} must be one of {known}, not {show(name)}{hint}", field=path)
        return kind(name)

    return convert


def items(convert: Convert) -> Convert:
    """Return a converter of lists whose items `convert` reads."""

    def convert_all(value: object, path: str) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise DefinitionError(f"{_label(path)} must be a list, not {show(value)}", field=path)
        return tuple(convert(item, f"{path}[{index}]") for index, item in enumerate(value))

    return convert_all


def show(value: object) -> str:
    """Return a value in words, shortened, for an error's sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, str):
        return "the text " + repr(value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…")
    if isinstance(value, (int, float)):
        digits = f"{value:g}" if isinstance(value, float) else str(value)
        return f"the number {digits if len(digits) <= _SHOWN else digits[: _SHOWN - 1] + '…'}"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


def _unknown_key(key: object, value: object, place: str, what: str, known: Iterable[str]) -> DefinitionError:
    if not isinstance(key, str):
        return _at_key(f"{what} has a key that is no text, {show(key)}; quote it", place, str(key))
    near = difflib.get_close_matches(key, list(known), 1)
    if near:
        hint = f"did you mean {near[0]}?"
    elif value is None and not key.isidentifier():
        hint = "a text with a comma or a colon inside {…} needs quotes"
    else:
        hint = f"keys are {', '.join(known)}"
    return _at_key(f"{what} has no key {key!r}; {hint}", place, key)


def _at_key(message: str, place: str, key: str) -> DefinitionError:
    # The source text of an error about a key is the key: that is what tells its place from that of its value.
    return DefinitionError(message, field=place, source_text=key, column=0, length=len(key))


def _quotes(value: object) -> str:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return ""
        return "; write it as a plain number"
    return ""


def _label(path: str) -> str:
    return path[path.rfind(".") + 1 :] or "the document"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _walk(value: object, path: str) -> Iterator[str]:
    yield path
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, _join(path, str(key)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")
