"""Kernel of the threshold view: one dispatch an evaluation. Words as in `threshold_view`.

What Python calls takes plain tuples of arrays: a dispatch spends 3 us (in cache) on working out the type of named ones.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Indexes
from skyband.structures.changed_objects import COUNT, ChangedArrays, absorb_changes, clear_changed
from skyband.structures.object_table import ObjectArrays
from skyband.structures.question import FETCHED_TOGETHER, Question, fetch_objects, read_object
from skyband.structures.rank_order import pop_best, stack_by_rank
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.sorted_list_kernels import ListArrays, has_room, place_object
from skyband.structures.store_arrays import StoreArrays
from skyband.structures.threshold_algorithm import Access, copy_member, find_best, list_keys
from skyband.structures.view import Bound, Members, passes_bound
from skyband.structures.window_kernels import CHANGES

__all__ = ["BOUND_SLOT", "COUNTS", "HELD", "NOT_FINITE", "OVERFLOWN", "SEARCHES", "Workplace", "refresh"]

# Places in a threshold view's `counts`: members; searches so far; scores that were not finite; whether members had to
# be dropped for want of room; the object that became the bound (-1: none did).
HELD, SEARCHES, NOT_FINITE, OVERFLOWN, BOUND_SLOT, COUNTS = 0, 1, 2, 3, 4, 5


class Workplace(NamedTuple):
    """What the kernel needs beside members and lists.

    `heap` has one place more than the view has room, `order` as many as there may be members, `where` is an object's
    place among the members or -1; `stack` is the score's, `values` and `keys` are one object's, `ticks` is empty.
    """

    counts: npt.NDArray[np.int64]
    heap: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]
    where: npt.NDArray[np.int32]
    stack: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    keys: npt.NDArray[np.float64]
    ticks: npt.NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def refresh(
    object_arrays: tuple[Any, ...],
    by_row: bool,
    store_arrays: tuple[Any, ...],
    asked: tuple[Any, ...],
    list_arrays: tuple[Any, ...],
    access_arrays: tuple[Any, ...],
    held: tuple[Any, ...],
    into: tuple[Any, ...],
    bound_arrays: tuple[Any, ...],
    changed_arrays: tuple[Any, ...],
    workplace: tuple[Any, ...],
    low: int,
    k: int,
    first: int,
) -> int:
    """Read the changed objects from place `first` on, search if fewer than `k` members remain, and sort.

    Return -1 when all is done, the members sorted stand in `into`, and the set of the changed is empty; else the place
    of the first changed object for which the lists have no room, all before it being done.
    """
    objects, store, question = ObjectArrays(*object_arrays), StoreArrays(*store_arrays), Question(*asked)
    lists, access, bound = ListArrays(*list_arrays), Access(*access_arrays), Bound(*bound_arrays)
    members, sorted_members = Members(*held), Members(*into)
    changed, work = ChangedArrays(*changed_arrays), Workplace(*workplace)
    counts = work.counts
    if first == 0:
        counts[OVERFLOWN], counts[BOUND_SLOT] = 0, -1
        absorb_changes(store.changes, store.counts[CHANGES], changed)
    for i in range(first, changed.counts[COUNT]):
        if not has_room(lists):
            return i
        if (i - first) % FETCHED_TOGETHER == 0:
            fetch_objects(store, question, changed.slots, i, min(i + FETCHED_TOGETHER, changed.counts[COUNT]))
        _renew(objects, by_row, store, question, lists, access, members, bound, work, low, changed.slots[i])
    clear_changed(changed)
    if counts[OVERFLOWN] != 0 or (counts[HELD] < k and bound.exists[0] != 0):
        _drop_all(members, work)
        counts[SEARCHES] += 1
        bound.exists[0] = 0
        counts[HELD] = find_best(
            objects, by_row, store, question, lists, access, low, members, work.heap, work.where, work.stack
        )
    _sort(objects, by_row, members, sorted_members, bound, work)
    return -1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _renew(
    objects: ObjectArrays,
    by_row: bool,
    store: StoreArrays,
    question: Question,
    lists: ListArrays,
    access: Access,
    members: Members,
    bound: Bound,
    work: Workplace,
    low: int,
    slot: int,
) -> None:
    """Move an object to where it belongs in the lists, into the view or out of it."""
    counts = work.counts
    rank = 0.0
    bits = read_object(store, question, slot, low, work.values)
    if bits != 0:
        rank = question.sign * evaluate_one(question.code, question.constants, work.stack, work.values)
        if not np.isfinite(rank):
            counts[NOT_FINITE] += 1
            bits = 0
    place_object(lists, slot, list_keys(access, bits, work.values, work.keys), work.keys)
    at = work.where[slot]
    if bits != 0 and counts[OVERFLOWN] == 0 and passes_bound(objects, by_row, bound, rank, slot):
        if at < 0:
            if counts[HELD] == len(members.rank):
                _drop_all(members, work)
                counts[OVERFLOWN] = 1
                return
            at = counts[HELD]
            counts[HELD] += 1
            work.where[slot] = at
        members.rank[at] = rank
        members.slot[at] = slot
        members.present[at] = bits
        for j in range(len(work.values)):
            members.values[at, j] = work.values[j]
    elif at >= 0:
        _drop(members, work, at)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _drop(members: Members, work: Workplace, at: int) -> None:
    """Drop the member at a place; the last one takes it."""
    work.counts[HELD] -= 1
    last = work.counts[HELD]
    work.where[members.slot[at]] = -1
    if at != last:
        copy_member(members, last, members, at)
        work.where[members.slot[at]] = at


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _drop_all(members: Members, work: Workplace) -> None:
    for i in range(work.counts[HELD]):
        work.where[members.slot[i]] = -1
    work.counts[HELD] = 0


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _sort(objects: ObjectArrays, by_row: bool, members: Members, into: Members, bound: Bound, work: Workplace) -> None:
    """Write the members in rank order `into`; of more than there is room for, the best that must leave is the bound."""
    counts = work.counts
    count, room = counts[HELD], len(work.heap) - 1
    order: Indexes = work.order[:count]
    stack_by_rank(objects, by_row, members.rank, members.slot, work.ticks, order)
    for size in range(count, 1, -1):
        pop_best(objects, by_row, members.rank, members.slot, work.ticks, order, size)
    kept = min(count, room)
    for i in range(kept, count):
        work.where[members.slot[order[count - 1 - i]]] = -1
    for i in range(kept):
        at = order[count - 1 - i]
        work.where[members.slot[at]] = i
        copy_member(members, at, into, i)
    if kept < count:
        at = order[count - 1 - kept]
        bound.exists[0] = 1
        bound.rank[0] = members.rank[at]
        counts[BOUND_SLOT] = members.slot[at]
    counts[HELD] = kept
