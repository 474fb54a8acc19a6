"""What can be said about streams, groups and queries, as keyword arguments.

They mean what the same keys mean in a definitions file: durations are texts (``90s``, ``1h30m``) or timedeltas, choices
are texts. What is wrong is refused before anything is sent.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict

from skyband.errors import DefinitionError
from skyband.model.duration import format_duration, parse_duration
from skyband.model.group_form import DEFAULT_PANE_US
from skyband.model.query import Query
from skyband.model.query_form import read_query
from skyband.model.resources import GroupSpec
from skyband.model.stream import Stream
from skyband.model.stream_form import dump_stream, read_stream
from skyband.v1.begin import Begin

__all__ = [
    "Duration",
    "GroupOptions",
    "QueryOptions",
    "Start",
    "StreamOptions",
    "begin_of",
    "changed_stream",
    "duration_us",
    "group_options",
    "group_spec",
    "query_of",
    "query_path",
    "stream_of",
]

Duration = str | timedelta
# Where to begin to read: an end of each topic, or a time; one without a zone is UTC.
Start = Literal["earliest", "latest"] | datetime


class StreamOptions(TypedDict, total=False):
    """All of a stream but its name; see docs/definitions.md."""

    topic: str
    format: Literal["avro", "confluent-avro", "json"]
    schema: str
    fields: Mapping[str, str]
    lo: float
    hi: float
    out_of_range: Literal["reject", "clamp"]
    missing: float | Literal["worst"]
    attributes: Sequence[Mapping[str, object]]
    identity: Literal["object", "row"]
    aggregate: Literal["best", "latest", "first", "sum", "count", "max", "min"]
    repeat_after: Duration | None
    max_delay: Duration
    late: Literal["apply", "drop"]
    idle: Mapping[str, object]
    max_ahead: Duration


class GroupOptions(TypedDict, total=False):
    """What a new generation of a group may have otherwise."""

    streams: Sequence[str]
    retention: Duration
    retention_rows: int
    pane: Duration
    shards: int
    max_drift: Duration


class QueryOptions(TypedDict, total=False):
    """What a query may have beside its name, k, score and window."""

    slide: Duration | int
    order: Literal["highest", "lowest"]
    require: Literal["any", "all"] | Sequence[str]
    algorithm: Literal["auto", "two-tier", "view", "skyband", "sla", "eaa", "eaa-relaxed", "eaa-expected", "eaa-tail"]
    max_error: float
    target_precision: float
    memory_budget: int | str
    candidates: int


def stream_of(name: str, options: StreamOptions) -> Stream:
    """Return the stream that the options define. Raises DefinitionError."""
    return read_stream({"name": name, **_document(options)}, "stream")


def changed_stream(stream: Stream, options: StreamOptions) -> Stream:
    """Return `stream` with the options changed. Raises DefinitionError."""
    changes = _document(options)
    document = {key: value for key, value in dump_stream(stream).items() if key not in options}
    return read_stream({**document, **changes}, "stream")


def group_options(options: GroupOptions) -> dict[str, Any]:
    """Return the options as the fields of a group. Raises DefinitionError."""
    fields: dict[str, Any] = dict(options)
    for key in ("retention", "pane", "max_drift"):
        if key in fields:
            fields[f"{key}_us"] = duration_us(fields.pop(key), key)
    if "streams" in fields:
        fields["streams"] = tuple(fields["streams"])
    return fields


def group_spec(name: str, options: GroupOptions) -> GroupSpec:
    """Return the group that the options ask for. Raises DefinitionError."""
    fields = {"pane_us": DEFAULT_PANE_US, **group_options(options)}
    for key in ("streams", "retention"):
        if key not in options:
            raise DefinitionError(f"group {name!r} has no {key}; give {key}=…", field=f"group.{key}")
    return GroupSpec(name=name, **fields)


def query_of(name: str, k: int, score: str, window: Duration | int, options: QueryOptions) -> Query:
    """Return the query that the options define; a whole number as window counts rows. Raises DefinitionError."""
    document: dict[str, Any] = {"name": name, "k": k, "score": score}
    in_rows = isinstance(window, int) and not isinstance(window, bool)
    document["window"] = {"count" if in_rows else "size": window}
    if "slide" in options:
        document["window"]["slide"] = options["slide"]
    document |= {key: value for key, value in options.items() if key != "slide"}
    return read_query(_document(document), "query")


def query_path(path: str) -> tuple[str, str]:
    """Return group and name of ``group/query`` or ``groups/group/queries/query``. Raises DefinitionError."""
    match path.split("/"):
        case [group, query] if group and query:
            return group, query
        case ["groups", group, "queries", query] if group and query:
            return group, query
    raise DefinitionError(f"query {path!r} must be written as group/query", field="query")


def begin_of(start: Start) -> Begin:
    """Return where to begin. Raises DefinitionError for a text that says nothing."""
    if isinstance(start, datetime):
        moment = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if start not in ("earliest", "latest"):
        raise DefinitionError(f"begin must be earliest, latest or a datetime, not {start!r}", field="begin")
    return start


def duration_us(duration: Duration, field: str) -> int:
    """Return a duration in microseconds. Raises DefinitionError, with `field`, for a text that is none."""
    return parse_duration(_document(duration), field=field)


def _document(value: Any) -> Any:
    """Return a document with durations as texts, and without what is None."""
    if isinstance(value, timedelta):
        return format_duration(value // timedelta(microseconds=1))
    if isinstance(value, Mapping):
        return {key: _document(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_document(item) for item in value]
    return value
