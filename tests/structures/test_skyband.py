"""The skyband holds exactly the instances that fewer than k objects dominate, and answers every smaller question."""

from random import Random
from typing import Any

import numpy as np
import pytest

from skyband.model.binding import BoundQuery
from skyband.model.group import Group
from skyband.model.stream import Aggregate
from skyband.structures import skyband as module
from skyband.structures.instance_kernels import BAR, FIRM, LOOSE
from skyband.structures.skyband import Skyband
from tests.structures.store_model import Given, StoreModel, ask, group_of

# Instances as (object, tick, rank score, firmness).
Instance = tuple[Any, int, float, int]


def instances(model: StoreModel, bound: BoundQuery, low: int) -> list[Instance]:
    """Return all instances, of each object newest first, worked out from the rows."""
    streams = {column.stream for column in bound.columns}
    found: list[Instance] = []
    for key, own in model.objects().items():
        mine: list[Instance] = []
        shown = None
        for tick in sorted({tick for tick, row in own if row.stream in streams and tick >= low}, reverse=True):
            bits, values = model.read(bound, own, tick)
            rank = model.score(bound, values) if bits else -np.inf
            if not np.isfinite(rank):
                if bits and mine:
                    mine = [(k, t, r, LOOSE) for k, t, r, _ in mine] + [(key, tick, np.inf, BAR)]
                    break
            elif (rank, bits, values) != shown:
                shown = rank, bits, values
                mine.append((key, tick, rank, FIRM))
        found += mine
    return found


def skyband_of(model: StoreModel, all_of: list[Instance], k: int) -> set[tuple[Any, int]]:
    """Return what is left of instances: what fewer than k other objects dominate."""
    ids = {key: (own[0][1].object_id.encode(), own[0][1].release) for key, own in model.objects().items()}
    best = {(key, tick): (-rank, ids[key]) for key, tick, rank, firm in all_of if firm == FIRM}
    kept = {(key, tick) for key, tick, _, firm in all_of if firm != FIRM}
    for (key, tick), place in best.items():
        dominators = {other for (other, t), p in best.items() if other != key and t >= tick and p < place}
        if len(dominators) < k:
            kept.add((key, tick))
    return kept


class Tried:
    """A skyband over a store, compared with the model after every refresh."""

    def __init__(self, group: Group, bound: BoundQuery, **more: Any) -> None:
        self.model = StoreModel(group, **more)
        self.bound = bound
        self.skyband = Skyband(self.model.store, self.model.question(bound), bound.score.stack_size)
        self.largest = 0
        self.refreshes = 0
        self.firmness: set[int] = set()

    def refresh(self, k: int, low: int) -> None:
        self.skyband.refresh(k, low)
        self.skyband._check()
        all_of = instances(self.model, self.bound, low)
        self.largest = max(self.largest, self.skyband.size)
        self.firmness |= {firm for *_, firm in all_of}
        waiting = self.held()
        self.read([k, 1, k], [low, low, low + 2])
        self.refreshes += 1
        if self.refreshes % 3:
            # What was dominated since the last sweep may still be held, but nothing that never was an instance.
            if self.firmness <= {FIRM}:
                assert skyband_of(self.model, all_of, k) <= waiting <= {(key, tick) for key, tick, *_ in all_of}
            return
        self.skyband._check_pruned(k)
        self.skyband._check()
        held = self.held()
        assert held <= waiting
        if self.firmness <= {FIRM}:
            # An object that was infinite in some window stays loose until it is read again.
            assert held == skyband_of(self.model, all_of, k)

    def held(self) -> set[tuple[Any, int]]:
        """Return the instances held, as (object, tick)."""
        at, size = self.skyband.instances, self.skyband.size
        keys = {self.model.slot(key): key for key in self.model.objects()}
        held = [(keys[int(slot)], int(tick)) for slot, tick in zip(at.slot[:size], at.tick[:size], strict=True)]
        assert len(held) == len(set(held))
        return set(held)

    def read(self, ks: list[int], lows: list[int]) -> None:
        """Assert that many questions at once are answered as the rows say."""
        ranking, starts = self.skyband.read(np.array(lows), np.array(ks))
        at = self.skyband.instances
        for q, (k, low) in enumerate(zip(ks, lows, strict=True)):
            own = ranking[starts[q] : starts[q + 1]]
            got = [(int(at.slot[i]), at.rank[i], int(at.present[i]), at.values[i].tolist()) for i in own]
            expected = self.model.ranked(self.bound, low)[:k]
            assert got == [(self.model.slot(key), rank, bits, values) for key, rank, bits, values in expected]


STEADY = group_of(Aggregate.BEST, Aggregate.MAX, Aggregate.SUM, Aggregate.COUNT)
MIXED = group_of(Aggregate.BEST, Aggregate.MIN, Aggregate.BEST, widths=(1, 1, 2))
CASES = {
    "one column": ask(STEADY, "a"),
    "all columns": ask(STEADY, "a + 2*b + c + d"),
    "columns that only require names": ask(STEADY, "a", require=("c", "d")),
    "all required": ask(STEADY, "a + b", require_all=True),
    "lowest": ask(MIXED, "a + b + c0 - c1", lowest=True),
    "infinite in a longer window": ask(STEADY, "exp(a) + b"),
    "infinite while unseen": ask(STEADY, "log1p(a - 1) + b"),
}


def some_rows(random: Random, group: Group, now: int, count: int, ids: int) -> list[Given]:
    given = []
    for _ in range(count):
        stream = random.randrange(len(group.streams))
        late = random.choice((0, 0, 0, 1, 4)) * random.randint(0, group.pane_us)
        values = tuple(random.choice((0.0, 1.0, 1.0, 2.0, 5.0, 900.0)) for _ in group.streams[stream].attributes)
        given.append((stream, f"sensor-00-north-{random.randrange(ids)}", now - late, values))
    return given


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", [1, 3, 100])
def test_it_is_the_k_skyband_of_the_instances(name: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CAPACITY", 8)
    bound = CASES[name]
    group = MIXED if name == "lowest" else STEADY
    random, tried = Random(k), Tried(group, bound)
    now = 0
    tried.model.expire(-8)
    for _ in range(50):
        now += random.choice((0, 1, 7, 10, 10, 35))
        low = (now + 1 - group.retention_us) // group.pane_us
        tried.model.expire(low)
        tried.model.apply(some_rows(random, group, now, random.choice((0, 2, 9)), 12))
        if random.random() < 0.7:
            tried.refresh(k, low)
            lows = [random.randint(low, now // group.pane_us + 1) for _ in range(4)]
            tried.read([random.randint(1, k) for _ in lows] + [k], [*lows, low])
    if name == "infinite in a longer window":
        assert tried.firmness == {FIRM, LOOSE, BAR}
        assert tried.skyband.not_finite > 0
    assert tried.largest > (5 if k > 1 else 2)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_an_object_that_becomes_infinite_gives_back_the_places_it_kept_from_others(k: int) -> None:
    for seed in range(12):
        random, tried = Random(seed), Tried(STEADY, CASES["infinite in a longer window"])
        tried.model.expire(-8)
        for now in range(0, 300, 6):
            low = (now + 1 - STEADY.retention_us) // 10
            tried.model.expire(low)
            for _ in range(3):
                late = random.choice((0, 0, 25))
                tried.model.apply(
                    [(0, random.choice("abcdef"), now - late, (random.choice((700.0, 704.0, 708.0, 715.0)),))]
                )
            if random.random() < 0.7:
                tried.refresh(k, low)
                lows = [random.randint(low, now // 10) for _ in range(4)]
                tried.read([k] * 5, [*lows, low])


@pytest.mark.parametrize("k", [1, 4])
def test_it_is_the_k_skyband_where_ticks_are_rows(k: int) -> None:
    random, tried = Random(k), Tried(STEADY, CASES["all columns"], in_rows=True)
    tried.model.expire(0)
    for step in range(50):
        count = random.choice((0, 1, 5))
        low = max(0, tried.model.applied + count - STEADY.retention_rows)
        tried.model.expire(low)
        tried.model.apply(some_rows(random, STEADY, 10 * step, count, 12))
        tried.refresh(k, low)
        tried.read([1, k, k], [low, low, max(low, tried.model.applied - 5)])


@pytest.mark.parametrize("k", [1, 4])
def test_it_is_the_k_skyband_of_records_that_are_objects(k: int) -> None:
    group = group_of(Aggregate.LATEST, widths=(2,), by_row=True)
    random, tried = Random(k), Tried(group, ask(group, "a0 / a1"))
    now = 0
    tried.model.expire(-8)
    for _ in range(50):
        now += random.choice((0, 1, 7, 35))
        low = (now + 1 - group.retention_us) // group.pane_us
        tried.model.expire(low)
        tried.model.apply(some_rows(random, group, now, random.choice((0, 2, 9)), 3))
        tried.refresh(k, low)
        tried.read([1, k, k], [low, low, now // 10])


def test_more_k_and_longer_windows_are_served_after_a_restart() -> None:
    random, tried = Random(9), Tried(STEADY, CASES["all columns"])
    now = 0
    tried.model.expire(-8)
    k, panes = 1, 1
    for step in range(80):
        now += random.choice((0, 1, 7, 10))
        tried.model.expire((now + 1 - STEADY.retention_us) // 10)
        tried.model.apply(some_rows(random, STEADY, now, 4, 12))
        if step % 8 == 7:
            new_k = random.choice((1, 2, 5, 20))
            panes = random.choice((1, 3, 8))
            if new_k > k:
                tried.skyband.restart()
            k = new_k
        low = now // 10 + 1 - panes
        tried.refresh(k, low)
        tried.read([k], [low])


def test_a_lower_tick_than_before_is_read_again() -> None:
    tried = Tried(STEADY, CASES["one column"])
    tried.model.expire(0)
    tried.model.apply([(0, "a", 5, (9.0,)), (0, "a", 25, (1.0,)), (0, "b", 15, (5.0,)), (0, "c", 35, (3.0,))])
    for low in (0, 2, 1, 4, 0):
        tried.refresh(2, low)
        tried.read([2], [low])


def test_an_object_of_more_instances_than_fit_makes_room() -> None:
    group = group_of(Aggregate.BEST, pane_us=1, panes=5_000)
    tried = Tried(group, ask(group, "a"))
    tried.model.expire(0)
    count = module._CAPACITY + 100
    # Each value is lower than the one before: every tick is an instance, and none is dominated by another object.
    tried.model.apply([(0, "a", time, (float(1_000 - time * 0.1),)) for time in range(count)] + [(0, "b", 7, (1.0,))])
    tried.skyband.refresh(2, 0)
    tried.skyband._check()
    assert tried.skyband.size == count + 1
    assert tried.skyband.peak == count + 1
    tried.read([1, 1, 2], [0, 4_000, 3])


def test_many_objects_that_nothing_dominates_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CAPACITY", 4)
    group = group_of(Aggregate.BEST, pane_us=1, panes=200)
    tried = Tried(group, ask(group, "a"))
    tried.model.expire(0)
    tried.model.apply([(0, f"o{time:03}", time, (float(200 - time),)) for time in range(200)])
    tried.refresh(1, 0)
    tried.read([1, 1, 1], [0, 50, 199])
    assert tried.skyband.size == 200


def test_a_slot_that_is_used_again_has_no_past() -> None:
    tried = Tried(STEADY, CASES["one column"])
    tried.model.expire(0)
    tried.model.apply([(0, "old", 5, (9.0,))])
    tried.refresh(2, 0)
    slot = tried.model.slot("old")
    tried.model.expire(3)
    tried.model.apply([(0, "new", 75, (1.0,))])
    assert tried.model.slot("new") == slot
    tried.refresh(2, 3)
    tried.read([2], [3])


def test_an_empty_store_has_an_empty_skyband() -> None:
    tried = Tried(STEADY, CASES["one column"])
    tried.refresh(5, -(2**62))
    tried.read([5], [0])
