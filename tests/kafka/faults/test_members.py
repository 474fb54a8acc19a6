"""Members that join, leave, die, freeze and come back while data flows: the results are what they would be without."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.runtime.embedded import EmbeddedKafka
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.log.read_range import read_range
from skyband.log.record_log import Position
from tests.kafka.cluster import Cluster, until
from tests.kafka.feed import Feed
from tests.kafka.scenarios import Scenario, define, make_topics, mixed
from tests.kafka.written import Written

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# Nothing is ever idle: then rows are never overtaken, however long a pause in between is.
HOLD = {"then": "hold"}
# A row is a quarter of a second of event time: five minutes in all, seven retentions.
ROWS = 1_200
RATE = 40.0
S = 1_000_000


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("members")
    with Cluster(kafka.bootstrap, folder) as cluster:
        # One after the other: two that find no compiled kernels would both compile them.
        cluster.start("control", "align-1", "engine-1", "sketch-1", "fanout-1")
        yield cluster


def begin(cluster: Cluster, name: str, seed: int) -> tuple[Scenario, dict[str, str], Written]:
    """Define a group of this name, and wait until someone reads its sources."""
    scenario = mixed(name, ROWS, idle=HOLD, seed=seed).closed(120 * S)
    make_topics(cluster.bootstrap, scenario)
    with cluster.client() as client:
        uids = define(client, scenario)
    align = f"skyband.align.{name}.1"
    until(lambda: any(cluster.members(align).values()), lambda: f"an aligner of {name}\n{cluster.said()}")
    return scenario, uids, Written(cluster)


def written_so_far(feed: Feed, rows: int) -> None:
    until(lambda: feed.written >= rows, f"{rows} rows written")


def test_members_that_join_and_leave_while_data_flows_change_no_result(cluster: Cluster) -> None:
    scenario, uids, written = begin(cluster, "joins", 2)
    expected = scenario.expected_so_far()
    with Feed(cluster.bootstrap, scenario.records(), RATE, allowed=400) as feed:
        written_so_far(feed, 100)
        cluster.start("align-2", "engine-2", "engine-3", "fanout-2")
        cluster.wait_for_members("skyband.align.joins.1", "align-1", "align-2")
        cluster.wait_for_members("skyband.engine.joins.1", "engine-1", "engine-2", "engine-3")
        cluster.wait_for_members("skyband.fanout", "fanout-1", "fanout-2")
        feed.allow(800)
        written_so_far(feed, 500)
        # A member with a stable name that ends in order is waited for; then its partitions go to the others.
        assert [cluster[name].stop() for name in ("align-1", "engine-2", "fanout-1")] == [0, 0, 0]
        cluster.wait_for_members("skyband.align.joins.1", "align-2")
        cluster.wait_for_members("skyband.engine.joins.1", "engine-1", "engine-3")
        cluster.wait_for_members("skyband.fanout", "fanout-2")
        feed.allow(1_100)
        written_so_far(feed, 850)
        cluster.start("align-1", "engine-2", "fanout-1")
        cluster.wait_for_members("skyband.engine.joins.1", "engine-1", "engine-2", "engine-3")
        cluster.wait_for_members("skyband.align.joins.1", "align-1", "align-2")
    print(written.check(scenario, uids, expected), "results")
    cluster.check()


def test_any_service_may_be_killed_at_any_moment_six_times_in_a_run(cluster: Cluster) -> None:
    scenario, uids, written = begin(cluster, "kills", 3)
    chance = random.Random(20)
    # Any, but of each kind at least one: which, in which order, and after how many more rows is chance.
    names = [chance.choice(cluster.of(kind)).name for kind in ("align", "engine", "sketch", "fanout", "control")]
    names.append(chance.choice(sorted(cluster.services)))
    chance.shuffle(names)
    with Feed(cluster.bootstrap, scenario.records(), RATE, allowed=300) as feed:
        # Something is to be lost, or to come twice.
        written.wait_for_some(uids, 50)
        for number, name in enumerate(names):
            moment = feed.written + chance.randrange(20, 80)
            feed.allow(moment + 60)
            written_so_far(feed, moment)
            cluster[name].wait_ready()
            print(f"kill {number + 1}: {name} after {feed.written} rows")
            cluster[name].kill()
            # It begins anew while data flows and the next is killed.
            cluster[name].start()
        assert not feed.is_done
        for name in names:
            cluster[name].wait_ready()
    print(written.check(scenario, uids, scenario.expected_so_far()), "results")
    cluster.check()


def test_an_aligner_that_wakes_up_after_it_was_replaced_changes_nothing(cluster: Cluster) -> None:
    scenario, uids, written = begin(cluster, "wakes", 4)
    group = "skyband.align.wakes.1"
    with Feed(cluster.bootstrap, scenario.records(), RATE, allowed=400) as feed:
        cluster.wait_for_members(group, "align-1", "align-2")
        written_so_far(feed, 200)
        cluster["align-1"].freeze()
        try:
            cluster.wait_for_members(group, "align-2")
            feed.allow(1_000)
            written_so_far(feed, 600)
        finally:
            cluster["align-1"].thaw()
        cluster.wait_for_members(group, "align-1", "align-2")
        assert not feed.is_done
    print(written.check(scenario, uids, scenario.expected_so_far()), "results")
    cluster.check()


def test_engines_go_on_from_a_checkpoint_and_read_again_no_more_than_they_need(cluster: Cluster) -> None:
    scenario, uids, written = begin(cluster, "resumes", 5)
    engines = [service.name for service in cluster.of("engine")]
    with Feed(cluster.bootstrap, scenario.records(), 2 * RATE, allowed=1_100) as feed:
        cluster.wait_for_members("skyband.engine.resumes.1", *engines)
        written_so_far(feed, 1_000)
        # Five retentions of results are there: a shard needs one of them again, and the pieces it is cut into.
        limit = 1_700_000_000 * S + 200 * S
        written.wait_until(
            lambda: any(end >= limit for uid, end in written.answers if uid in uids.values()),
            lambda: f"results of 200 s\n{cluster.said()}",
        )
        before = {name: len(cluster[name].events("shard restored")) for name in engines}

        def all_restored() -> list[dict[str, Any]]:
            events = [event for name in engines for event in cluster[name].events("shard restored")[before[name] :]]
            found = [event for event in events if event["group"] == "resumes"]
            return found if {event["shard"] for event in found} == {0, 1, 2} else []

        cluster[engines[0]].stop()
        for name in engines[1:]:
            cluster[name].kill()
        cluster.start(*engines)
        # Their names have stayed in the group meanwhile: it does not tell when they are back.
        restored = until(all_restored, lambda: f"all shards\n{cluster.said()}")
    print(written.check(scenario, uids, scenario.expected_so_far()), "results")
    for event in restored:
        again_s = seconds_from(cluster, "aligned.resumes.1", event["shard"], event["reads_from"], event["log_end"])
        print(f"reads {again_s:.0f} s again: {event}")
        # A retention is 40 s; a second between two checkpoints, and whatever came together in a batch, are more.
        assert again_s < 150, event
    cluster.check()


def seconds_from(cluster: Cluster, topic: str, partition: int, begin: int, end: int) -> float:
    """Return how much event time lies in [begin, end) of an aligned log; its rows come in order, but for seconds."""
    log = cluster.log()
    consumer = log.consumer()
    at = Position(topic, partition)
    try:
        times = [
            int(record.value.event_time_us.max())
            for record in read_range(consumer, at, begin, end)
            if isinstance(record.value, AlignedBatch) and len(record.value.event_time_us)
        ]
    finally:
        consumer.close()
    return (max(times) - min(times)) / S if times else 0.0
