"""The memory log: a RecordLog in one process, for replay, demo, tests and the small deployment."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skyband.errors import CapacityError, LogError
from skyband.log.clock import Clock
from skyband.log.memory_partition import MemoryPartition
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


class MemoryLog:
    """Topics in memory, for any number of threads.

    Words: a *reader* of a topic is a consumer group that was named when the topic was made, or that has assigned or
    committed one of its partitions. What all readers of a partition have committed past is *done*.

    Retention: a topic made with ``truncate=True`` drops what is done, so its memory is flat while readers keep up and
    commit; a partition without readers keeps everything, so name those that will come later. Any other topic keeps
    everything, for consumers that read from the beginning. A partition holds at most `capacity` records (of whatever
    span); a send to a full one waits up to `send_timeout_s` for room, then raises CapacityError.

    Initially without topics. Invariant: every partition's records follow each other in offsets, none more than its
    capacity. Commits live as long as the log. One lock guards all; every send, commit and close wakes those who wait.
    """

    def __init__(self, clock: Clock, capacity: int = DEFAULT_CAPACITY, send_timeout_s: float = 0.0) -> None:
        self._clock = clock
        self._capacity = capacity
        self._send_timeout_s = send_timeout_s
        self._changed = threading.Condition()
        self._topics: dict[str, list[MemoryPartition]] = {}
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
                self._topics[name] = [MemoryPartition(size, truncate, readers) for _ in range(partitions)]
            elif len(existing) != partitions:
                raise LogError(f"topic {name!r} has {len(existing)} partitions, not {partitions}; ask for as many")

    def partitions(self, name: str) -> int:
        """Return a topic's number of partitions; LogError if it does not exist."""
        with self._changed:
            return len(self._topic(name))

    def producer(self) -> "MemoryProducer":
        """Return a new producer."""
        return MemoryProducer(self)

    def consumer(self, group: str | None = None) -> "MemoryConsumer":
        """Return a new consumer, committing for `group` if given."""
        return MemoryConsumer(self, group)

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
                for name, parts in self._topics.items()
                for number, part in enumerate(parts)
            }

    def _check_open(self) -> None:
        if self._closed:
            raise LogError("the log is closed; stop its producers and consumers before")

    def _topic(self, name: str) -> list[MemoryPartition]:
        if name not in self._topics:
            raise LogError(f"topic {name!r} does not exist; create it before")
        return self._topics[name]

    def _partition(self, position: Position) -> MemoryPartition:
        topic = self._topic(position.topic)
        if not 0 <= position.partition < len(topic):
            raise LogError(f"topic {position.topic!r} has partitions 0 to {len(topic) - 1}, not {position.partition}")
        return topic[position.partition]

    def _send(self, position: Position, key: bytes | None, value: object, timestamp_us: int, span: int) -> None:
        with self._changed:
            self._check_open()
            partition = self._partition(position)
            if span < 1:
                raise LogError(f"a record for {_name(position)} spans {span} offsets; it must span at least 1")
            if partition.is_full:
                self._changed.wait_for(lambda: self._closed or not partition.is_full, self._send_timeout_s)
                self._check_open()
            if partition.is_full:
                raise CapacityError(
                    f"{_name(position)} is full with {partition.size:,} records that {partition.waits_for}; let its "
                    "readers catch up and commit, or give the topic more capacity"
                )
            at = timestamp_us or self._clock.now_us()
            partition.append(Record(position.topic, position.partition, partition.end_offset, key, value, at, span))
            self._changed.notify_all()


class MemoryProducer:
    """Appends records of one owner; what is sent is stored at once."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._closed = False

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
        """Append a record (`timestamp_us` 0: now). Raises CapacityError if the partition stays full, else LogError."""
        self._check_open()
        self._log._send(Position(topic, partition), key, value, timestamp_us, span)

    def flush(self) -> None:
        """Return: everything is stored already."""
        self._check_open()

    def close(self) -> None:
        """Give up the producer; more sends raise LogError."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise LogError("the producer is closed; ask the log for a new one")


class MemoryConsumer:
    """Reads assigned partitions in offset order; one thread owns it.

    Polls serve the partitions in turn. A position inside a record (of a span above 1) delivers that record whole.
    """

    def __init__(self, log: MemoryLog, group: str | None) -> None:
        self._log = log
        self._group = group
        self._cursors: dict[Position, int] = {}
        self._paused: set[Position] = set()
        self._turn = 0
        self._closed = False

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        """Read exactly these partitions from these offsets (None: the committed one).

        Raises LogError if there is no commit, or the offset is not one from the partition's begin to its end.
        """
        with self._log._changed:
            self._check_open()
            cursors = {position: self._start(position, offset) for position, offset in positions.items()}
            if self._group is not None:
                for position in positions:
                    self._log._partition(position).register(self._group)
            self._cursors, self._turn = cursors, 0
            self._paused.clear()

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """Return up to `max_records` records, waiting at most `timeout_s` for the first; 0 never waits.

        Raises LogError if records were dropped under the cursor, or the log is closed.
        """
        with self._log._changed:
            self._check_open()
            records = self._read(max_records)
            if not records and timeout_s > 0:
                self._log._changed.wait_for(lambda: self._log._closed or self._has_records(), timeout_s)
                records = self._read(max_records)
            return records

    def pause(self, positions: Sequence[Position]) -> None:
        """Stop delivering these partitions until `resume`."""
        self._check_assigned(positions)
        self._paused.update(positions)

    def resume(self, positions: Sequence[Position]) -> None:
        """Deliver these partitions again."""
        self._check_assigned(positions)
        self._paused.difference_update(positions)

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the lowest offset of each partition that can be read."""
        with self._log._changed:
            self._check_open()
            return {position: self._log._partition(position).begin_offset for position in positions}

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the offset after the newest record of each partition."""
        with self._log._changed:
            self._check_open()
            return {position: self._log._partition(position).end_offset for position in positions}

    def commit(self, offsets: Mapping[Position, int]) -> None:
        """Store next offsets for this reader's group, and drop what is done where the topic says so."""
        with self._log._changed:
            self._check_open()
            if self._group is None:
                raise LogError("a consumer without a group cannot commit; ask the log for a consumer of a group")
            partitions = {position: self._log._partition(position) for position in offsets}
            for position, offset in offsets.items():
                if not 0 <= offset <= partitions[position].end_offset:
                    raise LogError(
                        f"group {self._group!r} commits offset {offset} of {_name(position)}, which ends at "
                        f"{partitions[position].end_offset}; commit what was read"
                    )
            for position, offset in offsets.items():
                partitions[position].commit(self._group, offset)
            self._log._changed.notify_all()

    def close(self) -> None:
        """Give up the consumer; its group's commits stay."""
        self._closed = True
        self._cursors.clear()

    def _start(self, position: Position, offset: int | None) -> int:
        partition = self._log._partition(position)
        if offset is None:
            offset = partition.committed(self._group)
            if offset is None:
                who = "a consumer without a group" if self._group is None else f"group {self._group!r}"
                raise LogError(f"{who} has committed no offset of {_name(position)}; assign one")
        if offset > partition.end_offset:
            raise LogError(
                f"offset {offset} of {_name(position)} is beyond its end {partition.end_offset}; begin there"
            )
        self._check_kept(position, partition, offset)
        return offset

    def _read(self, max_records: int) -> list[Record]:
        """Take up to so many records, beginning with the partition whose turn it is."""
        records: list[Record] = []
        order = list(self._cursors)
        for i in range(len(order)):
            if len(records) >= max_records:
                break
            position = order[(self._turn + i) % len(order)]
            if position in self._paused:
                continue
            partition = self._log._partition(position)
            self._check_kept(position, partition, self._cursors[position])
            found = partition.read(self._cursors[position], max_records - len(records))
            if found:
                self._cursors[position] = found[-1].next_offset
                records += found
        self._turn += 1
        return records

    def _has_records(self) -> bool:
        """Return whether a read would give something or fail."""
        for position, offset in self._cursors.items():
            partition = self._log._partition(position)
            if position not in self._paused and not partition.begin_offset <= offset == partition.end_offset:
                return True
        return False

    def _check_kept(self, position: Position, partition: MemoryPartition, offset: int) -> None:
        if offset < partition.begin_offset:
            raise LogError(
                f"offset {offset} of {_name(position)} is below {partition.begin_offset}, the lowest that is kept: its "
                "readers have committed past it; name this reader when the topic is made, or begin later"
            )

    def _check_assigned(self, positions: Sequence[Position]) -> None:
        for position in positions:
            if position not in self._cursors:
                raise LogError(f"{_name(position)} is not assigned to this consumer; assign it before")

    def _check_open(self) -> None:
        self._log._check_open()
        if self._closed:
            raise LogError("the consumer is closed; ask the log for a new one")


def _name(position: Position) -> str:
    return f"topic {position.topic!r} partition {position.partition}"
