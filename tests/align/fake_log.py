"""A record log in lists, with a journal of what was done and a cap on what it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skyband.errors import CapacityError
from skyband.log.record_log import Consumer, Position, Producer, Record


@dataclass
class FakeLog:
    """Records by partition; every send, flush and commit is noted in `journal`. `room`: sends until it is full."""

    topics: dict[str, int]
    records: dict[Position, list[Record]] = field(default_factory=dict)
    committed: dict[Position, int] = field(default_factory=dict)
    journal: list[str] = field(default_factory=list)
    room: float = float("inf")

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic."""
        self.topics[name] = partitions

    def partitions(self, name: str) -> int:
        """Return its number of partitions."""
        return self.topics[name]

    def producer(self) -> Producer:
        """Return a producer."""
        return FakeProducer(self)

    def consumer(self, group: str | None = None) -> Consumer:
        """Return a consumer."""
        return FakeConsumer(self)

    def put(self, position: Position, value: object, *, span: int = 1, offset: int | None = None) -> None:
        """Append a record, at `offset` if given."""
        records = self.records.setdefault(position, [])
        at = self.end(position) if offset is None else offset
        records.append(Record(position.topic, position.partition, at, None, value, 0, span))

    def end(self, position: Position) -> int:
        """Return the offset behind the newest record."""
        records = self.records.get(position)
        return records[-1].next_offset if records else 0

    def values(self, topic: str, partition: int) -> list[object]:
        """Return all values of a partition."""
        return [record.value for record in self.records.get(Position(topic, partition), [])]


@dataclass
class FakeProducer:
    """Appends to the lists of its log."""

    log: FakeLog

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
        """Append a record."""
        if self.log.room < 1:
            raise CapacityError("full")
        self.log.room -= 1
        assert partition < self.log.topics[topic]
        self.log.journal.append(f"send {topic}")
        self.log.put(Position(topic, partition), value, span=span)

    def flush(self) -> None:
        """Note it."""
        self.log.journal.append("flush")

    def close(self) -> None:
        """Do nothing."""


class FakeConsumer:
    """Reads the lists of its log, one partition after the other."""

    def __init__(self, log: FakeLog) -> None:
        self.log = log
        self.cursors: dict[Position, int] = {}
        self.paused: set[Position] = set()

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        """Take positions with their offsets."""
        self.cursors = {position: offset or 0 for position, offset in positions.items()}

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """Return what is there."""
        found: list[Record] = []
        for position, cursor in self.cursors.items():
            if position not in self.paused:
                fresh = [r for r in self.log.records.get(position, []) if r.next_offset > cursor]
                found += fresh[: max_records - len(found)]
        for record in found:
            self.cursors[Position(record.topic, record.partition)] = record.next_offset
        return found

    def pause(self, positions: Sequence[Position]) -> None:
        """Take note."""
        self.paused |= set(positions)

    def resume(self, positions: Sequence[Position]) -> None:
        """Take note."""
        self.paused -= set(positions)

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the ends."""
        return {position: self.log.end(position) for position in positions}

    def commit(self, offsets: Mapping[Position, int]) -> None:
        """Take note."""
        self.log.journal.append("commit")
        self.log.committed.update(offsets)

    def close(self) -> None:
        """Do nothing."""
