"""The pipeline on a real Spark and a real Kafka: what comes out is what brute force says, each once."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.runtime import topics
from services.runtime.embedded import EmbeddedKafka
from skyband.control.commands import CreateGroup, CreateQuery, CreateStream, DeleteQuery
from skyband.control.stage import ControlStage
from skyband.log.clock import SystemClock
from skyband.log.record_log import Position
from skyband.model.query import Query
from skyband.model.resources import GroupSpec, QueryResource
from spark.pipeline import main
from spark.pipeline_group import find_group, plan_of_group
from spark.pipeline_query import Pipeline, PipelineSettings
from tests.kafka.cluster import ROOT, Cluster, until
from tests.kafka.feed import write
from tests.kafka.logs import delete_records
from tests.kafka.scenarios import Scenario, flights, make_topics, mixed
from tests.kafka.written import Written

pytestmark = pytest.mark.spark

S = 1_000_000
READ = 400


class Installation:
    """Topics and catalog of one test, and its results; no service runs."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path, scenario: Scenario) -> None:
        self.scenario, self.folder = scenario, folder
        self.cluster = Cluster(kafka.bootstrap, folder)
        self.log = self.cluster.log()
        topics.apply(self.log)
        make_topics(kafka.bootstrap, scenario)
        uids = itertools.count(1)
        self.control = ControlStage(self.log, SystemClock(), lambda: f"{scenario.group.name}-{next(uids):04d}")
        for stream in scenario.group.streams:
            self.control.execute(CreateStream(stream))
        self.control.execute(CreateGroup(GroupSpec.of(scenario.group)))
        self.written = Written(self.cluster)
        self.uids: dict[str, str] = {}

    def create(self, *queries: Query) -> None:
        for query in queries:
            made = self.control.execute(CreateQuery(self.scenario.group.name, query))
            assert isinstance(made, QueryResource)
            self.uids[query.name] = made.stamp.uid

    def feed(self, rows: slice) -> None:
        write(self.cluster.bootstrap, self.scenario.records()[rows])

    @property
    def words(self) -> list[str]:
        """The arguments of the command."""
        return ["--group", self.scenario.group.name, "--checkpoint", str(self.folder / "state"), "--trigger", "0s"]

    def is_taking_rows(self) -> bool:
        """Whether, as the command's checkpoint tells, a micro-batch with rows has begun and is not complete."""
        offsets, commits = (
            {int(file.name): file for file in self.folder.glob(f"state/*/{kind}/[0-9]*")}
            for kind in ("offsets", "commits")
        )
        if len(offsets) < 2 or max(offsets) in commits:
            return False
        # A line for each topic behind two others, which tell of the batch.
        before, now = (offsets[number].read_text().splitlines()[2:] for number in sorted(offsets)[-2:])
        return now != before

    @contextmanager
    def pipeline(self, spark: SparkSession) -> Iterator[Pipeline]:
        plan = plan_of_group(self.log, find_group(self.log, self.scenario.group.name))
        settings = PipelineSettings(checkpoint=f"file:{self.folder}/checkpoint", trigger_us=0)
        running, stop, failed = Pipeline(spark, self.log, plan, settings), threading.Event(), []

        def run() -> None:
            try:
                running.run(stop)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield running
        finally:
            stop.set()
            thread.join()
            if failed:
                raise failed[0]


def test_results_are_those_of_brute_force_though_a_partition_brings_nothing(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    scenario = flights("spark-flights", 2_000, idle={"after": "2s"})
    scenario = replace(scenario, partitions={**scenario.partitions, (0, 3): []})
    here = Installation(kafka, tmp_path, scenario)
    here.create(*scenario.queries)
    here.feed(slice(None))
    with here.pipeline(spark) as running:
        print(here.written.check(scenario, here.uids, scenario.expected()), "results")
        until(lambda: running.rows >= len(scenario.records()), "all rows counted")


def test_queries_come_and_go_between_micro_batches(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    scenario = mixed("spark_mixed", 600, idle={"then": "hold"}, seed=8).closed(120 * S)
    first, second, third = scenario.queries
    here = Installation(kafka, tmp_path, scenario)
    here.create(first, second)
    here.feed(slice(0, 300))
    with here.pipeline(spark) as running:
        here.written.wait_for_some(here.uids, 30)
        until(lambda: running.rows > 300, "the first rows, and the catalog")
        read = running.rows
        here.create(third)
        here.control.execute(DeleteQuery(scenario.group.name, second.name))
        until(lambda: running.rows > read, "changes of the catalog")
        here.feed(slice(300, None))
        expected = scenario.expected_so_far()
        of_first = {key: answer for key, answer in expected.items() if key[0] == first.name}
        here.written.check(scenario, {first.name: here.uids[first.name]}, of_first)
    here.written.to_end()
    names = {uid: name for name, uid in here.uids.items()}
    found = {(names[uid], end): answers for (uid, end), answers in here.written.answers.items()}
    assert all(answers == [expected[key]] for key, answers in found.items() if key in expected)
    last = {name: max(end for its, end in found if its == name) for name in here.uids}
    assert last[second.name] < last[third.name]


def test_killed_amid_a_micro_batch_it_goes_on_from_its_state_as_if_nothing_had_been(
    spark: SparkSession,
    kafka: EmbeddedKafka,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario = mixed("spark_killed", 900, idle={"then": "hold"}, seed=5, shards=2).closed(120 * S)
    here = Installation(kafka, tmp_path, scenario)
    monkeypatch.setenv("SKYBAND_KAFKA_BOOTSTRAP", here.cluster.bootstrap)
    monkeypatch.setenv("SKYBAND_KAFKA_TOPIC_PREFIX", here.cluster.prefix)
    here.create(*scenario.queries)
    with started(here) as process:
        here.feed(slice(0, READ))
        here.written.wait_for_some(here.uids, 40)
        here.feed(slice(READ, 600))
        until(lambda: here.is_taking_rows(), "a micro-batch with rows")
        os.killpg(process.pid, signal.SIGKILL)
    assert here.is_taking_rows()
    # What was read once is not there any more.
    read = Counter(Position(record.topic, record.partition) for record in scenario.records()[:READ])
    for position, count in read.items():
        delete_records(kafka.bootstrap, position, count)
    here.feed(slice(600, None))

    failed: list[BaseException] = []

    def check() -> None:
        try:
            print(here.written.check(scenario, here.uids, scenario.expected_so_far()), "results")
        except BaseException as error:
            failed.append(error)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=check, daemon=True).start()
    with pytest.raises(SystemExit, match=r"^0$"):
        main(here.words)
    assert not failed, failed
    assert "wrote" in capsys.readouterr().err.splitlines()[-1]


@contextmanager
def started(here: Installation) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the job as a process of its own; end it with all that it started."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SPARK_MASTER": "local[2]",
        # It is killed before it would earn back what the second compiler costs.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
    }
    with (here.folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark.pipeline", *here.words],
            env=environment,
            cwd=ROOT,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
