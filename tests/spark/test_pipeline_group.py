"""What a pipeline runs is what the catalog or a file says; it does not begin where it must not."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from services.runtime import topics
from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from skyband.control.commands import CreateGroup, CreateStream
from skyband.control.stage import ControlStage
from skyband.errors import CoverageGapError, LogError, NotFoundError
from skyband.files.definitions import dump_definitions
from skyband.log.clock import SystemClock
from skyband.log.record_log import Position
from skyband.model.definitions import Definitions
from skyband.model.query import Algorithm
from skyband.model.resources import GroupSpec
from spark.pipeline_group import find_begins, find_group, plan_of_definitions, plan_of_group
from spark.pipeline_merge import FRONTIER
from spark.pipeline_messages import Message
from spark.pipeline_results import ResultWriter, check_no_fanout
from tests.kafka.cluster import Cluster
from tests.kafka.feed import write
from tests.kafka.logs import delete_records, moments
from tests.kafka.scenarios import Scenario, flights, make_topics

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def scenario(kafka: EmbeddedKafka) -> Scenario:
    scenario = flights("plans", 90, idle={"after": "10s"})
    make_topics(kafka.bootstrap, scenario)
    write(kafka.bootstrap, scenario.records())
    return scenario


@pytest.fixture
def log(kafka: EmbeddedKafka, tmp_path: Path) -> KafkaLog:
    log = Cluster(kafka.bootstrap, tmp_path).log()
    topics.apply(log)
    return log


def test_a_group_of_the_catalog_is_read_from_where_its_generation_begins(scenario: Scenario, log: KafkaLog) -> None:
    control = ControlStage(log, SystemClock(), lambda: "uid")
    with pytest.raises(NotFoundError, match="it has none"):
        find_group(log, "plans")
    for stream in scenario.group.streams:
        control.execute(CreateStream(stream))
    control.execute(CreateGroup(GroupSpec.of(scenario.group)))
    plan = plan_of_group(log, find_group(log, "plans"))
    assert (plan.group, plan.generation) == (scenario.group, 1)
    assert plan.starts == dict.fromkeys(scenario.partitions, 0)


def test_a_file_is_enough_and_what_is_gone_is_told(
    scenario: Scenario, log: KafkaLog, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    path = tmp_path / "plans.json"
    path.write_text(json.dumps(dump_definitions(Definitions(scenario.group, scenario.queries))), encoding="utf-8")
    plan = plan_of_definitions(log, path)
    assert [change.uid for change in plan.queries] == [f"plans.{query.name}" for query in scenario.queries]
    assert all(change.query.algorithm is not Algorithm.AUTO for change in plan.queries)
    topic = scenario.topic(0)
    assert find_begins(log, plan)[topic] == {0: 0, 1: 0, 2: 0}
    delete_records(kafka.bootstrap, Position(topic, 1), 2)
    with pytest.raises(CoverageGapError, match=r"partition 1: offsets 0 to 1 .* are gone"):
        find_begins(log, plan)
    assert plan_of_definitions(log, path).starts[0, 1] == 2


class Anyone:
    """A member that reads all that it is given from its beginning."""

    has_some = False

    def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
        self.has_some = bool(positions)
        return dict.fromkeys(positions, 0)

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        self.has_some = False


def test_it_does_not_begin_beside_a_fanout(log: KafkaLog) -> None:
    check_no_fanout(log, "plans")
    consumer, member = log.consumer("skyband.fanout"), Anyone()
    consumer.subscribe(["partials"], member)
    for _ in moments():
        consumer.poll(1, 0.1)
        if member.has_some:
            break
    with pytest.raises(LogError, match="merges group 'plans', and two cannot"):
        check_no_fanout(log, "plans")
    consumer.close()
    check_no_fanout(log, "plans")


def test_a_writer_that_is_shut_out_does_not_come_back(log: KafkaLog) -> None:
    older = ResultWriter(log, "plans", 1)
    newer = ResultWriter(log, "plans", 1)
    with pytest.raises(LogError, match="taken over"):
        older.write([Message(FRONTIER, b"", 1)])
    newer.write([Message(FRONTIER, b"", 1)])
    newer.close()
