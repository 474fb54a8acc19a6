"""Streams, groups, queries and results of a server, as plain data and as rows of tables."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from skyband.client.calls import Description
from skyband.model.approximation import Approximation
from skyband.model.duration import MIN_TIME_US, format_duration
from skyband.model.query import Order, Query
from skyband.model.query_form import dump_query
from skyband.model.resources import GroupResource, QueryResource, Stamp, StreamResource
from skyband.model.result import ResultRow
from skyband.model.status import Holder, QueryStatus
from skyband.model.stream import Stream
from skyband.model.stream_form import dump_stream

__all__ = [
    "GROUP_TITLES",
    "QUERY_TITLES",
    "STREAM_TITLES",
    "description_document",
    "group_document",
    "group_row",
    "query_document",
    "query_row",
    "question",
    "result_document",
    "row_document",
    "stream_document",
    "stream_row",
]

STREAM_TITLES = ("stream", "topic", "format", "values", "combined by", "max delay", "idle")
GROUP_TITLES = ("group", "generation", "streams", "shards", "pane", "keeps", "max drift", "source partitions")
QUERY_TITLES = ("query", "state", "asks for", "window", "plan")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stream_document(resource: StreamResource) -> dict[str, Any]:
    """Return a stream, every key of its definition written."""
    return {**dump_stream(resource.stream), **_stamp(resource.stamp)}


def stream_row(resource: StreamResource) -> tuple[str, ...]:
    """Return a stream as a row under STREAM_TITLES."""
    stream = resource.stream
    combined = "each row an object" if stream.identity == "row" else str(stream.aggregate)
    idle = f"{format_duration(stream.idle_after_us)}, then {stream.idle_then}"
    delay = format_duration(stream.max_delay_us)
    return stream.name, stream.topic or stream.name, str(stream.format), _values(stream), combined, delay, idle


def group_document(resource: GroupResource) -> dict[str, Any]:
    """Return a group with its generation and where that began to read its sources."""
    group = resource.group
    return {
        "name": group.name,
        "generation": resource.generation,
        "streams": [stream.name for stream in group.streams],
        "retention": format_duration(group.retention_us),
        "retention_rows": group.retention_rows,
        "pane": format_duration(group.pane_us),
        "shards": group.shards,
        "max_drift": format_duration(group.max_drift_us),
        "sources": [{"stream": s.stream, "partition": s.partition, "offset": s.offset} for s in resource.sources],
        **_stamp(resource.stamp),
    }


def group_row(resource: GroupResource) -> tuple[str, ...]:
    """Return a group as a row under GROUP_TITLES."""
    group = resource.group
    keeps = format_duration(group.retention_us) + (f", {group.retention_rows:,} rows" if group.retention_rows else "")
    streams = ", ".join(stream.name for stream in group.streams)
    numbers = f"{resource.generation:,}", streams, f"{group.shards:,}"
    rest = format_duration(group.pane_us), keeps, format_duration(group.max_drift_us), f"{len(resource.sources):,}"
    return (group.name, *numbers, *rest)


def query_document(resource: QueryResource) -> dict[str, Any]:
    """Return a query with its state and plan."""
    plan = resource.plan
    return {
        "group": resource.group,
        **dump_query(resource.query),
        "state": resource.state.value,
        "plan": {
            "algorithm": plan.algorithm.value,
            "reason": plan.reason,
            "relies_on": list(plan.relies_on),
            "cost": plan.cost,
        },
        **_stamp(resource.stamp),
    }


def query_row(resource: QueryResource) -> tuple[str, ...]:
    """Return a query as a row under QUERY_TITLES."""
    query = resource.query
    path = f"{resource.group}/{query.name}"
    return path, str(resource.state), question(query), query.window.describe(), str(resource.plan.algorithm)


def question(query: Query) -> str:
    """Return in words what a query asks for: ``the 10 highest 0.7*temperature + 3*vibration``."""
    end = "highest" if query.order is Order.HIGHEST else "lowest"
    return f"the {query.k:,} {end} {query.score}"


def description_document(path: str, found: Description) -> dict[str, Any]:
    """Return how a query is doing."""
    lines = [{"label": label, "text": text} for label, text in found.lines]
    return {"query": path, "headline": found.headline, "lines": lines, "status": _status(found.status)}


def result_document(query: str, window_start: int, window_end: int, rows: tuple[ResultRow, ...]) -> dict[str, Any]:
    """Return a result in the form in which a replay writes it."""
    return {
        "query": query,
        "window_start": window_start,
        "window_end": window_end,
        "rows": [row_document(row) for row in rows],
    }


def row_document(row: ResultRow) -> dict[str, Any]:
    """Return a row of a result."""
    document: dict[str, Any] = {"rank": row.rank, "object_id": row.object_id, "score": row.score}
    document["attributes"] = row.attributes
    if row.event_time_us is not None:
        document["event_time"] = row.event_time_us
    return document


def _stamp(stamp: Stamp) -> dict[str, Any]:
    return {
        "uid": stamp.uid,
        "revision": stamp.revision,
        "etag": stamp.etag,
        "created": _iso(stamp.created_us),
        "updated": _iso(stamp.updated_us),
    }


def _status(status: QueryStatus) -> dict[str, Any]:
    return {
        "shards": [
            {
                "shard": shard.shard,
                "frontier": _known(shard.frontier_us),
                "newest": _known(shard.newest_us),
                "holder": None if shard.holder is None else _holder(shard.holder),
                "stopped": shard.stopped or None,
            }
            for shard in status.shards
        ],
        "silent_shards": list(status.silent_shards),
        "rows_in": status.rows_in,
        "rows_late": status.rows_late,
        "rejected": dict(status.rejected),
        "paused": dict(status.paused),
        "evaluations": status.evaluations,
        "last_result": None if status.last_result_us is None else _iso(status.last_result_us),
        "last_window_end": status.last_window_end,
        "hot": status.hot,
        "objects": status.objects,
        "state_bytes": status.state_bytes,
        "broken_promises": status.broken_promises,
        "approximation": None if status.approximation is None else _approximation(status.approximation),
    }


def _approximation(found: Approximation) -> dict[str, Any]:
    low, high = found.interval() or (None, None)
    return {**asdict(found), "recall_low": low, "recall_high": high}


def _holder(holder: Holder) -> dict[str, Any]:
    return {
        "stream": holder.stream,
        "partition": holder.partition,
        "watermark": _known(holder.watermark_us),
        "unread_rows": holder.unread_rows,
        "reader": holder.reader,
        "rows_per_second": holder.rows_per_second,
    }


def _known(us: int) -> int | None:
    return None if us == MIN_TIME_US else us


def _iso(us: int) -> str:
    return (_EPOCH + timedelta(microseconds=us)).isoformat()


def _values(stream: Stream) -> str:
    if stream.is_object_stream:
        return "; ".join(f"{a.name} {a.lo:g} to {a.hi:g}" for a in stream.attributes)
    return f"{stream.attributes[0].lo:g} to {stream.attributes[0].hi:g}"
