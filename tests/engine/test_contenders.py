"""What could still happen is what brute force over all objects says, by every algorithm and any number of shards."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from skyband.engine.contenders import case_of
from skyband.model.binding import bind
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Algorithm, Query, Window
from skyband.model.result import Result
from skyband.model.stream import Aggregate, Attribute, Stream
from tests.engine.pure_pipeline import PurePipeline, planned
from tests.engine.traits import fits
from tests.engine.variants import Rows, promising, siblings
from tests.oracle import Row, accepted
from tests.outlook_model import outlooks
from tests.workloads import Seeded, seeded

KEEPING = (Algorithm.TWO_TIER, Algorithm.VIEW, Algorithm.SKYBAND, Algorithm.SLA)
CANDIDATES = (1, 3, 1_000)


def results_of(
    group: Group, queries: Sequence[Query], partitions: Rows, *, shards: int, batch_rows: int
) -> list[Result]:
    """Return the results of planned queries that a replay would write."""
    pipeline = PurePipeline(replace(group, shards=shards), sorted(partitions), check=True)
    for query in queries:
        pipeline.change(query)
    for first in range(0, max((len(rows) for rows in partitions.values()), default=0), batch_rows):
        for place, rows in partitions.items():
            if chunk := rows[first : first + batch_rows]:
                pipeline.add(place, chunk, first)
        pipeline.flush()
    for place in partitions:
        pipeline.aligner.finish(*place)
    pipeline.flush()
    windows, newest = {query.name: query.window for query in queries}, pipeline.shards[0].sequencer.newest_us
    return [r for r in pipeline.results if windows[r.query].in_rows or r.window_end - windows[r.query].slide <= newest]


def told(result: Result) -> dict[str, Any]:
    """Return a result in the form of the model."""
    return {
        "window_end": result.window_end,
        "rows": [(row.object_id, row.best_score, row.safe_until) for row in result.rows],
        "candidates": [(c.object_id, c.score, c.best_score, c.lacks, c.until) for c in result.candidates],
    }


def with_promises(group: Group, seed: int) -> Group:
    """Return a group some of whose streams promise something, whether they keep it or not."""
    choose, windows = Seeded(seed), (None, MAX_TIME_US, 5 * group.pane_us, group.retention_us)
    streams = tuple(replace(stream, repeat_after_us=choose.pick(windows)) for stream in group.streams)
    return replace(group, streams=streams)


def assert_lockstep(group: Group, queries: Sequence[Query], partitions: Rows, shards: int, batch_rows: int) -> int:
    """Assert that each result tells what the model does; return how many candidates were told."""
    seen, count = accepted(group, partitions), 0
    results = results_of(group, queries, partitions, shards=shards, batch_rows=batch_rows)
    for query in queries:
        got = [told(result) for result in results if result.query == query.name]
        expected = list(outlooks(group, query, seen))
        assert len(got) == len(expected)
        for own, other in zip(got, expected, strict=True):
            del other["could"]
            assert repr(own) == repr(other), (query, own["window_end"])
            count += len(own["candidates"])
    return count


def asking(group: Group, queries: Sequence[Query], seed: int, *, is_kept: bool = False) -> list[Query]:
    """Return the queries and siblings of theirs under every algorithm that keeps the window, asking for candidates.

    `is_kept`: whether promises are kept, without which a skyband of objects is not exact.
    """
    choose = Seeded(seed)
    return [
        replace(planned(group, other, algorithm), name=f"{other.name}-{algorithm}", candidates=choose.pick(CANDIDATES))
        for query in queries[:2]
        for other in siblings(choose, group, query, 1)
        for algorithm in KEEPING
        if fits(group, other, algorithm) and (is_kept or algorithm is not Algorithm.SKYBAND or group.is_row_identity)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_what_could_happen_is_what_brute_force_says(seed: int) -> None:
    group, queries, partitions = seeded(seed, 80)
    group = with_promises(group, seed)
    asked = asking(group, queries, seed)
    shards = 1 if any(query.window.in_rows for query in asked) else (1, 3)[seed % 2]
    assert_lockstep(group, asked, partitions, shards, (1, 17, 10_000)[seed % 3])


def test_what_could_happen_by_skyband_is_what_brute_force_says_where_promises_are_kept() -> None:
    for seed in (1, 342, 40):
        group, queries, partitions = seeded(seed, 150, counts=False)
        group, partitions = promising(group, partitions, group.retention_us)
        asked = [query for query in asking(group, queries, seed, is_kept=True) if query.algorithm is Algorithm.SKYBAND]
        assert asked
        assert_lockstep(group, asked, partitions, 3, 17)


@pytest.mark.parametrize("shards", [1, 3])
def test_there_are_candidates_in_what_is_compared(shards: int) -> None:
    group, queries, partitions = seeded(5, 300, counts=False)
    group = with_promises(group, 2)
    assert assert_lockstep(group, asking(group, queries, 1), partitions, shards, 50) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3_000, 3_030))
def test_what_could_happen_is_what_brute_force_says_on_more_rows(seed: int) -> None:
    group, queries, partitions = seeded(seed, 250)
    group = with_promises(group, seed)
    asked = asking(group, queries, seed)
    shards = 1 if any(query.window.in_rows for query in asked) else (1, 3)[seed % 2]
    assert_lockstep(group, asked, partitions, shards, (1, 17, 10_000)[seed % 3])


# --- forgetting


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("algorithm", [Algorithm.EAA, Algorithm.EAA_RELAXED])
def test_who_can_come_in_is_among_those_that_a_forgetting_algorithm_tells(algorithm: Algorithm, shards: int) -> None:
    compared = 0
    for seed in range(60):
        group, queries, partitions = seeded(seed, 120, counts=False)
        group = replace(group, retention_us=64 * group.pane_us)
        # Nothing expires: what is past cannot come again, and brute force and promise say the same of it.
        group, partitions = promising(group, partitions, MAX_TIME_US)
        query = replace(queries[0], window=Window(64 * group.pane_us, group.pane_us), candidates=1_000)
        if not fits(group, query, algorithm):
            continue
        query = planned(group, query, algorithm)
        expected = list(outlooks(group, query, accepted(group, partitions)))
        got = [told(r) for r in results_of(group, [query], partitions, shards=shards, batch_rows=20)]
        assert [own["window_end"] for own in got] == [other["window_end"] for other in expected]
        for own, other in zip(got, expected, strict=True):
            assert [row[:2] for row in own["rows"]] == [row[:2] for row in other["rows"]]
            known = {candidate[0]: candidate for candidate in own["candidates"]}
            for candidate in other["candidates"]:
                assert known[candidate[0]] == candidate
                compared += 1
            # A row is said to be safe only if it is.
            for row, true in zip(own["rows"], other["rows"], strict=True):
                assert row[2] in (None, true[2])
    assert compared > 100


# --- cases


def group_of(*streams: Stream) -> Group:
    return Group(name="g", streams=streams, retention_us=100, pane_us=1)


def stream(name: str, lo: float = 0.0, hi: float = 10.0, missing: float | None = None, **options: Any) -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name, lo=lo, hi=hi, missing=missing),), **options)


def query_of(score: str, **options: Any) -> Query:
    return Query(name="q", k=1, score=score, window=Window(10, 1), candidates=2, **options)


def test_a_column_stays_as_it_is_only_under_a_promise_for_the_window_of_the_query() -> None:
    group = group_of(stream("a", repeat_after_us=10), stream("b", repeat_after_us=9), stream("c"))
    query = query_of("a + b + c")
    bound = bind(group, query)
    assert case_of(group, bound, query).final == 0b001
    assert case_of(group, bound, replace(query, window=Window(9, 1))).final == 0b011
    assert case_of(group, bound, replace(query, window=Window(11, 1))).final == 0b000


def test_queries_of_one_score_and_several_windows_each_have_their_own_case() -> None:
    group = group_of(stream("a", repeat_after_us=10), stream("b", repeat_after_us=10))
    rows = {(0, 0): [Row("x", 1, (3.0,)), Row("y", 4, (2.0,))], (1, 0): [Row("y", 5, (1.0,)), Row("z", 6, (1.0,))]}
    queries = [
        planned(group, replace(query_of("a + b"), name=f"q{size}", k=2, window=Window(size, 2)), Algorithm.TWO_TIER)
        for size in (10, 20)
    ]
    results = results_of(group, queries, rows, shards=1, batch_rows=10)
    short, long = (next(r for r in results if r.query == name and r.window_end == 6) for name in ("q10", "q20"))
    assert [(row.object_id, row.score) for row in short.rows] == [("x", 3.0), ("y", 3.0)]
    assert [row.best_score for row in short.rows] == [13.0, 3.0]
    assert [row.best_score for row in long.rows] == [20.0, 20.0]


def test_what_counts_while_nothing_was_seen_may_be_the_best_there_is() -> None:
    group = group_of(stream("a", missing=50.0, aggregate=Aggregate.MAX), stream("b", repeat_after_us=10))
    rows = {(0, 0): [Row("x", 1, (3.0,))], (1, 0): [Row("y", 1, (9.0,))]}
    (result,) = results_of(group, [planned(group, query_of("a + b"))], rows, shards=1, batch_rows=10)[:1]
    assert [(row.object_id, row.score, row.best_score) for row in result.rows] == [("y", 59.0, 59.0)]
    assert [(c.object_id, c.score, c.best_score, c.lacks) for c in result.candidates] == [("x", 3.0, 60.0, ("b",))]


def test_a_sum_has_no_bound_without_a_promise() -> None:
    rows = {(0, 0): [Row("x", 1, (3.0,)), Row("y", 1, (2.0,))]}
    for promise, best in ((None, None), (10, 3.0)):
        group = group_of(stream("a", aggregate=Aggregate.SUM, repeat_after_us=promise))
        result = results_of(group, [planned(group, query_of("a"))], rows, shards=1, batch_rows=10)[0]
        assert [row.best_score for row in result.rows] == [best]
        assert [c.best_score for c in result.candidates] == ([None] if promise is None else [])


def test_an_object_that_lacks_a_required_stream_is_a_candidate_without_a_score() -> None:
    group = group_of(*(stream(name, repeat_after_us=10) for name in "ab"))
    rows = {(0, 0): [Row("x", 1, (3.0,)), Row("y", 2, (8.0,))], (1, 0): [Row("x", 3, (3.0,))]}
    query = planned(group, query_of("a + b", require_all=True))
    (result,) = [r for r in results_of(group, [query], rows, shards=1, batch_rows=10) if r.window_end == 4]
    assert [(row.object_id, row.safe_until) for row in result.rows] == [("x", None)]
    (candidate,) = result.candidates
    assert candidate == type(candidate)("y", None, 18.0, ("b",), 12)
