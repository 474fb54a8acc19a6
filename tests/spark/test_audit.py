"""The audit of what the real pipeline writes: nothing where all is well, and exactly what was done to it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from skyband.control.commands import DeleteQuery, PauseQuery, ResumeQuery, UpdateQuery
from skyband.errors import LogError, NotFoundError, NotServedError
from skyband.files.definitions import load_definitions
from skyband.local.pipeline import finished_input
from skyband.model.query import Algorithm, Query, Window
from skyband.model.result import Result, ResultRow
from tests.local.replays import workload
from tests.oracle import Row
from tests.spark.audits import START, Ran, S, audited, interpreted, ran, told

pytestmark = pytest.mark.spark

# best max latest, falling; min; records as objects; first count; sum with count windows and divisions; three shards.
SEEDS = ((7, 1), (10, 1), (13, 2), (24, 1), (12, 3))

PLANT = load_definitions("""\
group:
  name: plant
  retention: 1m
  streams:
    - {name: heat, lo: 0, hi: 100, max_delay: 2s}
    - {name: load, lo: 0, hi: 100, aggregate: latest}
queries:
  - {name: best, k: 3, score: heat + load, window: {size: 10s, slide: 2s}}
  - {name: both, k: 5, score: 2*heat - load/3, window: {size: 8s, slide: 4s}, require: all, order: lowest}
""")
PLACES = ((0, 0), (0, 1), (1, 0))


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    with interpreted(spark):
        yield spark


def feed(pipeline: Ran, first: int, last: int, places: Sequence[tuple[int, int]] = PLACES) -> None:
    """Append a row of each of some machines to each place in each of some seconds, some of them late."""
    for second in range(first, last):
        for stream, partition in places:
            late = 5 * S if second % 7 == 3 and not stream else 0
            rows = [
                Row(f"m{number}", START + second * S - late, (float((second * 37 + number * 11 + partition) % 50),))
                for number in range(partition, 6, 2 - stream)
            ]
            pipeline.feed((stream, partition), *rows)


def wake_up(pipeline: Ran, second: int) -> None:
    """Append what an idle partition brings as it wakes up, and the other attribute of it."""
    rows = [Row(name, START + second * S, (heat,)) for name, heat in (("m8", 0.0), ("m9", 99.0))]
    pipeline.feed((0, 1), *rows)
    pipeline.feed((1, 0), *rows)


@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_nothing_is_found_in_what_the_pipeline_writes(quick: SparkSession, seed: int, shards: int) -> None:
    definitions, rows = workload(seed, 120)
    definitions = finished_input(replace(definitions, group=replace(definitions.group, shards=shards)))
    pipeline = ran(definitions, rows)
    found = audited(quick, pipeline)
    assert told(found) == []
    assert len(pipeline.results) > 20
    assert sum(found.tally.counts[asked.uid, "windows"] for asked in found.queries) >= len(pipeline.results)


def test_exactly_what_was_altered_is_found(quick: SparkSession) -> None:
    pipeline = Ran(PLANT, PLACES)
    feed(pipeline, 0, 40)
    pipeline.finish()
    good = [its for its in pipeline.results if its.query == "best"]
    bad = list(good)
    top = good[2].rows[0]
    bad[2] = with_rows(good[2], [replace(top, score=top.score + 0.001), *good[2].rows[1:]])
    first, second, *others = good[4].rows
    bad[4] = with_rows(good[4], [replace(second, rank=1), replace(first, rank=2), *others])
    bad[8] = with_rows(good[8], [*good[8].rows[:1], *(replace(r, rank=r.rank - 1) for r in good[8].rows[2:])])
    bad[10] = with_rows(good[10], [replace(good[10].rows[0], attributes={"heat": 1.0}), *good[10].rows[1:]])
    bad.append(good[12])
    bad.append(replace(good[14], window_start=good[14].window_start + S, window_end=good[14].window_end + S))
    bad.append(replace(good[0], window_start=good[0].window_start - 20 * S, window_end=good[0].window_end - 20 * S))
    del bad[6]
    found = audited(quick, pipeline, [*bad, *(its for its in pipeline.results if its.query == "both")])
    assert told(found) == [
        ("best", good[0].window_end - 20 * S, "unexpected result", None),
        ("best", good[2].window_end, "wrong score", top.object_id),
        ("best", good[4].window_end, "wrong rank", second.object_id),
        ("best", good[4].window_end, "wrong rank", first.object_id),
        ("best", good[6].window_end, "missing result", None),
        ("best", good[8].window_end, "missing row", good[8].rows[1].object_id),
        *[("best", good[10].window_end, "wrong attribute", good[10].rows[0].object_id)] * 2,
        ("best", good[12].window_end, "duplicate", None),
        ("best", good[14].window_end + S, "unexpected result", None),
    ]


def with_rows(result: Result, rows: Sequence[ResultRow]) -> Result:
    return replace(result, rows=tuple(rows))


def test_the_life_of_queries_and_idle_sources_are_understood(quick: SparkSession) -> None:
    pipeline = Ran(replace(PLANT, group=replace(PLANT.group, shards=2)), PLACES)
    control = pipeline.pipeline.control
    feed(pipeline, 0, 12)
    pipeline.pipeline.create_query(Query(name="later", k=2, score="heat", window=Window(20 * S, 5 * S)))
    pipeline.work()
    feed(pipeline, 12, 18)
    # All sources are idle: what is known is shown, also for 20. Then some wake up, with rows that should have been
    # there; one of them has the highest score, the other the lowest.
    for _ in range(12):
        pipeline.tick(1)
    assert pipeline.results[-1].window_end == START + 20 * S
    wake_up(pipeline, 17)
    # One partition alone is idle, and passed; it too wakes up behind.
    for second in range(18, 33):
        feed(pipeline, second, second + 1, PLACES[::2])
        pipeline.tick(1)
    assert pipeline.results[-1].window_end > START + 26 * S
    wake_up(pipeline, 26)
    feed(pipeline, 33, 34)
    control.execute(PauseQuery("plant", "best"))
    feed(pipeline, 34, 40)
    control.execute(ResumeQuery("plant", "best"))
    control.execute(UpdateQuery("plant", replace(PLANT.queries[1], k=2), mask=("k",)))
    feed(pipeline, 40, 48)
    control.execute(DeleteQuery("plant", "later"))
    feed(pipeline, 48, 56)
    assert {its.query for its in pipeline.results[-3:]} == {"best", "both"}
    assert told(audited(quick, pipeline)) == []
    # Batches that were written twice change nothing, and a result of a time at which the query was paused is told.
    batches = pipeline.aligned()
    twice = [(shard, offset + 100_000, batch) for shard, offset, batch in batches[-30:-10]]
    paused = replace(pipeline.results[0], window_start=START + 26 * S, window_end=START + 36 * S)
    found = audited(quick, pipeline, [*pipeline.results, paused], batches=[*batches, *twice], names=["best"])
    assert [its[:3] for its in told(found)] == [("best", START + 36 * S, "unexpected result")]


def test_what_is_not_whole_is_left_out_and_said(quick: SparkSession) -> None:
    pipeline = Ran(PLANT, PLACES)
    feed(pipeline, 0, 40)
    kept = [(0, offset, batch) for _, offset, batch in pipeline.aligned()[50:]]
    found = audited(quick, pipeline, batches=kept, from_us=START, to_us=START + 60 * S)
    assert told(found) == []
    notes = [note for span in found.spans.values() for note in span.notes]
    assert any("since when rows are kept" in note for note in notes)
    assert any("up to where the aligned log is read" in note for note in notes)
    assert all(found.tally.counts[asked.uid, "windows"] > 1 for asked in found.queries)


def test_an_approximate_query_has_a_recall_instead(quick: SparkSession) -> None:
    queries = (replace(PLANT.queries[0], algorithm=Algorithm.EAA_TAIL, max_error=0.1, score="heat"),)
    pipeline = Ran(replace(PLANT, queries=queries), PLACES)
    feed(pipeline, 0, 30)
    pipeline.finish()
    found = audited(quick, pipeline, pipeline.results[::2])
    assert told(found) == []
    counts, uid = found.tally.counts, found.queries[0].uid
    assert 0.4 < counts[uid, "shown"] / counts[uid, "due"] < 0.6


def test_what_cannot_be_audited_is_refused_in_words(quick: SparkSession) -> None:
    pipeline = Ran(replace(PLANT, group=replace(PLANT.group, shards=2)), PLACES)
    feed(pipeline, 0, 12)
    with pytest.raises(NotFoundError, match="had no query 'none'; queries are best, both"):
        audited(quick, pipeline, names=["none"])
    with pytest.raises(NotServedError, match="up to where the aligned log is read"):
        audited(quick, pipeline, from_us=START + 100 * S, to_us=START + 200 * S)
    with pytest.raises(LogError, match="nothing of shard 1"):
        audited(quick, pipeline, batches=[its for its in pipeline.aligned() if its[0] == 0])
