"""The order of ranks, and the two tools built on it: sorting candidates, and a heap of the best distinct objects.

A *rank score* is the score, negated where the lowest is on top: larger always ranks before. Ties go to the smaller id.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Floats, Indexes, Ints
from skyband.structures.object_table import ObjectArrays, id_before

__all__ = ["heap_offer", "order_ties", "pop_best", "ranks_before", "sort_by_rank", "stack_by_rank"]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def ranks_before(objects: ObjectArrays, by_row: bool, rank_a: float, slot_a: int, rank_b: float, slot_b: int) -> bool:
    """Return whether (rank score, id) of a comes strictly before that of b."""
    if rank_a != rank_b:
        return rank_a > rank_b
    return slot_a != slot_b and id_before(objects, slot_a, slot_b, by_row)


def sort_by_rank(
    objects: ObjectArrays,
    by_row: bool,
    rank: npt.NDArray[np.float64],
    slot: npt.NDArray[np.int32],
    tick: npt.NDArray[np.int64],
    count: int,
) -> npt.NDArray[np.int32]:
    """Return the indexes of candidates [0, count) in rank order; one object's equal scores: smaller `tick` first.

    Cost O(n log n), whatever the ties.
    """
    order: npt.NDArray[np.int32] = np.argsort(-rank[:count]).astype(np.int32)
    order_ties(objects, by_row, rank, slot, tick, order)
    return order


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def order_ties(objects: ObjectArrays, by_row: bool, rank: Floats, slot: Indexes, tick: Ints, order: Indexes) -> None:
    """Put the indexes in `order`, which descend in rank, into rank order. Cost O(1) each, and a sort of each tie."""
    i = 0
    while i < len(order):
        j = i + 1
        while j < len(order) and rank[order[j]] == rank[order[i]]:
            j += 1
        if j - i > 1:
            _sort_ties(objects, by_row, slot, tick, order, i, j)
        i = j


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _tie_before(objects: ObjectArrays, by_row: bool, slot: Indexes, tick: Ints, a: int, b: int) -> bool:
    if slot[a] == slot[b]:
        return tick[a] < tick[b]
    return id_before(objects, slot[a], slot[b], by_row)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _sort_ties(
    objects: ObjectArrays, by_row: bool, slot: Indexes, tick: Ints, order: Indexes, first: int, last: int
) -> None:
    """Heap sort of order[first:last] by id: no bad case when thousands of objects share a score."""
    n = last - first
    for root in range(n // 2 - 1, -1, -1):
        _sink(objects, by_row, slot, tick, order, first, root, n)
    for end in range(n - 1, 0, -1):
        order[first], order[first + end] = order[first + end], order[first]
        _sink(objects, by_row, slot, tick, order, first, 0, end)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _sink(
    objects: ObjectArrays, by_row: bool, slot: Indexes, tick: Ints, order: Indexes, first: int, root: int, n: int
) -> None:
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and _tie_before(objects, by_row, slot, tick, order[first + child], order[first + child + 1]):
            child += 1
        if not _tie_before(objects, by_row, slot, tick, order[first + root], order[first + child]):
            return
        order[first + root], order[first + child] = order[first + child], order[first + root]
        root = child


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def stack_by_rank(objects: ObjectArrays, by_row: bool, rank: Floats, slot: Indexes, tick: Ints, order: Indexes) -> None:
    """Make `order` a heap of the candidates [0, len(order)), from which `pop_best` takes them. Cost O(n)."""
    for i in range(len(order)):
        order[i] = i
    for root in range(len(order) // 2 - 1, -1, -1):
        _sink_rank(objects, by_row, rank, slot, tick, order, root, len(order))


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def pop_best(
    objects: ObjectArrays, by_row: bool, rank: Floats, slot: Indexes, tick: Ints, order: Indexes, size: int
) -> None:
    """Move the best of the heap order[:size] to its end: what is popped stands there, the best last. Cost O(log n)."""
    order[0], order[size - 1] = order[size - 1], order[0]
    _sink_rank(objects, by_row, rank, slot, tick, order, 0, size - 1)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _sink_rank(
    objects: ObjectArrays, by_row: bool, rank: Floats, slot: Indexes, tick: Ints, order: Indexes, root: int, size: int
) -> None:
    moved = order[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        at = order[child]
        if child + 1 < size and _rank_before(objects, by_row, rank, slot, tick, order[child + 1], at):
            child += 1
            at = order[child]
        if not _rank_before(objects, by_row, rank, slot, tick, at, moved):
            break
        order[root] = at
        root = child
    order[root] = moved


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _rank_before(objects: ObjectArrays, by_row: bool, rank: Floats, slot: Indexes, tick: Ints, a: int, b: int) -> bool:
    if rank[a] != rank[b]:
        return rank[a] > rank[b]
    return _tie_before(objects, by_row, slot, tick, a, b)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def heap_offer(
    objects: ObjectArrays,
    by_row: bool,
    rank: Floats,
    slot: Indexes,
    heap: Indexes,
    size: int,
    where: Indexes,
    candidate: int,
) -> int:
    """Offer a candidate to the heap of the best `len(heap)` distinct objects; return the heap's new size.

    ``heap[0]`` is the worst; ``where[slot]`` is an object's place in the heap or -1. A candidate of an object already
    there replaces it (the caller offers an object's candidates worst first). Cost O(log k); O(1) for what does not
    enter.
    """
    at = where[slot[candidate]]
    if at >= 0:
        heap[at] = candidate
        _heap_down(objects, by_row, rank, slot, heap, size, where, at)
        return size
    if size < len(heap):
        heap[size] = candidate
        where[slot[candidate]] = size
        _heap_up(objects, by_row, rank, slot, heap, where, size)
        return size + 1
    worst = heap[0]
    if ranks_before(objects, by_row, rank[candidate], slot[candidate], rank[worst], slot[worst]):
        where[slot[worst]] = -1
        heap[0] = candidate
        where[slot[candidate]] = 0
        _heap_down(objects, by_row, rank, slot, heap, size, where, 0)
    return size


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _heap_up(
    objects: ObjectArrays, by_row: bool, rank: Floats, slot: Indexes, heap: Indexes, where: Indexes, at: int
) -> None:
    while at > 0:
        parent = (at - 1) >> 1
        a, b = heap[at], heap[parent]
        if not ranks_before(objects, by_row, rank[b], slot[b], rank[a], slot[a]):
            return
        heap[at], heap[parent] = b, a
        where[slot[b]], where[slot[a]] = at, parent
        at = parent


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _heap_down(
    objects: ObjectArrays, by_row: bool, rank: Floats, slot: Indexes, heap: Indexes, size: int, where: Indexes, at: int
) -> None:
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size:
            a, b = heap[child], heap[child + 1]
            if ranks_before(objects, by_row, rank[a], slot[a], rank[b], slot[b]):
                child += 1
        a, b = heap[at], heap[child]
        if not ranks_before(objects, by_row, rank[a], slot[a], rank[b], slot[b]):
            return
        heap[at], heap[child] = b, a
        where[slot[b]], where[slot[a]] = at, child
        at = child
