"""Resource names: ``streams/{stream}``, ``groups/{group}``, ``groups/{group}/queries/{query}``."""

from skyband.errors import DefinitionError
from skyband.model.resources import group_name, query_name, stream_name

__all__ = [
    "group_id",
    "group_name",
    "is_query_name",
    "query_ids",
    "query_name",
    "stream_id",
    "stream_name",
    "stream_reference",
]


def stream_id(name: str, field: str = "name") -> str:
    """Return the id in the name of a stream. Raises DefinitionError with `field`."""
    match name.split("/"):
        case ["streams", stream] if stream:
            return stream
    raise _no_name(name, field, "stream", "streams/{stream}")


def stream_reference(text: str, field: str) -> str:
    """Return the id of a stream that is referred to by its name, or by its id alone."""
    return stream_id(text, field) if "/" in text or not text else text


def group_id(name: str, field: str = "name") -> str:
    """Return the id in the name of a group. Raises DefinitionError with `field`."""
    match name.split("/"):
        case ["groups", group] if group:
            return group
    raise _no_name(name, field, "group", "groups/{group}")


def query_ids(name: str, field: str = "name") -> tuple[str, str]:
    """Return the ids of group and query in the name of a query. Raises DefinitionError with `field`."""
    match name.split("/"):
        case ["groups", group, "queries", query] if group and query:
            return group, query
    raise _no_name(name, field, "query", "groups/{group}/queries/{query}")


def is_query_name(text: str) -> bool:
    """Return whether `text` is meant as the name of a query, and not as a uid, which has no slash."""
    return "/" in text


def _no_name(name: str, field: str, what: str, pattern: str) -> DefinitionError:
    found = f"{field} {name!r} is no name of a {what}" if name else f"{field} is missing"
    return DefinitionError(f"{found}; write {pattern}", field=field)
