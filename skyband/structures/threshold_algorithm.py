"""The Threshold Algorithm: the best objects by a score of several attributes, from a sorted list of each attribute.

Words: *sorted access* takes the next entry of a list; the lists take turns. *Random access* reads all attributes of the
object met there, the first time that it is met, and scores it. The *threshold* is the score of an object that would
have in each attribute the best that an unseen one can still have: that of the last entry taken, or what an absent
attribute counts if that is better, and nothing else once the list is exhausted. Since the score moves in one direction
with each attribute, no unseen object ranks before the threshold: when the last of the best lies strictly above it, they
are found. While they are equal an unseen object might win the tie by its id, so the search goes on; and a threshold
that is not finite stops nothing.

A key of a list is the value with the sign that puts the better one first. Who has none of the attributes of the score,
but is eligible by another, stands in the first list, with the key of what an absent attribute counts.

Source: Fagin, Lotem, Naor, PODS 2001, as used by Haghani et al., CIKM 2009, sec. 3.1.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.model.binding import BoundQuery
from skyband.structures.array_types import Floats, Indexes
from skyband.structures.object_table import ObjectArrays
from skyband.structures.question import Question, read_object
from skyband.structures.rank_order import heap_offer
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.sorted_list_kernels import OBJECTS, ListArrays
from skyband.structures.store_arrays import StoreArrays
from skyband.structures.view import Members

__all__ = [
    "RANDOM_ACCESSES",
    "RUNS",
    "SORTED_ACCESSES",
    "Access",
    "copy_member",
    "find_best",
    "list_keys",
    "make_access",
]

# Places in the counts of access: searches so far, entries taken, objects read.
RUNS, SORTED_ACCESSES, RANDOM_ACCESSES = 0, 1, 2


class Access(NamedTuple):
    """How the lists are read: per list its column of the question, the sign of its keys, the key of an absent value.

    ``cursors[c]`` is [place of the block, place in it] of the next entry, `threshold` a value per column that no unseen
    object betters, ``seen[slot]`` the search that met an object last.
    """

    columns: npt.NDArray[np.int32]
    signs: npt.NDArray[np.float64]
    absent: npt.NDArray[np.float64]
    cursors: npt.NDArray[np.int64]
    threshold: npt.NDArray[np.float64]
    seen: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def make_access(bound: BoundQuery) -> Access:
    """Return how the lists of a query are read; there are as many as attributes in its score.

    Each of these must rank objects better in one direction.
    """
    scored = [(place, column) for place, column in enumerate(bound.columns) if column.in_score]
    signs = np.array([-1.0 if column.prefers_high else 1.0 for _, column in scored])
    return Access(
        columns=np.array([place for place, _ in scored], np.int32),
        signs=signs,
        absent=signs * np.array([column.missing for _, column in scored]),
        cursors=np.zeros((len(scored), 2), np.int64),
        threshold=np.zeros(len(bound.columns)),
        seen=np.zeros(0, np.int64),
        counts=np.zeros(3, np.int64),
    )


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def list_keys(access: Access, bits: int, values: Floats, keys: Floats) -> int:
    """Write the keys of an object with these columns present; return the bits of the lists where it stands.

    0 columns: it is not eligible, and stands in none.
    """
    found = 0
    for c in range(len(keys)):
        column = access.columns[c]
        if (bits >> column) & 1:
            found |= 1 << c
            key = access.signs[c] * values[column]
            # A sum of infinities: as if it were the best, it is met first and harms no order.
            keys[c] = key if key == key else -np.inf
    if bits != 0 and found == 0:
        keys[0] = access.absent[0]
        found = 1
    return found


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def find_best(
    objects: ObjectArrays,
    by_row: bool,
    store: StoreArrays,
    question: Question,
    lists: ListArrays,
    access: Access,
    low: int,
    members: Members,
    heap: Indexes,
    where: Indexes,
    stack: Floats,
) -> int:
    """Make the best ``len(heap)`` objects the first members, in no order; return how many there are.

    `members` has a place more than the heap, `where` is -1 for every object; both it and the heap are left as scratch.
    Cost: the entries of the lists down to the threshold, and the entries in the store of the objects met there.
    """
    access.counts[RUNS] += 1
    run = access.counts[RUNS]
    for c in range(len(access.columns)):
        access.cursors[c, 0] = access.cursors[c, 1] = 0
        access.threshold[access.columns[c]] = access.signs[c] * access.absent[c]
    size, spare = 0, len(heap)
    goes_on = True
    while goes_on:
        goes_on = False
        for c in range(len(access.columns)):
            slot = _take_entry(lists, access, c)
            if slot < 0:
                continue
            goes_on = True
            if access.seen[slot] == run:
                continue
            access.seen[slot] = run
            access.counts[RANDOM_ACCESSES] += 1
            is_full = size == len(heap)
            place = spare if is_full else size
            worst = heap[0]
            _read_member(store, question, slot, low, members, place, stack)
            size = heap_offer(objects, by_row, members.rank, members.slot, heap, size, where, place)
            if is_full and where[slot] >= 0:
                spare = worst
        if size == len(heap) and _is_above(question, access, stack, members.rank[heap[0]]):
            break
    if size == len(heap) and spare != size:
        copy_member(members, size, members, spare)
    return size


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _take_entry(lists: ListArrays, access: Access, c: int) -> int:
    """Return the slot of the next entry of a list, -1 if it is exhausted, and bring the threshold down to it."""
    at, i = access.cursors[c, 0], access.cursors[c, 1]
    if at == lists.blocks[c]:
        return -1
    block = lists.order[c, at]
    key, slot = lists.keys[block, i], lists.slots[block, i]
    access.counts[SORTED_ACCESSES] += 1
    i += 1
    if i == lists.sizes[block]:
        at, i = at + 1, 0
    access.cursors[c, 0], access.cursors[c, 1] = at, i
    if at == lists.blocks[c]:
        key = access.absent[c]
    elif lists.lengths[c] < lists.counts[OBJECTS]:
        key = min(key, access.absent[c])
    access.threshold[access.columns[c]] = access.signs[c] * key
    return slot


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _read_member(
    store: StoreArrays, question: Question, slot: int, low: int, members: Members, place: int, stack: Floats
) -> None:
    values = members.values[place]
    members.present[place] = read_object(store, question, slot, low, values)
    members.rank[place] = question.sign * evaluate_one(question.code, question.constants, stack, values)
    members.slot[place] = slot


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _is_above(question: Question, access: Access, stack: Floats, rank: float) -> bool:
    """Return whether a rank lies strictly above the threshold."""
    best = question.sign * evaluate_one(question.code, question.constants, stack, access.threshold)
    return bool(np.isfinite(best) and rank > best)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def copy_member(members: Members, source: int, into: Members, target: int) -> None:
    """Copy one member to place `target` of `into`."""
    into.rank[target] = members.rank[source]
    into.slot[target] = members.slot[source]
    into.present[target] = members.present[source]
    for j in range(members.values.shape[1]):
        into.values[target, j] = members.values[source, j]
