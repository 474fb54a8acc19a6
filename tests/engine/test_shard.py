"""A shard at the edges: of time, of k, of memory, of what its queries ask of one another."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from skyband.engine import rankings
from skyband.errors import CoverageGapError
from skyband.model.duration import FIRST_EVENT_US, LAST_EVENT_US, MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.partials import PartialBatch, Progress
from skyband.model.query import Algorithm, Order, Query, QueryState, Window
from skyband.model.stream import Aggregate, Attribute, Identity, Late, Stream
from tests.engine.pure_pipeline import PurePipeline, planned, run
from tests.engine.reference import Asked, Reference
from tests.engine.variants import Rows, expected, falling_leaders, fitting, siblings
from tests.lockstep import assert_equal
from tests.oracle import Row, accepted, oracle_results
from tests.workloads import Seeded, seeded


def group_of(aggregate: Aggregate = Aggregate.BEST, *, pane_us: int = 1, panes: int = 8, **more: Any) -> Group:
    """Return a group of one attribute stream `a`."""
    times = {"max_delay_us": more.pop("max_delay_us", 0), "late": more.pop("late", Late.APPLY)}
    values = (Attribute(name="a", lo=-1_000.0, hi=1_000.0),)
    stream = Stream(name="a", attributes=values, aggregate=aggregate, **times)
    return Group(name="g", streams=(stream,), retention_us=panes * pane_us, pane_us=pane_us, **more)


def ask(name: str, size: int, slide: int, *, k: int = 2, score: str = "a", **more: Any) -> Query:
    return Query(name=name, k=k, score=score, window=Window(size, slide), **more)


def assert_right(
    group: Group,
    queries: Sequence[Query],
    rows: Rows,
    *,
    shards: tuple[int, ...] = (1,),
    batches: tuple[int, ...] = (1, 10_000),
    check: bool = True,
) -> None:
    """Assert that every algorithm that fits gives what brute force gives."""
    asked = fitting(group, queries)
    truth = expected(oracle_results(group, queries, rows), asked)
    assert truth
    for count in shards:
        for batch_rows in batches:
            got = run(group, [query for _, query in asked], rows, shards=count, batch_rows=batch_rows, check=check)
            assert_equal(truth, got, rows)


def random_rows(seed: int, times: Sequence[int], ids: str = "abcdefgh") -> Rows:
    random = Random(seed)
    return {(0, 0): [Row(random.choice(ids), time, (float(random.randint(-9, 9)),)) for time in times]}


@pytest.mark.parametrize("start", [FIRST_EVENT_US + 1, -1, 0, LAST_EVENT_US - 10**7, LAST_EVENT_US - 101_000])
@pytest.mark.parametrize("pane_us", [1, 1_000])
def test_time_may_begin_anywhere(start: int, pane_us: int) -> None:
    group = group_of(pane_us=pane_us)
    if start + 120 * pane_us >= MAX_TIME_US:
        pane_us = 1
        group = group_of(pane_us=1)
    rows = random_rows(1, [start + i * pane_us for i in (0, 0, 1, 3, 4, 9, 8, 30, 31, 29, 100)])
    assert_right(group, [ask("q", 4 * pane_us, pane_us), ask("r", 8 * pane_us, 5 * pane_us)], rows)


def test_windows_may_be_larger_than_all_that_is_seen() -> None:
    group = group_of(Aggregate.SUM, pane_us=1_000_000, panes=1 << 23)
    rows = random_rows(2, [i * 700_000 for i in range(50)])
    # Checking would look at each of 8 million ticks.
    assert_right(group, [ask("q", group.retention_us, 10_000_000)], rows, check=False)


@pytest.mark.parametrize("aggregate", [Aggregate.BEST, Aggregate.LATEST])
def test_k_may_be_far_larger_than_the_objects(aggregate: Aggregate) -> None:
    group = replace(group_of(aggregate), streams=(replace(group_of(aggregate).streams[0], attributes=(_wide("a"),)),))
    rows = random_rows(3, [i // 2 for i in range(60)])
    assert_right(group, [ask("q", 8, 2, k=1_000_000), ask("r", 8, 2, k=1)], rows)


def _wide(name: str) -> Attribute:
    return Attribute(name=name, lo=-1_000.0, hi=1_000.0, missing=-1_000.0)


@pytest.mark.parametrize("algorithm", [Algorithm.TWO_TIER, Algorithm.VIEW])
def test_years_without_rows_are_jumped(algorithm: Algorithm) -> None:
    year = 365 * 86_400_000_000
    group = group_of(pane_us=1_000, panes=100)
    queries = [ask("q", 5_000, 1_000), ask("r", 100_000, 7_000), ask("s", 1_000, 50_000)]
    times = [0, 1_500, year, year + 1, 9 * year, 9 * year - 3 * year, 30 * year]
    rows = random_rows(4, times)
    pipeline = PurePipeline(group, [(0, 0)], check=True)
    for query in queries:
        pipeline.change(planned(group, query, algorithm))
    pipeline.add((0, 0), rows[0, 0], 0)
    pipeline.aligner.finish(0, 0)
    pipeline.flush()
    # Each row is in 5, 15 and at most 1 windows; brute force would step through 10^12.
    assert pipeline.shards[0].statistics().evaluations < 200
    assert {(result.query, result.window_end % 7_000) for result in pipeline.results if result.query == "r"} == {
        ("r", 0)
    }
    for time in (0, year, 9 * year, 30 * year):
        ends = [
            r.window_end for r in pipeline.results if r.query == "q" and r.rows and 0 < r.window_end - time <= 5_000
        ]
        assert ends == [time + i * 1_000 for i in range(1, 6 if time < 30 * year else 2)]


def test_shards_without_rows_say_nothing_and_hold_nothing_up() -> None:
    group = group_of()
    rows = random_rows(5, [i // 3 for i in range(60)], ids="x")
    assert_right(group, [ask("q", 4, 2), ask("r", 8, 1)], rows, shards=(8,))


@pytest.mark.parametrize("late", [Late.APPLY, Late.DROP])
def test_rows_may_all_be_late(late: Late) -> None:
    group = group_of(Aggregate.MAX, late=late)
    rows = random_rows(6, [50, *(49 - i % 8 for i in range(40)), 57, *(52 - i % 3 for i in range(9)), 70])
    assert_right(group, [ask("q", 8, 1), ask("r", 3, 2), ask("s", 8, 16)], rows)


def test_rows_too_late_for_any_window_are_counted() -> None:
    group = group_of()
    pipeline = PurePipeline(group, [(0, 0)], check=True)
    pipeline.change(planned(group, ask("q", 8, 1)))
    pipeline.add((0, 0), [Row("a", time, (1.0,)) for time in (100, 10, 11, 99)], 0)
    pipeline.aligner.finish(0, 0)
    pipeline.flush()
    statistics = pipeline.shards[0].statistics()
    assert (statistics.rows, statistics.late_rows, statistics.expired_rows) == (4, 3, 2)


@pytest.mark.parametrize("aggregate", [Aggregate.BEST, Aggregate.LATEST, Aggregate.SUM])
def test_slots_are_used_again_between_evaluations_of_queries_with_different_slides(aggregate: Aggregate) -> None:
    stream = replace(group_of(aggregate).streams[0], attributes=(_wide("a"),))
    group = replace(group_of(aggregate), streams=(stream,))
    random = Random(7)
    rows = [Row(f"once-{i}" if i % 5 else "often", i // 2, (float(random.randint(-9, 9)),)) for i in range(400)]
    queries = [ask("quick", 3, 1, k=3), ask("slow", 8, 29, k=3), ask("slower", 3, 41, k=9)]
    assert_right(group, queries, {(0, 0): rows}, shards=(1, 2), batches=(7, 10_000))


def test_views_of_more_objects_than_they_have_room_for_are_right() -> None:
    group, queries, rows = falling_leaders()
    assert_right(group, queries, rows, shards=(1,), batches=(100,))
    pipeline = PurePipeline(group, [(0, 0)])
    for query in queries:
        pipeline.change(planned(group, query, Algorithm.VIEW))
    pipeline.add((0, 0), rows[0, 0], 0)
    pipeline.flush()
    assert pipeline.shards[0].statistics().refills > 2


@pytest.mark.parametrize("kept", [1, 3, 10])
def test_all_rankings_take_in_the_shared_changes_before_they_are_forgotten(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rankings, "_CHANGES_KEPT", kept)
    for seed in (286, 313, 7):
        group, queries, rows = seeded(seed, 120)
        choose = Seeded(seed)
        queries = tuple(other for query in queries[:2] for other in siblings(choose, group, query, 2))
        assert_right(group, queries, rows, batches=(17,))


def test_the_list_of_changes_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rankings, "_CHANGES_KEPT", 50)
    for queries in ([], [ask("q", 8, 1), ask("r", 8, 1_000_000)]):
        group = group_of(panes=8, retention_rows=8)
        pipeline = PurePipeline(group, [(0, 0)])
        for query in queries:
            pipeline.change(planned(group, query))
        for first in range(0, 2_000, 20):
            pipeline.add((0, 0), [Row("a", time, (1.0,)) for time in range(first, first + 20)], first)
            pipeline.flush()
        for store in pipeline.shards[0]._rankings.stores.values():
            assert len(store.changes) < 100


def test_an_object_that_becomes_infinite_shows_whom_it_kept_out() -> None:
    group = group_of()
    rows = {(0, 0): [Row("x", 1, (5.0,)), Row("y", 1, (3.0,)), Row("x", 2, (900.0,)), Row("z", 9, (1.0,))]}
    assert_right(group, [ask("q", 8, 1, k=1, score="exp(a)"), ask("r", 2, 1, k=1, score="exp(a)")], rows)


def test_count_windows_see_the_last_rows_of_finished_sources() -> None:
    group = group_of(retention_rows=5)
    # The rejected row moves time on, so that the last row is released long after the newest accepted one.
    rows = {(0, 0): [Row("x", 1, (1.0,)), Row("y", 100, (-5_000.0,)), Row("y", 2, (1.0,))]}
    query = Query(name="q", k=5, score="a", window=Window(5, 1, in_rows=True))
    assert_right(group, [query], rows)
    assert_right(group, [query, ask("t", 8, 1)], rows)


@pytest.mark.parametrize("aggregate", [Aggregate.BEST, Aggregate.COUNT])
def test_records_that_are_objects_are_combined_with_nothing(aggregate: Aggregate) -> None:
    names = (Attribute(name="a", hi=10.0), Attribute(name="b", hi=10.0))
    stream = Stream(name="s", attributes=names, is_object_stream=True, identity=Identity.ROW, aggregate=aggregate)
    group = Group(name="g", streams=(stream,), retention_us=8, pane_us=1, retention_rows=9)
    random = Random(8)
    rows = [Row(random.choice("ab"), i // 2, (float(random.randint(0, 9)), 2.5)) for i in range(60)]
    queries = [ask("q", 8, 3, score="a + b"), ask("r", 5, 1, k=5, score="a - b", order=Order.LOWEST)]
    count = Query(name="c", k=3, score="a", window=Window(7, 2, in_rows=True))
    assert_right(group, [*queries, count], {(0, 0): rows})


class Flowing:
    """A pipeline over one stream whose rows come one by one, with the reference beside it."""

    def __init__(self, group: Group, *, catalog: bool = False) -> None:
        self.group = group
        self.pipeline = PurePipeline(group, [(0, 0)], check=True, catalog=catalog)
        self.reference = Reference(group)
        self.rows: list[Row] = []

    def put(self, query: Query, revision: int = 1, state: QueryState = QueryState.ACTIVE, *, first: int) -> None:
        self.reference.asked.setdefault(query.name, Asked(query)).turn(first, state is QueryState.ACTIVE, query.k)
        self.pipeline.change(query, revision, state)

    def send(self, *rows: Row) -> None:
        self.pipeline.add((0, 0), rows, len(self.rows))
        self.rows += rows
        before = len(self.pipeline.results)
        self.pipeline.flush()
        results = self.pipeline.results[before:]
        seen = accepted(self.group, {(0, 0): self.rows})
        frontier = self.pipeline.shards[0].sequencer.frontier_us
        truth = self.reference.advance(seen, lambda _: frontier)
        got = [(r.query, r.window_end, [(row.object_id, row.score) for row in r.rows]) for r in results]
        assert got == [(r["query"], r["window_end"], [(x["object_id"], x["score"]) for x in r["rows"]]) for r in truth]


@pytest.mark.parametrize("algorithm", [Algorithm.TWO_TIER, Algorithm.VIEW])
@pytest.mark.parametrize("catalog", [False, True])
def test_a_new_query_sees_its_whole_window_at_once_and_may_ask_for_more_than_those_before(
    algorithm: Algorithm, catalog: bool
) -> None:
    group = group_of(Aggregate.MAX, panes=20)
    flowing, random = Flowing(group, catalog=catalog), Random(9)
    sizes = [(1, 3), (5, 3), (2, 20), (9, 20)]  # K grows, then W, then both shrink
    for time in range(150):
        if time in (20, 60, 80, 100):
            k, size = sizes.pop(0)
            flowing.put(planned(group, ask(f"q{time}", size, 2, k=k), algorithm), first=time)
        if time == 120:
            for name in ("q100", "q60"):  # the largest of the two sets of sizes go
                query = flowing.reference.asked[name].query
                flowing.put(query, 2, QueryState.DELETED, first=time)
        flowing.send(Row(f"o{random.randrange(15)}", time, (float(random.randint(-9, 9)),)))


def test_shards_tell_where_a_revision_begins() -> None:
    group = group_of(panes=20)
    pipeline = PurePipeline(group, [(0, 0)])
    query = planned(group, ask("q", 20, 10))
    told: list[tuple[str, int, int]] = []

    def change(revision: int, state: QueryState, *, name: str = "q", slide: int = 10) -> None:
        changed = replace(query, name=name, window=Window(20, slide))
        pipeline.change(changed, revision, state)

    def send(time: int, offset: int) -> None:
        pipeline.add((0, 0), [Row("a", time, (1.0,))], offset)
        pipeline.flush()
        told.extend((a.uid, a.revision, a.first_us) for a in pipeline.activated)
        pipeline.activated.clear()

    change(1, QueryState.ACTIVE)
    send(13, 0)
    change(2, QueryState.ACTIVE)
    change(1, QueryState.ACTIVE, name="r", slide=7)
    send(20, 1)
    change(3, QueryState.PAUSED)
    change(4, QueryState.ACTIVE)
    send(29, 2)
    change(5, QueryState.DELETED)
    change(1, QueryState.DELETED, name="unknown")
    send(30, 3)
    assert told == [
        ("q", 1, MIN_TIME_US),
        ("q", 2, 20),
        ("r", 1, 14),
        ("q", 3, 30),  # 20 is done once a row of 20 was seen
        ("q", 4, 30),
        ("q", 5, 30),
        ("unknown", 1, 30),
    ]


def test_results_of_one_instant_share_their_rows() -> None:
    group = group_of(panes=20)
    pipeline = PurePipeline(group, [(0, 0)])
    for k, size in ((3, 20), (1, 20), (2, 10)):
        pipeline.change(planned(group, ask(f"q{k}", size, 10, k=k)))
    pipeline.add(
        (0, 0), [Row(name, time, (value,)) for name, time, value in (("a", 1, 3.0), ("b", 11, 2.0), ("c", 12, -0.0))], 0
    )
    pipeline.aligner.finish(0, 0)
    pipeline.flush()
    (batch,) = [p for p in pipeline.partials if p.evaluations[0].window_end == 20]
    assert [(e.uid, e.k, e.window_start) for e in batch.evaluations] == [("q3", 3, 0), ("q1", 1, 0), ("q2", 2, 10)]
    ids = ids_of(batch)
    assert sorted(ids) == ["a", "b", "c"]
    shown = [[ids[i] for i in batch.ranking[e.start : e.stop]] for e in batch.evaluations]
    assert shown == [["a", "b", "c"], ["a"], ["b", "c"]]
    assert dict(zip(ids, batch.score.tolist(), strict=True)) == {"a": 3.0, "b": 2.0, "c": 0.0}
    assert (len(batch.event_time_us), batch.sequence.tolist()) == (0, [0, 0, 0])
    assert (batch.attribute_names, batch.present.tolist()) == (("a",), [[True]] * 3)


def ids_of(batch: PartialBatch) -> list[str]:
    starts = [0, *batch.id_ends[:-1]]
    return [batch.id_bytes[a:b].tobytes().decode() for a, b in zip(starts, batch.id_ends, strict=True)]


def test_scores_are_the_users_also_where_the_lowest_is_best_and_never_minus_zero() -> None:
    group = group_of()
    pipeline = PurePipeline(group, [(0, 0)])
    pipeline.change(planned(group, ask("q", 8, 4, k=9, score="-a", order=Order.LOWEST)))
    pipeline.add((0, 0), [Row(name, 1, (value,)) for name, value in (("a", 0.0), ("b", 2.0), ("c", -3.0))], 0)
    pipeline.aligner.finish(0, 0)
    pipeline.flush()
    (batch,) = pipeline.partials
    scores = [float(batch.score[i]) for i in batch.ranking]
    assert (batch.descending, scores, [ids_of(batch)[i] for i in batch.ranking]) == (
        False,
        [-2.0, 0.0, 3.0],
        ["b", "a", "c"],
    )
    assert not np.signbit(batch.score).tolist()[batch.ranking[1]]


def test_partials_come_in_the_order_of_their_window_ends_then_progress() -> None:
    group = group_of(retention_rows=9)
    pipeline = PurePipeline(group, [(0, 0)])
    for slide in (1, 2, 3):
        pipeline.change(planned(group, ask(f"q{slide}", 6, slide, score=f"a*{slide}")))
    pipeline.add((0, 0), [Row("a", time, (1.0,)) for time in range(30)], 0)
    (batch,) = pipeline.aligner.flush(0)
    shard = pipeline.shards[0]
    shard.offer(batch)
    values = shard.advance()
    ends = [value.evaluations[0].window_end for value in values if isinstance(value, PartialBatch)]
    assert ends == sorted(ends)
    assert len(ends) == 29 + 14 + 9
    assert values[-1] == Progress("g", 1, 0, 29, MIN_TIME_US)
    assert not any(isinstance(value, Progress) for value in values[:-1])


def test_a_repeated_batch_changes_nothing_and_a_gap_stops_the_shard() -> None:
    group = group_of()
    pipeline = PurePipeline(group, [(0, 0)])
    pipeline.change(planned(group, ask("q", 8, 1)))
    batches = []
    for time in range(3):
        pipeline.add((0, 0), [Row("a", time, (1.0,))], time)
        batches += pipeline.aligner.flush(0)
    shard = pipeline.shards[0]
    shard.offer(batches[0])
    first = shard.advance()
    shard.offer(batches[0])
    assert shard.advance() == [first[-1]]
    with pytest.raises(CoverageGapError):
        shard.offer(batches[2])
    assert shard.statistics().rows == 0


def test_statistics_tell_what_a_shard_holds_and_has_done() -> None:
    stream = replace(group_of(Aggregate.LATEST).streams[0], attributes=(_wide("a"),), repeat_after_us=100)
    group = replace(group_of(), streams=(stream,))
    pipeline = PurePipeline(group, [(0, 0)])
    pipeline.change(planned(group, ask("q", 8, 1, score="log1p(a)"), Algorithm.VIEW))
    pipeline.add(
        (0, 0),
        [
            Row(name, time, (value,))
            for name, time, value in (("a", 0, 1.0), ("b", 1, -2.0), ("a", 2, 5.0), ("c", 9, 1.0))
        ],
        0,
    )
    pipeline.flush()
    statistics = pipeline.shards[0].statistics()
    assert (statistics.rows, statistics.objects, statistics.entries, statistics.held) == (3, 2, 2, 1)
    assert statistics.broken_promises == 1
    assert statistics.not_finite > 0
    assert statistics.evaluations == 9
    assert statistics.state_bytes > 0
    assert pipeline.shards[0].uids() == ("q",)
    assert pipeline.shards[0].query_statistics("q").evaluations == 9
