"""SLA answers as brute force does whatever rises and falls, and reads its lists only as far as it must."""

import hashlib
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from skyband.engine.incomplete.sla import SlaRanking
from skyband.model.binding import BoundQuery
from skyband.model.group import Group
from skyband.model.stream import Aggregate
from tests.interpreted import assert_same_interpreted, print_digest
from tests.structures.store_model import Given, StoreModel, ask, group_of

UNSTEADY = group_of(Aggregate.LATEST, Aggregate.FIRST, Aggregate.SUM, Aggregate.MIN, Aggregate.BEST)
STEADY = group_of(Aggregate.BEST, Aggregate.MAX, Aggregate.SUM, Aggregate.COUNT)


def counting_absent(group: Group, missing: float) -> Group:
    """Return the group with a number for what is missing."""
    streams = [
        replace(stream, attributes=tuple(replace(attribute, missing=missing) for attribute in stream.attributes))
        if stream.aggregate not in (Aggregate.SUM, Aggregate.COUNT)
        else stream
        for stream in group.streams
    ]
    return replace(group, streams=tuple(streams))


GENEROUS = counting_absent(UNSTEADY, 3.0)
CASES = {
    "best and max": (STEADY, ask(STEADY, "a + b")),
    "sums and counts": (STEADY, ask(STEADY, "c + 100 * d")),
    "steady, a falling weight": (STEADY, ask(STEADY, "a - 0.5 * b")),
    "one attribute": (UNSTEADY, ask(UNSTEADY, "a")),
    "a falling sum": (UNSTEADY, ask(UNSTEADY, "a - c")),
    "all columns": (UNSTEADY, ask(UNSTEADY, "a + b - c + d + e")),
    "a product": (UNSTEADY, ask(UNSTEADY, "a * (1 + e)")),
    "the larger": (UNSTEADY, ask(UNSTEADY, "max(a, e) - min(b, d)")),
    "lowest": (UNSTEADY, ask(UNSTEADY, "a + b - c + d + e", lowest=True)),
    "required": (UNSTEADY, ask(UNSTEADY, "a + c", require=("b",))),
    "all required": (UNSTEADY, ask(UNSTEADY, "a - e", require_all=True)),
    "not always finite": (UNSTEADY, ask(UNSTEADY, "exp(a) * exp(c)")),
    "not always finite, lowest": (UNSTEADY, ask(UNSTEADY, "exp(a) - e", lowest=True)),
    "what is missing is better than most": (GENEROUS, ask(GENEROUS, "a + b - d + e")),
    "what is missing is better than most, required": (GENEROUS, ask(GENEROUS, "a - d", require=("c",))),
}


class Tried:
    """A ranking over a store, compared with the model after every evaluation."""

    def __init__(self, group: Group, bound: BoundQuery, **more: Any) -> None:
        self.model = StoreModel(group, **more)
        self.bound = bound
        self.ranking = SlaRanking(bound, self.model.store)
        self.view = self.ranking._view

    def expire(self, low: int) -> None:
        """Let ticks leave the store, as a shard does."""
        self.ranking.leave(low)
        self.model.expire(low)

    def rank(self, low: int, *ks: int) -> list[Any]:
        self.ranking.demand(max(ks), 8)
        ranked = self.ranking.rank(low + 8, np.full(len(ks), 8), np.array(ks))
        self.ranking._check()
        expected = [
            (self.model.slot(key), rank, bits, values) for key, rank, bits, values in self.model.ranked(self.bound, low)
        ]
        rows = [
            (int(ranked.slot[i]), ranked.rank[i], int(ranked.present[i]), ranked.values[i].tolist())
            for i in range(self.view.count)
        ]
        assert rows == expected[: self.view.count]
        for i, k in enumerate(ks):
            places = ranked.ranking[ranked.starts[i] : ranked.starts[i + 1]]
            assert [rows[place] for place in places] == expected[:k]
        self._check_lists(low, {row[0] for row in expected})
        return rows

    def _check_lists(self, low: int, eligible: set[int]) -> None:
        scored = [(place, column) for place, column in enumerate(self.bound.columns) if column.in_score]
        found: list[set[tuple[float, int]]] = [set() for _ in scored]
        for key, own in self.model.objects().items():
            slot = self.model.slot(key)
            if slot not in eligible:
                continue
            bits, values = self.model.read(self.bound, own, low)
            signs = [-1.0 if column.prefers_high else 1.0 for _, column in scored]
            for c, (place, _) in enumerate(scored):
                if bits >> place & 1:
                    found[c].add((signs[c] * values[place], slot))
            if not any(bits >> place & 1 for place, _ in scored):
                found[0].add((signs[0] * scored[0][1].missing, slot))
        for c, entries in enumerate(found):
            keys, slots = self.view.lists.read(c)
            assert list(zip(keys.tolist(), slots.tolist(), strict=True)) == sorted(entries)
        assert self.ranking.held == sum(map(len, found))


def some_rows(random: Random, group: Group, now: int, count: int, ids: int) -> list[Given]:
    given = []
    for _ in range(count):
        stream = random.randrange(len(group.streams))
        late = random.choice((0, 0, 0, 1, 4)) * random.randint(0, group.pane_us)
        values = tuple(random.choice((0.0, 1.0, 1.0, 2.0, 5.0, 400.0, 900.0)) for _ in group.streams[stream].attributes)
        given.append((stream, f"sensor-00-north-{random.randrange(ids)}", now - late, values))
    return given


def run(tried: Tried, random: Random, ids: int, evaluations: int) -> list[Any]:
    """Let time pass over random rows; return what was shown."""
    group, shown = tried.model.group, []
    now, size = 0, random.choice((1, 3, 8))
    tried.expire(-8)
    for _ in range(evaluations):
        now += random.choice((0, 1, 7, 10, 10, 35))
        tried.expire((now + 1 - group.retention_us) // 10)
        tried.model.apply(some_rows(random, group, now, random.choice((0, 2, 9, 200)), ids))
        if random.random() < 0.7:
            shown.append(tried.rank(now // 10 + 1 - size, 1, random.choice((1, 3, 10))))
    return shown


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ids", [5, 300])
def test_it_shows_the_best_of_all_objects(name: str, ids: int) -> None:
    group, bound = CASES[name]
    tried = Tried(group, bound)
    assert any(run(tried, Random(ids), ids, 60))
    if name.startswith("not always finite"):
        assert tried.ranking.not_finite > 0


@pytest.mark.parametrize("by_row", [False, True])
def test_it_shows_the_best_where_ticks_are_rows(by_row: bool) -> None:
    group = group_of(Aggregate.LATEST, widths=(2,), by_row=True) if by_row else UNSTEADY
    random = Random(3)
    tried = Tried(group, ask(group, "a0 - a1") if by_row else CASES["all columns"][1], in_rows=True)
    tried.expire(0)
    for step in range(80):
        count = random.choice((0, 1, 5, 20))
        tried.expire(max(0, tried.model.applied + count - group.retention_rows))
        tried.model.apply(some_rows(random, group, 10 * step, count, 9))
        tried.rank(max(tried.model.low, tried.model.applied - 25), random.choice((1, 3, 10)))


PAIR = group_of(Aggregate.LATEST, Aggregate.LATEST, panes=1_000)


def filled(count: int, a: Any, b: Any) -> Tried:
    """Return a ranking of k = 3 by a + b over `count` objects o000, o001, … with values a(i) and b(i)."""
    tried = Tried(PAIR, ask(PAIR, "a + b"))
    tried.expire(0)
    tried.model.apply([(s, f"o{i:03}", 5, (float(of(i)),)) for i in range(count) for s, of in enumerate((a, b))])
    tried.rank(0, 3)
    return tried


def test_few_objects_need_no_search() -> None:
    tried = filled(67, lambda i: i, lambda i: i)
    assert (tried.view.count, tried.ranking.refills) == (67, 0)


def test_a_search_ends_once_nobody_unseen_can_rank_before_the_last() -> None:
    tried = filled(500, lambda i: i, lambda i: i)
    # 67 members and the one that becomes the bound; then one more row of the lists shows that they are above the rest.
    assert (tried.view.count, tried.ranking.refills) == (67, 1)
    assert (tried.view.sorted_accesses, tried.view.random_accesses) == (2 * 69, 69)


def test_a_search_goes_on_while_the_last_is_equal_to_the_threshold() -> None:
    # The best of equal objects by id stand last in the lists, which go by slot.
    tried = Tried(PAIR, ask(PAIR, "a + b"))
    tried.expire(0)
    names = [f"o{i:03}" for i in range(300)]
    tried.model.apply([(stream, name, 5, (5.0,)) for name in reversed(names) for stream in (0, 1)])
    rows = tried.rank(0, 3)
    assert [row[0] for row in rows[:3]] == [tried.model.slot(name) for name in names[:3]]
    assert tried.view.random_accesses == 300


def test_an_exhausted_list_counts_what_is_missing() -> None:
    # Only three objects have b: once they are passed, nobody else can have more of it than nothing.
    tried = Tried(PAIR, ask(PAIR, "a + b"))
    tried.expire(0)
    tried.model.apply([(0, f"o{i:03}", 5, (float(i),)) for i in range(500)])
    tried.model.apply([(1, f"o{i:03}", 5, (900.0,)) for i in range(3)])
    tried.rank(0, 3)
    assert tried.view.random_accesses < 80


def test_what_is_missing_may_be_better_than_what_comes_next() -> None:
    group = counting_absent(PAIR, 500.0)
    tried = Tried(group, ask(group, "a + b"))
    tried.expire(0)
    tried.model.apply([(0, f"o{i:03}", 5, (float(i),)) for i in range(300)])
    # The first five have no b, so that they rank before all others, though they have the least of a.
    tried.model.apply([(1, f"o{i:03}", 5, (1.0,)) for i in range(5, 300)])
    rows = tried.rank(0, 3)
    assert [row[0] for row in rows[:3]] == [tried.model.slot(f"o{i:03}") for i in (4, 3, 2)]
    assert tried.ranking.refills == 1


def test_who_has_no_attribute_of_the_score_is_found_by_the_required_one() -> None:
    group = group_of(Aggregate.LATEST, Aggregate.LATEST, Aggregate.LATEST, panes=1_000)
    tried = Tried(group, ask(group, "-a - b", require=("c",)))
    tried.expire(0)
    tried.model.apply([(2, f"o{i:03}", 5, (1.0,)) for i in range(400)])
    tried.model.apply([(i % 2, f"o{i:03}", 5, (float(i % 90),)) for i in range(100, 400)])
    tried.rank(0, 3)
    assert tried.view.random_accesses == 300
    assert len(tried.rank(0, 350)) == 400


def test_members_that_fall_make_room_and_few_of_them_make_a_search() -> None:
    tried = filled(500, lambda i: i, lambda i: 499 - i // 2)
    before = tried.ranking.refills
    tried.model.apply([(0, f"o{i:03}", 15, (0.0,)) for i in range(436, 500)])
    tried.rank(0, 3)
    assert (tried.view.count, tried.ranking.refills) == (3, before)
    tried.model.apply([(0, "o435", 16, (0.0,))])
    tried.rank(0, 3)
    assert tried.ranking.refills == before + 1


def test_searches_that_come_often_make_the_view_grow_and_seldom_ones_do_not() -> None:
    for every, grown in ((2, True), (20, False)):
        tried = filled(200, lambda i: i, lambda i: i)
        now = 15
        for i in range(40):
            now += 1
            if i % every == every - 1:
                falling = set(tried.view.members.slot[: tried.view.count].tolist())
                names = [key for key in tried.model.objects() if tried.model.slot(key) in falling]
                tried.model.apply([(stream, name, now, (0.0,)) for name in names for stream in (0, 1)])
            tried.rank(0, 3)
        assert tried.ranking.refills > 1
        assert (tried.view._room > 67) == grown
        assert tried.view._room <= 200


def test_more_newcomers_than_places_cost_a_search() -> None:
    tried = filled(500, lambda i: i, lambda i: i)
    tried.model.apply([(0, f"n{i:03}", 15, (900.0 + i % 7,)) for i in range(400)])
    tried.model.apply([(1, f"n{i:03}", 15, (900.0,)) for i in range(400)])
    tried.rank(0, 3)
    assert tried.ranking.refills == 2
    tried.model.apply([(0, f"n{i:03}", 25, (950.0,)) for i in range(10)])
    tried.rank(0, 3)
    assert tried.ranking.refills == 2


def test_a_larger_k_than_members_searches_and_shows_all() -> None:
    tried = filled(200, lambda i: i, lambda i: i)
    tried.rank(0, 150)
    assert tried.view.count == 200
    tried.rank(0, 1_000_000, 1)
    assert tried.view.count == 200


def test_objects_that_take_the_place_of_dead_ones_are_not_mistaken_for_them() -> None:
    tried = filled(200, lambda i: i, lambda i: i)
    old = {tried.model.slot(f"o{i:03}") for i in range(200)}
    tried.expire(50)
    tried.model.apply([(i % 2, f"sensor-00-north-{i:03}", 600, (float(i % 9),)) for i in range(200)])
    assert {tried.model.slot(f"sensor-00-north-{i:03}") for i in range(200)} == old
    tried.rank(50, 3)
    tried.expire(500)
    assert tried.rank(500, 3) == []
    assert tried.ranking.held == 0


def test_a_window_may_go_back_as_far_as_the_store_reaches() -> None:
    group = group_of(Aggregate.SUM, panes=10)
    tried = Tried(group, ask(group, "a"))
    tried.expire(0)
    tried.model.apply([(0, name, time, (1.0 + time,)) for time in range(0, 100, 7) for name in ("a", f"o{time}")])
    for low in (0, 3, 2, 9, 0, 1):
        tried.rank(low, 3)


def test_objects_that_come_between_two_questions_grow_the_lists() -> None:
    tried = Tried(PAIR, ask(PAIR, "a - b"))
    tried.expire(0)
    tried.rank(0, 5)
    for step in range(3):
        rows = [(i % 2, f"o{step}-{i}", 5, (float(i * 7_919 % 1_000),)) for i in range(1_000)]
        tried.model.apply(rows)
        tried.rank(0, 5)
    assert tried.ranking.held == 3_000
    assert tried.ranking.state_bytes > 12 * 3_000


def digest() -> str:
    """Return a hash of all that a few small workloads show, to the last bit."""
    found = hashlib.sha256()
    for name in ("sums and counts", "all columns", "lowest", "not always finite", "required"):
        group, bound = CASES[name]
        shown = run(Tried(group, bound), Random(7), 150, 25)
        found.update(repr([[row[1:] for row in rows] for rows in shown]).encode())
    found.update(repr(filled(150, lambda i: i * 0.1, lambda i: i % 7).rank(0, 3)).encode())
    return found.hexdigest()


def test_compiled_and_interpreted_kernels_give_the_same_results() -> None:
    assert_same_interpreted(__file__)


if __name__ == "__main__":
    print_digest(digest)
