"""Reading a topic as it is now, whole: what a process does with a compacted one at its start."""

from collections.abc import Iterator

from skyband.errors import LogError
from skyband.log.record_log import Position, Record, RecordLog

__all__ = ["read_all"]

_BATCH = 1_000
_POLL_S = 1.0
_PATIENCE = 30


def read_all(log: RecordLog, topic: str) -> Iterator[Record]:
    """Yield the records of all partitions of a topic, up to where each ends now.

    Raises LogError if what is there does not come within half a minute.
    """
    positions = [Position(topic, partition) for partition in range(log.partitions(topic))]
    consumer = log.consumer()
    try:
        begins, ends = consumer.begin_offsets(positions), consumer.end_offsets(positions)
        left = {at: end for at, end in ends.items() if end > begins[at]}
        consumer.assign({at: begins[at] for at in left})
        empty = 0
        while left:
            records = consumer.poll(_BATCH, _POLL_S)
            empty = 0 if records else empty + 1
            if empty == _PATIENCE:
                raise LogError(f"topic {topic!r} does not give what it holds; see whether the log is well")
            for record in records:
                at = Position(record.topic, record.partition)
                if at in left:
                    yield record
                    if record.next_offset >= left[at]:
                        del left[at]
    finally:
        consumer.close()
