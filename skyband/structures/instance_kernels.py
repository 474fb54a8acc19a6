"""Kernels of the skyband: read an object's instances, prune the dominated, read rankings. Words as in `skyband`.

What Python calls takes plain tuples of arrays: a dispatch spends 3 us (in cache) on working out the type of named ones.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Flags, Floats, Indexes, Ints
from skyband.structures.object_table import ObjectArrays
from skyband.structures.question import TOUCHED_TOGETHER, Question, read_object, touch_objects
from skyband.structures.rank_order import heap_offer, order_ties
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.store_arrays import StoreArrays
from skyband.structures.window_kernels import NEWEST

__all__ = ["Instances", "prune", "read", "renew"]

# An instance is firm, or loose (its object has a score that is not finite in some longer window, so it must neither be
# pruned nor prune), or a bar: in windows that reach back to it, its object is not eligible.
FIRM, LOOSE, BAR = 0, 1, 2

# Places in a skyband's `counts`: instances held, scores that were not finite, of the floor its size and oldest tick,
# whether a firm object has become infinite, and the steps of the stair.
HELD, NOT_FINITE, FLOOR, OLDEST, LOST, STEPS, COUNTS = 0, 1, 2, 3, 4, 5, 6

# Below every tick, and below every window's lowest.
NEVER = -(3 << 61)

# The mark of a changed object that has had firm instances until now: what it dominated may have been pruned.
WAS_FIRM = 2


class Instances(NamedTuple):
    """Instances in columns: tick, rank score, slot, bits of the columns present, their values, and firmness."""

    tick: npt.NDArray[np.int64]
    rank: npt.NDArray[np.float64]
    slot: npt.NDArray[np.int32]
    present: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    firmness: npt.NDArray[np.int8]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _copy(instances: Instances, source: int, into: Instances, target: int) -> None:
    into.tick[target] = instances.tick[source]
    into.rank[target] = instances.rank[source]
    into.slot[target] = instances.slot[source]
    into.present[target] = instances.present[source]
    into.firmness[target] = instances.firmness[source]
    for j in range(instances.values.shape[1]):
        into.values[target, j] = instances.values[source, j]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _drop_changed(instances: Instances, count: int, low: int, marks: Flags) -> int:
    """Keep instances that still live and whose object has not changed; return how many."""
    kept = 0
    for i in range(count):
        if instances.tick[i] < low:
            continue
        slot = instances.slot[i]
        if marks[slot] == 0:
            if kept != i:
                _copy(instances, i, instances, kept)
            kept += 1
        elif instances.firmness[i] == FIRM:
            marks[slot] = WAS_FIRM
    return kept


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _drop_dominated(
    instances: Instances, first: int, count: int, floor: Floats, counts: Ints, stair_ticks: Ints, stair_ranks: Floats
) -> int:
    """Of instances [first, count) drop those that the full floor or the stair shows to be dominated; return the count.

    The floor rises while objects are read, so that most of what it let in early is beneath it in the end.
    """
    kept = first
    for i in range(first, count):
        if instances.firmness[i] == FIRM:
            rank, tick = instances.rank[i], instances.tick[i]
            if counts[FLOOR] == len(floor) and rank < floor[0] and tick <= counts[OLDEST]:
                continue
            step = _steps_from(stair_ticks, counts[STEPS], tick)
            if step > 0 and rank < stair_ranks[step - 1]:
                continue
        if kept != i:
            _copy(instances, i, instances, kept)
        kept += 1
    return kept


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _steps_from(stair_ticks: Ints, steps: int, tick: int) -> int:
    """Return how many of the descending ticks are not older than `tick`."""
    low, high = 0, steps
    while low < high:
        middle = (low + high) >> 1
        if stair_ticks[middle] >= tick:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _newest_before(store: StoreArrays, question: Question, slot: int, tick: int) -> int:
    """Return the newest tick below `tick` in which the object has an entry that the question reads, or `NEVER`."""
    newest = NEVER
    for column in range(len(question.streams)):
        stream = question.streams[column]
        if column > 0 and stream == question.streams[column - 1]:
            continue
        block, head = store.chains[slot, stream, 0], store.chains[slot, stream, 1]
        length, mask = store.chains[slot, stream, 2], store.chains[slot, stream, 3] - 1
        for j in range(length - 1, -1, -1):
            seen = store.ticks[block + ((head + j) & mask), 0]
            if seen < tick:
                newest = max(newest, seen)
                break
    return newest


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _add_instances(
    store: StoreArrays,
    question: Question,
    instances: Instances,
    count: int,
    slot: int,
    low: int,
    stack: Floats,
    counts: Ints,
    marks: Flags,
) -> int:
    """Append the instances of one object, newest first; return the new count, or -1 if they do not fit."""
    first = count
    tick = 1 << 62
    is_firm = True
    while True:
        tick = _newest_before(store, question, slot, tick)
        if tick < low:
            break
        if count == len(instances.tick):
            return -1
        bits = read_object(store, question, slot, tick, instances.values[count])
        if bits == 0:
            continue
        rank = question.sign * evaluate_one(question.code, question.constants, stack, instances.values[count])
        finite = np.isfinite(rank)
        if not finite:
            counts[NOT_FINITE] += 1
            if rank > 0.0 and marks[slot] == WAS_FIRM:
                counts[LOST] = 1
            if count == first:
                continue
            is_firm = False
            rank = np.inf
        elif count > first and not _differs(instances, count, rank, bits):
            continue
        instances.tick[count] = tick
        instances.rank[count] = rank
        instances.slot[count] = slot
        instances.present[count] = bits
        instances.firmness[count] = FIRM if finite else BAR
        count += 1
        if not finite:
            break
    if not is_firm:
        for i in range(first, count):
            if instances.firmness[i] == FIRM:
                instances.firmness[i] = LOOSE
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _differs(instances: Instances, at: int, rank: float, bits: int) -> bool:
    """Return whether an instance shows anything that the object's next newer one does not."""
    if instances.rank[at - 1] != rank or instances.present[at - 1] != bits:
        return True
    for j in range(instances.values.shape[1]):
        if instances.values[at, j] != instances.values[at - 1, j]:
            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _offer_floor(floor: Floats, size: int, rank: float) -> int:
    """Keep the best ranks in the min-heap `floor`; return its new size. Cost O(log k)."""
    if size < len(floor):
        at = size
        size += 1
        while at > 0 and floor[(at - 1) >> 1] > rank:
            floor[at] = floor[(at - 1) >> 1]
            at = (at - 1) >> 1
        floor[at] = rank
        return size
    if rank <= floor[0]:
        return size
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and floor[child + 1] < floor[child]:
            child += 1
        if floor[child] >= rank:
            break
        floor[at] = floor[child]
        at = child
    floor[at] = rank
    return size


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def renew(
    store_arrays: tuple[Any, ...],
    asked: tuple[Any, ...],
    held: tuple[Any, ...],
    counts: Ints,
    low: int,
    slots: Indexes,
    marks: Flags,
    floor: Floats,
    stair_ticks: Ints,
    stair_ranks: Floats,
    stack: Floats,
    is_first: bool,
) -> int:
    """Replace the instances of changed objects, last changed first; return how many of `slots` are left.

    `is_first`: drop what the instances held say of them, and what is too old. `floor` holds the best ranks of k
    objects' newest instances, none older than counts[OLDEST]. An object that is not newer and would not beat the least
    of them even with all it has seen is dominated as a whole, and costs one score. The stair is what `prune` wrote.
    """
    store, question, instances = StoreArrays(*store_arrays), Question(*asked), Instances(*held)
    count = counts[HELD]
    if is_first:
        count = _drop_changed(instances, count, low, marks)
    first = count
    left = touched = len(slots)
    while left > 0:
        if left == touched:
            touched = max(0, left - TOUCHED_TOGETHER)
            touch_objects(store, question, slots, touched, left)
        slot = slots[left - 1]
        newest = store.counts[NEWEST]
        if counts[FLOOR] < len(floor) or counts[OLDEST] < newest:
            newest = _newest_before(store, question, slot, 1 << 62)
        if newest >= low:
            if counts[FLOOR] == len(floor) and newest <= counts[OLDEST] and count < len(instances.tick):
                bits = read_object(store, question, slot, low, instances.values[count])
                rank = question.sign * evaluate_one(question.code, question.constants, stack, instances.values[count])
                if bits == 0 or rank < floor[0]:
                    left -= 1
                    continue
                newest = _newest_before(store, question, slot, 1 << 62)
            added = _add_instances(store, question, instances, count, slot, low, stack, counts, marks)
            if added < 0:
                break
            if added > count and instances.firmness[count] == FIRM and instances.tick[count] == newest:
                counts[FLOOR] = _offer_floor(floor, counts[FLOOR], instances.rank[count])
                counts[OLDEST] = min(counts[OLDEST], newest)
            count = added
        left -= 1
    counts[HELD] = _drop_dominated(instances, first, count, floor, counts, stair_ticks, stair_ranks)
    return left


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def prune(
    object_arrays: tuple[Any, ...],
    by_row: bool,
    held: tuple[Any, ...],
    into: tuple[Any, ...],
    order: Ints,
    heap: Indexes,
    where: Indexes,
    counts: Ints,
    stair_ticks: Ints,
    stair_ranks: Floats,
) -> None:
    """Sweep in `order`, youngest to oldest, equal ticks together; move what is not dominated to `into`.

    The stair's steps are (tick, rank): k objects no older than the tick have at least that rank, and since ranks only
    rise while they live, that stays true: what comes later and falls below the stair is dominated.
    Cost: O(1) for an instance that does not beat the k-th object so far, else O(log k).
    """
    objects, instances, spare = ObjectArrays(*object_arrays), Instances(*held), Instances(*into)
    count = len(order)
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
                _copy(instances, at, spare, kept)
                kept += 1
        if size == len(heap) and (steps == 0 or instances.rank[heap[0]] > stair_ranks[steps - 1]):
            stair_ticks[steps], stair_ranks[steps] = tick, instances.rank[heap[0]]
            steps += 1
        i = j
    for i in range(size):
        where[instances.slot[heap[i]]] = -1
    counts[HELD], counts[STEPS] = kept, steps


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
    """Put `order` (by rank) into rank order and write each query's ranking; return the number written.

    Query q sees instances with tick >= lows[q].
    """
    instances = Instances(*held)
    order_ties(ObjectArrays(*object_arrays), by_row, instances.rank, instances.slot, instances.tick, order)
    written = 0
    for q in range(len(lows)):
        starts[q] = written
        left = ks[q]
        for at in order:
            if left == 0:
                break
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
