"""The log that every stage reads and writes: partitions of records with offsets, groups of readers that commit.

A stage never knows whether it stands on memory or on Kafka. A *record* may span several offsets (a chunk of decoded
source rows is one record); the next record begins at ``offset + span``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Consumer", "Position", "Producer", "Record", "RecordLog"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """One partition of one topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record as read. `value` is a value of the model; its codec is the log's business."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: object
    timestamp_us: int
    span: int = 1

    @property
    def next_offset(self) -> int:
        """Offset at which the next record may begin."""
        return self.offset + self.span


class Producer(Protocol):
    """Appends records. Any failed delivery surfaces as LogError at the latest in `flush`."""

    def send(
        self,
        topic: str,
        partition: int,
        value: object,
        *,
        key: bytes | None = None,
        timestamp_us: int = 0,
        span: int = 1,
    ) -> None:
        """Append a record; blocks or raises CapacityError while the log is full."""

    def flush(self) -> None:
        """Return once everything sent is stored."""

    def close(self) -> None:
        """Flush and give up the producer."""


class Consumer(Protocol):
    """Reads assigned partitions in offset order. One thread owns it."""

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        """Read exactly these partitions from these offsets (None: the committed one; LogError if there is none)."""

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """Return up to `max_records` records, waiting at most `timeout_s` for the first."""

    def pause(self, positions: Sequence[Position]) -> None:
        """Stop delivering these partitions until `resume`."""

    def resume(self, positions: Sequence[Position]) -> None:
        """Deliver these partitions again."""

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the offset after the newest record of each partition."""

    def commit(self, offsets: Mapping[Position, int]) -> None:
        """Store next offsets for this reader's group."""

    def close(self) -> None:
        """Leave the group."""


class RecordLog(Protocol):
    """Topics, and readers and writers of them."""

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic; an existing one with as many partitions is fine, else LogError."""

    def partitions(self, name: str) -> int:
        """Return a topic's number of partitions; LogError if it does not exist."""

    def producer(self) -> Producer:
        """Return a new producer."""

    def consumer(self, group: str | None = None) -> Consumer:
        """Return a new consumer, committing for `group` if given."""
