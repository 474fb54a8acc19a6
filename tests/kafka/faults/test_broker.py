"""A broker that goes and comes back, a topic that is deleted: services say so, and recover by themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.runtime.embedded import EmbeddedKafka
from services.runtime.embedded.ports import free_ports
from tests.kafka.cluster import Cluster, until
from tests.kafka.feed import Feed, write
from tests.kafka.logs import delete_topic
from tests.kafka.scenarios import define, make_topics, mixed
from tests.kafka.written import Written

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

HOLD = {"then": "hold"}
S = 1_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of our own: it is stopped here."""
    (port,) = free_ports(1)
    with EmbeddedKafka(tmp_path_factory.mktemp("own-kafka"), port=port) as broker:
        yield broker


@pytest.fixture(scope="module")
def cluster(broker: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("broker")
    # So impatient that the services give up and begin anew while the broker is away, and not only wait.
    patience = {"SKYBAND_KAFKA_UNREACHABLE_AFTER_S": "3", "SKYBAND_KAFKA_DELIVERY_TIMEOUT_S": "5"}
    with Cluster(broker.bootstrap, folder, **patience) as cluster:
        cluster.start("control", "align-1", "engine-1", "fanout-1")
        yield cluster


def failures(cluster: Cluster) -> dict[str, list[str]]:
    """Return what each service has said of stages that failed."""
    return {
        name: [event["why"] for event in service.events("stage failed, built anew")]
        for name, service in cluster.services.items()
    }


def test_a_broker_that_was_away_costs_time_and_no_result(cluster: Cluster, broker: EmbeddedKafka) -> None:
    scenario = mixed("away", 900, idle=HOLD, seed=6).closed(120 * S)
    make_topics(cluster.bootstrap, scenario)
    with cluster.client() as client:
        uids = define(client, scenario)
    until(lambda: any(cluster.members("skyband.align.away.1").values()), "an aligner of away")
    written = Written(cluster)
    with Feed(cluster.bootstrap, scenario.records(), 100.0, allowed=400) as feed:
        until(lambda: feed.written >= 300, "300 rows written")
        written.wait_for_some(uids, 10)
        feed.allow()
        # Killed, not stopped: a broker that is alone and stops in order may forget the end of a transaction, for it
        # leads nothing any more when it should write it (docs/operations.md, failures).
        broker.kill()
        # Every part of each process has noticed, and says so.
        until(
            lambda: all(failures(cluster).values()) and not any(s.is_well() for s in cluster.services.values()),
            lambda: f"everybody in trouble: {failures(cluster)}",
        )
        broker.start()
        until(
            lambda: all(service.is_well() for service in cluster.services.values()),
            lambda: f"everybody well again\n{cluster.said()}",
        )
    print(written.check(scenario, uids, scenario.expected_so_far()), "results")
    for name, said in failures(cluster).items():
        print(name, sorted(set(said)))
        for sentence in said:
            assert "\n" not in sentence, sentence
            assert cluster.bootstrap in sentence, sentence
    cluster.check()


def test_a_source_topic_that_was_deleted_is_told_and_a_new_generation_reads_the_next_one(cluster: Cluster) -> None:
    whole = mixed("gone", 500, idle={"after": "1s"}, seed=7)
    first = whole.first(250)
    topic = whole.topic(0)
    align = cluster["align-1"]
    make_topics(cluster.bootstrap, whole)
    write(cluster.bootstrap, first.records())
    align.stop()  # So queries see the first rows.
    with cluster.client() as client:
        uids = define(client, first)
    cluster.start("align-1")
    written = Written(cluster)
    written.check(first, uids, first.expected())

    delete_topic(cluster.bootstrap, topic)
    told = until(lambda: about(cluster, topic), "what align says of the topic")
    until(lambda: not align.is_well(), "align's health says so")
    # A topic of the same name is another topic: its offsets mean other records.
    make_topics(cluster.bootstrap, whole, only=topic)
    told += until(
        lambda: [said for said in about(cluster, topic) if "made anew" in said],
        lambda: f"align refuses the new topic; {failures(cluster)['align-1']}",
    )
    assert not align.is_well()

    # Its records are written again; the other topics get what comes next.
    records = whole.records()
    write(cluster.bootstrap, [record for record in records if record.topic == topic])
    write(cluster.bootstrap, [record for record in records[250:] if record.topic != topic])
    with cluster.client() as client:
        client.regenerate_group("gone")
    until(lambda: align.is_well(), lambda: f"align well again\n{align.tail()}")
    # What was answered stays as it was; what comes is made of all rows, with none in between missing.
    lasts = {query: max(end for its, end in first.expected() if its == query) for query in uids}
    later = {key: answer for key, answer in whole.expected().items() if key[1] > lasts[key[0]]}
    print(written.check(whole, uids, first.expected() | later), "results")
    print(sorted(set(told)))
    assert not any("\n" in sentence for sentence in told)
    assert all("regenerate" in sentence for sentence in told if "made anew" in sentence)
    cluster.check()


def about(cluster: Cluster, topic: str) -> list[str]:
    """Return what align has said of a topic."""
    return [said for said in failures(cluster)["align-1"] if repr(topic) in said]
