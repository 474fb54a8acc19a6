"""``python -m spark.audit`` over a real Kafka: flights, from the aligned topic and from an archive."""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.runtime.codecs import Codecs
from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.files.definitions import load_definitions
from skyband.files.rows import open_rows
from skyband.local.demo import DEFINITIONS, FLIGHTS
from skyband.log.read_range import read_all
from skyband.log.record_log import Position
from skyband.model.result import Result
from spark.audit import run
from tests.kafka.logs import delete_records
from tests.spark.archive_logs import Archive
from tests.spark.audits import Ran, interpreted

pytestmark = pytest.mark.spark

FROM, TO = "2013-07-01T06:00:00Z", "2013-07-02T00:00:00+00:00"
RANGE = ("--group", "flights", "--from", FROM, "--to", TO)
CHUNKS = 8
GENERATION = 1


class Cluster:
    """A Skyband of its own on the broker of all tests, in which the first flights of July have been ranked."""

    def __init__(self, bootstrap: str) -> None:
        self.settings = KafkaSettings(bootstrap=bootstrap, topic_prefix=f"t{uuid.uuid4().hex[:8]}-")
        self.log = KafkaLog(self.settings, Codecs())
        self.ran = flights()
        for topic in ("catalog", f"aligned.flights.{GENERATION}", "results"):
            self.log.create_topic(topic, 1)
        with closing(self.log.producer()) as producer:
            for record in read_all(self.ran.log, "catalog"):
                producer.send("catalog", 0, record.value, key=record.key)
            for _, _, batch in self.ran.aligned():
                producer.send(f"aligned.flights.{GENERATION}", 0, batch)
        self.write(self.ran.results)

    @property
    def batches(self) -> list[AlignedBatch]:
        return [batch for _, _, batch in self.ran.aligned()]

    def write(self, results: Sequence[Result]) -> None:
        with closing(self.log.producer(f"{self.settings.topic_prefix}results")) as producer, producer.transaction():
            for result in results:
                producer.send("results", 0, result, key=result.uid.encode())


def flights() -> Ran:
    definitions = load_definitions(DEFINITIONS)
    pipeline = Ran(definitions, [(0, 0), (1, 0)])
    for number, chunk in enumerate(open_rows(definitions.group, FLIGHTS, batch_rows=500)):
        if number >= CHUNKS:
            break
        place = (chunk.stream, chunk.partition)
        pipeline.pipeline.feed(place, chunk.from_offset, chunk.to_offset, chunk.rows)
        pipeline.work()
    return pipeline


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka) -> Cluster:
    return Cluster(kafka.bootstrap)


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    with interpreted(spark):
        yield spark


@pytest.fixture(autouse=True)
def environment(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYBAND_KAFKA_BOOTSTRAP", cluster.settings.bootstrap)
    monkeypatch.setenv("SKYBAND_KAFKA_TOPIC_PREFIX", cluster.settings.topic_prefix)


def test_flights_are_as_they_were_shown(
    quick: SparkSession, cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Archive(str(tmp_path / "archive"))
    store.write(cluster.batches, None)
    assert run([*RANGE, "--archive", store.uri, "--json"]) == 0
    said = capfd.readouterr()
    assert "audited group flights\n" in said.err
    found = json.loads(said.out)
    assert found["equal"]
    assert found["queries"][0]["windows"] > 50
    cluster.write([cluster.ran.results[60]])
    # Before the first result that is kept, nothing can be said.
    delete_records(cluster.settings.bootstrap, Position(f"{cluster.settings.topic_prefix}results", 0), 40)
    assert run([*RANGE, "--query", "most-delayed", "--output", str(tmp_path / "audit.txt")]) == 1
    text = (tmp_path / "audit.txt").read_text(encoding="utf-8")
    assert "most-delayed" in text
    assert "1 difference;" in text
    assert "duplicate" in text
    assert "the first whose result is kept" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--group", "none", "--from", FROM, "--to", TO], "no group 'none' in the catalog; groups are flights"),
        ([*RANGE, "--query", "none"], "had no query 'none'; queries are most-delayed"),
        (["--group", "flights", "--from", TO, "--to", FROM], "is not before"),
        (["--group", "flights", "--from", "noon", "--to", TO], "--from noon: is no time such as"),
        (["--group", "flights", "--from", "2030-01-01", "--to", "2030-01-02"], "can be audited: left out are"),
        (["--from", FROM, "--to", TO], "Missing option '--group'"),
    ],
)
def test_what_cannot_be_audited_is_said_and_is_code_two(
    quick: SparkSession, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(arguments) == 2
    assert said in capfd.readouterr().err


def test_an_archive_without_the_group_is_refused(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*RANGE, "--archive", str(tmp_path)]) == 2
    assert "has nothing of group 'flights', generation 1; run" in capfd.readouterr().err
