"""The set of objects that must be read again at the next evaluation."""

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Flags, Indexes, Ints
from skyband.structures.window_kernels import PAIR_BITS
from skyband.structures.window_store import WindowStore

__all__ = ["ChangedObjects"]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _absorb_list(changes: Indexes, first: int, marks: Flags, slots: Indexes, count: int) -> int:
    for i in range(first, len(changes)):
        slot = changes[i]
        if marks[slot] == 0:
            marks[slot] = 1
            slots[count] = slot
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _absorb_buckets(
    buckets: Indexes, nodes: Indexes, low: int, high: int, marks: Flags, slots: Indexes, count: int
) -> int:
    for tick in range(low, high):
        node = buckets[tick & (len(buckets) - 1)]
        while node >= 0:
            slot = nodes[node, 1] >> PAIR_BITS
            if marks[slot] == 0:
                marks[slot] = 1
                slots[count] = slot
                count += 1
            node = nodes[node, 0]
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _absorb_live(records: Ints, top: int, marks: Flags, slots: Indexes, count: int) -> int:
    for slot in range(top):
        if records[slot, 2] >= 0 and marks[slot] == 0:
            marks[slot] = 1
            slots[count] = slot
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _unmark(marks: Flags, slots: Indexes, count: int) -> None:
    for i in range(count):
        marks[slots[i]] = 0


class ChangedObjects:
    """A set of slots, filled from a store's list of changes and from the ticks that leave a window.

    Initial state: everything alive is changed. Invariant: ``marks[slot]`` is 1 exactly for ``slots[:count]``. Cost:
    O(1) a change; memory 5 bytes a slot.
    """

    def __init__(self, store: WindowStore) -> None:
        self._store = store
        self._seen = 0
        self.marks: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.slots: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.count = 0
        self.add_all()

    def add_all(self) -> None:
        """Add every live object."""
        self._fit()
        objects = self._store.objects
        self.count = _absorb_live(objects.arrays.records, objects.top, self.marks, self.slots, self.count)

    def add_changes(self) -> None:
        """Add the objects of rows applied since the last call."""
        changes = self._store.changes
        if self._seen < len(changes):
            self._fit()
            self.count = _absorb_list(changes, self._seen, self.marks, self.slots, self.count)
            self._seen = len(changes)

    def changes_forgotten(self) -> None:
        """Start over with the store's list of changes, which is being emptied."""
        self._seen = 0

    def add_ticks(self, low: int, high: int) -> None:
        """Add the objects that have an entry in ticks [low, high), before the store expires them."""
        self._fit()
        arrays = self._store.arrays
        low = max(low, self._store.low)
        high = min(high, self._store.newest + 1)
        if low < high:
            self.count = _absorb_buckets(arrays.buckets, arrays.nodes, low, high, self.marks, self.slots, self.count)

    def clear(self) -> None:
        """Empty the set."""
        _unmark(self.marks, self.slots, self.count)
        self.count = 0

    def _fit(self) -> None:
        capacity = self._store.objects.capacity
        if len(self.marks) < capacity:
            marks, slots = np.zeros(capacity, np.uint8), np.zeros(capacity, np.int32)
            marks[: len(self.marks)] = self.marks
            slots[: self.count] = self.slots[: self.count]
            self.marks, self.slots = marks, slots

    def _check(self) -> None:
        assert sorted(np.flatnonzero(self.marks).tolist()) == sorted(self.slots[: self.count].tolist())
