"""The threshold view: the top of all objects by current score, refilled from sorted lists, one for each attribute.

Words: as in `view` (members, outsiders, the bound) and in `threshold_algorithm`; a *search* fills the view. The lists
hold every eligible object of the window under each attribute that it has, by the combined value of its entries there.

::

    heat     [9.1 o4 | 9.1 o7 | 8.7 o2 | 7.5 o1 …      taken in turn: o4, o1, o7, o9; the third of them scores 13.0,
    shake    [5.5 o1 | 4.0 o9 | 1.2 o7 | 0.9 o4 …      no other can score above 9.1 + 4.0 = 13.1: the search goes on

An object that changed is read again: it moves within the lists, and enters, stays or leaves by comparison with the
bound alone. When the view overflows, its worst members leave and the best of them becomes the bound; when fewer than k
are left, or more come than there are places, one search fills it again.

Initial state: empty, no bound, all live objects changed. Invariant after a `refresh`: every member ranks before the
bound, no outsider does; the lists hold exactly the objects whose score is finite and whose streams are there.
Source: Haghani et al., CIKM 2009, sec. 3.1 (the Sorted List Algorithm).
"""

import numpy as np

from skyband.model.binding import BoundQuery
from skyband.structures.changed_objects import ChangedObjects
from skyband.structures.object_table import MAX_ID_BYTES, ObjectArrays
from skyband.structures.question import pose
from skyband.structures.sorted_list import SortedLists
from skyband.structures.threshold_algorithm import RANDOM_ACCESSES, SORTED_ACCESSES, make_access
from skyband.structures.threshold_kernels import (
    BOUND_SLOT,
    COUNTS,
    HELD,
    NOT_FINITE,
    SEARCHES,
    Workplace,
    refresh,
)
from skyband.structures.view import Bound, Members, passes_bound
from skyband.structures.window_store import WindowStore

__all__ = ["ThresholdView"]

# Searches that come more often than so many evaluations cost more than a larger view does.
_EVALUATIONS_A_SEARCH = 16


class ThresholdView:
    """The best objects of one window size by one score, over a window store.

    `refresh` at every evaluation, then the first k members are the answer. `searches` counts how often the lists were
    asked; where that is often, the view grows. Each attribute of the score must rank objects better in one direction.
    """

    def __init__(self, store: WindowStore, bound: BoundQuery) -> None:
        self._store = store
        self._by_row = store.layout.by_row
        self._columns = len(bound.columns)
        self._question = tuple(pose(bound, store.layout))
        self._access = make_access(bound)
        self.lists = SortedLists(len(self._access.columns))
        self.changed = ChangedObjects(store)
        self._members, self._spare = self._make(0), self._make(0)
        self._bound = Bound(np.zeros(1, np.int64), np.zeros(1), np.zeros(4, np.int64), np.zeros(0, np.uint8))
        self._work = Workplace(
            counts=np.zeros(COUNTS, np.int64),
            heap=np.zeros(0, np.int32),
            order=np.zeros(0, np.int32),
            where=np.zeros(0, np.int32),
            stack=np.empty(bound.score.stack_size),
            values=np.zeros(self._columns),
            keys=np.zeros(len(self._access.columns)),
            ticks=np.zeros(0, np.int64),
        )
        self._room = 0
        self._low: int | None = None
        self._since_search = _EVALUATIONS_A_SEARCH

    @property
    def members(self) -> Members:
        """The members in rank order, as of the last `refresh`; the first `count` places count."""
        return self._members

    @property
    def count(self) -> int:
        """Number of members."""
        return int(self._work.counts[HELD])

    @property
    def searches(self) -> int:
        """How often the lists were searched."""
        return int(self._work.counts[SEARCHES])

    @property
    def sorted_accesses(self) -> int:
        """Entries of lists that the searches have taken."""
        return int(self._access.counts[SORTED_ACCESSES])

    @property
    def random_accesses(self) -> int:
        """Objects that the searches have read."""
        return int(self._access.counts[RANDOM_ACCESSES])

    @property
    def not_finite(self) -> int:
        """How often a score was infinite or not a number, which makes its object ineligible."""
        return int(self._work.counts[NOT_FINITE])

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        arrays = (*self._members, *self._spare, *self._work, *self._access)
        return sum(array.nbytes for array in arrays) + self.lists.state_bytes + self.changed.state_bytes

    def leave_ticks(self, low: int) -> None:
        """Note the objects that have an entry in a tick below `low`; must come before the store expires those ticks."""
        if self._low is not None and low > self._low:
            self.changed.add_ticks(self._low, low)
            self._low = low

    def refresh(self, k: int, low: int) -> None:
        """Bring the first k members up to date for the window of ticks >= `low`.

        `low` may go back as far as the store reaches. Cost: for each changed object (among them those with an entry in
        the ticks by which `low` moved) its entries and, for each attribute that changed, O(log n) steps in a list; for
        a search the entries of the lists down to the threshold; a sort of the members.
        """
        self.leave_ticks(low)
        if self._low is not None and low < self._low:
            self.changed.add_ticks(low, self._low)
        self._low = low
        self._room = max(self._room, 2 * k, k + 64)
        self._fit()
        searches = self.searches
        first = 0
        while first >= 0:
            first = int(
                refresh(
                    tuple(self._store.objects.arrays),
                    self._by_row,
                    tuple(self._store.arrays),
                    self._question,
                    tuple(self.lists.arrays),
                    tuple(self._access),
                    tuple(self._members),
                    tuple(self._spare),
                    tuple(self._bound),
                    tuple(self.changed.fitted()),
                    tuple(self._work),
                    low,
                    k,
                    first,
                )
            )
            self.lists.make_room(0)
        self._members, self._spare = self._spare, self._members
        self._keep_bound()
        self._adapt(self.searches > searches)

    def _keep_bound(self) -> None:
        """Copy the id of the object that became the bound, which may die before the next evaluation."""
        slot = int(self._work.counts[BOUND_SLOT])
        if slot >= 0:
            objects = self._store.objects.arrays
            record = objects.records[slot].copy()
            start, length = int(record[2]) >> 20, int(record[2]) & MAX_ID_BYTES
            self._bound = self._bound._replace(record=record, id_bytes=objects.arena[start : start + length].copy())

    def _adapt(self, searched: bool) -> None:
        self._since_search += 1
        if searched:
            if self._since_search <= _EVALUATIONS_A_SEARCH:
                self._room = min(2 * self._room, max(self._room, self._store.objects.live))
            self._since_search = 0

    def _make(self, capacity: int) -> Members:
        return Members(
            rank=np.zeros(capacity),
            slot=np.zeros(capacity, np.int32),
            present=np.zeros(capacity, np.int64),
            values=np.zeros((capacity, self._columns)),
        )

    def _fit(self) -> None:
        """Make room for the objects that there are, and for as many members as wanted or possible."""
        capacity, work = self._store.objects.capacity, self._work
        self.lists.make_room(capacity)
        if len(work.where) < capacity:
            where = np.full(capacity, -1, np.int32)
            where[: len(work.where)] = work.where
            seen = np.zeros(capacity, np.int64)
            seen[: len(self._access.seen)] = self._access.seen
            self._work = work = work._replace(where=where)
            self._access = self._access._replace(seen=seen)
        places = min(self._room, capacity) + 1
        if len(work.heap) < places:
            # As many again may enter before the worst must leave.
            old, self._members, self._spare = self._members, self._make(2 * places), self._make(2 * places)
            for name in old._fields:
                getattr(self._members, name)[: self.count] = getattr(old, name)[: self.count]
            self._work = work._replace(heap=np.zeros(places, np.int32), order=np.zeros(2 * places, np.int32))

    def _check(self) -> None:
        self.changed._check()
        self.lists._check()
        where, slots = self._work.where, self._members.slot[: self.count]
        assert [int(where[slot]) for slot in slots] == list(range(self.count))
        assert int((where >= 0).sum()) == self.count <= self._room
        assert (self.lists.arrays.listed[slots] != 0).all()
        arrays: ObjectArrays = self._store.objects.arrays
        for rank, slot in zip(self._members.rank[: self.count], slots, strict=True):
            assert passes_bound(arrays, self._by_row, self._bound, rank, slot)
