"""Kernels that forget: the sweep, the strict examination, moving together what is left. Words as in `instance_set`."""

from typing import Any

import numpy as np
from numba import njit

from skyband.engine.incomplete.instances import (
    BEST,
    CURRENT,
    DEAD,
    HEAD,
    LIVE,
    LOW,
    NEWER,
    OLDER,
    PLACES,
    ROOM,
    SLOT,
    SORTED,
    START,
    Instances,
    Workplace,
    unlink,
)
from skyband.structures.array_types import Floats, Indexes, Ints
from skyband.structures.object_table import ObjectArrays
from skyband.structures.rank_order import heap_offer, ranks_before

__all__ = ["compact", "examine", "expire", "leave_out", "relink", "sweep"]

# An object is told from others by these bits of its hash: no index begins with them, no other sample is chosen by them.
SHARE_SHIFT, SHARE_MASK = 20, (1 << 20) - 1

# The word of an object's record that holds its hash.
TAG = 3

# Instances beyond a share that may be added before the next sweep: dispatching one costs as much as passing 10,000.
_SLACK = 2_048


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def sweep(
    object_arrays: tuple[Any, ...],
    held: tuple[Any, ...],
    workplace: tuple[Any, ...],
    size: int,
    slide: int,
    growth: int,
    shown: Indexes,
) -> int:
    """Pass from the youngest class to the oldest and give up what k others dominate; write the best places to `shown`.

    The places must ascend in tick. Returns how many are shown: the best distinct objects of the instances that count.
    `growth`: the next sweep is due when the set has grown by one part of so many. Cost: O(1) for an instance that is
    neither among the k + 1 best so far nor between the last two of them, else O(log k).
    """
    objects, instances, work = ObjectArrays(*object_arrays), Instances(*held), Workplace(*workplace)
    counts, heap, where = work.counts, work.heap, work.where
    tick, scores, links = instances.tick, instances.scores, instances.links
    current, slots = scores[:, CURRENT], links[:, SLOT]
    low, start = counts[LOW], counts[START]
    filled = fallen = 0
    i = counts[PLACES] - 1
    while i >= start:
        if tick[i] == DEAD:
            i -= 1
            continue
        if tick[i] < low:
            break
        oldest = tick[i] if slide == 1 else max(low, (tick[i] + size) // slide * slide - size)
        j = i
        while j >= start and (tick[j] >= oldest or tick[j] == DEAD):
            if tick[j] != DEAD and (filled < len(heap) or scores[j, CURRENT] >= scores[heap[0], CURRENT]):
                filled = _offer(objects, current, slots, heap, filled, where, j)
            j -= 1
        least, most = _thresholds(current, heap, filled)
        if most > -np.inf:
            for m in range(i, j, -1):
                best = scores[m, BEST]
                if best < most and tick[m] != DEAD:
                    place = where[links[m, SLOT]]
                    if best < least or place < 0 or (place == 0 and filled == len(heap)):
                        work.fallen[fallen] = m
                        fallen += 1
        i = j
    written: int = _show(objects, current, slots, heap, filled, where, shown)
    for m in range(fallen):
        unlink(objects, instances, counts, work.fallen[m])
    _expire(objects, instances, counts, i)
    counts[ROOM] = counts[LIVE] + counts[LIVE] // growth + _SLACK
    return written


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _offer(
    objects: ObjectArrays, current: Floats, slots: Indexes, heap: Indexes, filled: int, where: Indexes, at: int
) -> int:
    """Offer an instance to the heap of the best distinct objects; of one object's equal scores the older counts."""
    place = where[slots[at]]
    if current[at] == -np.inf or (place >= 0 and current[heap[place]] > current[at]):
        return filled
    size: int = heap_offer(objects, False, current, slots, heap, filled, where, at)
    return size


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _thresholds(current: Floats, heap: Indexes, filled: int) -> tuple[float, float]:
    """Return what k others surely reach, and what they reach unless the instance's own object is among them."""
    if filled < len(heap):
        return -np.inf, (float(current[heap[0]]) if filled == len(heap) - 1 else -np.inf)
    second = float(current[heap[1]])
    if filled > 2:
        second = min(second, float(current[heap[2]]))
    return float(current[heap[0]]), second


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _show(
    objects: ObjectArrays, current: Floats, slots: Indexes, heap: Indexes, filled: int, where: Indexes, shown: Indexes
) -> int:
    """Sort the heap, best first, and write as much of it as there is room for; it is empty then."""
    for i in range(filled):
        where[slots[heap[i]]] = -1
    if len(shown) > 0:
        for end in range(filled - 1, 0, -1):
            heap[0], heap[end] = heap[end], heap[0]
            _sink(objects, current, slots, heap, end)
    written = min(filled, len(shown))
    for i in range(written):
        shown[i] = heap[i]
    return written


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _sink(objects: ObjectArrays, current: Floats, slots: Indexes, heap: Indexes, size: int) -> None:
    """Put the first of heap[:size] in its place; the worst is to stand first."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        a, b = heap[child], heap[min(child + 1, size - 1)]
        if ranks_before(objects, False, current[a], slots[a], current[b], slots[b]):
            child, a = child + 1, b
        moved = heap[at]
        if not ranks_before(objects, False, current[moved], slots[moved], current[a], slots[a]):
            return
        heap[at], heap[child] = a, moved
        at = child


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _expire(objects: ObjectArrays, instances: Instances, counts: Ints, newest: int) -> None:
    """Give up all instances from the first place to `newest`, and move the first place past the dead."""
    for at in range(counts[START], newest + 1):
        if instances.tick[at] != DEAD:
            unlink(objects, instances, counts, at)
    while counts[START] < counts[PLACES] and instances.tick[counts[START]] == DEAD:
        counts[START] += 1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def expire(object_arrays: tuple[Any, ...], held: tuple[Any, ...], counts: Ints, growth: int) -> None:
    """Give up what is too old for any window to come. The places must ascend in tick. Cost O(given up)."""
    objects, instances = ObjectArrays(*object_arrays), Instances(*held)
    at = counts[START]
    while at < counts[PLACES] and instances.tick[at] < counts[LOW]:
        at += 1
    _expire(objects, instances, counts, at - 1)
    counts[ROOM] = counts[LIVE] + counts[LIVE] // growth + _SLACK


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def leave_out(object_arrays: tuple[Any, ...], held: tuple[Any, ...], counts: Ints, limit: int) -> None:
    """Give up the objects whose share of the hash is not below `limit`. Cost O(places)."""
    objects, instances = ObjectArrays(*object_arrays), Instances(*held)
    for at in range(counts[START], counts[PLACES]):
        if instances.tick[at] != DEAD:
            tag = objects.records[instances.links[at, SLOT], TAG]
            if (tag >> SHARE_SHIFT) & SHARE_MASK >= limit:
                unlink(objects, instances, counts, at)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def examine(
    object_arrays: tuple[Any, ...], held: tuple[Any, ...], workplace: tuple[Any, ...], size: int, slide: int, k: int
) -> None:
    """Give up each instance that instances of k distinct other objects dominate: look at each pair. Cost O(n**2)."""
    objects, instances, work = ObjectArrays(*object_arrays), Instances(*held), Workplace(*workplace)
    counts, tick, fallen = work.counts, instances.tick, 0
    for q in range(counts[START], counts[PLACES]):
        if tick[q] == DEAD:
            continue
        own, found, best = instances.links[q, SLOT], 0, instances.scores[q, BEST]
        youth = (tick[q] + size) // slide
        for p in range(counts[PLACES] - 1, counts[START] - 1, -1):
            slot = instances.links[p, SLOT]
            if tick[p] == DEAD or slot == own or work.where[slot] == q or (tick[p] + size) // slide < youth:
                continue
            if instances.scores[p, CURRENT] > best:
                work.where[slot] = q
                found += 1
        if found >= k:
            work.fallen[fallen] = q
            fallen += 1
    for q in range(counts[START], counts[PLACES]):
        work.where[instances.links[q, SLOT]] = -1
    for i in range(fallen):
        unlink(objects, instances, counts, work.fallen[i])


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def compact(object_arrays: tuple[Any, ...], held: tuple[Any, ...], counts: Ints) -> None:
    """Move the live together to the first places. They must ascend in tick. Cost O(places)."""
    objects, instances = ObjectArrays(*object_arrays), Instances(*held)
    links, to = instances.links, 0
    for at in range(counts[START], counts[PLACES]):
        if instances.tick[at] == DEAD:
            continue
        if to != at:
            _move(instances, at, to)
            _lead_to(objects, links, to)
        to += 1
    counts[START], counts[PLACES], counts[SORTED] = 0, to, to


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _move(instances: Instances, source: int, target: int) -> None:
    instances.tick[target] = instances.tick[source]
    for j in range(2):
        instances.scores[target, j] = instances.scores[source, j]
        instances.bits[target, j] = instances.bits[source, j]
    for j in range(3):
        instances.links[target, j] = instances.links[source, j]
    for j in range(instances.values.shape[1]):
        instances.values[target, j] = instances.values[source, j]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _lead_to(objects: ObjectArrays, links: Indexes, at: int) -> None:
    """Make the object's list lead to place `at`, where one of its instances has been put."""
    newer, older = links[at, NEWER], links[at, OLDER]
    if newer >= 0:
        links[newer, OLDER] = at
    else:
        objects.records[links[at, SLOT], HEAD] = at
    if older >= 0:
        links[older, NEWER] = at


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def relink(object_arrays: tuple[Any, ...], held: tuple[Any, ...], first: int, last: int, moved_to: Ints) -> None:
    """Mend the lists after what stood at place first + i has been moved to first + moved_to[i], up to `last`."""
    objects, instances = ObjectArrays(*object_arrays), Instances(*held)
    links = instances.links
    for at in range(first, last):
        if instances.tick[at] != DEAD:
            for side in (NEWER, OLDER):
                if links[at, side] >= first:
                    links[at, side] = first + moved_to[links[at, side] - first]
    for at in range(first, last):
        if instances.tick[at] != DEAD:
            _lead_to(objects, links, at)
