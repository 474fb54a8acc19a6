"""The memory log: a RecordLog in one process, for replay, demo, tests and the small deployment."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skyband.errors import CapacityError, LogError, TakenOverError
from skyband.log.clock import Clock
from skyband.log.memory_consumer import MemoryConsumer
from skyband.log.memory_group import MemoryGroup
from skyband.log.memory_partition import MemoryPartition
from skyband.log.memory_producer import MemoryProducer, Sent
from skyband.log.record_log import Position, Record

__all__ = ["MemoryConsumer", "MemoryLog", "MemoryProducer", "PartitionStatistics"]

DEFAULT_CAPACITY = 1_000_000


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """Records kept now and at most, and the offsets [begin, end) that can be read."""

    records: int
    peak_records: int
    begin_offset: int
    end_offset: int


@dataclass(slots=True)
class _Topic:
    """A topic's partitions, and what new ones of it are made with."""

    capacity: int
    truncate: bool
    readers: tuple[str, ...]
    partitions: list[MemoryPartition] = field(default_factory=list)

    def grow(self, partitions: int) -> None:
        while len(self.partitions) < partitions:
            self.partitions.append(MemoryPartition(self.capacity, self.truncate, self.readers))


class MemoryLog:
    """Topics in memory, for any number of threads.

    Words: a *reader* of a topic is a consumer group that was named when the topic was made, that has a member
    subscribed to it, or that has assigned or committed one of its partitions. What all readers of a partition have
    committed past is *done*.

    Retention: a topic made with ``truncate=True`` drops what is done, so its memory is flat while readers keep up and
    commit; a partition without readers keeps everything, so name those that will come later. Any other topic keeps
    everything, for consumers that read from the beginning. A partition holds at most `capacity` records (of whatever
    span); a send to a full one waits up to `send_timeout_s` for room, then raises CapacityError.

    Initially without topics. Invariant: every partition's records follow each other in offsets, none more than its
    capacity. Commits live as long as the log. One lock guards all; whatever a poll or a send may wait for wakes those
    who wait.
    """

    def __init__(self, clock: Clock, capacity: int = DEFAULT_CAPACITY, send_timeout_s: float = 0.0) -> None:
        self._clock = clock
        self._capacity = capacity
        self._send_timeout_s = send_timeout_s
        self._changed = threading.Condition()
        self._topics: dict[str, _Topic] = {}
        self._groups: dict[str, MemoryGroup] = {}
        self._epochs: dict[str, int] = {}
        self._closed = False

    def create_topic(
        self,
        name: str,
        partitions: int,
        *,
        capacity: int | None = None,
        truncate: bool = False,
        readers: Sequence[str] = (),
    ) -> None:
        """Make a topic; an existing one with as many partitions stays as it is.

        `capacity` in records for each partition (the log's, if None); `truncate` and `readers`: see the class.
        Raises LogError for another number of partitions.
        """
        with self._changed:
            self._check_open()
            existing = self._topics.get(name)
            if existing is None:
                size = self._capacity if capacity is None else capacity
                if partitions < 1 or size < 1:
                    raise LogError(f"topic {name!r} needs at least 1 partition and room for 1 record; ask for as much")
                topic = self._topics[name] = _Topic(size, truncate, tuple(readers))
                topic.grow(partitions)
                self._changed.notify_all()
            elif len(existing.partitions) != partitions:
                raise LogError(
                    f"topic {name!r} has {len(existing.partitions)} partitions, not {partitions}; ask for as many"
                )

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions, as an operator would. Raises LogError for fewer than it has."""
        with self._changed:
            topic = self._topic(name)
            if partitions < len(topic.partitions):
                raise LogError(f"topic {name!r} has {len(topic.partitions)} partitions; it cannot shrink")
            topic.grow(partitions)
            self._changed.notify_all()

    def partitions(self, name: str) -> int:
        """Return a topic's number of partitions; LogError if it does not exist."""
        with self._changed:
            return len(self._topic(name).partitions)

    def topic_id(self, name: str) -> str:
        """Return what tells this topic from others: here its number, since no topic is ever deleted."""
        with self._changed:
            self._topic(name)
            return str(list(self._topics).index(name))

    def producer(self, transactional_id: str | None = None) -> MemoryProducer:
        """Return a new producer; with an id, the only one of that id that can still write."""
        return MemoryProducer(self, transactional_id)

    def consumer(self, group: str | None = None) -> MemoryConsumer:
        """Return a new consumer, committing for `group` if given."""
        return MemoryConsumer(self, group)

    def commit_starts(self, group: str, offsets: Mapping[Position, int]) -> None:
        """Store at which offsets a group begins; what it has stored already stays.

        Raises LogError if the group has members and something would have to be stored, or an offset is past the end.
        """
        with self._changed:
            self._check_open()
            new = {p: offset for p, offset in offsets.items() if self._partition(p).committed(group) is None}
            if new and not self._group(group).is_empty:
                raise LogError(f"group {group!r} has members, which have begun already; stop them before")
            for position, offset in new.items():
                self._check_offset(group, position, offset)
            for position, offset in new.items():
                self._partition(position).commit(group, offset)
            self._changed.notify_all()

    def close(self) -> None:
        """Wake everybody who waits: polls return what they have, sends and all later calls raise LogError."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def statistics(self) -> dict[Position, PartitionStatistics]:
        """Return what each partition holds."""
        with self._changed:
            return {
                Position(name, number): PartitionStatistics(part.size, part.peak, part.begin_offset, part.end_offset)
                for name, topic in self._topics.items()
                for number, part in enumerate(topic.partitions)
            }

    # What producers and consumers stand on; all but `_append` and the epochs are called under the lock.

    def _check_open(self) -> None:
        if self._closed:
            raise LogError("the log is closed; stop its producers and consumers before")

    def _topic(self, name: str) -> _Topic:
        if name not in self._topics:
            raise LogError(f"topic {name!r} does not exist; create it before")
        return self._topics[name]

    def _partition(self, position: Position) -> MemoryPartition:
        partitions = self._topic(position.topic).partitions
        if not 0 <= position.partition < len(partitions):
            raise LogError(
                f"topic {position.topic!r} has partitions 0 to {len(partitions) - 1}, not {position.partition}"
            )
        return partitions[position.partition]

    def _group(self, name: str) -> MemoryGroup:
        return self._groups.setdefault(name, MemoryGroup())

    def _check_offset(self, group: str, position: Position, offset: int) -> None:
        end = self._partition(position).end_offset
        if not 0 <= offset <= end:
            raise LogError(
                f"group {group!r} commits offset {offset} of {_name(position)}, which ends at {end}; "
                "commit what was read"
            )

    def _begin_epoch(self, transactional_id: str) -> int:
        with self._changed:
            self._check_open()
            epoch = self._epochs[transactional_id] = self._epochs.get(transactional_id, 0) + 1
            return epoch

    def _check_epoch(self, transactional_id: str, epoch: int) -> None:
        with self._changed:
            if self._epochs[transactional_id] != epoch:
                raise TakenOverError(
                    f"another producer with the transactional id {transactional_id!r} has taken over; "
                    "discard this one and read what is committed"
                )

    def _check_sent(self, sent: Sent) -> None:
        with self._changed:
            self._check_open()
            self._partition(sent.position)
            if sent.span < 1:
                raise LogError(
                    f"a record for {_name(sent.position)} spans {sent.span} offsets; it must span at least 1"
                )

    def _append(self, batch: Sequence[Sent], transactional_id: str | None = None, epoch: int = 0) -> None:
        """Append all of a batch, or nothing of it."""
        with self._changed:
            for sent in batch:
                self._check_sent(sent)
            if self._full(batch) is not None:
                self._changed.wait_for(lambda: self._closed or self._full(batch) is None, self._send_timeout_s)
                self._check_open()
            full = self._full(batch)
            if full is not None:
                partition = self._partition(full)
                raise CapacityError(
                    f"{_name(full)} is full with {partition.size:,} records that {partition.waits_for}; let its "
                    "readers catch up and commit, or give the topic more capacity"
                )
            if transactional_id is not None:
                self._check_epoch(transactional_id, epoch)
            now_us = self._clock.now_us()
            for sent in batch:
                at, partition = sent.position, self._partition(sent.position)
                time_us = sent.timestamp_us or now_us
                partition.append(
                    Record(at.topic, at.partition, partition.end_offset, sent.key, sent.value, time_us, sent.span)
                )
            self._changed.notify_all()

    def _full(self, batch: Sequence[Sent]) -> Position | None:
        """Return a partition in which there is no room for its part of the batch, if any."""
        if len(batch) == 1:
            return None if self._partition(batch[0].position).room else batch[0].position
        wanted: dict[Position, int] = {}
        for sent in batch:
            wanted[sent.position] = wanted.get(sent.position, 0) + 1
        return next((at for at, records in wanted.items() if self._partition(at).room < records), None)


def _name(position: Position) -> str:
    return f"topic {position.topic!r} partition {position.partition}"
