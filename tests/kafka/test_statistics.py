"""Statistics of streams on a real Kafka: right within their errors, also when the sketch service is killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.runtime.embedded import EmbeddedKafka
from skyband.client import Client
from skyband.errors import LogError, NotFoundError
from skyband.files.definitions import load_definitions
from skyband.log.read_range import read_all
from skyband.model.published_statistics import PublishedStatistics
from tests.kafka.cluster import Cluster, until
from tests.kafka.feed import write
from tests.kafka.scenarios import Scenario, define, make_topics
from tests.oracle import Row

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

S = 1_000_000
BEGIN_US = 1_700_000_000 * S
OBJECTS = 4_000
LAG_US = 2 * S


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("statistics")
    with Cluster(kafka.bootstrap, folder, SKYBAND_SKETCH_PUBLISH_S="0.5") as cluster:
        cluster.start("control", "align-1", "sketch-1")
        yield cluster


def overlapping(name: str) -> Scenario:
    """Return two streams: a quarter of the objects of the one come on the other two seconds later, and half of its own.

    The other has as many objects that come on it alone.
    """
    found = load_definitions(
        {
            "group": {
                "name": name,
                "retention": "10m",
                "shards": 2,
                "streams": [
                    {"name": f"{name}_{one}", "hi": 100, "topic": f"{name}-{one}", "idle": {"then": "hold"}}
                    for one in "ab"
                ],
            },
            "queries": [{"name": "top", "k": 1, "score": f"{name}_a", "window": {"size": "10s", "slide": "10s"}}],
        }
    )
    first = [Row(f"o-{i}", BEGIN_US + i * S // 20, (float(i % 100),)) for i in range(OBJECTS)]
    second = [
        Row(row.object_id if i % 4 == 0 else f"own-{i}", row.event_time_us + LAG_US, (50.0,))
        for i, row in enumerate(first)
        if i % 4 < 2
    ]
    order = tuple(place for i in range(OBJECTS) for place in ([(0, 0), (1, 0)] if i % 4 < 2 else [(0, 0)]))
    return Scenario(found.group, found.queries, {(0, 0): first, (1, 0): second}, order)


def complete(client: Client, group: str, observations: tuple[int, int]) -> PublishedStatistics:
    """Wait until so many observations are published, and return the statistics."""
    seen: list[object] = []

    def look() -> PublishedStatistics | None:
        try:
            found = client.statistics(group)
        except (NotFoundError, LogError) as error:
            seen.append(error)
            return None
        seen.append(found.observations)
        return found if found.observations == observations else None

    return until(look, lambda: f"{observations} published; last {seen[-1]}")


def check(found: PublishedStatistics) -> None:
    first, second = (told.cardinality for told in found.statistics.streams)
    assert first.value == pytest.approx(OBJECTS, abs=4 * first.error)
    assert second.value == pytest.approx(OBJECTS / 2, abs=4 * second.error)
    for pair, share in (((0, 1), 0.25), ((1, 0), 0.5)):
        told = found.statistics.pair(*pair).appearance
        assert told is not None
        assert told.probability == pytest.approx(share, abs=4 * told.error)
        assert 0 < told.error < 0.05
    assert found.statistics.pair(0, 1).lag_us == (LAG_US,) * 3
    assert found.statistics.pair(1, 0).lag_us == (-LAG_US,) * 3
    assert found.silent_shards == ()


def test_statistics_are_right_within_their_errors_and_go_with_the_group(cluster: Cluster) -> None:
    scenario = overlapping("overlap")
    make_topics(cluster.bootstrap, scenario)
    with cluster.client() as client:
        define(client, scenario)
        with pytest.raises(NotFoundError, match="the sketch service publishes every 5 s"):
            client.statistics("overlap")
        write(cluster.bootstrap, scenario.records())
        found = complete(client, "overlap", (OBJECTS, OBJECTS // 2))
        check(found)
        assert found.streams == ("overlap_a", "overlap_b")
        client.delete_group("overlap", force=True)
        with pytest.raises(NotFoundError):
            client.statistics("overlap")
    until(lambda: not living(cluster, "overlap"), lambda: f"no statistics; there are {living(cluster, 'overlap')}")
    cluster.check()


def test_a_sketch_service_that_is_killed_goes_on_without_loss_or_repeat(cluster: Cluster) -> None:
    scenario = overlapping("killed")
    make_topics(cluster.bootstrap, scenario)
    records = scenario.records()
    half = sum(place == (0, 0) for place in scenario.order[: len(records) // 2])
    with cluster.client() as client:
        define(client, scenario)
        write(cluster.bootstrap, records[: len(records) // 2])
        complete(client, "killed", (half, len(records) // 2 - half))
        cluster["sketch-1"].kill()
        write(cluster.bootstrap, records[len(records) // 2 :])
        cluster.start("sketch-1")
        check(complete(client, "killed", (OBJECTS, OBJECTS // 2)))
        cluster["control"].kill()
        cluster.start("control")
        check(complete(client, "killed", (OBJECTS, OBJECTS // 2)))
    restored = [event for event in cluster["sketch-1"].events("sketch restored") if event["group"] == "killed"]
    assert max(event["reads_from"] for event in restored) > 0
    cluster.check()


def test_one_process_with_all_stages_publishes_too(
    kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scenario = overlapping("whole")
    folder = tmp_path_factory.mktemp("serve")
    with Cluster(kafka.bootstrap, folder, SKYBAND_SKETCH_PUBLISH_S="0.5") as cluster:
        cluster.start("serve")
        make_topics(cluster.bootstrap, scenario)
        with cluster.client("serve", "serve") as client:
            define(client, scenario)
            write(cluster.bootstrap, scenario.records())
            check(complete(client, "whole", (OBJECTS, OBJECTS // 2)))
        assert cluster["serve"].stop() == 0
        cluster.check()


def living(cluster: Cluster, group: str) -> set[bytes]:
    """Return the keys of the group's statistics that have a value."""
    newest = {record.key: record.value for record in read_all(cluster.log(), "statistics")}
    return {key for key, value in newest.items() if key and key.startswith(f"{group}/".encode()) and value is not None}
