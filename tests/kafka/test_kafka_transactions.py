"""Transactions on a real Kafka: all or nothing, one writer an id, and readers that reach the end all the same."""

import pytest

from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from services.runtime.kafka_producer import KafkaProducer
from skyband.errors import LogError
from skyband.log.record_log import Position
from tests.kafka.logs import log_at, moments, reached, read_to_end, read_until, values

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(kafka: EmbeddedKafka, topic_name: str) -> KafkaLog:
    log = log_at(kafka.bootstrap)
    log.create_topic(topic_name, 2)
    return log


def write(producer: KafkaProducer, topic: str, *sent: object, fail: bool = False) -> None:
    """Send to both partitions in one transaction, which may fail once all is on the broker."""
    with producer.transaction():
        for value in sent:
            producer.send(topic, 0, value)
            producer.send(topic, 1, value)
        if fail:
            producer.flush()
            raise ValueError


def all_values(log: KafkaLog, topic: str) -> list[list[object]]:
    return [values(read_to_end(log.consumer(), {Position(topic, partition): 0})) for partition in (0, 1)]


def test_a_transaction_is_visible_at_its_end_and_not_before(log: KafkaLog, topic_name: str) -> None:
    at = Position(topic_name, 0)
    producer = log.producer(topic_name)
    consumer = log.consumer()
    consumer.assign({at: 0})
    with producer.transaction():
        producer.send(topic_name, 0, "a")
        producer.send(topic_name, 0, "b")
        producer.flush()
        assert consumer.end_offsets([at]) == {at: 2}
        assert consumer.poll(10, 0.5) == []
    records = read_until(consumer, lambda records: reached(records, {at: 0}) == consumer.end_offsets([at]))
    assert values(records) == ["a", "b"]
    assert consumer.end_offsets([at]) == {at: 3}


def test_a_transaction_whose_block_raises_is_never_visible_and_the_next_one_is(log: KafkaLog, topic_name: str) -> None:
    producer = log.producer(topic_name)
    with pytest.raises(ValueError):  # noqa: PT011
        write(producer, topic_name, "never", fail=True)
    write(producer, topic_name, "a")
    assert all_values(log, topic_name) == [["a"], ["a"]]


def test_reading_reaches_the_end_over_markers_and_what_was_aborted(log: KafkaLog, topic_name: str) -> None:
    at, other = Position(topic_name, 0), Position(topic_name, 1)
    producer = log.producer(topic_name)
    for i in range(3):
        write(producer, topic_name, i, i + 10)
        with pytest.raises(ValueError):  # noqa: PT011
            write(producer, topic_name, "never", fail=True)
    starts = {at: 0, other: 4}
    records = read_to_end(log.consumer(), starts)
    # A commit leaves 2 records and a marker, an abort 1 and a marker.
    assert reached(records, starts) == {at: 15, other: 15}
    assert values([r for r in records if r.partition == 0]) == [0, 10, 1, 11, 2, 12]
    assert values([r for r in records if r.partition == 1]) == [1, 11, 2, 12]
    last = [r for r in records if r.partition == 0][-1]
    assert (last.offset, last.value, last.next_offset) == (12, None, 15)


def test_a_newer_producer_of_the_same_id_shuts_the_older_out(log: KafkaLog, topic_name: str) -> None:
    older, other = log.producer(topic_name), log.producer(topic_name + "-other")
    write(older, topic_name, "before")
    newer = log.producer(topic_name)
    words = f"another producer with the transactional id '{topic_name}' has taken over"
    with pytest.raises(LogError, match=words):
        write(older, topic_name, "never")
    for call in (older.flush, lambda: older.send(topic_name, 0, 1), lambda: write(older, topic_name, "never")):
        with pytest.raises(LogError, match=words):
            call()
    older.close()
    write(newer, topic_name, "after")
    write(other, topic_name, "other")
    assert all_values(log, topic_name) == [["before", "after", "other"]] * 2


def test_a_newer_producer_ends_what_the_older_left_open(log: KafkaLog, topic_name: str) -> None:
    older = log.producer(topic_name)
    at = Position(topic_name, 0)

    def be_overtaken() -> None:
        with older.transaction():
            older.send(topic_name, 0, "never")
            older.flush()
            write(log.producer(topic_name), topic_name, "a")

    with pytest.raises(LogError, match="has taken over"):
        be_overtaken()
    assert values(read_to_end(log.consumer(), {at: 0})) == ["a"]


def test_an_error_in_the_block_goes_before_the_one_of_the_abort(log: KafkaLog, topic_name: str) -> None:
    older = log.producer(topic_name)

    def be_overtaken_and_fail() -> None:
        with older.transaction():
            older.send(topic_name, 0, "never")
            log.producer(topic_name)
            raise KeyError("of the block")

    with pytest.raises(KeyError, match="of the block"):
        be_overtaken_and_fail()


def test_transactions_need_an_id_and_an_id_transactions(log: KafkaLog, topic_name: str) -> None:
    with pytest.raises(LogError, match="has no transactional id"), log.producer().transaction():
        pass
    producer = log.producer(topic_name)
    with pytest.raises(LogError, match="sends inside transactions only"):
        producer.send(topic_name, 0, "a")
    with producer.transaction(), pytest.raises(LogError, match="is open already"), producer.transaction():
        pass
    write(producer, topic_name)
    producer.close()
    with pytest.raises(LogError, match="is closed"), producer.transaction():
        pass


@pytest.mark.slow
def test_reading_reaches_the_end_over_what_compaction_took_away(kafka: EmbeddedKafka, topic_name: str) -> None:
    log = log_at(kafka.bootstrap)
    topic = topic_name + "-compacted"
    quick = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "100"}
    log.create_topic(topic, 1, config={**quick, "max.compaction.lag.ms": "100"})
    at = Position(topic, 0)
    producer = log.producer()
    sent = 0
    for _ in moments():
        # A segment is closed by what comes after its time, and only closed ones are compacted.
        producer.send(topic, 0, sent, key=b"%d" % (sent % 3))
        producer.flush()
        sent += 1
        records = read_to_end(log.consumer(), {at: 0})
        if len(values(records)) < sent:
            break
    offsets = [record.offset for record in records if record.value is not None]
    assert offsets != list(range(sent))
    assert [record.value for record in records if record.value is not None] == offsets
    assert reached(records, {at: 0}) == {at: sent}
    hole = next(offset for offset in range(sent) if offset not in offsets)
    again = read_to_end(log.consumer(), {at: hole})
    # Kafka may have compacted once more; the newest record of each key stays.
    assert set(offsets[-3:]) <= set(values(again)) <= {offset for offset in offsets if offset > hole}
    assert reached(again, {at: hole}) == {at: sent}
