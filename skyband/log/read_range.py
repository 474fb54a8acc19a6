"""Reads what a log holds now, for those who need all of it before they go on."""

from collections.abc import Iterator

from skyband.errors import LogError
from skyband.log.record_log import Consumer, Position, Record, RecordLog

__all__ = ["read_all", "read_range"]

_BATCH = 1_000
_POLL_S = 1.0
_PATIENCE = 30


def read_range(consumer: Consumer, at: Position, start: int, end: int) -> Iterator[Record]:
    """Yield the records of [start, end), which must exist; `consumer` is assigned to `at` alone.

    Raises LogError if they are not there any more, or do not come within half a minute.
    """
    if start >= end:
        return
    consumer.assign({at: start})
    empty = 0
    while start < end:
        records = consumer.poll(_BATCH, _POLL_S)
        empty = 0 if records else empty + 1
        if empty > _PATIENCE:
            raise LogError(
                f"topic {at.topic!r} partition {at.partition} gives nothing from offset {start} on, though it goes to "
                f"{end}; see whether the log is well"
            )
        for record in records:
            start = record.next_offset
            if record.offset < end:
                yield record


def read_all(log: RecordLog, topic: str) -> Iterator[Record]:
    """Yield the records of a topic, partition after partition, up to where each ends now; raises as `read_range`."""
    positions = [Position(topic, partition) for partition in range(log.partitions(topic))]
    consumer = log.consumer()
    try:
        begins, ends = consumer.begin_offsets(positions), consumer.end_offsets(positions)
        for at in positions:
            yield from read_range(consumer, at, begins[at], ends[at])
    finally:
        consumer.close()
