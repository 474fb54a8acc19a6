"""Messages taken past the client are those that the client would have brought, event by event."""

import gc
import hashlib
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_bulk import Chunk, Event, KafkaBulk
from tests.kafka.logs import FOREVER_S, moments

pytestmark = pytest.mark.kafka

PARTITIONS = 3
VALUES = [b"", None, b"x", b"0123456789" * 300, None, b"y" * 17]
Row = tuple[int, int, int, bytes | None]


@pytest.fixture
def topic(kafka: EmbeddedKafka, topic_name: str) -> str:
    """A topic of three partitions with 1,000 messages each, of all sizes and none."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic_name, PARTITIONS, 1)])[topic_name].result()
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for i in range(1_000):
        for partition in range(PARTITIONS):
            value = VALUES[(i + partition) % len(VALUES)]
            producer.produce(topic_name, value, b"k", partition, timestamp=1_000 + i)
    assert producer.flush(30) == 0
    return topic_name


def consumer_at(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "bulk", "enable.partition.eof": True})


@contextmanager
def bulk_at(bootstrap: str, topic: str, most: int = 500) -> Iterator[tuple[Consumer, KafkaBulk]]:
    """Read all of a topic past its client."""
    consumer = consumer_at(bootstrap)
    bulk = KafkaBulk(consumer, most)
    try:
        for partition in range(PARTITIONS):
            bulk.add(topic, partition)
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        yield consumer, bulk
    finally:
        bulk.close()
        consumer.close()


def rows(chunk: Chunk) -> list[Row]:
    columns = (chunk.offset.tolist(), chunk.time_us.tolist(), chunk.values)
    return [(chunk.partition, offset, time_us, value) for offset, time_us, value in zip(*columns, strict=True)]


def take_all(bulk: KafkaBulk, most: int = 500) -> tuple[list[Row], list[Event]]:
    """Take until each partition has told its end."""
    found: list[Row] = []
    events: list[Event] = []
    for _ in moments():
        chunks, told = bulk.take(most, 0.1)
        assert len({chunk.partition for chunk in chunks}) == len(chunks)
        assert sum(len(chunk.offset) for chunk in chunks) <= most
        for chunk in chunks:
            found += rows(chunk)
        events += told
        if len(events) == PARTITIONS:
            break
    return found, events


def of_client(bootstrap: str, topic: str) -> list[Row]:
    """Return the same as the client brings it."""
    consumer = consumer_at(bootstrap)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    messages: list[Message] = []
    for _ in moments():
        messages += [message for message in consumer.consume(500, 0.1) if message.error() is None]
        if len(messages) == 1_000 * PARTITIONS:
            break
    consumer.close()
    return [(m.partition() or 0, m.offset() or 0, 1_000 * m.timestamp()[1], m.value()) for m in messages]


@pytest.mark.parametrize("most", [1, 7, 500])
def test_it_brings_what_the_client_brings(kafka: EmbeddedKafka, topic: str, most: int) -> None:
    with bulk_at(kafka.bootstrap, topic) as (_, bulk):
        found, events = take_all(bulk, most)
    by_partition = [[row for row in found if row[0] == partition] for partition in range(PARTITIONS)]
    right = of_client(kafka.bootstrap, topic)
    assert by_partition == [[row for row in right if row[0] == partition] for partition in range(PARTITIONS)]
    assert {(event.topic, event.partition, event.offset) for event in events} == {(topic, p, 1_000) for p in range(3)}
    assert {event.error.code() for event in events} == {KafkaError._PARTITION_EOF}


def test_nothing_of_a_partition_comes_through_the_client(kafka: EmbeddedKafka, topic: str) -> None:
    with bulk_at(kafka.bootstrap, topic) as (consumer, bulk):
        take_all(bulk)
        assert consumer.consume(10, 0.2) == []


def test_after_a_seek_a_partition_goes_on_there_and_nowhere_else(kafka: EmbeddedKafka, topic: str) -> None:
    with bulk_at(kafka.bootstrap, topic) as (consumer, bulk):
        for _ in moments():
            if bulk.take(500, 0.1)[0]:
                break
        consumer.seek(TopicPartition(topic, 1, 990))
        for _ in moments():
            chunks, _ = bulk.take(500, 0.1)
            its = [chunk for chunk in chunks if chunk.partition == 1]
            if its:
                break
    assert its[0].offset.tolist() == list(range(990, 1_000))


def test_a_paused_partition_rests_and_goes_on_where_it_was(kafka: EmbeddedKafka, topic: str) -> None:
    with bulk_at(kafka.bootstrap, topic) as (consumer, bulk):
        found: list[Row] = []
        for _ in moments():
            for chunk in bulk.take(10, 0.1)[0]:
                found += rows(chunk)
            if {row[0] for row in found} == {0, 1, 2}:
                break
        consumer.pause([TopicPartition(topic, 0)])
        resting: list[Row] = []
        for _ in moments():
            chunks, _ = bulk.take(500, 0.1)
            resting += [row for chunk in chunks for row in rows(chunk)]
            if sum(row[0] != 0 for row in resting + found) == 2_000:
                break
        assert all(row[0] != 0 for row in resting)
        consumer.resume([TopicPartition(topic, 0)])
        for _ in moments():
            for chunk in bulk.take(500, 0.1)[0]:
                found += rows(chunk)
            if sum(row[0] == 0 for row in found) == 1_000:
                break
    assert [row[1] for row in found if row[0] == 0] == list(range(1_000))


def test_an_error_comes_as_an_event_with_the_words_of_the_library(kafka: EmbeddedKafka, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "bulk", "auto.offset.reset": "error"})
    bulk = KafkaBulk(consumer, 10)
    bulk.add(topic, 0)
    consumer.assign([TopicPartition(topic, 0, 5_000)])
    for _ in moments():
        chunks, events = bulk.take(10, 0.1)
        assert chunks == []
        if events:
            break
    bulk.close()
    consumer.close()
    assert events[0].error.code() == KafkaError._AUTO_OFFSET_RESET
    assert "5000" in events[0].error.str() or "out of range" in events[0].error.str().lower()


def digest(bootstrap: str, topic: str) -> str:
    """Return a digest of all columns of a topic."""
    with bulk_at(bootstrap, topic) as (_, bulk):
        found, _ = take_all(bulk)
    return hashlib.sha256(repr(sorted(found, key=lambda row: row[:2])).encode()).hexdigest()


def test_interpreted_kernels_read_the_same(kafka: EmbeddedKafka, topic: str) -> None:
    program = f"from tests.kafka.test_kafka_bulk import digest; print(digest({kafka.bootstrap!r}, {topic!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=FOREVER_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest(kafka.bootstrap, topic)


def test_a_reader_that_nobody_closed_comes_to_its_end(kafka: EmbeddedKafka, topic: str) -> None:
    consumer = consumer_at(kafka.bootstrap)
    bulk = KafkaBulk(consumer, 10)
    bulk.add(topic, 0)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    for _ in moments():
        if bulk.take(10, 0.1)[0]:
            break
    gone = weakref.ref(bulk)
    cycle: list[object] = [consumer, bulk]
    cycle.append(cycle)
    del consumer, bulk, cycle
    gc.collect()
    assert gone() is None


def test_more_is_never_taken_than_there_is_room_for(kafka: EmbeddedKafka, topic: str) -> None:
    with bulk_at(kafka.bootstrap, topic, most=20) as (_, bulk):
        for _ in moments():
            chunks, _ = bulk.take(1_000, 0.1)
            if chunks:
                break
        assert 0 < int(np.sum([len(chunk.offset) for chunk in chunks])) <= 20
