"""Queries as plain documents: the keys under ``queries:`` of a definitions file, read and written."""

from collections.abc import Mapping
from typing import Any

from skyband.errors import DefinitionError
from skyband.model.document import byte_size, duration, items, number, one_of, read_mapping, show, text, under, whole
from skyband.model.duration import format_duration
from skyband.model.query import Algorithm, Kind, Order, Query, Window

__all__ = ["dump_query", "read_query"]

_LIMITS = ("max_error", "target_precision", "memory_budget")


def read_query(value: object, path: str = "") -> Query:
    """Return the query that a document at `path` describes; it is not bound to a group yet. Raises DefinitionError."""
    name = value.get("name") if isinstance(value, Mapping) else None
    what = f"query {name!r}" if isinstance(name, str) else "a query"
    found = read_mapping(value, path, what, _QUERY, required=("name", "k", "score", "window"))
    found["require_all"], found["require"] = found.pop("require", (False, ()))
    try:
        return Query(**found)
    except DefinitionError as error:
        raise under(error, path) from None


def dump_query(query: Query) -> dict[str, Any]:
    """Return the document that `read_query` reads back as `query`; every key is written but limits that are not set."""
    window = query.window
    if window.in_rows:
        window_document: dict[str, Any] = {"count": window.size, "slide": window.slide}
    else:
        window_document = {"size": format_duration(window.size), "slide": format_duration(window.slide)}
    return {
        "name": query.name,
        "kind": query.kind.value,
        "k": query.k,
        "score": query.score,
        "order": query.order.value,
        "window": window_document,
        "require": "all" if query.require_all else list(query.require) or "any",
        "algorithm": query.algorithm.value,
        **{key: value for key in _LIMITS if (value := getattr(query, key)) is not None},
        **({"candidates": query.candidates} if query.candidates else {}),
    }


def _read_window(value: object, path: str) -> Window:
    """Read ``{size, slide}`` in time or ``{count, slide}`` in rows; without slide, windows follow one another."""
    keys = set(value) if isinstance(value, Mapping) else set()
    in_rows = "count" in keys
    if {"count", "size"} <= keys:
        message = "window has both size and count; keep size for time, or count for rows"
        raise DefinitionError(message, field=f"{path}.count")
    length, unit = ("count", whole) if in_rows else ("size", duration)
    found = read_mapping(
        value, path, "window", {"size": duration, "count": whole, "slide": unit}, required=() if in_rows else ("size",)
    )
    size = found[length]
    try:
        return Window(size, found.get("slide", size), in_rows)
    except DefinitionError as error:
        if error.field == "window.size":
            message = error.message.replace("window size", f"window {length}")
            raise DefinitionError(message, field=f"{path}.{length}") from None
        error.field = f"{path}.slide"
        raise


def _read_require(value: object, path: str) -> tuple[bool, tuple[str, ...]]:
    if value in ("any", "all"):
        return value == "all", ()
    if isinstance(value, str):
        raise DefinitionError(f"require must be any, all or a list of streams, not {show(value)}", field=path)
    names = items(text)(value, path)
    if not names:
        raise DefinitionError("require lists no stream; list one, or write any", field=path)
    return False, names


_QUERY = {
    "name": text,
    "kind": one_of(Kind),
    "k": whole,
    "score": text,
    "order": one_of(Order),
    "window": _read_window,
    "require": _read_require,
    "algorithm": one_of(Algorithm),
    "max_error": number,
    "target_precision": number,
    "memory_budget": byte_size,
    "candidates": whole,
}
