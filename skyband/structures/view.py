"""The view: the top of all objects by current score, for scores that may fall at any time.

Words: a *member* is an object in the view; all others are *outsiders*. The *bound* is the (score, id) that no outsider
ranks before; while the view holds every eligible object there is none. An object that changed is read again: it enters,
stays or leaves by comparison with the bound alone. When the view overflows, its worst members leave and the best of
them becomes the bound; when fewer than k are left, one *refill* scans all objects.

::

    members   a 9.1   b 8.7   c 8.2      c falls to 7.0: below the bound, it leaves
    bound     ············ 7.9           d rises to 8.0: above the bound, it enters
    outsiders d 7.5   e 7.1   …          only a and d left, k = 3: refill

Initial state: empty, no bound, all live objects changed. Invariant: every member ranks before the bound, no outsider
does.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Floats, Indexes, Ints
from skyband.structures.changed_objects import ChangedObjects
from skyband.structures.object_table import MAX_ID_BYTES, ObjectArrays
from skyband.structures.question import FETCHED_TOGETHER, Question, fetch_entries, fetch_objects, read_object
from skyband.structures.rank_order import heap_offer, sort_by_rank
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.store_arrays import StoreArrays
from skyband.structures.window_store import WindowStore

__all__ = ["Bound", "Members", "View", "passes_bound"]

# How many objects later the entries of long chains are read that are being fetched.
_ENTRIES_AHEAD = 2


class Members(NamedTuple):
    """Members in columns: rank score, slot, bits of the columns present, their values."""

    rank: npt.NDArray[np.float64]
    slot: npt.NDArray[np.int32]
    present: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class Bound(NamedTuple):
    """The bound as (rank score, id); a copy, since the object it came from may die. `exists` is 0 or 1."""

    exists: npt.NDArray[np.int64]
    rank: npt.NDArray[np.float64]
    record: npt.NDArray[np.int64]
    id_bytes: npt.NDArray[np.uint8]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def passes_bound(objects: ObjectArrays, by_row: bool, bound: Bound, rank: float, slot: int) -> bool:
    """Return whether (rank, id of slot) comes before the bound."""
    if bound.exists[0] == 0 or rank > bound.rank[0]:
        return True
    if rank < bound.rank[0]:
        return False
    for word in range(2):
        if objects.records[slot, word] != bound.record[word]:
            return objects.records[slot, word] < bound.record[word]
    place = objects.records[slot, 2]
    start, length = place >> 20, place & MAX_ID_BYTES
    for i in range(min(length, len(bound.id_bytes))):
        if objects.arena[start + i] != bound.id_bytes[i]:
            return objects.arena[start + i] < bound.id_bytes[i]
    if length != len(bound.id_bytes):
        return length < len(bound.id_bytes)
    return by_row and objects.records[slot, 3] < bound.record[3]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _copy_values(values: Floats, source: int, into: Floats, target: int) -> None:
    for j in range(values.shape[1]):
        into[target, j] = values[source, j]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _update(
    objects: ObjectArrays,
    by_row: bool,
    store: StoreArrays,
    question: Question,
    members: Members,
    count: int,
    where: Indexes,
    bound: Bound,
    slots: Indexes,
    low: int,
    stack: Floats,
    values: Floats,
    not_finite: Ints,
) -> int:
    """Read the changed objects again; members that no longer pass leave, outsiders that do enter. Return the count."""
    for i in range(len(slots)):
        if i % FETCHED_TOGETHER == 0:
            fetch_objects(store, question, slots, i, min(i + FETCHED_TOGETHER, len(slots)))
        if i + _ENTRIES_AHEAD < len(slots):
            fetch_entries(store, question, slots[i + _ENTRIES_AHEAD])
        slot = slots[i]
        bits = read_object(store, question, slot, low, values[0])
        rank = -np.inf
        if bits != 0:
            rank = question.sign * evaluate_one(question.code, question.constants, stack, values[0])
            if not np.isfinite(rank):
                not_finite[0] += 1
        at = where[slot]
        if bits != 0 and np.isfinite(rank) and passes_bound(objects, by_row, bound, rank, slot):
            if at < 0:
                at = count
                count += 1
                where[slot] = at
            members.rank[at] = rank
            members.slot[at] = slot
            members.present[at] = bits
            _copy_values(values, 0, members.values, at)
        elif at >= 0:
            count -= 1
            where[slot] = -1
            if at != count:
                members.rank[at] = members.rank[count]
                members.slot[at] = members.slot[count]
                members.present[at] = members.present[count]
                _copy_values(members.values, count, members.values, at)
                where[members.slot[at]] = at
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _scan(
    objects: ObjectArrays,
    by_row: bool,
    store: StoreArrays,
    question: Question,
    low: int,
    rank: Floats,
    slot: Indexes,
    heap: Indexes,
    where: Indexes,
    stack: Floats,
    values: Floats,
) -> int:
    """Rank every live object; leave the best of them in `heap`, whose size is returned, worst first.

    `rank` and `slot` get one place per eligible object; `where` is all -1 before and after.
    """
    size = 0
    count = 0
    for candidate in range(objects.counts[1]):
        if objects.records[candidate, 2] < 0:
            continue
        bits = read_object(store, question, candidate, low, values[0])
        if bits == 0:
            continue
        score = question.sign * evaluate_one(question.code, question.constants, stack, values[0])
        if np.isfinite(score):
            rank[count] = score
            slot[count] = candidate
            size = heap_offer(objects, by_row, rank, slot, heap, size, where, count)
            count += 1
    for i in range(size):
        where[slot[heap[i]]] = -1
    return size


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _fill(
    store: StoreArrays,
    question: Question,
    low: int,
    members: Members,
    count: int,
    where: Indexes,
    slots: Indexes,
    stack: Floats,
) -> int:
    """Make members of `slots`, which are known to be eligible; return the new count."""
    for slot in slots:
        members.present[count] = read_object(store, question, slot, low, members.values[count])
        score = evaluate_one(question.code, question.constants, stack, members.values[count])
        members.rank[count] = question.sign * score
        members.slot[count] = slot
        where[slot] = count
        count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _keep(members: Members, order: Indexes, kept: int, where: Indexes, spare: Members) -> None:
    """Reorder members by rank, dropping those after the first `kept`."""
    for i in range(len(order)):
        at = order[i]
        if i >= kept:
            where[members.slot[at]] = -1
            continue
        where[members.slot[at]] = i
        spare.rank[i] = members.rank[at]
        spare.slot[i] = members.slot[at]
        spare.present[i] = members.present[at]
        _copy_values(members.values, at, spare.values, i)


class View:
    """The best objects of one window size by one score, over a window store.

    `refresh` at every evaluation, then the first k members are the answer. `refills` counts the scans; where they come
    often, the view grows.
    """

    def __init__(self, store: WindowStore, question: Question, stack_size: int) -> None:
        self._store = store
        self._question = question
        self._by_row = store.layout.by_row
        self._stack = np.empty(stack_size, np.float64)
        self._values = np.empty((1, len(question.streams)), np.float64)
        self.changed = ChangedObjects(store)
        self._members = self._make(256)
        self._spare = self._make(256)
        self.count = 0
        self._where = np.zeros(0, np.int32)
        self._bound = _no_bound()
        self._not_finite = np.zeros(1, np.int64)
        self._room = 0
        self._low: int | None = None
        self._since_refill = 0
        self.refills = 0
        self.evaluations = 0

    @property
    def members(self) -> Members:
        """The members in rank order, as of the last `refresh`; the first `count` places count."""
        return self._members

    @property
    def not_finite(self) -> int:
        """How often a score was infinite or not a number, which makes its object ineligible."""
        return int(self._not_finite[0])

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        arrays = (*self._members, *self._spare, self._where)
        return sum(array.nbytes for array in arrays) + self.changed.state_bytes

    def leave_ticks(self, low: int) -> None:
        """Note the objects that have an entry in a tick below `low`; must come before the store expires those ticks."""
        if self._low is not None and low > self._low:
            self.changed.add_ticks(self._low, low)
            self._low = low

    def refresh(self, k: int, low: int) -> None:
        """Bring the first k members up to date for the window of ticks >= `low`.

        `low` may go back as far as the store reaches. Cost: the entries of the changed objects, among them those with
        an entry in the ticks by which `low` moved; a refill costs those of all objects.
        """
        self.changed.add_changes()
        self.leave_ticks(low)
        if self._low is not None and low < self._low:
            self.changed.add_ticks(low, self._low)
        self._low = low
        self._room = max(self._room, 2 * k, k + 64)
        self._fit(self.count + self.changed.count)
        self.count = _update(
            self._store.objects.arrays,
            self._by_row,
            self._store.arrays,
            self._question,
            self._members,
            self.count,
            self._where,
            self._bound,
            self.changed.slots[: self.changed.count],
            low,
            self._stack,
            self._values,
            self._not_finite,
        )
        self.changed.clear()
        self.evaluations += 1
        self._since_refill += 1
        if self.count < k and self._bound.exists[0]:
            self._refill(low)
        self._sort()

    def _refill(self, low: int) -> None:
        # Scans that come more often than every 16 evaluations cost more than a larger view does.
        if self._since_refill < 16:
            self._room = min(2 * self._room, max(self._room, self._store.objects.live))
        self.refills += 1
        self._since_refill = 0
        objects = self._store.objects
        self._where[self._members.slot[: self.count]] = -1
        heap = np.zeros(min(self._room + 1, objects.live), np.int32)
        rank, slot = np.empty(objects.live, np.float64), np.empty(objects.live, np.int32)
        size = _scan(
            objects.arrays,
            self._by_row,
            self._store.arrays,
            self._question,
            low,
            rank,
            slot,
            heap,
            self._where,
            self._stack,
            self._values,
        )
        first = 0
        self._bound = _no_bound()
        if size > self._room:
            first = 1
            self._bound = self._bound_of(float(rank[heap[0]]), int(slot[heap[0]]))
        self._fit(size)
        self.count = _fill(
            self._store.arrays, self._question, low, self._members, 0, self._where, slot[heap[first:size]], self._stack
        )

    def _sort(self) -> None:
        members = self._members
        ticks = np.zeros(0, np.int64)
        order = sort_by_rank(self._store.objects.arrays, self._by_row, members.rank, members.slot, ticks, self.count)
        kept = min(self.count, self._room)
        if kept < self.count:
            best = int(order[kept])
            self._bound = self._bound_of(float(members.rank[best]), int(members.slot[best]))
        _keep(members, order, kept, self._where, self._spare)
        self._members, self._spare = self._spare, self._members
        self.count = kept

    def _bound_of(self, rank: float, slot: int) -> Bound:
        id_bytes, _ = self._store.objects.ids(np.array([slot], np.int32))
        record = self._store.objects.arrays.records[slot].copy()
        return Bound(np.ones(1, np.int64), np.array([rank]), record, id_bytes)

    def _make(self, capacity: int) -> Members:
        return Members(
            rank=np.zeros(capacity, np.float64),
            slot=np.zeros(capacity, np.int32),
            present=np.zeros(capacity, np.int64),
            values=np.zeros((capacity, len(self._question.streams)), np.float64),
        )

    def _fit(self, members: int) -> None:
        capacity = self._store.objects.capacity
        if len(self._where) < capacity:
            where = np.full(capacity, -1, np.int32)
            where[: len(self._where)] = self._where
            self._where = where
        if len(self._members.rank) < members:
            old, self._members = self._members, self._make(2 * members)
            for name in old._fields:
                getattr(self._members, name)[: self.count] = getattr(old, name)[: self.count]
            self._spare = self._make(2 * members)

    def _check(self) -> None:
        self.changed._check()
        slots = self._members.slot[: self.count]
        assert [int(self._where[slot]) for slot in slots] == list(range(self.count))
        assert int((self._where >= 0).sum()) == self.count
        arrays: ObjectArrays = self._store.objects.arrays
        for rank, slot in zip(self._members.rank[: self.count], slots, strict=True):
            assert passes_bound(arrays, self._by_row, self._bound, rank, slot)


def _no_bound() -> Bound:
    return Bound(np.zeros(1, np.int64), np.zeros(1), np.zeros(4, np.int64), np.zeros(0, np.uint8))
