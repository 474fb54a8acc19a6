"""Logs on a real Kafka for the tests, with values as JSON, and what reads them until something has come about."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import numpy.typing as npt
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from services.runtime.kafka_consumer import KafkaConsumer
from services.runtime.kafka_log import KafkaLog
from services.runtime.payloads import Payloads
from services.runtime.settings import KafkaSettings
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.record_log import Committed, Position, Record
from skyband.model.source_rows import SourceRows

# Nobody waits that long: it is the time after which a test has failed.
FOREVER_S = 60.0


class JsonCodecs:
    """Values as JSON."""

    def encode(self, topic: str, value: object) -> bytes | None:
        return None if value is None else json.dumps(value).encode()

    def decode(self, topic: str, data: bytes | None) -> object:
        return None if data is None else json.loads(data)


class RawRows:
    """A decoder that keeps offsets, times and bytes, and takes none of them apart."""

    def decode(
        self,
        offsets: npt.NDArray[np.int64],
        timestamps_us: npt.NDArray[np.int64],
        values: Payloads,
    ) -> SourceRows:
        rows = len(values)
        return SourceRows(
            offset=offsets,
            event_time_us=timestamps_us,
            id_bytes=np.zeros(0, np.uint8),
            id_ends=np.zeros(rows, np.int64),
            values=np.zeros((rows, 1)),
            reason=np.zeros(rows, np.uint8),
            timestamp_us=timestamps_us,
            raw=lambda index: values[index] or b"",
        )


def log_at(bootstrap: str, **settings: object) -> KafkaLog:
    """Return a log whose settings come from the test alone."""
    return KafkaLog(KafkaSettings(bootstrap=bootstrap, **settings), JsonCodecs())  # type: ignore[arg-type]


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result()


def grow_topic(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()


def delete_records(bootstrap: str, position: Position, below: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.delete_records([TopicPartition(position.topic, position.partition, below)]).values():
        done.result()


def moments(seconds: float = FOREVER_S) -> Iterator[None]:
    """Go on until a deadline, which fails the test."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
    raise AssertionError(f"it has not come about within {seconds} s")


def read_until(consumer: KafkaConsumer, is_enough: Callable[[list[Record]], bool], most: int = 1_000) -> list[Record]:
    """Poll until the records read so far are enough."""
    records: list[Record] = []
    for _ in moments():
        records += consumer.poll(most, 0.1)
        if is_enough(records):
            break
    return records


def read_to_end(consumer: KafkaConsumer, starts: Mapping[Position, int]) -> list[Record]:
    """Assign partitions and poll until the cursors are at their ends."""
    consumer.assign(dict(starts))
    ends = consumer.end_offsets(list(starts))
    return read_until(consumer, lambda records: reached(records, starts) == ends)


def reached(records: Sequence[Record], starts: Mapping[Position, int]) -> dict[Position, int]:
    """Return the cursors after these records; they must join up."""
    cursors = dict(starts)
    for record in records:
        position = Position(record.topic, record.partition)
        assert record.offset >= cursors[position]
        cursors[position] = record.next_offset
    return cursors


def values(records: Sequence[Record]) -> list[object]:
    return [record.value for record in records if record.value is not None]


class Reader:
    """A member that begins where its group has committed, and commits what it has read when it gives a partition up."""

    def __init__(self, log: KafkaLog, group: str, topics: Sequence[str]) -> None:
        self.consumer = log.consumer(group)
        self.held: set[Position] = set()
        self.lost: set[Position] = set()
        self.next: dict[Position, int] = {}
        self.seen: list[object] = []
        self.consumer.subscribe(topics, self)

    def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
        assert not self.held & set(positions)
        self.held |= set(positions)
        stored = self.consumer.committed(positions)
        begin = self.consumer.begin_offsets(positions)
        return {p: stored.get(p, Committed(begin[p])).offset for p in positions}

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        assert self.held >= set(positions)
        self.held -= set(positions)
        done = {p: self.next.pop(p) for p in positions if p in self.next}
        try:
            if not lost:
                self.consumer.commit(done)
        except CommitRefusedError:
            lost = True
        self.lost |= set(positions) if lost else set()

    def poll(self, timeout_s: float = 0.05, most: int = 100) -> None:
        for record in self.consumer.poll(most, timeout_s):
            position = Position(record.topic, record.partition)
            assert position in self.held
            self.next[position] = record.next_offset
            if record.value is not None:
                self.seen.append(record.value)

    def leave(self, others: Sequence["Reader"] = ()) -> None:
        """Commit, once no partitions are on the move, and go.

        The others are polled meanwhile: a commit waits behind a member's joining, and that for all other members.
        """
        with ThreadPoolExecutor(1) as threads:
            for _ in moments():
                commit = threads.submit(self.consumer.commit, dict(self.next))
                while not commit.done():
                    wait([commit], 0.02)
                    for other in others:
                        other.poll(0.0)
                try:
                    commit.result()
                except CommitRefusedError:
                    self.poll()
                else:
                    break
        self.consumer.close()
