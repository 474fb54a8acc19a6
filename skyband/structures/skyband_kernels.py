"""Kernels of the skyband: read the changed objects, sweep out the dominated, read rankings. Words as in `skyband`.

What Python calls takes plain tuples of arrays: a dispatch spends 3 us (in cache) on working out the type of named ones,
and ten times that out of cache, so that an evaluation is one dispatch of `refresh` and one of `read`.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Indexes, Ints
from skyband.structures.changed_objects import COUNT, ChangedArrays, absorb_changes, clear_changed
from skyband.structures.instance_kernels import (
    BAR,
    FIRM,
    FLOOR,
    HELD,
    LOST,
    OLDEST,
    ROOM,
    SORTED,
    STEPS,
    Instances,
    add_instances,
    copy_instance,
    drop_changed,
    drop_dominated,
    newest_before,
    offer_floor,
)
from skyband.structures.object_table import ObjectArrays
from skyband.structures.question import FETCHED_TOGETHER, Question, fetch_objects, read_object
from skyband.structures.rank_order import heap_offer, pop_best, stack_by_rank
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.store_arrays import StoreArrays
from skyband.structures.window_kernels import CHANGES, NEWEST

__all__ = ["Workplace", "read", "refresh"]

# Above every tick.
_LATER = 1 << 62

# Instances beyond a quarter that may wait for the next sweep.
_SLACK = 16


class Workplace(NamedTuple):
    """What a skyband's kernels need beside the instances.

    `floor` and `heap` have k places, `where` one per slot (-1 between calls), `order` and `late` as many as there may
    be instances; the stair has as many, and is what the last sweep left. `stack` is the score's.
    """

    counts: npt.NDArray[np.int64]
    floor: npt.NDArray[np.float64]
    stair_ticks: npt.NDArray[np.int64]
    stair_ranks: npt.NDArray[np.float64]
    stack: npt.NDArray[np.float64]
    order: npt.NDArray[np.int32]
    late: npt.NDArray[np.int32]
    heap: npt.NDArray[np.int32]
    where: npt.NDArray[np.int32]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def refresh(
    object_arrays: tuple[Any, ...],
    by_row: bool,
    store_arrays: tuple[Any, ...],
    asked: tuple[Any, ...],
    held: tuple[Any, ...],
    into: tuple[Any, ...],
    changed_arrays: tuple[Any, ...],
    workplace: tuple[Any, ...],
    low: int,
    left: int,
) -> tuple[int, bool]:
    """Read the changed objects, sweep if what is held has grown by a quarter or fills up; return how many are left.

    `left` -1: begin with all of them, and drop what is held of them or is too old. Also returned: whether a sweep has
    moved the instances to `into`. The set of the changed is emptied in the end, unless counts[LOST].
    """
    objects, store, question = ObjectArrays(*object_arrays), StoreArrays(*store_arrays), Question(*asked)
    instances, spare, changed = Instances(*held), Instances(*into), ChangedArrays(*changed_arrays)
    work = Workplace(*workplace)
    counts = work.counts
    if left < 0:
        absorb_changes(store.changes, store.counts[CHANGES], changed)
        left = changed.counts[COUNT]
        counts[HELD] = drop_changed(instances, counts, low, changed.marks)
    left = _renew(store, question, instances, work, changed, low, left)
    swept = left > 0 or counts[HELD] > counts[ROOM]
    if swept:
        _sweep(objects, by_row, instances, spare, work)
    if left == 0 and counts[LOST] == 0:
        clear_changed(changed)
    return left, swept


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _renew(
    store: StoreArrays,
    question: Question,
    instances: Instances,
    work: Workplace,
    changed: ChangedArrays,
    low: int,
    left: int,
) -> int:
    """Add the instances of the first `left` changed objects, last changed first; return how many did not fit.

    The floor holds the best ranks of k objects' newest instances, none older than counts[OLDEST]. An object that is not
    newer and would not beat the least of them even with all it has seen is dominated as a whole, and costs one score.
    """
    counts, floor = work.counts, work.floor
    first = count = counts[HELD]
    fetched = left
    while left > 0:
        if left == fetched:
            fetched = max(0, left - FETCHED_TOGETHER)
            fetch_objects(store, question, changed.slots, fetched, left)
        slot = changed.slots[left - 1]
        newest = store.counts[NEWEST]
        if counts[FLOOR] < len(floor) or counts[OLDEST] < newest:
            newest = newest_before(store, question, slot, _LATER)
        if newest >= low:
            if counts[FLOOR] == len(floor) and newest <= counts[OLDEST] and count < len(instances.tick):
                values = instances.values[count]
                bits = read_object(store, question, slot, low, values)
                rank = question.sign * evaluate_one(question.code, question.constants, work.stack, values)
                if bits == 0 or rank < floor[0]:
                    left -= 1
                    continue
                newest = newest_before(store, question, slot, _LATER)
            added = add_instances(store, question, instances, count, slot, low, work.stack, counts, changed.marks)
            if added < 0:
                break
            if added > count and instances.firmness[count] == FIRM and instances.tick[count] == newest:
                counts[FLOOR] = offer_floor(floor, counts[FLOOR], instances.rank[count])
                counts[OLDEST] = min(counts[OLDEST], newest)
            count = added
        left -= 1
    counts[HELD] = drop_dominated(instances, first, count, floor, counts, work.stair_ticks, work.stair_ranks)
    return left


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _sweep(objects: ObjectArrays, by_row: bool, instances: Instances, spare: Instances, work: Workplace) -> None:
    """Pass from the youngest to the oldest, equal ticks together; move what is not dominated to `spare`.

    The stair's steps are (tick, rank): k objects no older than the tick have at least that rank, and since ranks only
    rise while they live, that stays true: what comes later and falls below the stair is dominated.
    Cost: O(1) for an instance that does not beat the k-th object so far, else O(log k); the sorting of what is new.
    """
    counts, heap, where = work.counts, work.heap, work.where
    count = counts[HELD]
    order = work.order[:count]
    _order_by_tick(instances.tick, counts[SORTED], order, work.late[: count - counts[SORTED]])
    size = kept = steps = 0
    i = 0
    while i < count:
        j = i
        tick = instances.tick[order[i]]
        while j < count and instances.tick[order[j]] == tick:
            at = order[j]
            if instances.firmness[at] == FIRM:
                size = heap_offer(objects, by_row, instances.rank, instances.slot, heap, size, where, at)
            j += 1
        for m in range(i, j):
            at = order[m]
            place = where[instances.slot[at]]
            if instances.firmness[at] != FIRM or (place >= 0 and heap[place] == at):
                copy_instance(instances, at, spare, kept)
                kept += 1
        if size == len(heap) and (steps == 0 or instances.rank[heap[0]] > work.stair_ranks[steps - 1]):
            work.stair_ticks[steps], work.stair_ranks[steps] = tick, instances.rank[heap[0]]
            steps += 1
        i = j
    for i in range(size):
        where[instances.slot[heap[i]]] = -1
    counts[HELD], counts[SORTED], counts[STEPS] = kept, kept, steps
    # A sweep passes all instances, a slide adds a few: a quarter more to read costs less than a sweep each time.
    counts[ROOM] = kept + kept // 4 + _SLACK


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _order_by_tick(tick: Ints, in_order: int, order: Indexes, late: Indexes) -> None:
    """Write to `order` the indexes by descending tick; the first `in_order` descend, only the others are sorted."""
    for i in range(len(late)):
        late[i] = in_order + i
    for root in range(len(late) // 2 - 1, -1, -1):
        _sink_newest(tick, late, root, len(late))
    for size in range(len(late) - 1, 0, -1):
        late[0], late[size] = late[size], late[0]
        _sink_newest(tick, late, 0, size)
    # The newest stand last now.
    i, j = 0, len(late) - 1
    for to in range(len(order)):
        if j < 0 or (i < in_order and tick[i] >= tick[late[j]]):
            order[to] = i
            i += 1
        else:
            order[to] = late[j]
            j -= 1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _sink_newest(tick: Ints, heap: Indexes, root: int, size: int) -> None:
    moved = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and tick[heap[child + 1]] > tick[heap[child]]:
            child += 1
        if tick[heap[child]] <= tick[moved]:
            break
        heap[root] = heap[child]
        root = child
    heap[root] = moved


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def read(
    object_arrays: tuple[Any, ...],
    by_row: bool,
    held: tuple[Any, ...],
    order: Indexes,
    lows: Ints,
    ks: Ints,
    seen: Ints,
    stamp: int,
    ranking: Indexes,
    starts: Ints,
) -> int:
    """Write each query's ranking of all instances (`order` has a place for each); return the number written.

    Query q sees instances with tick >= lows[q]. No more is put in rank order than the queries get to see.
    """
    objects, instances = ObjectArrays(*object_arrays), Instances(*held)
    count = len(order)
    stack_by_rank(objects, by_row, instances.rank, instances.slot, instances.tick, order)
    popped = written = 0
    for q in range(len(lows)):
        starts[q] = written
        left = ks[q]
        passed = 0
        while left > 0 and passed < count:
            if passed == popped:
                pop_best(objects, by_row, instances.rank, instances.slot, instances.tick, order, count - popped)
                popped += 1
            passed += 1
            at = order[count - passed]
            if instances.tick[at] < lows[q]:
                continue
            slot = instances.slot[at]
            if seen[slot] == stamp + q:
                continue
            seen[slot] = stamp + q
            if instances.firmness[at] != BAR:
                ranking[written] = at
                written += 1
                left -= 1
    starts[len(lows)] = written
    return written
