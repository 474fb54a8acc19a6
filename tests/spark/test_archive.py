"""The archive of real topics holds each row once, however often its job runs, dies, or is stopped."""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from services.runtime.codecs import Codecs
from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.control.catalog_events import Stored, to_record
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import CoverageGapError, LogError, NotFoundError
from skyband.log.record_log import Position
from skyband.model.group import Group
from skyband.model.stream import Format
from spark import archive_job
from spark.archive_compact import Compaction
from spark.archive_job import ArchiveJob, ArchiveSettings
from spark.archive_store import ArchiveStore
from tests.kafka.logs import delete_records, delete_topic, moments
from tests.services.runtime.values import assert_same
from tests.spark.archive_faults import dies_once
from tests.spark.archive_logs import BEGIN_US, group_of, resource_of, seeded_log
from tests.spark.archive_oracle import slow_accepted

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 40
SHARDS = 2


class Cluster:
    """A Skyband of its own on the broker of all tests: a catalog, aligned topics and sources."""

    def __init__(self, bootstrap: str) -> None:
        self.prefix = f"t{uuid.uuid4().hex[:8]}-"
        self.settings = KafkaSettings(bootstrap=bootstrap, topic_prefix=self.prefix)
        self.log = KafkaLog(self.settings, Codecs())
        self.raw = KafkaLog(self.settings, _Bytes())
        self.log.create_topic("catalog", 1)

    def group(self, streams: int = 2) -> Group:
        group = group_of(streams, shards=SHARDS)
        its = [replace(s, format=Format.JSON, topic=self.prefix + s.name) for s in group.streams]
        return replace(group, streams=tuple(its))

    def begin(self, group: Group, generation: int = 1) -> None:
        """Make the topics of a generation, and tell of it in the catalog."""
        for stream in group.streams:
            self.log.create_topic(stream.topic, 1)
        self.log.create_topic(f"aligned.{group.name}.{generation}", SHARDS)
        resource = resource_of(group, generation)
        self._send("catalog", 0, [to_record(Stored(resource))], key=f"groups/{group.name}".encode())

    def write(self, log: Sequence[AlignedBatch]) -> None:
        batch = log[0]
        self._send(f"aligned.{batch.group}.{batch.generation}", batch.shard, log)

    def write_sources(self, group: Group, first: int = 0, last: int = RECORDS) -> None:
        for stream in group.streams:
            with closing(self.raw.producer()) as producer:
                for number in range(first, last):
                    producer.send(stream.topic, 0, source_record(stream.name, number))

    def write_transaction(self, topic: str) -> None:
        """Write one record more in a transaction, of which the topic holds a mark behind it."""
        with closing(self.raw.producer(f"{self.prefix}{topic}")) as producer, producer.transaction():
            producer.send(topic, 0, source_record("s0", RECORDS))

    def _send(self, topic: str, partition: int, values: Sequence[Any], key: bytes | None = None) -> None:
        with closing(self.log.producer()) as producer:
            for value in values:
                producer.send(topic, partition, value, key=key)


class _Bytes:
    def encode(self, topic: str, value: object) -> bytes | None:
        return value if isinstance(value, bytes) else None

    def decode(self, topic: str, data: bytes | None) -> object:
        return data


def source_record(stream: str, number: int) -> bytes:
    if number % 7 == 3:
        return b"not json"
    values = {"a": number, "b": -number} if stream == "wide" else {"value": number}
    return json.dumps({"object_id": f"o{number}", "event_time": BEGIN_US + number * 10**9, **values}).encode()


@pytest.fixture
def cluster(kafka: EmbeddedKafka) -> Cluster:
    return Cluster(kafka.bootstrap)


def job_of(spark: SparkSession, cluster: Cluster, folder: Path, **settings: Any) -> ArchiveJob:
    chosen = {"available_now": True, **settings}
    archive, notes = str(folder / "archive"), (folder / "notes").as_uri()
    return ArchiveJob(spark, cluster.log, ArchiveSettings(archive=archive, checkpoint=notes, **chosen))


def run(spark: SparkSession, cluster: Cluster, folder: Path, **settings: Any) -> ArchiveJob:
    job = job_of(spark, cluster, folder, **settings)
    job.run(threading.Event())
    return job


def logs_of(group: Group, generation: int = 1, batches: int = 16) -> list[list[AlignedBatch]]:
    return [seeded_log(70 + generation, group, generation, shard, batches) for shard in range(SHARDS)]


def assert_archived(folder: Path, group: Group, logs: Sequence[Sequence[AlignedBatch]]) -> ArchiveStore:
    store = ArchiveStore(str(folder / "archive"))
    for log in logs:
        found = list(store.batches(group.name, log[0].generation, log[0].shard))
        expected = slow_accepted(group, log)
        assert [offset for offset, _ in found] == [offset for offset, _ in expected]
        for (_, batch), (_, right) in zip(found, expected, strict=True):
            assert_same(batch, right)
    return store


def assert_sources(store: ArchiveStore, group: Group, more: Mapping[str, int] | None = None) -> None:
    for stream in group.streams:
        records = RECORDS + (more or {}).get(stream.name, 0)
        table = ds.dataset(store.source_files(group.name, stream.name)[0]).to_table().sort_by("offset")
        assert table.column("offset").to_pylist() == list(range(records))
        expected = [source_record(stream.name, number) for number in range(records)]
        assert table.column("value").to_pylist() == expected
        good = [number for number in range(records) if number % 7 != 3]
        assert [its for its in table.column("object_id").to_pylist() if its] == [f"o{number}" for number in good]
        assert table.column("reason").null_count == len(good)


def test_an_archive_made_twice_is_one_and_goes_on_with_a_new_generation_of_more_streams(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    group = cluster.group()
    logs = logs_of(group)
    cluster.begin(group)
    cluster.write_sources(group)
    cluster.write_transaction(group.streams[0].topic)
    for log in logs:
        cluster.write(log)
    first = run(spark, cluster, tmp_path, max_records=800)
    assert first.batches > 1
    assert first.repeats > 0
    assert first.left == 0
    files = ArchiveStore(str(tmp_path / "archive")).state.files
    second = run(spark, cluster, tmp_path)
    assert second.rows == 0
    store = assert_archived(tmp_path, group, logs)
    assert store.state.files == files
    assert store.state.sources["factory/s0/0"] == {"next": RECORDS + 2}
    assert_sources(store, group, more={"s0": 1})
    wider = cluster.group(streams=3)
    more = logs_of(wider, generation=2)
    cluster.begin(wider, generation=2)
    for log in more:
        cluster.write(log)
    run(spark, cluster, tmp_path)
    Compaction(str(tmp_path / "archive"), least_files=2).run(BEGIN_US)
    assert_archived(tmp_path, group, logs)
    store = assert_archived(tmp_path, wider, more)
    definition = store.definition(group.name, 2)
    assert definition is not None
    assert (definition.group, store.generations(group.name)) == (wider, (1, 2))
    rows = spark.read.parquet(*store.row_files(group.name, 1), *store.row_files(group.name, 2))
    kept = [*(slow_accepted(group, log) for log in logs), *(slow_accepted(wider, log) for log in more)]
    assert rows.count() == sum(batch.rows for its in kept for _, batch in its)


def test_a_task_that_dies_with_its_files_written_leaves_the_archive_of_one_run(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = cluster.group()
    logs = logs_of(group)
    cluster.begin(group)
    for log in logs:
        cluster.write(log)
    monkeypatch.setattr(archive_job, "archive_records", partial(dies_once, str(tmp_path / "died")))
    with pytest.raises(LogError, match="Spark could not go on"):
        run(spark, cluster, tmp_path, with_sources=False)
    assert (tmp_path / "died").exists()
    assert list((tmp_path / "archive").rglob("*.parquet"))
    assert not ArchiveStore(str(tmp_path / "archive")).state.files
    run(spark, cluster, tmp_path, with_sources=False)
    assert_archived(tmp_path, group, logs)


def test_a_driver_that_is_killed_before_its_commit_leaves_the_archive_of_one_run(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    group = cluster.group()
    logs = logs_of(group)
    cluster.begin(group)
    cluster.write_sources(group)
    for log in logs:
        cluster.write(log)
    mark = tmp_path / "mark"
    words = [sys.executable, "-m", "tests.spark.archive_faults", str(mark)]
    words += ["--archive", str(tmp_path / "archive"), "--available-now"]
    environment = {
        **os.environ,
        # Started for one batch, it never earns back what the second compiler costs.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
        "SPARK_MASTER": "local[2]",
        "SKYBAND_KAFKA_BOOTSTRAP": cluster.settings.bootstrap,
        "SKYBAND_KAFKA_TOPIC_PREFIX": cluster.prefix,
    }
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: mark.exists() or driver.poll() is not None)
        driver.kill()
    assert mark.exists()
    assert list((tmp_path / "archive").rglob("*.parquet"))
    assert not ArchiveStore(str(tmp_path / "archive")).state.files
    run(spark, cluster, tmp_path)
    assert_sources(assert_archived(tmp_path, group, logs), group)


def test_it_follows_topics_that_grow_and_generations_that_begin(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    group, wider = cluster.group(), cluster.group(streams=3)
    logs, more = logs_of(group), logs_of(wider, generation=2)
    cluster.begin(group)
    for log in logs:
        cluster.write(log[:10])
    job = job_of(spark, cluster, tmp_path, available_now=False, trigger_us=100_000)
    stop = threading.Event()
    thread = threading.Thread(target=job.run, args=(stop,))
    thread.start()
    try:
        wait_for(tmp_path, thread, group, 1, 10)
        for log in logs:
            cluster.write(log[10:])
        cluster.write_sources(group)
        cluster.begin(wider, generation=2)
        for log in more:
            cluster.write(log)
        wait_for(tmp_path, thread, group, 2, len(more[0]))
        wait_for(tmp_path, thread, group, 1, len(logs[0]))
    finally:
        stop.set()
        thread.join()
    assert_archived(tmp_path, group, logs)
    assert_archived(tmp_path, wider, more)


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in moments():
        if is_so():
            return
        pause.wait(0.05)


def wait_for(folder: Path, thread: threading.Thread, group: Group, generation: int, offset: int) -> None:
    store = ArchiveStore(str(folder / "archive"))

    def is_there() -> bool:
        assert thread.is_alive()
        store.refresh()
        return all(store.next_offset(group.name, generation, shard) == offset for shard in range(SHARDS))

    wait_until(is_there)


def test_what_is_missing_is_told_and_nothing_of_it_archived(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    with pytest.raises(NotFoundError, match="the catalog has no groups"):
        run(spark, cluster, tmp_path)
    group = cluster.group()
    log = logs_of(group)[0]
    cluster.begin(group)
    cluster.write_sources(group)
    cluster.write(log[:10])
    with pytest.raises(NotFoundError, match="no group 'nobody' in the catalog; groups are factory"):
        run(spark, cluster, tmp_path, groups=("nobody",))
    run(spark, cluster, tmp_path)
    section = replace(log[0].sections[0], stream=0, partition=1, from_offset=900, to_offset=910, rows=0)
    empty = next(batch for batch in log if not batch.rows)
    cluster.write([replace(empty, sections=(section,), catalog=())])
    with pytest.raises(CoverageGapError, match=r"stream 's0' partition 1: offsets \[\d+, 900\) are missing"):
        run(spark, cluster, tmp_path)
    cluster.write(log[10:])
    delete_records(cluster.settings.bootstrap, Position(f"{cluster.prefix}aligned.factory.1", 0), 12)
    with pytest.raises(LogError, match=r"topic 'aligned.factory.1' partition 0: offsets \[10, 12\) are gone"):
        run(spark, cluster, tmp_path)
    assert_archived(tmp_path, group, [log[:10]])


def test_a_topic_that_is_gone_and_one_that_was_made_anew_are_told(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    group = cluster.group()
    cluster.begin(group)
    cluster.write_sources(group)
    run(spark, cluster, tmp_path)
    topic = group.streams[0].topic
    delete_topic(cluster.settings.bootstrap, topic)
    with pytest.raises(LogError, match=f"topic '{topic}' does not exist"):
        run(spark, cluster, tmp_path)
    wait_until(lambda: cluster.log.is_missing(topic))
    cluster.log.create_topic(topic, 1)
    with pytest.raises(LogError, match=f"topic '{topic}' was deleted and made anew"):
        run(spark, cluster, tmp_path)
