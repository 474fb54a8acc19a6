"""The set of objects that must be read again at the next evaluation."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Flags, Indexes, Ints
from skyband.structures.window_kernels import PAIR_BITS
from skyband.structures.window_store import WindowStore

__all__ = ["COUNT", "ChangedArrays", "ChangedObjects", "absorb_changes", "clear_changed"]


class ChangedArrays(NamedTuple):
    """The set's arrays, as kernels take them. `counts` is [changes of the store seen, objects in the set]."""

    marks: npt.NDArray[np.uint8]
    slots: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


SEEN, COUNT = 0, 1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def absorb_changes(changes: Indexes, known: int, changed: ChangedArrays) -> None:
    """Add the objects of the store's first `known` changes, as far as they have not been seen."""
    marks, slots, counts = changed.marks, changed.slots, changed.counts
    count = counts[COUNT]
    for i in range(counts[SEEN], known):
        slot = changes[i]
        if marks[slot] == 0:
            marks[slot] = 1
            slots[count] = slot
            count += 1
    counts[SEEN], counts[COUNT] = known, count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _absorb_changes(changes: Indexes, known: int, changed: tuple[Any, ...]) -> None:
    absorb_changes(changes, known, ChangedArrays(*changed))


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


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def clear_changed(changed: ChangedArrays) -> None:
    """Empty the set."""
    for i in range(changed.counts[COUNT]):
        changed.marks[changed.slots[i]] = 0
    changed.counts[COUNT] = 0


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _clear(changed: tuple[Any, ...]) -> None:
    clear_changed(ChangedArrays(*changed))


class ChangedObjects:
    """A set of slots, filled from a store's list of changes and from the ticks that leave a window.

    Initial state: everything alive is changed. Invariant: ``marks[slot]`` is 1 exactly for ``slots[:count]``. Cost:
    O(1) a change; memory 5 bytes a slot.
    """

    def __init__(self, store: WindowStore) -> None:
        self._store = store
        self._arrays = ChangedArrays(np.zeros(0, np.uint8), np.zeros(0, np.int32), np.zeros(2, np.int64))
        self.add_all()

    @property
    def count(self) -> int:
        """Number of objects in the set."""
        return int(self._arrays.counts[COUNT])

    @property
    def slots(self) -> npt.NDArray[np.int32]:
        """Their slots: the first `count` places count."""
        return self._arrays.slots

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self._arrays.marks.nbytes + self._arrays.slots.nbytes

    def fitted(self) -> ChangedArrays:
        """Return the arrays, with room for every object of the store; invalid when the store has grown."""
        capacity = self._store.objects.capacity
        old = self._arrays
        if len(old.marks) < capacity:
            marks, slots = np.zeros(capacity, np.uint8), np.zeros(capacity, np.int32)
            marks[: len(old.marks)] = old.marks
            slots[: len(old.slots)] = old.slots
            self._arrays = ChangedArrays(marks, slots, old.counts)
        return self._arrays

    def add_all(self) -> None:
        """Add every live object."""
        arrays, objects = self.fitted(), self._store.objects
        count = _absorb_live(objects.arrays.records, objects.top, arrays.marks, arrays.slots, self.count)
        arrays.counts[COUNT] = count

    def add_changes(self) -> None:
        """Add the objects of rows applied since the last call."""
        changes = self._store.changes
        if self._arrays.counts[SEEN] < len(changes):
            _absorb_changes(changes, len(changes), tuple(self.fitted()))

    def changes_forgotten(self) -> None:
        """Start over with the store's list of changes, which is being emptied."""
        self._arrays.counts[SEEN] = 0

    def add_ticks(self, low: int, high: int) -> None:
        """Add the objects that have an entry in ticks [low, high), before the store expires them."""
        low = max(low, self._store.low)
        high = min(high, self._store.newest + 1)
        if low < high:
            arrays, of = self.fitted(), self._store.arrays
            count = _absorb_buckets(of.buckets, of.nodes, low, high, arrays.marks, arrays.slots, self.count)
            arrays.counts[COUNT] = count

    def clear(self) -> None:
        """Empty the set."""
        _clear(tuple(self._arrays))

    def _check(self) -> None:
        assert sorted(np.flatnonzero(self._arrays.marks).tolist()) == sorted(self.slots[: self.count].tolist())
