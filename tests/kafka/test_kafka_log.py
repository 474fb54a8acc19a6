"""The record log on a real Kafka: topics, records, offsets and commits."""

import numpy as np
import numpy.typing as npt
import pytest
from confluent_kafka import Producer

from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from services.runtime.payloads import Payloads
from skyband.errors import LogError
from skyband.log.record_log import Committed, Position, Record, RecordLog
from skyband.model.source_rows import SourceRows
from tests.kafka.logs import (
    JsonCodecs,
    RawRows,
    Reader,
    delete_records,
    delete_topic,
    log_at,
    moments,
    reached,
    read_to_end,
    read_until,
    values,
)

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(kafka: EmbeddedKafka) -> KafkaLog:
    return log_at(kafka.bootstrap)


def send(log: KafkaLog, topic: str, *sent: object, partition: int = 0) -> None:
    producer = log.producer()
    for value in sent:
        producer.send(topic, partition, value)
    producer.close()


def test_topics_are_made_once_and_have_ids(log: KafkaLog, topic_name: str, kafka: EmbeddedKafka) -> None:
    as_protocol: RecordLog = log
    assert log.is_missing(topic_name)
    with pytest.raises(LogError, match=f"topic '{topic_name}' does not exist; create it before"):
        as_protocol.partitions(topic_name)
    log.create_topic(topic_name, 3, config={"cleanup.policy": "compact"})
    log.create_topic(topic_name, 3)
    assert (log.partitions(topic_name), log.is_missing(topic_name)) == (3, False)
    assert log.topic_config(topic_name)["cleanup.policy"] == "compact"
    with pytest.raises(LogError, match=f"topic '{topic_name}' has 3 partitions, not 4; ask for as many"):
        log.create_topic(topic_name, 4)
    first = log.topic_id(topic_name)
    assert first == log_at(kafka.bootstrap).topic_id(topic_name)
    delete_topic(kafka.bootstrap, topic_name)
    for _ in moments():
        if log.is_missing(topic_name):
            break
    log.create_topic(topic_name, 3)
    assert log.topic_id(topic_name) != first


def test_a_record_comes_back_as_it_was_sent(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 2)
    producer = log.producer()
    producer.send(topic_name, 1, {"a": [1, 2.5]}, key=b"k", timestamp_us=1_700_000_000_123_456)
    producer.send(topic_name, 1, None, key=b"k", timestamp_us=1_700_000_000_124_000)
    producer.flush()
    assert read_to_end(log.consumer(), {Position(topic_name, 1): 0}) == [
        Record(topic_name, 1, 0, b"k", {"a": [1, 2.5]}, 1_700_000_000_123_000),
        Record(topic_name, 1, 1, b"k", None, 1_700_000_000_124_000),
    ]
    assert read_to_end(log.consumer(), {Position(topic_name, 1): 1})[0].offset == 1


def test_what_cannot_be_sent_is_refused_before_it_waits(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 1)
    producer = log.producer()
    with pytest.raises(LogError, match=f"topic '{topic_name}' has partitions 0 to 0, not 1"):
        producer.send(topic_name, 1, "a")
    with pytest.raises(LogError, match=f"topic '{topic_name}x' does not exist"):
        producer.send(topic_name + "x", 0, "a")
    with pytest.raises(LogError, match="spans 2 offsets; on Kafka each has one"):
        producer.send(topic_name, 0, "a", span=2)
    producer.send(topic_name, 0, "a")
    producer.close()
    with pytest.raises(LogError, match="the producer is closed"):
        producer.send(topic_name, 0, "a")
    assert values(read_to_end(log.consumer(), {Position(topic_name, 0): 0})) == ["a"]


def test_records_of_source_topics_come_in_chunks_that_join_up(log: KafkaLog, topic_name: str) -> None:
    other = topic_name + "-other"
    log.create_topic(topic_name, 3)
    log.create_topic(other, 1)
    raw = Producer({"bootstrap.servers": log.settings.bootstrap, "linger.ms": 50})
    for i in range(3_000):
        raw.produce(topic_name, b"%d" % i, partition=i % 3, timestamp=1_000 + i)
        if i % 10 == 0:
            raw.produce(other, b"%d" % i, partition=0)
    raw.flush()
    starts = {Position(topic_name, 0): 0, Position(topic_name, 1): 5, Position(topic_name, 2): 0, Position(other, 0): 0}
    consumer = log.reading({topic_name: RawRows()}).consumer()
    records = read_to_end(consumer, starts)
    assert reached(records, starts)[Position(topic_name, 1)] == 1_000
    chunks = [record for record in records if record.topic == topic_name]
    assert len(chunks) < 300
    for partition in range(3):
        cursor = starts[Position(topic_name, partition)]
        for chunk in (record for record in chunks if record.partition == partition):
            rows = chunk.value
            assert isinstance(rows, SourceRows)
            assert (chunk.offset, chunk.next_offset) == (cursor, cursor + rows.rows)
            assert rows.offset.tolist() == list(range(cursor, cursor + rows.rows))
            sent = [offset * 3 + partition for offset in rows.offset.tolist()]
            assert [rows.raw(i) for i in range(rows.rows)] == [b"%d" % i for i in sent]
            assert rows.timestamp_us.tolist() == [(1_000 + i) * 1_000 for i in sent]
            assert chunk.timestamp_us == rows.timestamp_us[-1]
            cursor = chunk.next_offset
    assert values([record for record in records if record.topic == other]) == list(range(0, 3_000, 10))


def test_a_poll_that_waits_returns_with_the_first_record(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 1)
    consumer = log.consumer()
    consumer.assign({Position(topic_name, 0): 0})
    assert consumer.poll(10, 0) == []
    send(log, topic_name, "a")
    assert values(consumer.poll(1_000, 60.0)) == ["a"]
    assert log.trouble is None


def test_a_poll_returns_no_more_than_asked_for(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 1)
    send(log, topic_name, *range(10))
    consumer = log.consumer()
    consumer.assign({Position(topic_name, 0): 0})
    polled = [consumer.poll(3, 1.0) for _ in range(4)]
    assert [len(records) for records in polled] == [3, 3, 3, 1]


def test_paused_partitions_are_not_delivered_until_resumed(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 2)
    consumer = log.consumer()
    consumer.assign({Position(topic_name, 0): 0, Position(topic_name, 1): 0})
    consumer.pause([Position(topic_name, 0)])
    send(log, topic_name, "a", "b")
    send(log, topic_name, "u", partition=1)
    assert values(read_until(consumer, lambda records: bool(values(records)))) == ["u"]
    consumer.resume([Position(topic_name, 0)])
    assert values(read_until(consumer, lambda records: len(records) == 2)) == ["a", "b"]
    with pytest.raises(LogError, match="partition 2 is not assigned"):
        consumer.pause([Position(topic_name, 2)])


def test_offsets_are_the_ones_of_now(log: KafkaLog, topic_name: str, kafka: EmbeddedKafka) -> None:
    log.create_topic(topic_name, 2)
    at, other = Position(topic_name, 0), Position(topic_name, 1)
    consumer = log.consumer()
    assert consumer.end_offsets([at, other]) == consumer.begin_offsets([at, other]) == {at: 0, other: 0}
    producer = log.producer()
    for i in range(5):
        producer.send(topic_name, 0, i, timestamp_us=(1_000 + i) * 1_000)
    producer.flush()
    assert consumer.end_offsets([at, other]) == {at: 5, other: 0}
    assert consumer.offsets_at([at, other], 1_002_000) == {at: 2, other: 0}
    assert consumer.offsets_at([at], 1_002_001) == {at: 3}
    assert consumer.offsets_at([at], 9_000_000) == {at: 5}
    delete_records(kafka.bootstrap, at, 3)
    assert consumer.begin_offsets([at, other]) == {at: 3, other: 0}
    with pytest.raises(LogError, match="has partitions 0 to 1, not 2"):
        consumer.end_offsets([Position(topic_name, 2)])
    with pytest.raises(LogError, match="does not exist"):
        consumer.end_offsets([Position(topic_name + "x", 0)])


# Commits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_commit_keeps_its_note_and_a_group_goes_on_there(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 2)
    send(log, topic_name, *range(5))
    at, other = Position(topic_name, 0), Position(topic_name, 1)
    consumer = log.consumer(topic_name)
    assert consumer.committed([at, other]) == {}
    with pytest.raises(LogError, match=f"group '{topic_name}' has committed no offset of topic '{topic_name}' part"):
        consumer.assign({at: None})
    note = '{"watermark_us": 5, "é": "' + "x" * 900 + '"}'
    consumer.assign({at: 0})
    consumer.commit({at: 2, other: 0}, {at: note})
    assert log.consumer(topic_name).committed([at, other]) == {at: Committed(2, note), other: Committed(0)}
    consumer.commit({at: 3})
    consumer.close()
    again = log.consumer(topic_name)
    assert again.committed([at]) == {at: Committed(3)}
    again.assign({at: None})
    assert values(read_until(again, lambda records: len(records) == 2)) == [3, 4]


def test_commits_are_checked(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 1)
    at = Position(topic_name, 0)
    with pytest.raises(LogError, match="without a group cannot commit"):
        log.consumer().commit({at: 1})
    with pytest.raises(LogError, match="without a group cannot look for commits"):
        log.consumer().committed([at])
    with pytest.raises(LogError, match="with a note of 1,001 characters; keep it within 1,000"):
        log.consumer(topic_name).commit({at: 1}, {at: "x" * 1_001})


def test_starts_are_stored_where_nothing_is_committed_yet(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 3)
    at, other, third = (Position(topic_name, partition) for partition in range(3))
    for partition in range(3):
        send(log, topic_name, *range(5), partition=partition)
    consumer = log.consumer(topic_name)
    consumer.commit({at: 1}, {at: "note"})
    log.commit_starts(topic_name, {at: 2, other: 2})
    assert consumer.committed([at, other, third]) == {at: Committed(1, "note"), other: Committed(2)}
    log.commit_starts(topic_name, {at: 7, other: 7})
    assert consumer.committed([at, other]) == {at: Committed(1, "note"), other: Committed(2)}
    with pytest.raises(LogError, match=f"topic '{topic_name}x' does not exist"):
        log.commit_starts(topic_name, {Position(topic_name + "x", 0): 0})
    reader = Reader(log, topic_name, [topic_name])
    for _ in moments():
        reader.poll()
        if reader.held:
            break
    with pytest.raises(LogError, match=f"group '{topic_name}' has members, which have begun already"):
        log.commit_starts(topic_name, {third: 0})
    reader.leave()


# Records that cannot be read ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_record_that_cannot_be_read_is_named_and_not_passed_over(log: KafkaLog, topic_name: str) -> None:
    log.create_topic(topic_name, 1)
    send(log, topic_name, "a")
    raw = Producer({"bootstrap.servers": log.settings.bootstrap})
    raw.produce(topic_name, b"no JSON", partition=0)
    raw.flush()
    consumer = log.consumer()
    consumer.assign({Position(topic_name, 0): 0})
    assert values(read_until(consumer, lambda records: len(records) == 1, most=1)) == ["a"]
    for _ in range(2):
        with pytest.raises(LogError, match=f"record at offset 1 of topic '{topic_name}' partition 0 cannot be read"):
            read_until(consumer, lambda records: bool(records))


def test_what_a_decoder_could_not_decode_yet_comes_again(log: KafkaLog, topic_name: str) -> None:
    class Late(RawRows):
        calls = 0

        def decode(
            self,
            offsets: npt.NDArray[np.int64],
            timestamps_us: npt.NDArray[np.int64],
            values: Payloads,
        ) -> SourceRows:
            self.calls += 1
            if self.calls in (2, 3):
                raise LogError("the schema registry does not answer")
            return super().decode(offsets, timestamps_us, values)

    log.create_topic(topic_name, 2)
    for partition in (0, 1):
        send(log, topic_name, *range(100), partition=partition)
    starts = {Position(topic_name, 0): 0, Position(topic_name, 1): 0}
    consumer = log.reading({topic_name: Late()}).consumer()
    consumer.assign(starts)
    ends = dict.fromkeys(starts, 100)
    records: list[Record] = []
    failures = 0
    for _ in moments():
        try:
            records += consumer.poll(10, 0.1)
        except LogError:
            failures += 1
        if reached(records, starts) == ends:
            break
    assert failures == 2
    for position in starts:
        rows = [r.value for r in records if r.partition == position.partition and isinstance(r.value, SourceRows)]
        assert np.concatenate([chunk.offset for chunk in rows]).tolist() == list(range(100))


# Names ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_prefix_keeps_two_deployments_apart_and_leaves_sources_alone(kafka: EmbeddedKafka, topic_name: str) -> None:
    class Codecs(JsonCodecs):
        def decode(self, topic: str, data: bytes | None) -> object:
            return (topic, super().decode(topic, data))

    left, right = (log_at(kafka.bootstrap, topic_prefix=f"{topic_name}.{side}.") for side in "lr")
    left._codecs = right._codecs = Codecs()
    aligned = Position("aligned.factory.1", 0)
    for log in (left, right):
        log.create_topic(aligned.topic, 1)
    left.create_topic(topic_name, 1)
    assert right.partitions(topic_name) == 1
    send(left, aligned.topic, "of the left")
    send(left, topic_name, "a source")
    with right.producer("skyband.control").transaction():
        pass
    with left.producer("skyband.control").transaction():
        pass
    assert left.consumer().end_offsets([aligned]) == {aligned: 1}
    assert right.consumer().end_offsets([aligned]) == {aligned: 0}
    left.consumer("skyband.engine").commit({aligned: 1})
    assert right.consumer("skyband.engine").committed([aligned]) == {}
    starts = {aligned: 0, Position(topic_name, 0): 0}
    read = values(read_to_end(left.consumer(), starts))
    assert sorted(read, key=str) == [(aligned.topic, "of the left"), (topic_name, "a source")]
    with pytest.raises(LogError, match=r"topic 'aligned\.factory\.2' does not exist"):
        left.partitions("aligned.factory.2")
