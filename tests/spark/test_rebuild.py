"""A group that is rebuilt while it runs, and switched over, has the results of one that ran throughout."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from services.runtime.embedded import EmbeddedKafka
from skyband.align.topics import aligned_topic, consumer_group
from skyband.errors import ConflictError, DefinitionError, LogError
from skyband.files.definitions import load_definitions
from skyband.log.read_range import read_all
from skyband.log.record_log import Position
from skyband.model.rebuild import HISTORY_PARTITIONS, Rebuild
from spark import rebuild_aligned
from spark.archive_job import ArchiveJob, ArchiveSettings
from spark.rebuild import main
from spark.rebuild_job import RebuildJob, RebuildSettings
from spark.rebuild_plan import Wish
from tests.kafka.cluster import Cluster, until
from tests.kafka.feed import Feed, write
from tests.kafka.logs import delete_records
from tests.kafka.scenarios import Scenario, define, make_topics, mixed
from tests.kafka.written import Written
from tests.oracle import Row
from tests.spark.rebuild_faults import WRITTEN, dies_once

pytestmark = pytest.mark.spark

S = 1_000_000
HOLD = {"then": "hold"}


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("rebuild")
    with Cluster(kafka.bootstrap, folder) as cluster:
        cluster.start("control", "align-1", "engine-1", "fanout-1")
        yield cluster


class Case:
    """A scenario whose first rows are written, and some results of them."""

    def __init__(self, cluster: Cluster, scenario: Scenario, rows: int, results: int = 10) -> None:
        self.cluster, self.scenario, self.name = cluster, scenario, scenario.group.name
        make_topics(cluster.bootstrap, scenario)
        self.records = scenario.records()
        with cluster.client() as client:
            self.uids = define(client, scenario)
        write(cluster.bootstrap, self.records[:rows])
        self.written = Written(cluster)
        self.written.wait_for_some(self.uids, results)

    def job(self, spark: SparkSession, output: Path, **settings: object) -> RebuildJob:
        wish = {name: settings.pop(name) for name in ("shards", "retention_us") if name in settings}
        its = RebuildSettings(wish=Wish(group=self.name, **wish), output=output, **settings)  # type: ignore[arg-type]
        return RebuildJob(spark, self.cluster.log(), its)

    def switch(self, output: Path, **options: object) -> int:
        """Go on from what was rebuilt; return the new generation."""
        with self.cluster.client() as client:
            text = output.read_text(encoding="utf-8")
            return client.regenerate_group(self.name, rebuild=text, **options).generation  # type: ignore[arg-type]

    def write_rest(self, begin: int) -> None:
        write(self.cluster.bootstrap, self.records[begin:])

    def check(self) -> int:
        return self.written.check(self.scenario, self.uids, self.scenario.expected_so_far())


def test_with_more_shards_under_live_traffic_no_result_is_missing_wrong_or_there_twice(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(cluster, mixed("more", 2_400, idle=HOLD, shards=2), 500)
    output = tmp_path / "rebuild.json"
    with Feed(cluster.bootstrap, case.records[500:], 100.0, allowed=1_400) as feed:
        made = case.job(spark, output, shards=5).run()
        assert not feed.is_done
        assert case.switch(output, validate_only=True) == 2
        assert case.switch(output) == 2
        feed.allow()
        feed.finish()
    assert made == Rebuild.of(json.loads(output.read_text(encoding="utf-8")))
    assert [shard.shard for shard in made.shards] == [0, 1, 2, 3, 4]
    assert all(shard.rows and shard.snapshot_at < 0 for shard in made.shards)
    print(case.check(), "results")
    # Aligners of the new generation went on where the rebuild ends, with the times of the rows before.
    assert {batch.writer for batch in aligned(case, 2) if batch.sections} == {f"rebuild-{made.rebuild_id}", "align-1"}
    cluster.check()


def test_a_task_that_dies_amid_its_batches_changes_no_result(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(cluster, mixed("dies", 900, idle=HOLD, shards=2), 600)
    output = tmp_path / "rebuild.json"
    monkeypatch.setattr(rebuild_aligned, "write_rekeyed", partial(dies_once, str(tmp_path / "died")))
    with pytest.raises(LogError, match=r"Spark could not go on: .*; go on with --resume"):
        case.job(spark, output, shards=3).run()
    assert sum(aligned_end(case, 2).values()) >= WRITTEN
    with cluster.client() as client, pytest.raises(ConflictError, match="is not complete"):
        client.regenerate_group(case.name, rebuild=output.read_text(encoding="utf-8"))
    made = case.job(spark, output, shards=3, resume=True).run()
    # What had been written stands before it, and readers drop the second.
    assert sum(aligned_end(case, 2).values()) >= WRITTEN + sum(shard.batches for shard in made.shards)
    assert case.switch(output) == 2
    case.write_rest(600)
    print(case.check(), "results")
    cluster.check()


def test_the_head_of_the_log_may_be_gone_where_an_archive_has_it(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(cluster, mixed("kept", 1_200, idle=HOLD, shards=2), 600)
    archive = archived(case, spark, tmp_path)
    write(cluster.bootstrap, case.records[600:800])
    cut = aligned_end(case, 1)
    topic = cluster.prefix + aligned_topic(case.name, 1)
    for shard in range(2):
        delete_records(cluster.bootstrap, Position(topic, shard), cut[shard] // 2)
    output = tmp_path / "rebuild.json"
    made = case.job(spark, output, retention_us=80 * S, archive=archive, since_us=1).run()
    assert made.group.retention_us == 80 * S
    assert {source.from_offset for source in made.sources} == {0}
    assert case.switch(output) == 2
    case.write_rest(800)
    print(case.check(), "results")
    with closing(cluster.log().consumer(consumer_group(case.name, 2))) as consumer:
        at = [Position(case.scenario.topic(0), 0)]
        until(
            lambda: consumer.committed(at)[at[0]].offset > made.sources[0].to_offset, "a commit of the new generation"
        )
    cluster.check()


def test_a_topic_that_is_gone_is_made_anew_from_an_archive(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path
) -> None:
    with Cluster(kafka.bootstrap, tmp_path) as cluster:
        cluster.start("control", "align-1", "engine-1", "fanout-1")
        case = Case(cluster, mixed("gone", 900, idle=HOLD, shards=2), 600)
        committed(case, case.scenario.first(600))
        assert [cluster[name].stop() for name in ("align-1", "engine-1")] == [0, 0]
        archive = archived(case, spark, tmp_path)
        cluster.log().delete_topic(aligned_topic(case.name, 1))
        until(lambda: cluster.log().is_missing(aligned_topic(case.name, 1)), "the topic gone")
        output = tmp_path / "rebuild.json"
        with pytest.raises(LogError, match="is not there any more; rebuild from an archive of it"):
            case.job(spark, output, shards=3).run()
        case.job(spark, output, shards=3, archive=archive, since_us=1).run()
        assert case.switch(output) == 2
        cluster.start("align-1", "engine-1")
        case.write_rest(600)
        print(case.check(), "results")
        cluster.check()


def test_from_sources_with_a_corrected_mapping_results_are_right_from_the_switch_on(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    right = mapped(hi=100)
    case = Case(cluster, mapped(hi=30), 500)
    with cluster.client() as client:
        client.update_stream("map_b", hi=100)
    output = tmp_path / "rebuild.json"
    with pytest.raises(ConflictError, match="'map_b' is defined otherwise than in the generation that runs"):
        case.job(spark, output).run()
    case.job(spark, output, history="sources", shards=3).run()
    write(cluster.bootstrap, case.records[500:650])
    assert case.switch(output) == 2
    case.write_rest(650)
    before, after = case.scenario.expected_so_far(), right.expected_so_far()
    case.written.wait_for(right, case.uids, dict([max(after.items())]))
    case.written.to_end()
    found = {end: answers for (uid, end), answers in case.written.answers.items() if uid == case.uids["top"]}
    assert all(len(answers) == 1 for answers in found.values())
    ends = sorted(end for _, end in after)
    wrong = [end for end in ends if found[end][0] != after["top", end]]
    assert found.keys() == set(ends)
    assert all(found[end][0] == before["top", end] for end in wrong)
    switched = max(end for end in ends if found[end][0] == before["top", end] != after["top", end])
    assert ends[0] < switched < ends[-1]
    assert all(end <= switched for end in wrong)
    cluster.check()


def test_with_a_short_recovery_target_engines_begin_at_once_with_snapshots(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(cluster, mixed("fast", 1_200, idle=HOLD, shards=2), 700, 40)
    output = tmp_path / "rebuild.json"
    made = case.job(spark, output, shards=3, recovery_target_us=0).run()
    assert all(shard.snapshot_at > 0 and shard.snapshot_bytes > 0 for shard in made.shards)
    # What lies before the snapshots cannot be read any more.
    for shard in made.shards:
        at = Position(cluster.prefix + aligned_topic(case.name, 2), shard.shard)
        delete_records(cluster.bootstrap, at, shard.snapshot_at)
    assert case.switch(output) == 2
    case.write_rest(700)
    print(case.check(), "results")
    restored = [event for event in cluster["engine-1"].events("shard restored") if event["group"] == case.name]
    restored = [event for event in restored if event["generation"] == 2]
    assert {event["shard"]: event["reads_from"] for event in restored} == {
        shard.shard: shard.snapshot_at for shard in made.shards
    }
    cluster.check()


def test_a_source_topic_made_anew_goes_on_where_the_old_one_ended(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(cluster, mapped(hi=100, name="anew"), 500)
    stop = case.scenario.first(500)
    committed(case, stop)
    topic = case.scenario.topic(0)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([topic])[topic].result()
    until(lambda: cluster.log().is_missing(topic), "the topic gone")
    make_topics(cluster.bootstrap, case.scenario, only=topic)
    output = tmp_path / "rebuild.json"
    made = case.job(spark, output).run()
    history = [source for source in made.sources if source.is_history]
    assert {(source.stream, source.partition) for source in history} == {
        ("anew_a", HISTORY_PARTITIONS),
        ("anew_a", HISTORY_PARTITIONS + 1),
    }
    assert case.switch(output) == 2
    case.write_rest(500)
    print(case.check(), "results")


def test_what_cannot_be_is_refused_in_words(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(cluster, mixed("never", 400, idle=HOLD, shards=2), 300, 1)
    monkeypatch.setenv("SKYBAND_KAFKA_BOOTSTRAP", cluster.bootstrap)
    monkeypatch.setenv("SKYBAND_KAFKA_TOPIC_PREFIX", cluster.prefix)
    output = tmp_path / "rebuild.json"
    command = ["--group", "never", "--output", str(output)]
    run(*command, "--shards", "3")
    with pytest.raises(
        ConflictError, match=r"topic 'aligned.never.2' holds a rebuild already; .*--resume, or .*--disc"
    ):
        run(*command, "--shards", "3")
    with pytest.raises(ConflictError, match="was made with another group; run it with the options of then"):
        run(*command, "--shards", "3", "--retention", "50s", "--resume")
    first = case.job(spark, output, shards=3, resume=True).run()
    assert (first.group.shards, first.is_complete) == (3, True)
    run(*command, "--shards", "4", "--discard")
    second = Rebuild.of(json.loads(output.read_text(encoding="utf-8")))
    assert second.rebuild_id != first.rebuild_id
    assert {batch.writer for batch in aligned(case, 2)} == {f"rebuild-{second.rebuild_id}"}
    with cluster.client() as client:
        with pytest.raises(
            ConflictError, match="holds a rebuild of group 'never'; go on from that with --from-rebuild"
        ):
            client.regenerate_group("never", shards=4)
        for change, why in (
            ({"is_complete": False, "shards": ()}, "is not complete"),
            ({"generation": 7}, "is of generation 7, but the next one of group 'never' is 2"),
            ({"group": replace(second.group, name="more")}, "cannot be renamed, as from 'never' to 'more'"),
            ({"sources": tuple(replace(its, topic_id="x") for its in second.sources)}, "was deleted, or made anew"),
            ({"catalog_to": 10**9}, "but the rebuild goes on at 1000000000"),
        ):
            text = json.dumps(replace(second, **change).document())  # type: ignore[arg-type]
            with pytest.raises((ConflictError, DefinitionError), match=why):
                client.regenerate_group("never", rebuild=text, validate_only=True)
        with pytest.raises(DefinitionError, match="a rebuild says all of the group; leave group out"):
            client.regenerate_group("never", rebuild=output.read_text(encoding="utf-8"), shards=4)
        client.update_group("never", max_drift="2m")
        client.regenerate_group("never", rebuild=output.read_text(encoding="utf-8"))
    with pytest.raises(ConflictError, match="is of generation 2, but the next one of group 'never' is 3"):
        case.switch(output)


def run(*arguments: str) -> None:
    """Run the command in this process."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, None)


def mapped(*, hi: float, name: str = "map") -> Scenario:
    """Return two streams, of which the second rejects what lies above `hi`."""
    streams = [
        {"name": f"{name}_a", "topic": f"{name}-a", "hi": 100, "idle": HOLD, "max_delay": "2s"},
        {"name": f"{name}_b", "topic": f"{name}-b", "hi": hi, "idle": HOLD, "max_delay": "2s", "format": "json"},
    ]
    asked = {"name": "top", "k": 5, "score": f"{name}_a + {name}_b", "window": {"size": "10s", "slide": "1s"}}
    found = load_definitions(
        {"group": {"name": name, "retention": "20s", "shards": 2, "streams": streams}, "queries": [asked]}
    )
    rows: dict[tuple[int, int], list[Row]] = {(s, p): [] for s in range(2) for p in range(2)}
    places, order = list(rows), []
    for i in range(1_000):
        place = places[i * 7 % 4]
        time_us = 1_700_000_000 * S + i * 100_000 - (i % 11 == 0) * 3 * S
        rows[place].append(Row(f"o-{i * 7919 % 53}", time_us, (float(i * 37 % 101),)))
        order.append(place)
    rows = {place: [row for row in part if row.values[0] <= 100] for place, part in rows.items()}
    kept = {place: iter(part) for place, part in rows.items()}
    order = [place for place in order if next(kept[place], None) is not None]
    return Scenario(found.group, found.queries, rows, tuple(order))


def archived(case: Case, spark: SparkSession, folder: Path) -> str:
    """Archive what is aligned; return where."""
    settings = ArchiveSettings(
        archive=str(folder / "archive"),
        checkpoint=f"file:{folder}/checkpoint",
        groups=(case.name,),
        with_sources=False,
        available_now=True,
    )
    ArchiveJob(spark, case.cluster.log(), settings).run(Event())
    return settings.archive


def aligned(case: Case, generation: int) -> list[object]:
    return [record.value for record in read_all(case.cluster.log(), aligned_topic(case.name, generation))]


def aligned_end(case: Case, generation: int) -> dict[int, int]:
    log, topic = case.cluster.log(), aligned_topic(case.name, generation)
    with closing(log.consumer()) as consumer:
        ends = consumer.end_offsets([Position(topic, shard) for shard in range(log.partitions(topic))])
    return {at.partition: end for at, end in ends.items()}


def committed(case: Case, scenario: Scenario) -> None:
    """Wait until all rows of a scenario are aligned, and committed."""
    ends = {Position(case.scenario.topic(s), p): len(rows) for (s, p), rows in scenario.partitions.items()}
    with closing(case.cluster.log().consumer(consumer_group(case.name, 1))) as consumer:
        until(lambda: {at: its.offset for at, its in consumer.committed(list(ends)).items()} == ends, "all committed")
