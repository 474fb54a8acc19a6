"""Kernels over the runs of pending rows: which slots are due, and in what order.

Words (see `pending.py`): rows lie in *slots*; a *run* is a piece of `order` that lists slots in total order; *fresh*
slots, from `fresh` to `tail`, are in no run yet. `runs` is int64[3, MAX_RUNS]: head, end, level of each run.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.coverage.stable_sort import sort_slots

__all__ = ["END", "HEAD", "LEVEL", "MAX_RUNS", "Ints", "Sources", "choose", "live_slots", "renumber_runs"]

HEAD, END, LEVEL = 0, 1, 2
# So many runs of one level become one run of the next: a row is sorted again once in 16, 256, 4096 … takes.
FAN_IN = 16
TOP_LEVEL = 8
MAX_RUNS = FAN_IN * (TOP_LEVEL + 2)

Ints: TypeAlias = npt.NDArray[np.int64]
Sources: TypeAlias = npt.NDArray[np.int32]


@njit(cache=True, nogil=True, error_model="numpy")
def _cut(order: Ints, release: Ints, head: int, end: int, until_us: int) -> int:
    """Return the first position of the run [head, end) whose release time is not below `until_us`."""
    while head < end:
        middle = (head + end) // 2
        if release[order[middle]] < until_us:
            head = middle + 1
        else:
            end = middle
    return head


@njit(cache=True, nogil=True, error_model="numpy")
def _merge_runs(runs: Ints, count: int, order: Ints, release: Ints, source: Sources, rank: Ints) -> int:
    """Merge the newest runs while 16 of them have one level; return how many runs there are then.

    Runs stand in the order of their slots, so rows of one source stay in offset order when runs are put side by side.
    """
    while count >= FAN_IN and runs[LEVEL, count - FAN_IN] == runs[LEVEL, count - 1]:
        first = count - FAN_IN
        n = 0
        for r in range(first, count):
            n += runs[END, r] - runs[HEAD, r]
        slots = np.empty(n, np.int64)
        at = 0
        for r in range(first, count):
            for i in range(runs[HEAD, r], runs[END, r]):
                slots[at] = order[i]
                at += 1
        sort_slots(slots, release, source, rank)
        end = runs[END, count - 1]
        order[end - n : end] = slots
        runs[HEAD, first] = end - n
        runs[END, first] = end
        runs[LEVEL, first] = min(runs[LEVEL, first] + 1, TOP_LEVEL)
        count = first + 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _merge_two(older: Ints, newer: Ints, release: Ints, source: Sources, rank: Ints) -> Ints:
    """Return two ordered lists of slots as one; at equal keys the older comes first."""
    n, m = len(older), len(newer)
    merged = np.empty(n + m, np.int64)
    i = j = at = 0
    while i < n and j < m:
        left, right = older[i], newer[j]
        difference = release[right] - release[left]
        if difference < 0 or (difference == 0 and rank[source[right]] < rank[source[left]]):
            merged[at] = right
            j += 1
        else:
            merged[at] = left
            i += 1
        at += 1
    merged[at : at + n - i] = older[i:]
    merged[at + n - i :] = newer[j:]
    return merged


@njit(cache=True, nogil=True, error_model="numpy")
def _take_from_runs(
    runs: Ints, count: int, order: Ints, release: Ints, source: Sources, rank: Ints, until_us: int
) -> Ints:
    """Cut what is due off the heads of all runs and return it in total order."""
    total = giving = 0
    last_head = last_cut = head = cut = 0
    cuts = np.empty(count, np.int64)
    for r in range(count):
        cuts[r] = _cut(order, release, runs[HEAD, r], runs[END, r], until_us)
        if cuts[r] > runs[HEAD, r]:
            head, cut = last_head, last_cut
            last_head, last_cut = runs[HEAD, r], cuts[r]
            total += last_cut - last_head
            giving += 1
    if giving == 2:
        chosen: Ints = _merge_two(order[head:cut], order[last_head:last_cut], release, source, rank)
    else:
        chosen = np.empty(total, np.int64)
        at = 0
        for r in range(count):
            size = cuts[r] - runs[HEAD, r]
            chosen[at : at + size] = order[runs[HEAD, r] : cuts[r]]
            at += size
        if giving > 1:
            sort_slots(chosen, release, source, rank)
    for r in range(count):
        runs[HEAD, r] = cuts[r]
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def _drop_empty_runs(runs: Ints, count: int) -> int:
    """Close up over the runs that are exhausted; return how many are left."""
    kept = 0
    for r in range(count):
        if runs[HEAD, r] < runs[END, r]:
            for field in range(3):
                runs[field, kept] = runs[field, r]
            kept += 1
    return kept


@njit(cache=True, nogil=True, error_model="numpy")
def choose(
    until_us: int,
    runs: Ints,
    count: int,
    fresh: int,
    tail: int,
    with_fresh: bool,
    order: Ints,
    release: Ints,
    source: Sources,
    rank: Ints,
) -> tuple[Ints, int]:
    """Return the slots that are due, in total order, and how many runs there are then."""
    if with_fresh:
        run = order[fresh:tail]
        for i in range(tail - fresh):
            run[i] = fresh + i
        sort_slots(run, release, source, rank)
        runs[HEAD, count] = fresh
        runs[END, count] = tail
        runs[LEVEL, count] = 0
        count += 1
    chosen = _take_from_runs(runs, count, order, release, source, rank, until_us)
    count = _drop_empty_runs(runs, count)
    return chosen, _merge_runs(runs, count, order, release, source, rank)


@njit(cache=True, nogil=True, error_model="numpy")
def live_slots(runs: Ints, count: int, fresh: int, tail: int, order: Ints) -> Ints:
    """Return the slots that still hold a pending row, ascending."""
    is_live = np.zeros(tail, np.bool_)
    is_live[fresh:tail] = True
    n = tail - fresh
    for r in range(count):
        for i in range(runs[HEAD, r], runs[END, r]):
            is_live[order[i]] = True
            n += 1
    slots = np.empty(n, np.int64)
    at = 0
    for slot in range(tail):
        if is_live[slot]:
            slots[at] = slot
            at += 1
    return slots


@njit(cache=True, nogil=True, error_model="numpy")
def renumber_runs(runs: Ints, count: int, slots: Ints, tail: int, order: Ints, to_order: Ints) -> int:
    """Let the runs list the places in `slots` instead of the slots, and lie side by side; return where they end."""
    moved = np.empty(tail, np.int64)
    for i in range(len(slots)):
        moved[slots[i]] = i
    at = 0
    for r in range(count):
        head, end = runs[HEAD, r], runs[END, r]
        runs[HEAD, r] = at
        for i in range(head, end):
            to_order[at] = moved[order[i]]
            at += 1
        runs[END, r] = at
    return at
