"""The processes on a real Kafka: what comes out is what brute force says, and it comes in time."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from services.runtime.embedded import EmbeddedKafka
from skyband.errors import NotFoundError
from skyband.files.definitions import load_definitions
from skyband.log.read_range import read_all
from skyband.model.source_rows import DeadLetter
from tests.kafka.cluster import Cluster, until
from tests.kafka.feed import Feed, write
from tests.kafka.logs import grow_topic
from tests.kafka.scenarios import Record, Scenario, define, flights, make_topics, mixed, seeded_scenario
from tests.kafka.written import Written
from tests.oracle import Row

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

S = 1_000_000
BEGIN_US = 1_700_000_000 * S


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("pipeline")
    with Cluster(kafka.bootstrap, folder) as cluster:
        cluster.start("control", "align-1", "engine-1", "fanout-1")
        yield cluster


def test_results_of_all_formats_and_units_are_those_of_brute_force(cluster: Cluster) -> None:
    soon = {"after": "1s"}
    scenarios = [
        mixed("mixed", 1_200, idle=soon),
        flights("flights", 3_000, idle=soon),
        *(seeded_scenario(f"seed{seed}", seed, 150, idle_after_us=S) for seed in (3, 11, 17)),
    ]
    # Nobody aligns meanwhile: so queries see the first rows, and nothing is idle before it is read.
    cluster["align-1"].stop()
    for scenario in scenarios:
        make_topics(cluster.bootstrap, scenario)
        write(cluster.bootstrap, scenario.records())
    with cluster.client() as client:
        uids = [define(client, scenario) for scenario in scenarios]
    cluster.start("align-1")
    written = Written(cluster)
    for scenario, its in zip(scenarios, uids, strict=True):
        print(scenario.group.name, written.check(scenario, its, scenario.expected()), "results")
    cluster.check()


def test_a_query_added_at_full_load_is_answered_at_once_and_holds_up_no_other(cluster: Cluster) -> None:
    scenario = steady("load", seconds=90, rate=4_000)
    make_topics(cluster.bootstrap, scenario)
    records = scenario.records()
    with cluster.client() as client, Feed(cluster.bootstrap, records, 4_000) as feed:
        uids = define(client, scenario)
        others = Seen(client.subscribe("load/top"))
        others.wait(3, "results of the query that was there before")
        asked = time.monotonic()
        handle = client.create_query("load", name="new", k=5, score="2*load_a - load_b", window="10s", slide="1s")
        added = Seen(handle.watch())
        added.wait(1, "the first result of the new query")
        first_s = added.at[0] - asked
        others.wait(len(others.at) + 3, "results behind the new query's first")
        gap_s = max(b - a for a, b in zip(others.at, others.at[1:], strict=False))
        added.wait(3, "more results of the new query")
        uid = handle.resource.stamp.uid
        handle.delete()
        cancelled_to = max(others.ends[-1], added.ends[-1])
        assert isinstance(added.wait_for_end(), NotFoundError)
        others.wait(len(others.at) + 5, "results behind the cancelled query's last")
        assert not feed.is_done
        feed.cancel()
    written = Written(cluster)
    written.to_end()
    last = max(end for its, end in written.answers if its == uid)
    behind_s = (last - cancelled_to) / S
    print(f"first result after {first_s:.2f} s; others {gap_s:.2f} s apart; {behind_s:+.0f} s told behind the cancel")
    assert first_s < 10
    assert gap_s < 10
    # Between the newest result shown and the answer to the cancel lie what was on its way, and the cancel's own way.
    assert behind_s <= 5
    assert all(len(answers) == 1 for (its, _), answers in written.answers.items() if its in {uid, uids["top"]})
    cluster.check()


def test_nothing_but_poison_on_a_partition_is_told_and_stops_nothing(cluster: Cluster) -> None:
    found = load_definitions(
        {
            "group": {
                "name": "poison",
                "retention": "20s",
                "shards": 2,
                "streams": [
                    {"name": "poison_a", "hi": 100, "topic": "poison-a", "idle": {"after": "1s"}},
                    {"name": "poison_b", "hi": 100, "topic": "poison-b", "idle": {"then": "hold"}},
                ],
            },
            "queries": [
                {
                    "name": "top",
                    "k": 3,
                    "score": "poison_a + poison_b",
                    "require": ["poison_b"],
                    "window": {"size": "10s", "slide": "1s"},
                }
            ],
        }
    )
    rows = [Row(f"o-{i % 17}", BEGIN_US + i * S // 10, (float(i * 37 % 101),)) for i in range(600)]
    rows = [row for row in rows if row.values[0] <= 100]
    scenario = Scenario(found.group, found.queries, {(0, 0): [], (1, 0): rows}, ((1, 0),) * len(rows))
    make_topics(cluster.bootstrap, scenario)
    good = iter(scenario.records())
    poison = [b"\xff" * (1 + i % 7) if i % 5 else None for i in range(len(rows))]
    records = [record for bad in poison for record in (Record("poison-a", 0, bad), next(good))]
    with cluster.client() as client:
        uids = define(client, scenario)
    align = "skyband.align.poison.1"
    until(lambda: any(cluster.members(align).values()), "an aligner of poison")
    written = Written(cluster)
    with Feed(cluster.bootstrap, records, 100.0, allowed=len(records) // 2) as feed:
        # Long before the poison ends: results go on beside it.
        written.wait_for_some(uids, 5)
        feed.allow()
    expected = {key: answer for key, answer in scenario.expected().items() if key[1] <= rows[-1].event_time_us}
    written.check(scenario, uids, expected)
    until(lambda: lag(cluster, align, "poison-a", 0) == 0, lambda: f"no lag; {lag(cluster, align, 'poison-a', 0)}")
    letters = {
        (letter.topic, letter.partition, letter.offset): letter.reason.name.lower()
        for record in read_all(cluster.log(), "dead-letters")
        for letter in [record.value]
        if isinstance(letter, DeadLetter) and letter.topic == "poison-a"
    }
    assert letters == {("poison-a", 0, offset): "undecodable" for offset in range(len(poison))}
    cluster.check()


def test_partitions_that_a_topic_gets_while_it_is_read_are_read_too(cluster: Cluster) -> None:
    scenario = steady("grows", seconds=60, rate=10, idle={"then": "hold"}, partitions=1)
    make_topics(cluster.bootstrap, scenario)
    with cluster.client() as client:
        uids = define(client, scenario)
    align = "skyband.align.grows.1"
    until(lambda: any(cluster.members(align).values()), "an aligner of grows")
    write(cluster.bootstrap, scenario.records())
    written = Written(cluster)
    # What lies behind the first rows waits for the partition to come.
    written.wait_for(scenario, uids, {key: answer for key, answer in scenario.expected().items() if key[1] < after(50)})
    grown = time.monotonic()
    grow_topic(cluster.bootstrap, "grows-a", 3)
    wanted = {("grows-a", 1), ("grows-a", 2)}
    until(
        lambda: wanted <= {part for parts in cluster.members(align).values() for part in parts},
        lambda: f"the new partitions; {cluster.members(align)}",
    )
    print(f"new partitions are assigned after {time.monotonic() - grown:.1f} s")
    more = {
        (0, p): [Row(f"new-{p}-{i % 5}", after(62) + i * S // 4, (float(i % 7),)) for i in range(160)] for p in (1, 2)
    }
    later = [Row(f"o-{i % 9}", after(62) + i * S // 4, (float(i % 11),)) for i in range(160)]
    partitions = {place: [*part, *later] for place, part in scenario.partitions.items()} | more
    order = tuple(place for _ in range(160) for place in partitions)
    encoders = replace(scenario, partitions=dict.fromkeys(partitions, later) | more, order=order)
    write(cluster.bootstrap, encoders.records())
    whole = replace(scenario, partitions=partitions)
    assert any(row[1].startswith("new-") for answer in whole.expected_so_far().values() for row in answer)
    print(written.check(whole, uids, whole.expected_so_far()), "results")
    cluster.check()


def test_one_process_with_all_stages_gives_the_same_also_if_it_is_killed(
    kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scenario = mixed("small", 600, idle={"then": "hold"}, seed=8).closed(120 * S)
    with Cluster(kafka.bootstrap, tmp_path_factory.mktemp("serve")) as cluster:
        cluster.start("serve")
        make_topics(cluster.bootstrap, scenario)
        with cluster.client("serve", "serve") as client:
            uids = define(client, scenario)
        until(lambda: any(cluster.members("skyband.align.small.1").values()), "small is aligned")
        written = Written(cluster)
        with Feed(cluster.bootstrap, scenario.records(), 100.0, allowed=300) as feed:
            written.wait_for_some(uids, 20)
            feed.allow()
            cluster.restart("serve")
        print(written.check(scenario, uids, scenario.expected_so_far()), "results")
        with cluster.client("serve", "serve") as client:
            _, window_end = max(scenario.expected_so_far())
            assert client.get_result("small/sums", window_end).window_end == window_end
        assert cluster["serve"].stop() == 0
        cluster.check()


def after(seconds: int) -> int:
    return BEGIN_US + seconds * S


def steady(name: str, *, seconds: int, rate: int, idle: dict[str, str] | None = None, partitions: int = 4) -> Scenario:
    """Return two streams in which a second of event time has `rate` rows, in order."""
    streams = [
        {"name": f"{name}_{letter}", "topic": f"{name}-{letter}", "hi": 100, "idle": idle or {"after": "10s"}}
        for letter in "ab"
    ]
    asked = {"name": "top", "k": 10, "score": f"{name}_a + {name}_b", "window": {"size": "10s", "slide": "1s"}}
    found = load_definitions(
        {"group": {"name": name, "retention": "20s", "shards": 2, "streams": streams}, "queries": [asked]}
    )
    rows: dict[tuple[int, int], list[Row]] = {(s, p): [] for s in range(2) for p in range(partitions)}
    places = list(rows)
    order = tuple(places[i % len(places)] for i in range(seconds * rate))
    for i, place in enumerate(order):
        rows[place].append(Row(f"o-{i * 7919 % 1_009}", BEGIN_US + i * S // rate, (float(i * 104_729 % 1_000) / 10,)))
    return Scenario(found.group, found.queries, rows, order)


def lag(cluster: Cluster, group: str, topic: str, partition: int) -> int | None:
    """Return how far a consumer group is behind the end of a partition, None if it has committed nothing."""
    part = TopicPartition(topic, partition)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": cluster.prefix + group})
    try:
        (stored,) = consumer.committed([part], 30)
        _, end = consumer.get_watermark_offsets(part, 30)
    finally:
        consumer.close()
    return None if stored.offset < 0 else int(end - stored.offset)


class Seen:
    """What a subscriber has seen, and when: window ends and seconds."""

    def __init__(self, updates: Iterator[object]) -> None:
        self.ends: list[int] = []
        self.at: list[float] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(updates,), daemon=True)
        self._thread.start()

    def _run(self, updates: Iterator[object]) -> None:
        try:
            for update in updates:
                self.at.append(time.monotonic())
                self.ends.append(update.window_end)  # type: ignore[attr-defined]
        except BaseException as error:
            self._error = error

    def wait(self, count: int, what: str) -> None:
        """Wait until so many results have come."""
        until(lambda: len(self.ends) >= count or self._error is not None, what)
        assert self._error is None, f"the subscription ended: {self._error!r}"

    def wait_for_end(self) -> BaseException | None:
        """Wait until the subscription has ended, and return with what."""
        self._thread.join(60)
        assert not self._thread.is_alive(), "the subscription goes on"
        return self._error
