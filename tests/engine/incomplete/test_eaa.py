"""The exact rankings that forget show what brute force shows, and keep the same instances."""

import numpy as np
import pytest

from skyband.engine.incomplete.eaa import EaaStrict
from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.incomplete.instances import SLOT
from skyband.model.ability import why_not_forget
from skyband.model.binding import bind
from skyband.model.group import Group
from skyband.model.query import Query, Window
from skyband.model.stream import Attribute, Stream
from tests.engine.incomplete.distinct import asked, distinct_rows
from tests.engine.incomplete.driving import (
    PROMISES,
    Partitions,
    ask,
    assert_exact,
    columns,
    drive,
    evaluations,
    steady,
    ticks,
)
from tests.oracle import Row, accepted
from tests.workloads import seeded

ALGORITHMS = {"eaa": EaaStrict, "eaa-relaxed": EaaRelaxed}


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_equals_brute_force_on_seeded_streams(name: str, promise: str) -> None:
    found = 0
    for seed in range(25):
        group, query, partitions = steady(seed, 120, promise)
        bound = bind(group, query)
        assert why_not_forget(group, bound) is None
        found += assert_exact(ALGORITHMS[name](bound, group), group, partitions, batch=(1, 7, 1_000)[seed % 3])
    assert found > 700


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_equals_brute_force_where_evaluations_are_left_out(name: str) -> None:
    for seed in range(100, 120):
        group, query, partitions = steady(seed, 150)
        assert_exact(ALGORITHMS[name](bind(group, query), group), group, partitions, every=3)


def test_it_equals_brute_force_on_the_workloads_of_all_algorithms_where_it_fits() -> None:
    served = found = 0
    for seed in range(300):
        group, queries, partitions = seeded(seed, 80)
        for query in queries:
            bound = bind(group, query)
            if why_not_forget(group, bound) is None:
                served += 1
                found += assert_exact(EaaRelaxed(bound, group), group, partitions)
    assert served > 20
    assert found > 500


def test_many_objects_make_room_and_leave_it() -> None:
    for seed in (3, 5, 8, 13):
        group, query, partitions = steady(seed, 4_000, "never")
        assert_exact(EaaRelaxed(bind(group, query), group), group, partitions, batch=500, every=7)


def kept(ranking: EaaRelaxed) -> set[tuple[bytes, int]]:
    """Return the instances held, as (id, tick)."""
    places = ranking._set.live()
    arena, ends = ranking.objects.ids(ranking._set.instances.links[places, SLOT])
    ids = [arena[a:b].tobytes() for a, b in zip((0, *ends), ends, strict=False)]
    found = list(zip(ids, ranking._set.instances.tick[places].tolist(), strict=True))
    assert len(found) == len(set(found))
    return set(found)


def objects(ranking: EaaRelaxed) -> set[bytes]:
    """Return the ids of the objects held."""
    return {name for name, _ in kept(ranking)}


def lockstep(group: Group, query: Query, partitions: Partitions) -> int:
    """Assert that both keep the same after each row; return the largest number of instances kept."""
    bound = bind(group, query)
    strict, relaxed = EaaStrict(bound, group), EaaRelaxed(bound, group)
    seen = accepted(group, partitions)
    rows, (size, _) = columns(group, seen), ticks(group, query)
    before = most = 0
    for stop, end, _ in evaluations(group, query, seen):
        for row in range(before, stop):
            for ranking in (strict, relaxed):
                drive(ranking, rows, row, row + 1, end - size, 1)
            relaxed._set.sweep()
            assert kept(strict) == kept(relaxed), (query, row)
            most = max(most, strict.held)
        before = stop
        results = [ask(ranking, end, size, query.k) for ranking in (strict, relaxed)]
        assert np.array_equal(results[0].rank, results[1].rank)
        assert kept(strict) == kept(relaxed)
    return most


@pytest.mark.parametrize("promise", PROMISES)
def test_strict_and_relaxed_keep_the_same_instances(promise: str) -> None:
    most = [lockstep(*steady(seed, 90, promise)) for seed in range(200, 215)]
    assert max(most) > 10


@pytest.mark.parametrize("repeat_after", [None, 300])
def test_with_slides_the_strict_form_keeps_no_less_and_more_only_of_objects_that_it_had_forgotten(
    repeat_after: int | None,
) -> None:
    size, slide = 300, 25
    bound, group = asked(size, slide, 5, repeat_after=repeat_after)
    rows = distinct_rows(1, 5 * size, alpha=0.5)
    strict, relaxed = EaaStrict(bound, group), EaaRelaxed(bound, group)
    forgotten: set[bytes] = set()
    more = 0
    for end in range(slide, 5 * size + 1, slide):
        for row in range(end - slide, end):
            before = objects(strict)
            drive(strict, rows, row, row + 1, end - size, 1)
            own = rows.id_bytes[rows.id_ends[row - 1] if row else 0 : rows.id_ends[row]].tobytes()
            forgotten |= (before | {own}) - objects(strict)
        drive(relaxed, rows, end - slide, end, end - size, slide)
        results = [ask(ranking, end, size, 5) for ranking in (strict, relaxed)]
        assert np.array_equal(results[0].rank, results[1].rank)
        assert kept(relaxed) <= kept(strict)
        extra = kept(strict) - kept(relaxed)
        assert {name for name, _ in extra} <= forgotten
        more += len(extra)
    # Where it may come again what an object has shown before does not tell: nothing is lost by forgetting it.
    assert (more > 0) == (repeat_after is None)


def test_what_was_seen_two_windows_ago_may_come_again_while_a_younger_instance_lives() -> None:
    streams = tuple(
        Stream(name=name, attributes=(Attribute(name=name, lo=0.0, hi=10.0),), repeat_after_us=20) for name in "abc"
    )
    group = Group(name="g", streams=streams, retention_us=10, pane_us=1)
    query = Query(name="q", k=1, score="a + b + c", window=Window(10, 1))
    # o shows a at 0, b while that lives, c while b lives; p beats what is left of o, until a comes again.
    rows = {
        (0, 0): [Row("o", 0, (10.0,)), Row("o", 20, (10.0,))],
        (1, 0): [Row("o", 9, (1.0,)), Row("p", 19, (5.0,))],
        (2, 0): [Row("o", 18, (1.0,))],
    }
    for kind in ALGORITHMS.values():
        ranking = kind(bind(group, query), group)
        assert assert_exact(ranking, group, rows) > 20
        assert ranking.broken_promises == 0
