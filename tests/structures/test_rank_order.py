"""The order of ranks: score, then id, then total order; and the heap of the best distinct objects."""

from random import Random

import numpy as np
import pytest

from skyband.structures.rank_order import heap_offer, pop_best, ranks_before, sort_by_rank, stack_by_rank
from tests.structures.test_object_table import Model

IDS = [b"", b"\0", b"a", b"a\0", b"b", b"sensor-00-north-1", b"sensor-00-north-10", b"sensor-00-north-2", b"z" * 40]


def table_of(random: Random, count: int, *, by_row: bool) -> Model:
    """Return a table of `count` objects: with ids that repeat where each record is one."""
    model = Model(indexed=not by_row, hashes=1 << 40)
    for number in random.sample(range(10 * count), count):
        id_bytes = random.choice(IDS) if by_row else b"%s-%d" % (random.choice(IDS), number)
        model.add(id_bytes, number)
    return model


@pytest.mark.parametrize("by_row", [False, True])
def test_candidates_sort_by_score_then_id_then_total_order(by_row: bool) -> None:
    for seed in range(40):
        random = Random(seed)
        model = table_of(random, 40, by_row=by_row)
        count = random.choice((0, 1, 2, 40))
        slots = random.sample(sorted(model.live), count)
        rank = np.array([random.choice((-1.0, -0.0, 0.0, 2.5, 1e300)) for _ in slots] + [9.0, 9.0])
        slot = np.array([*slots, 0, 0], np.int32)
        order = sort_by_rank(model.table.arrays, by_row, rank, slot, np.zeros(count + 2, np.int64), count)
        assert order.tolist() == sorted(range(count), key=lambda i: (-rank[i], *model.live[slots[i]]))


def test_thousands_of_equal_scores_sort_too() -> None:
    model = table_of(Random(1), 3_000, by_row=True)
    slots = sorted(model.live)
    Random(2).shuffle(slots)
    ticks = np.zeros(0, np.int64)
    order = sort_by_rank(model.table.arrays, True, np.ones(3_000), np.array(slots, np.int32), ticks, 3_000)
    assert [slots[i] for i in order] == sorted(slots, key=lambda slot: model.live[slot])


def test_equal_scores_of_one_object_sort_by_tick() -> None:
    model = table_of(Random(3), 3, by_row=False)
    tick = np.array([5, 2, 9, 2, 7], np.int64)
    slot = np.array([1, 1, 1, 0, 2], np.int32)
    order = sort_by_rank(model.table.arrays, False, np.ones(5), slot, tick, 5)
    assert [int(tick[i]) for i in order if slot[i] == 1] == [2, 5, 9]


@pytest.mark.parametrize("by_row", [False, True])
def test_an_object_ranks_before_another_in_that_order_and_never_before_itself(by_row: bool) -> None:
    random = Random(4)
    model = table_of(random, 20, by_row=by_row)
    arrays = model.table.arrays
    for a, of_a in model.live.items():
        assert not ranks_before(arrays, by_row, 1.0, a, 1.0, a)
        for b, of_b in model.live.items():
            if a != b:
                assert bool(ranks_before(arrays, by_row, 1.0, a, 1.0, b)) == (of_a < of_b)
                assert ranks_before(arrays, by_row, 2.0, a, 1.0, b)
                assert not ranks_before(arrays, by_row, -0.5, a, -0.25, b)


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_the_heap_keeps_the_best_distinct_objects(size: int) -> None:
    for seed in range(30):
        random = Random(seed)
        model = table_of(random, 30, by_row=False)
        arrays = model.table.arrays
        slot = np.array([random.randrange(30) for _ in range(150)], np.int32)
        # An object's candidates come worst first.
        rank = np.array([random.choice((0.0, 1.0, 1.0, 2.0)) + 0.5 * (i // 30) for i in range(150)])
        for each in range(30):
            own = np.flatnonzero(slot == each)
            rank[own] = np.sort(rank[own])
        heap, where, held = np.zeros(size, np.int32), np.full(30, -1, np.int32), 0
        best: dict[int, float] = {}
        for i in range(150):
            held = int(heap_offer(arrays, False, rank, slot, heap, held, where, i))
            best[int(slot[i])] = float(rank[i])
            ranked = sorted(best, key=lambda s: (-best[s], model.live[s]))[:size]
            assert sorted(int(slot[c]) for c in heap[:held]) == sorted(ranked)
            assert all(rank[c] == best[int(slot[c])] for c in heap[:held])
            assert int(slot[heap[0]]) == ranked[-1]
            assert {int(s): int(where[s]) for s in np.flatnonzero(where >= 0)} == {
                int(slot[c]): place for place, c in enumerate(heap[:held])
            }


@pytest.mark.parametrize("by_row", [False, True])
def test_the_best_come_off_the_stack_in_rank_order(by_row: bool) -> None:
    for seed in range(40):
        random = Random(seed)
        model = table_of(random, 12, by_row=by_row)
        count = random.choice((0, 1, 2, 40))
        # An object's scores differ in tick at least.
        rank = np.array([random.choice((-1.0, 0.0, 2.5, np.inf)) for _ in range(count)])
        slot = np.array(random.choices(sorted(model.live), k=count), np.int32)
        tick = np.arange(count, dtype=np.int64)
        arrays, order = model.table.arrays, np.zeros(count, np.int32)
        stack_by_rank(arrays, by_row, rank, slot, tick, order)
        for size in range(count, 0, -1):
            pop_best(arrays, by_row, rank, slot, tick, order, size)
        expected = sorted(range(count), key=lambda i: (-rank[i], *model.live[slot[i]], tick[i]))
        assert order.tolist()[::-1] == expected
