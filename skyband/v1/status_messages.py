"""How a query is doing, as messages."""

from skyband.model.approximation import Approximation
from skyband.model.duration import MIN_TIME_US
from skyband.model.resources import stream_name
from skyband.model.status import Holder, QueryStatus, ShardStatus
from skyband.v1 import control_pb2
from skyband.v1.names import stream_reference
from skyband.v1.times import timestamp, timestamp_us

__all__ = ["read_status", "write_status"]


def write_status(status: QueryStatus) -> control_pb2.QueryStatus:
    """Return the message of a status."""
    last_us = status.last_result_us
    return control_pb2.QueryStatus(
        shards=[_write_shard(shard) for shard in status.shards],
        silent_shards=status.silent_shards,
        rows_in=status.rows_in,
        rows_late=status.rows_late,
        rejected=[control_pb2.RejectedRows(reason=reason, count=count) for reason, count in status.rejected],
        paused=[control_pb2.PausedPartitions(stream=stream_name(name), count=count) for name, count in status.paused],
        evaluations=status.evaluations,
        last_result_time=None if last_us is None else timestamp(last_us),
        last_window_end=status.last_window_end,
        hot=status.hot,
        objects=status.objects,
        state_bytes=status.state_bytes,
        broken_promises=status.broken_promises,
        approximation=None if status.approximation is None else _write_approximation(status.approximation),
    )


def read_status(message: control_pb2.QueryStatus) -> QueryStatus:
    """Return the status that a server has sent."""
    has_last = message.HasField("last_result_time")
    return QueryStatus(
        shards=tuple(_read_shard(shard) for shard in message.shards),
        silent_shards=tuple(message.silent_shards),
        rows_in=message.rows_in if message.HasField("rows_in") else None,
        rows_late=message.rows_late,
        rejected=tuple((rows.reason, rows.count) for rows in message.rejected),
        paused=tuple((stream_reference(p.stream, "status.paused.stream"), p.count) for p in message.paused),
        evaluations=message.evaluations,
        last_result_us=timestamp_us(message.last_result_time, "status.last_result_time") if has_last else None,
        last_window_end=message.last_window_end if message.HasField("last_window_end") else None,
        hot=message.hot,
        objects=message.objects,
        state_bytes=message.state_bytes,
        broken_promises=message.broken_promises,
        approximation=_read_approximation(message.approximation) if message.HasField("approximation") else None,
    )


def _write_approximation(found: Approximation) -> control_pb2.Approximation:
    low, high = found.interval() or (None, None)
    return control_pb2.Approximation(
        shown=found.shown,
        due=found.due,
        recall_low=low,
        recall_high=high,
        error=found.error,
        is_over_budget=found.is_over_budget,
        unknown=found.unknown,
        objects=found.objects,
    )


def _read_approximation(message: control_pb2.Approximation) -> Approximation:
    return Approximation(
        shown=message.shown,
        due=message.due,
        error=message.error if message.HasField("error") else None,
        is_over_budget=message.is_over_budget,
        unknown=message.unknown,
        objects=message.objects,
    )


def _write_shard(shard: ShardStatus) -> control_pb2.ShardStatus:
    return control_pb2.ShardStatus(
        shard=shard.shard,
        frontier_us=_known(shard.frontier_us),
        newest_us=_known(shard.newest_us),
        holder=None if shard.holder is None else _write_holder(shard.holder),
        stopped=shard.stopped,
    )


def _read_shard(message: control_pb2.ShardStatus) -> ShardStatus:
    return ShardStatus(
        shard=message.shard,
        frontier_us=message.frontier_us if message.HasField("frontier_us") else MIN_TIME_US,
        newest_us=message.newest_us if message.HasField("newest_us") else MIN_TIME_US,
        holder=_read_holder(message.holder) if message.HasField("holder") else None,
        stopped=message.stopped,
    )


def _write_holder(holder: Holder) -> control_pb2.Holder:
    return control_pb2.Holder(
        stream=stream_name(holder.stream),
        partition=holder.partition,
        watermark_us=_known(holder.watermark_us),
        unread_rows=holder.unread_rows,
        reader=holder.reader,
        rows_per_second=holder.rows_per_second,
        stopped=holder.stopped,
    )


def _read_holder(message: control_pb2.Holder) -> Holder:
    return Holder(
        stream=stream_reference(message.stream, "status.shards.holder.stream"),
        partition=message.partition,
        watermark_us=message.watermark_us if message.HasField("watermark_us") else MIN_TIME_US,
        unread_rows=message.unread_rows if message.HasField("unread_rows") else None,
        reader=message.reader,
        rows_per_second=message.rows_per_second if message.HasField("rows_per_second") else None,
        stopped=message.stopped,
    )


def _known(us: int) -> int | None:
    return None if us == MIN_TIME_US else us
