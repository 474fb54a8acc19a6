"""The log that every stage reads and writes: partitions of records with offsets, groups of readers that commit.

A stage never knows whether it stands on memory or on Kafka. A *record* may span several offsets (a chunk of decoded
source rows is one record); the next record begins at ``offset + span``.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Committed", "Consumer", "Member", "Position", "Producer", "Record", "RecordLog"]


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


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group of readers has stored of one partition: the next offset, and a note of its own."""

    offset: int
    note: str = ""


class Member(Protocol):
    """What a reader does when its group shares the partitions out anew; called inside `Consumer.poll`."""

    def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
        """Take these partitions too, and return at which offset to read each."""

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        """Finish with these partitions and forget them; unless they are `lost`, what is done can still be committed."""


class Producer(Protocol):
    """Appends records. Any failed delivery surfaces as LogError at the latest in `flush`.

    A producer with a transactional id sends inside transactions only; who makes another one with the same id shuts it
    out (its next call raises LogError).
    """

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

    def transaction(self) -> AbstractContextManager[None]:
        """Make what is sent in the block visible at once at its end, or, if the block raises, never.

        Raises LogError if the end does not succeed; the outcome is then unknown: discard the producer, and read what is
        committed.
        """

    def close(self) -> None:
        """Flush and give up the producer."""


class Consumer(Protocol):
    """Reads partitions in offset order, committed transactions only. One thread owns it.

    Offsets at which there is no record for readers (markers of transactions, what compaction took away) come as part of
    no record, or as a record with the value None at the end of what can be read: so reading always reaches the end.
    """

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        """Read exactly these partitions from these offsets (None: the committed one; LogError if there is none)."""

    def subscribe(self, topics: Sequence[str], member: Member) -> None:
        """Share the partitions of these topics, also those to come, with the other members of the group."""

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """Return up to `max_records` records, waiting at most `timeout_s` for the first.

        Raises LogError if offsets are no longer there to be read, or a topic is not.
        """

    def pause(self, positions: Sequence[Position]) -> None:
        """Stop delivering these partitions until `resume`."""

    def resume(self, positions: Sequence[Position]) -> None:
        """Deliver these partitions again."""

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the lowest offset of each partition that can be read."""

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the offset after the newest record of each partition."""

    def committed(self, positions: Sequence[Position]) -> dict[Position, Committed]:
        """Return what this reader's group has stored of each partition, if anything."""

    def commit(self, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None) -> None:
        """Store next offsets for this reader's group, each with its note (at most 1,000 characters)."""

    def close(self) -> None:
        """Leave the group."""


class RecordLog(Protocol):
    """Topics, and readers and writers of them."""

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic; an existing one with as many partitions is fine, else LogError."""

    def partitions(self, name: str) -> int:
        """Return a topic's number of partitions; LogError if it does not exist."""

    def producer(self, transactional_id: str | None = None) -> Producer:
        """Return a new producer; with an id, the only one of that id that can still write."""

    def consumer(self, group: str | None = None) -> Consumer:
        """Return a new consumer, committing for `group` if given."""

    def commit_starts(self, group: str, offsets: Mapping[Position, int]) -> None:
        """Store at which offsets a group without members begins; what it has stored already stays."""

    def topic_id(self, name: str) -> str:
        """Return what tells this topic from another of the same name, made after it was deleted."""
