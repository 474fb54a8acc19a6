"""Micro-batches of any size, on workers that know all, nothing, or too much, give the results of brute force."""

import random
from dataclasses import replace

import numpy as np
import pytest

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import CoverageGapError
from skyband.model.query import QueryState
from spark.pipeline_align import Records, SourcePart
from spark.pipeline_messages import in_order
from spark.pipeline_shards import ShardPart
from spark.pipeline_state import MemoryTable
from tests.kafka.scenarios import Scenario, flights, mixed, seeded_scenario
from tests.spark.pipeline_runs import (
    CODECS,
    NOW_US,
    Runs,
    S,
    Worker,
    answers,
    catalog_of,
    change_of,
    plan_of,
    values_of,
)

SCENARIOS = {
    "mixed": lambda: mixed("mixed", 500, idle={"then": "hold"}, seed=8).closed(120 * S),
    "flights": lambda: flights("flights", 800, idle={"after": "10s"}),
    **{f"seed{n}": lambda n=n: seeded_scenario(f"seed{n}", n, 200, idle_after_us=10 * S) for n in (3, 11, 17)},
}


def run_all(scenario: Scenario, runs: Runs, seed: int, *, again: int = 20, cold: int = 20) -> None:
    """Bring everything in micro-batches of random sizes; some begin in vain, some find workers that know nothing."""
    choose = random.Random(seed)
    left = values_of(scenario)
    while any(left.values()):
        brought = {}
        for key, values in left.items():
            count = choose.choice((0, 1, 5, 40, 200))
            if values[:count]:
                brought[key], left[key] = values[:count], values[count:]
        if choose.random() * 100 < cold:
            runs.workers = [Worker(), Worker()]
        runs.now_us += S // 10
        runs.take(brought, twice=choose.random() * 100 < again)
    for _ in range(3):
        runs.now_us += 11 * S
        runs.take({})


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("snapshot_bytes", [1, 1 << 30])
def test_results_are_those_of_brute_force_whatever_workers_remember(name: str, snapshot_bytes: int) -> None:
    scenario = SCENARIOS[name]()
    queries = tuple(change_of(scenario.group.name, query, scenario) for query in scenario.queries)
    plan = plan_of(scenario, queries=queries, snapshot_bytes=snapshot_bytes)
    runs = Runs(plan, [Worker(), Worker()], seed=5)
    run_all(scenario, runs, seed=snapshot_bytes)
    expected = scenario.expected_so_far() if name == "mixed" else scenario.expected()
    lasts = {query: max(end for its, end in expected if its == query) for query, _ in expected}
    # Behind the last expected end may come the first one without rows.
    found = {key: answer for key, answer in answers(runs.results).items() if key[1] <= lasts.get(key[0], key[1])}
    assert found == expected


def test_queries_added_and_cancelled_in_the_catalog_begin_and_end_between_micro_batches() -> None:
    scenario = SCENARIOS["mixed"]()
    first, second, third = (change_of("mixed", query, scenario) for query in scenario.queries)
    runs = Runs(plan_of(scenario, queries=(first,)), [Worker(), Worker()])
    rest = values_of(scenario)
    begun = {key: values[: len(values) // 2] for key, values in rest.items()}
    other = replace(third, group="another")
    early = runs.take({**begun, **catalog_of([None, second, other])})
    assert {its.query for its in early} == {first.query.name, second.query.name}
    runs.take(catalog_of([third]))
    ended = change_of("mixed", second.query, scenario, QueryState.DELETED)
    runs.take(catalog_of([ended]))
    late = runs.take({key: values[len(values) // 2 :] for key, values in rest.items()})
    assert {its.query for its in late} == {first.query.name, third.query.name}
    expected = scenario.expected_so_far()
    found = answers(runs.results)
    assert all(answer == expected[key] for key, answer in found.items())
    assert {key for key in expected if key[0] == first.query.name} <= found.keys()


def test_a_quiet_partition_is_idle_after_a_while_and_poison_does_not_wake_it() -> None:
    scenario = seeded_scenario("quiet", 3, 60, idle_after_us=10 * S)
    plan = plan_of(scenario)
    table = MemoryTable()
    SourcePart(plan, (0, 0), table, NOW_US).begin()

    def leases(messages: list[object]) -> list[int]:
        found = [CODECS.decode(f"aligned.{plan.name}", its.data) for its in messages if its.key != "letters"]  # type: ignore[attr-defined]
        return [its.sections[0].idle_until_us for its in found if isinstance(its, AlignedBatch)]

    def at(seconds: float) -> SourcePart:
        return SourcePart(plan, (0, 0), table, NOW_US + int(seconds * S))

    shards = scenario.group.shards
    assert at(0).due_us == NOW_US + 10 * S
    assert leases(at(9).look()) == []
    assert leases(at(10).look()) == [NOW_US + 20 * S] * shards
    assert leases(at(12).look()) == []
    assert leases(at(15).look()) == [NOW_US + 25 * S] * shards
    runs = values_of(scenario)[0, 0]

    poison = Records(np.array([0]), np.array([NOW_US]), [b"\xff"])
    assert leases(at(16).take(poison)) == [NOW_US + 26 * S] * shards
    good = Records(np.array([1]), np.array([NOW_US]), runs[:1])
    part = at(17)
    assert leases(part.take(good)) == [0] * shards
    assert part.due_us == NOW_US + 27 * S


def test_state_is_renewed_and_does_not_grow_with_what_has_passed() -> None:
    scenario = SCENARIOS["mixed"]()
    queries = tuple(change_of("mixed", query, scenario) for query in scenario.queries)
    runs = Runs(plan_of(scenario, queries=queries, snapshot_bytes=1), [Worker()])
    run_all(scenario, runs, seed=1, again=0, cold=0)
    for name, table in runs.tables.items():
        if name.startswith("shard/"):
            assert sum(its.startswith("batch/") for its in table) < 60
            assert any(its.startswith("chunk/") for its in table)
        if name.startswith("merge/"):
            assert sum(its.startswith("values/") for its in table) <= 2


def test_a_shard_says_which_offsets_are_missing() -> None:
    scenario = SCENARIOS["mixed"]()
    plan = plan_of(scenario)
    table = MemoryTable()

    values = values_of(scenario)[0, 0]
    part = SourcePart(plan_of(scenario, starts={(0, 0): 5}), (0, 0), table, NOW_US)
    messages = part.take(Records(np.arange(5, 9), np.full(4, NOW_US), values[5:9]))
    first = [its for its in in_order(messages) if its.key == "shard/0"]
    with pytest.raises(CoverageGapError, match=r"\[0, 5\)"):
        ShardPart(plan, "shard/0", MemoryTable()).take(first)
