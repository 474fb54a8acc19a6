"""Instances, as kernels keep them: reading an object's, dropping those that are over. Words as in `skyband`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Flags, Floats, Ints
from skyband.structures.question import Question, read_object
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.store_arrays import StoreArrays

__all__ = [
    "Instances",
    "add_instances",
    "copy_instance",
    "drop_changed",
    "drop_dominated",
    "newest_before",
    "offer_floor",
]

# An instance is firm, or loose (its object has a score that is not finite in some longer window, so it must neither be
# pruned nor prune), or a bar: in windows that reach back to it, its object is not eligible.
FIRM, LOOSE, BAR = 0, 1, 2

# Places in a skyband's `counts`: instances held, and how many of the first of them descend in tick; how many may be
# held before the next sweep; scores that were not finite; of the floor its size and oldest tick; whether a firm object
# has become infinite; the steps of the stair.
HELD, SORTED, ROOM, NOT_FINITE, FLOOR, OLDEST, LOST, STEPS, COUNTS = 0, 1, 2, 3, 4, 5, 6, 7, 8

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
def copy_instance(instances: Instances, source: int, into: Instances, target: int) -> None:
    """Copy one instance to place `target` of `into`."""
    into.tick[target] = instances.tick[source]
    into.rank[target] = instances.rank[source]
    into.slot[target] = instances.slot[source]
    into.present[target] = instances.present[source]
    into.firmness[target] = instances.firmness[source]
    for j in range(instances.values.shape[1]):
        into.values[target, j] = instances.values[source, j]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def drop_changed(instances: Instances, counts: Ints, low: int, marks: Flags) -> int:
    """Keep instances that still live and whose object has not changed; return how many."""
    kept = 0
    in_order = counts[SORTED]
    for i in range(counts[HELD]):
        if i == in_order:
            counts[SORTED] = kept
        if instances.tick[i] < low:
            continue
        slot = instances.slot[i]
        if marks[slot] == 0:
            if kept != i:
                copy_instance(instances, i, instances, kept)
            kept += 1
        elif instances.firmness[i] == FIRM:
            marks[slot] = WAS_FIRM
    counts[SORTED] = min(counts[SORTED], kept)
    return kept


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def drop_dominated(
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
            copy_instance(instances, i, instances, kept)
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
def newest_before(store: StoreArrays, question: Question, slot: int, tick: int) -> int:
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
def add_instances(
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
        tick = newest_before(store, question, slot, tick)
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
def offer_floor(floor: Floats, size: int, rank: float) -> int:
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
