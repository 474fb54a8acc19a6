"""A record log of lists, for tests of the stage alone."""

from collections.abc import Mapping, Sequence

from skyband.errors import LogError
from skyband.log.record_log import Position, Record


class FakeLog:
    """Topics are lists of records; `trim` makes the oldest unreadable, `hidden` topics deliver nothing yet."""

    def __init__(self, **topics: int) -> None:
        self.topics: dict[str, list[list[Record]]] = {}
        for name, partitions in topics.items():
            self.create_topic(name, partitions)
        self.low: dict[Position, int] = {}
        self.hidden: set[str] = set()
        self.committed: dict[Position, int] = {}

    def create_topic(self, name: str, partitions: int) -> None:
        self.topics.setdefault(name, [[] for _ in range(partitions)])

    def partitions(self, name: str) -> int:
        if name not in self.topics:
            raise LogError(f"no topic {name!r}; create it")
        return len(self.topics[name])

    def producer(self) -> "FakeProducer":
        return FakeProducer(self)

    def consumer(self, group: str | None = None) -> "FakeConsumer":
        return FakeConsumer(self)

    def values(self, topic: str, partition: int = 0) -> list[object]:
        return [record.value for record in self.topics[topic][partition]]

    def send(self, topic: str, value: object, partition: int = 0) -> int:
        self.producer().send(topic, partition, value)
        return len(self.topics[topic][partition]) - 1

    def trim(self, topic: str, partition: int, low: int) -> None:
        self.low[Position(topic, partition)] = low


class FakeProducer:
    def __init__(self, log: FakeLog) -> None:
        self._log = log

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
        records = self._log.topics[topic][partition]
        records.append(Record(topic, partition, len(records), key, value, timestamp_us, span))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


class FakeConsumer:
    def __init__(self, log: FakeLog) -> None:
        self._log = log
        self._next: dict[Position, int] = {}

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        for position, offset in positions.items():
            assert offset is not None
            self._next[position] = offset

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        found: list[Record] = []
        for position, offset in self._next.items():
            if position.topic in self._log.hidden:
                continue
            if offset < self._log.low.get(position, 0):
                raise LogError(f"{position} no longer holds offset {offset}; start from a newer one")
            records = self._log.topics[position.topic][position.partition][offset : offset + max_records - len(found)]
            self._next[position] += len(records)
            found += records
        return found

    def pause(self, positions: Sequence[Position]) -> None:
        raise NotImplementedError

    def resume(self, positions: Sequence[Position]) -> None:
        raise NotImplementedError

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        return {at: len(self._log.topics[at.topic][at.partition]) for at in positions}

    def commit(self, offsets: Mapping[Position, int]) -> None:
        self._log.committed.update(offsets)

    def close(self) -> None:
        pass
