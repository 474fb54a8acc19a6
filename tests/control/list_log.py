"""A log of lists, enough for control: one process, every read sees every write, transactions keep nothing together."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from skyband.errors import LogError
from skyband.log.record_log import Position, Record


class ListLog:
    """Topics as lists of records. `refuse` is the number of sends until they fail (None: never)."""

    def __init__(self) -> None:
        self.topics: dict[Position, list[Record]] = {}
        self.refuse: int | None = None

    def create_topic(self, name: str, partitions: int) -> None:
        for partition in range(partitions):
            self.topics.setdefault(Position(name, partition), [])

    def partitions(self, name: str) -> int:
        return sum(position.topic == name for position in self.topics)

    def producer(self, transactional_id: str | None = None) -> "ListLog":
        return self

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def consumer(self, group: str | None = None) -> "ListReader":
        return ListReader(self)

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
        if self.refuse is not None:
            if self.refuse == 0:
                raise LogError("the log is away")
            self.refuse -= 1
        records = self.topics[Position(topic, partition)]
        offset = records[-1].next_offset if records else 0
        records.append(Record(topic, partition, offset, key, value, timestamp_us, span))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def compact(self, topic: str) -> None:
        """Keep the latest record of each key, as a broker may at any time."""
        records = self.topics[Position(topic, 0)]
        latest = {record.key: record for record in records}
        kept = [r for r in records if latest[r.key] is r]
        # The newest record stays, so that offsets go on from there.
        self.topics[Position(topic, 0)] = [r for r in kept if r.value is not None or r is records[-1]]


class ListReader:
    """Reads assigned partitions of a ListLog."""

    def __init__(self, log: ListLog) -> None:
        self.log = log
        self.at: dict[Position, int] = {}

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        self.at = {position: offset or 0 for position, offset in positions.items()}

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        found: list[Record] = []
        for position in self.at:
            for record in self.log.topics[position]:
                if record.offset >= self.at[position] and len(found) < max_records:
                    found.append(record)
                    self.at[position] = record.next_offset
        return found

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        return {p: self.log.topics[p][0].offset if self.log.topics[p] else 0 for p in positions}

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        return {p: self.log.topics[p][-1].next_offset if self.log.topics[p] else 0 for p in positions}

    def close(self) -> None:
        pass


def empty_log() -> ListLog:
    """Return a log with the topics that control needs."""
    log = ListLog()
    log.create_topic("catalog", 1)
    log.create_topic("progress", 2)
    return log
