"""Every algorithm answers every question as brute force does, to the last bit, however rows are cut and spread."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.model.group import Group
from skyband.model.query import Algorithm, Query
from tests import golden_cases
from tests.engine.pure_pipeline import PurePipeline, planned, run
from tests.engine.traits import ALGORITHMS, REQUIRED, fits, traits
from tests.engine.variants import Rows, expected, fitting, promising, siblings
from tests.lockstep import assert_equal
from tests.oracle import oracle_results
from tests.workloads import Drawn, Seeded, definitions, rows, seeded

SHARDS = (1, 2, 8)
BATCH_ROWS = (1, 17, 10_000)
# Seeds of about 80 rows; REQUIRED says what they must have in them.
SEEDS = (1, 201, 286, 313, *range(20))
# A single object stream, so that skyband can be asked for by name: of every aggregate.
PROMISING_SEEDS = {1: "best", 342: "latest", 431: "first", 40: "sum", 44: "count", 39: "max", 366: "min"}


def cuts(seed: int, shards: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield pairs of shards and batch rows, so that neighbouring seeds take other pairs."""
    for i, count in enumerate(shards):
        yield count, BATCH_ROWS[(seed + i) % len(BATCH_ROWS)]


def assert_lockstep(
    group: Group, queries: tuple[Query, ...], partitions: Rows, pairs: Iterator[tuple[int, int]]
) -> None:
    """Assert that all algorithms, side by side in one engine, give what brute force gives."""
    asked = fitting(group, queries)
    truth = expected(oracle_results(group, queries, partitions), asked)
    for shards, batch_rows in pairs:
        got = run(group, [query for _, query in asked], partitions, shards=shards, batch_rows=batch_rows)
        assert_equal(truth, got, partitions)


def few_shards(queries: tuple[Query, ...]) -> tuple[int, ...]:
    return (1,) if any(query.window.in_rows for query in queries) else SHARDS


@pytest.mark.parametrize("seed", SEEDS)
def test_all_algorithms_equal_brute_force_on_seeded_workloads(seed: int) -> None:
    group, queries, partitions = seeded(seed, 80)
    assert_lockstep(group, queries, partitions, cuts(seed, few_shards(queries)))


def test_the_seeds_have_everything_in_them() -> None:
    found = set()
    for seed, size in [(0, 0), *((seed, 80) for seed in SEEDS)]:
        group, queries, partitions = seeded(seed, size)
        found |= traits(group, queries, partitions, oracle_results(group, queries, partitions))
        found |= {f"{algorithm} fits" for q in queries for algorithm in ALGORITHMS if fits(group, q, algorithm)}
    assert found >= REQUIRED | {f"{algorithm} fits" for algorithm in ALGORITHMS}


@pytest.mark.parametrize("shards", SHARDS)
def test_a_group_without_rows_has_no_results(shards: int) -> None:
    group, queries, partitions = seeded(0, 0, counts=False)
    assert not any(partitions.values())
    assert run(group, [planned(group, query) for query in queries], partitions, shards=shards, check=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_all_algorithms_and_many_siblings_equal_brute_force(seed: int) -> None:
    group, queries, partitions = seeded(seed, 120, counts=seed % 3 == 0)
    choose = Seeded(seed)
    queries = tuple(other for query in queries[:2] for other in siblings(choose, group, query, 2))
    every = ((shards, batch) for shards in few_shards(queries) for batch in BATCH_ROWS)
    pairs = every if seed % 10 == 0 else cuts(seed, few_shards(queries))
    assert_lockstep(group, queries, partitions, pairs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2_000, 2_008))
def test_all_algorithms_equal_brute_force_on_thousands_of_rows(seed: int) -> None:
    group, queries, partitions = seeded(seed, 3_000)
    assert_lockstep(group, queries, partitions, cuts(seed, few_shards(queries)))


@pytest.mark.parametrize(("seed", "aggregate"), PROMISING_SEEDS.items())
def test_skyband_by_name_equals_brute_force_where_the_promise_is_kept(seed: int, aggregate: str) -> None:
    group, queries, partitions = seeded(seed, 400, counts=False)
    group = replace(group, retention_us=16 * group.pane_us)
    longest = max(query.window.size for query in queries)
    group, partitions = promising(group, partitions, longest)
    assert [stream.aggregate for stream in group.streams] == [aggregate]
    assert all(fits(group, query, Algorithm.SKYBAND) for query in queries)
    assert_lockstep(group, queries, partitions, cuts(seed, SHARDS))


def test_a_broken_promise_is_counted_and_harms_nothing_else() -> None:
    for seed in PROMISING_SEEDS:
        group, queries, partitions = seeded(seed, 300, counts=False)
        group, _ = promising(group, partitions, group.retention_us)
        pipeline = PurePipeline(group, sorted(partitions), check=True)
        for query in queries:
            pipeline.change(planned(group, query, Algorithm.SKYBAND))
        for place, rows_of_place in partitions.items():
            pipeline.add(place, rows_of_place, 0)
            pipeline.aligner.finish(*place)
        pipeline.flush()
        assert pipeline.shards[0].statistics().broken_promises > 0
        assert pipeline.results


@pytest.mark.parametrize("name", golden_cases.names())
@pytest.mark.parametrize("batch_rows", [1, 10_000])
def test_golden_cases_come_out_as_worked_out_on_paper(name: str, batch_rows: int) -> None:
    case = golden_cases.read(name)
    for algorithm in (Algorithm.AUTO, *ALGORITHMS):
        asked = [
            planned(case.group, q, algorithm if fits(case.group, q, algorithm) else Algorithm.AUTO)
            for q in case.queries
        ]
        for shards in few_shards(case.queries):
            got = run(case.group, asked, case.partitions, shards=shards, batch_rows=batch_rows, check=True)
            assert_equal(case.expected, got, case.partitions)


@given(data=st.data())
@settings(max_examples=60)
def test_all_algorithms_equal_brute_force_on_drawn_workloads(data: st.DataObject) -> None:
    made = data.draw(definitions())
    partitions = data.draw(rows(made))
    queries = siblings(Drawn(data.draw), made.group, made.queries[0], 1) + list(made.queries[1:2])
    shards = data.draw(st.sampled_from(few_shards(tuple(queries))))
    batch_rows = data.draw(st.sampled_from(BATCH_ROWS))
    asked = fitting(made.group, queries)
    truth = expected(oracle_results(made.group, queries, partitions), asked)
    got = run(made.group, [q for _, q in asked], partitions, shards=shards, batch_rows=batch_rows, check=True)
    assert_equal(truth, got, partitions)
