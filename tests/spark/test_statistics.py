"""Statistics by Spark of a real aligned topic and of archives: the bytes of the service, published beside its own."""

import io
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from services.control.servicer import ControlServicer
from services.control.statistics import Statistics
from services.runtime import topics
from services.runtime.codecs import Codecs
from services.runtime.embedded import EmbeddedKafka
from services.runtime.health import Health
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from services.sketch.sweep import Sweep
from skyband.align.topics import aligned_topic
from skyband.cli.failures import run_as_command
from skyband.control.catalog_events import Retired, Stored, to_record
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import LogError
from skyband.log.read_range import read_all
from skyband.sketch.publication import SERVICE, Publication, newest_publications
from skyband.v1 import control_pb2 as pb
from spark.statistics import main
from spark.statistics_job import SESSION
from spark.statistics_plan import Range, StatisticsPlan
from spark.statistics_stream import StatisticsStream, StreamSettings
from tests.kafka.logs import moments
from tests.spark.statistics_logs import (
    BEGIN_US,
    RESOURCE,
    SHARDS,
    TUNING,
    S,
    aligned_logs,
    archived,
    run_service,
    sketched_by_hand,
)

pytestmark = pytest.mark.spark

TOPIC = aligned_topic("factory", 1)
LOGS = aligned_logs()


class Cluster:
    """A Skyband of its own on the broker of all tests, with one group."""

    def __init__(self, bootstrap: str) -> None:
        self.prefix = f"t{uuid.uuid4().hex[:8]}-"
        self.log = KafkaLog(KafkaSettings(bootstrap=bootstrap, topic_prefix=self.prefix), Codecs())
        topics.apply(self.log)
        self.log.create_topic(TOPIC, SHARDS)
        self.send("catalog", 0, [to_record(Stored(RESOURCE))], key=b"groups/factory")

    def send(self, topic: str, partition: int, values: Sequence[Any], key: bytes | None = None) -> None:
        with closing(self.log.producer()) as producer:
            for value in values:
                producer.send(topic, partition, value, key=key)

    def write(self, logs: Sequence[Sequence[AlignedBatch]], low: int = 0, high: int | None = None) -> None:
        for number, log in enumerate(logs):
            self.send(TOPIC, number, log[low:high])

    def published(self, source: str) -> list[Publication]:
        """Return the newest publications of a source by shard, without what only the writer's clock says."""
        found = newest_publications(self.log, "statistics", "factory", 1, range(SHARDS), source)
        return [replace(its, published_us=0) for _, its in sorted(found.items())]

    def by_service(self) -> list[Publication]:
        run_service(self.log)
        return self.published(SERVICE)


@pytest.fixture
def cluster(kafka: EmbeddedKafka, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    found = Cluster(kafka.bootstrap)
    monkeypatch.setenv("SKYBAND_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.setenv("SKYBAND_KAFKA_TOPIC_PREFIX", found.prefix)
    monkeypatch.setenv("SKYBAND_SKETCH_BITMAPS", str(TUNING.bitmaps))
    monkeypatch.setenv("SKYBAND_SKETCH_SAMPLE_BYTES", str(TUNING.sample_bytes))
    before = {name: spark.conf.get(name, None) for name in SESSION}
    for name, value in SESSION.items():
        spark.conf.set(name, value)
    yield found
    for name, was in before.items():
        spark.conf.unset(name) if was is None else spark.conf.set(name, was)


def typed(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run_as_command(main, ["--group", "factory", *words])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def done(*words: str) -> dict[str, Any]:
    code, out, err = typed(*words, "--json")
    assert code == 0, err
    return json.loads(out)  # type: ignore[no-any-return]


def as_service(found: Sequence[Publication]) -> list[Publication]:
    return [replace(its, source=SERVICE) for its in found]


def test_batch_and_streaming_publish_the_bytes_of_the_service(cluster: Cluster, tmp_path: Path) -> None:
    follow = ("--streaming", "--available-now", "--checkpoint", str(tmp_path / "state"), "--name", "followed")
    # It stops on the way; when it goes on, one shard has nothing new.
    cluster.write([LOGS[0][:17], LOGS[1]])
    done(*follow)
    cluster.write([LOGS[0][17:]])
    found = done(*follow)
    expected = cluster.by_service()
    assert len(expected) == SHARDS
    assert as_service(cluster.published("spark:followed")) == expected
    assert 0 < found["rows"] < sum(_distinct(log) for log in LOGS)
    batch = done("--live", "--report", str(tmp_path / "page.html"), "--subset", "heat,noise→spots")
    assert as_service(cluster.published("spark:newest")) == expected
    assert batch["streams"] == found["streams"]
    assert batch["rows"] == sum(_distinct(log) for log in LOGS)
    assert batch["repeats"] > 0
    assert batch["published"] > BEGIN_US
    assert batch["subsets"][0]["given"] == ["heat", "noise"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>Co-appearance</h2>" in page
    assert f"topic {TOPIC}" in page
    # The service goes on from its own, whatever else there is.
    assert cluster.by_service() == expected


def _distinct(log: Sequence[AlignedBatch]) -> int:
    return sum(batch.rows for batch in log if batch.writer != "zombie")


def test_a_range_of_an_archive_is_had_from_control_by_its_name_and_goes_with_its_generation(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.write(LOGS)
    cluster.by_service()
    folder = archived(str(tmp_path / "archive"), LOGS)
    span = Range(BEGIN_US + 20 * S, BEGIN_US + 90 * S)
    words = ("--archive", folder, "--from", "2026-07-18T12:00:20Z", "--to", "2026-07-18T12:01:30Z")
    found = done(*words, "--name", "minute")
    plan = StatisticsPlan.of(RESOURCE, "spark:minute", span, TUNING)
    by_hand = [sketched_by_hand(plan, log, span) for log in LOGS]
    assert cluster.published("spark:minute") == by_hand
    done("--live", *words[2:])
    own = f"spark:{span}"
    assert [replace(its, source="spark:minute") for its in cluster.published(own)] == by_hand
    told = asked(cluster, "spark:minute")
    assert (told.source, list(told.other_sources)) == ("spark:minute", [SERVICE, own])
    assert [its.observations for its in told.streams] == [its["observations"] for its in found["streams"]]
    assert (told.window_start, told.window_end) == (found["window_start"], found["window_end"])
    assert asked(cluster, "").source == SERVICE
    cluster.send("catalog", 0, [to_record(Retired("factory", 1))], key=b"retired/factory")
    with closing(Sweep(cluster.log)) as sweep:
        _until(lambda: not sweep.step(0.2) and not _living(cluster))


def asked(cluster: Cluster, source: str) -> pb.GroupStatistics:
    """Return what control answers."""
    statistics = Statistics(cluster.log, Health())
    statistics._open()
    _until(lambda: statistics.step(0.1) is None and statistics._publications is not None)
    stage: Any = SimpleNamespace(catalog=SimpleNamespace(group=lambda name: RESOURCE))
    servicer = ControlServicer(lambda f: f(stage), lambda streams, begin: (), "", statistics.of)
    answer: Any = servicer.GetStatistics
    found = answer(pb.GetStatisticsRequest(name="groups/factory", source=source), None)
    statistics.close()
    return found  # type: ignore[no-any-return]


def _living(cluster: Cluster) -> set[bytes]:
    newest = {record.key: record.value for record in read_all(cluster.log, "statistics")}
    return {key for key, value in newest.items() if key is not None and value is not None}


def _until(is_so: Callable[[], bool]) -> None:
    assert any(is_so() for _ in moments())


def test_a_stream_follows_its_topic_and_stops_at_a_gap(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    plan = StatisticsPlan.of(RESOURCE, "spark:streaming", None, TUNING)
    settings = StreamSettings(checkpoint=(tmp_path / "state").as_uri(), trigger_us=100_000)
    stream = StatisticsStream(spark, cluster.log, plan, settings)
    failures: list[Exception] = []

    def run() -> None:
        try:
            stream.run(threading.Event())
        except LogError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for low, high in ((0, 20), (20, 30)):
            cluster.write(LOGS, low, high)
            _until(lambda high=high: _stands(cluster, high))  # type: ignore[misc]
        expected = cluster.by_service()
        assert as_service(cluster.published("spark:streaming")) == expected
        cluster.write([LOGS[0][35:]])
    finally:
        thread.join(60)
    assert not thread.is_alive()
    assert "are missing from the aligned log of group 'factory'" in str(failures[0])
    assert as_service(cluster.published("spark:streaming")) == expected


def _stands(cluster: Cluster, offset: int) -> bool:
    return [its.aligned_offset for its in cluster.published("spark:streaming")] == [offset] * SHARDS


def test_what_cannot_be_sketched_is_told_in_a_sentence(cluster: Cluster, tmp_path: Path) -> None:
    folder = archived(str(tmp_path / "archive"), LOGS)
    for words, code, said in (
        ((), 2, f"topic '{TOPIC}' has no rows of group 'factory', generation 1"),
        (("--group", "nobody"), 2, "there is no group 'nobody' in the catalog; groups are factory"),
        (
            ("--archive", folder, "--from", "1999-01-01", "--to", "1999-01-02"),
            2,
            "has no row with an event time in 1999",
        ),
        (
            ("--archive", folder, "--group", "nobody"),
            2,
            "has nothing of group 'nobody': groups are factory; archive it",
        ),
        (("--archive", folder, "--generation", "7"), 2, "has no generation 7 of group 'factory'; it has 1"),
        (("--archive", str(tmp_path / "none")), 2, "it has no commits; archive it with `python -m spark.archive"),
        (("--archive", folder, "--live"), 2, "give either --archive or --live"),
        (("--from", "2026-07-18"), 2, "give both --from and --to, or neither"),
        (("--from", "2026-07-18", "--to", "2026-07-17"), 2, "--from must lie before --to"),
        (("--from", "soon", "--to", "2026-07-17"), 2, "--from soon: is no time such as"),
        (("--streaming",), 2, "give --checkpoint"),
        (("--available-now",), 2, "goes with --streaming"),
        (("--subset", "heat→cold"), 2, "--subset heat→cold: 'cold' is not a stream"),
        (("--name", "a/b"), 2, "--name a/b: is no name"),
        (("--streaming", "--checkpoint", "x", "--trigger", "soon"), 2, "--trigger soon: "),
    ):
        found, _, err = typed(*words)
        assert (found, said in err) == (code, True), (words, err)
    resource = replace(RESOURCE, generation=2)
    cluster.send("catalog", 0, [to_record(Stored(resource))], key=b"groups/factory")
    code, _, err = typed("--archive", folder)
    assert (code, "is in generation 2, and statistics of generation 1 would be removed at once" in err) == (1, True)
    code, out, _ = typed("--archive", folder, "--no-publish", "--from", "2026-07-18T12:00:30")
    assert (code, out.startswith("stream ")) == (0, True)
    assert not _living(cluster)


def test_help_shows_examples() -> None:
    code, out, _ = typed("--help")
    assert code == 0
    assert "examples:\n    python -m spark.statistics --group factory --report factory.html\n" in out
