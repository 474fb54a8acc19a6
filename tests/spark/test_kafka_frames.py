"""Topics as frames, on a real Kafka: exact offsets, committed records alone, and errors in words."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from services.runtime.embedded import EmbeddedKafka
from services.runtime.embedded.ports import free_ports
from services.runtime.kafka_producer import KafkaProducer
from services.runtime.settings import KafkaSettings
from skyband.errors import DefinitionError, LogError
from skyband.log.record_log import Position
from spark.kafka_frames import follow_topics, read_topic
from tests.kafka.logs import delete_records, log_at

pytestmark = pytest.mark.spark

IMPATIENT = KafkaSettings(request_timeout_s=1.0, unreachable_after_s=2.0)


@pytest.fixture
def topic(kafka: EmbeddedKafka, topic_name: str) -> str:
    """A topic of two partitions; each has the numbers 0 to 9, then three that were never committed, then 10."""
    log = log_at(kafka.bootstrap)
    log.create_topic(topic_name, 2)
    with closing(log.producer(topic_name)) as producer:
        write(producer, topic_name, range(10))
        with pytest.raises(ValueError, match="on purpose"):
            write(producer, topic_name, range(100, 103), fail=True)
        write(producer, topic_name, [10])
    return topic_name


def write(producer: KafkaProducer, topic: str, numbers: Iterable[int], *, fail: bool = False) -> None:
    with producer.transaction():
        for number in numbers:
            producer.send(topic, 0, number)
            producer.send(topic, 1, number)
        producer.flush()
        if fail:
            raise ValueError("on purpose")


def numbers_of(frame: DataFrame) -> list[tuple[int, int]]:
    """The records as (partition, number), taken apart by workers with the package at hand."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from skyband.cli.figures import count

        for batch in batches:
            texts = [count(int(value.as_py()), "row") for value in batch.column("value")]
            yield pa.RecordBatch.from_arrays([batch.column("partition"), pa.array(texts)], names=["partition", "text"])

    rows = frame.mapInArrow(decode, "partition int, text string").collect()
    return sorted((row.partition, int(row.text.split()[0])) for row in rows)


def test_what_was_never_committed_is_not_read(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> None:
    frame = read_topic(spark, kafka.bootstrap, topic)
    assert numbers_of(frame) == [(partition, number) for partition in (0, 1) for number in range(11)]


def test_exactly_the_offsets_that_are_named_are_read(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> None:
    frame = read_topic(spark, kafka.bootstrap, topic, {0: 3, 1: 0}, {0: 6, 1: 2})
    assert numbers_of(frame) == [(0, 3), (0, 4), (0, 5), (1, 0), (1, 1)]


def test_a_range_may_end_amid_what_was_never_committed(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> None:
    # Offset 10 is the mark of the first commit, 11 to 13 are the records that were not committed.
    assert numbers_of(read_topic(spark, kafka.bootstrap, topic, {1: 9}, {1: 12})) == [(1, 9)]
    assert numbers_of(read_topic(spark, kafka.bootstrap, topic, {1: 11}, {1: 14})) == []


def test_a_stream_reads_on_where_it_stood(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, tmp_path: Path
) -> None:
    def run() -> list[int]:
        frame = follow_topics(spark, kafka.bootstrap, [topic], {topic: {0: 5, 1: 20}}, max_offsets_per_trigger=4)
        query = frame.selectExpr("cast(cast(value AS string) AS int) AS number").writeStream.format("parquet")
        query = query.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        running = query.start(str(tmp_path / "out"))
        assert running.awaitTermination(60)
        return sorted(row.number for row in spark.read.parquet(str(tmp_path / "out")).collect())

    with closing(log_at(kafka.bootstrap).producer()) as producer:
        for _ in range(6):
            producer.send(topic, 1, 50)
        producer.flush()
    first = run()
    with closing(log_at(kafka.bootstrap).producer()) as producer:
        producer.send(topic, 0, 60)
        producer.flush()
    assert run() == sorted([*first, 60])
    assert set(first) == {5, 6, 7, 8, 9, 10, 50}


def test_offsets_that_are_gone_fail_the_stream(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, tmp_path: Path
) -> None:
    delete_records(kafka.bootstrap, Position(topic, 0), 8)
    frame = follow_topics(spark, kafka.bootstrap, [topic], {topic: {0: 2, 1: 0}})
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match=r"KafkaIllegalStateException|Some data may have been lost"):
        query.start().awaitTermination(60)


def test_offsets_that_are_gone_or_not_there_yet_are_named(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str
) -> None:
    delete_records(kafka.bootstrap, Position(topic, 0), 8)
    with pytest.raises(LogError, match=r"offset 2 of topic .* partition 0 was deleted .* lowest left is 8"):
        read_topic(spark, kafka.bootstrap, topic, {0: 2})
    with pytest.raises(LogError, match=r"offset 99 of topic .* partition 1 is beyond its end 17"):
        read_topic(spark, kafka.bootstrap, topic, {0: 8, 1: 0}, {0: 9, 1: 99})


def test_nobody_at_an_address_is_said_at_once_and_in_words(spark: SparkSession) -> None:
    (port,) = free_ports(1)
    with pytest.raises(LogError, match=rf"cannot reach Kafka at 127\.0\.0\.1:{port}.*Is it running"):
        read_topic(spark, f"127.0.0.1:{port}", "readings", kafka=IMPATIENT)


def test_a_topic_and_a_partition_that_are_not_there_are_named(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str
) -> None:
    with pytest.raises(LogError, match="topic 'nowhere' does not exist"):
        follow_topics(spark, kafka.bootstrap, ["nowhere"], "earliest")
    with pytest.raises(LogError, match="has partitions 0 to 1, not 2"):
        read_topic(spark, kafka.bootstrap, topic, {0: 1, 2: 0})


def test_begins_and_ends_are_of_the_same_partitions(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> None:
    with pytest.raises(DefinitionError, match=r"partitions \[0, 1\] and ends of \[1\]"):
        read_topic(spark, kafka.bootstrap, topic, {0: 0, 1: 0}, {1: 5})
    with pytest.raises(DefinitionError, match="no partition is named"):
        read_topic(spark, kafka.bootstrap, topic, {})
