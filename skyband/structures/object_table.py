"""Objects of one shard: id → slot, without a Python object per id.

Words: a *slot* is a small integer that stands for a live object and is reused after it died. A *record* is the
slot's row ``[prefix0, prefix1, place, tag]``: the first 14 bytes of the id as two numbers that compare like the bytes,
``start << 20 | length`` of the id in the arena, and the 64-bit hash (or, where each record is an object, its place in
the total order). The *index* is open addressing over ``[hash, slot]`` pairs, linear probing, at most half full.

Initial state: no slots. Invariant: the index holds exactly the live slots, each reachable without an empty gap.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.model.saved_arrays import SavedArrays, array_of
from skyband.structures.array_types import Bytes, Indexes, Ints

__all__ = [
    "MAX_ID_BYTES",
    "ObjectArrays",
    "ObjectTable",
    "add_object",
    "copy_ids",
    "find_object",
    "id_before",
    "remove_object",
    "seek_hash",
    "seek_object",
]

MAX_ID_BYTES = (1 << 20) - 1
_PREFIX = 7
_PREFIX_MASK = (1 << 56) - 1


class ObjectArrays(NamedTuple):
    """The table's arrays, as kernels take them. `counts` is [live slots, highest slot + 1, free slots, arena bytes]."""

    table: npt.NDArray[np.int64]
    records: npt.NDArray[np.int64]
    arena: npt.NDArray[np.uint8]
    free: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


LIVE, TOP, FREE, USED = 0, 1, 2, 3


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _prefix(id_bytes: Bytes, start: int, stop: int) -> int:
    """Return 7 bytes from `start` as a number that compares like them; bytes from `stop` on count as zero."""
    if stop <= start:
        return 0
    missing = 8 * max(0, _PREFIX - (stop - start))
    if start + 8 <= len(id_bytes):
        # Eight bytes side by side at constant places become one load.
        b = id_bytes[start : start + 8]
        high = int(b[0]) << 56 | int(b[1]) << 48 | int(b[2]) << 40 | int(b[3]) << 32
        word = high | int(b[4]) << 24 | int(b[5]) << 16 | int(b[6]) << 8 | int(b[7])
        return (((word >> 8) & _PREFIX_MASK) >> missing) << missing
    value = 0
    for i in range(min(_PREFIX, stop - start)):
        value = (value << 8) | int(id_bytes[start + i])
    return value << missing


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _copy_id(id_bytes: Bytes, start: int, length: int, arena: Bytes, to: int) -> None:
    """Copy an id, by eights where both arenas have room behind it: what is written there is free, or comes later."""
    if start + length + 8 > len(id_bytes) or to + length + 8 > len(arena):
        for i in range(length):
            arena[to + i] = id_bytes[start + i]
        return
    at = 0
    while at < length:
        a, b = id_bytes[start + at : start + at + 8], arena[to + at : to + at + 8]
        b0, b1, b2, b3, b4, b5, b6, b7 = a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
        b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7] = b0, b1, b2, b3, b4, b5, b6, b7
        at += 8


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _same_id(arrays: ObjectArrays, slot: int, id_bytes: Bytes, start: int, stop: int, prefix0: int) -> bool:
    place = arrays.records[slot, 2]
    length = place & MAX_ID_BYTES
    if length != stop - start or arrays.records[slot, 0] != prefix0:
        return False
    if length > _PREFIX and arrays.records[slot, 1] != _prefix(id_bytes, start + _PREFIX, stop):
        return False
    offset = place >> 20
    for i in range(2 * _PREFIX, length):
        if arrays.arena[offset + i] != id_bytes[start + i]:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def seek_hash(arrays: ObjectArrays, at: int, tag: int) -> int:
    """Return the first place in the index, from `at` on, that holds the hash `tag` or is a gap."""
    mask = len(arrays.table) - 1
    while arrays.table[at, 1] >= 0 and arrays.table[at, 0] != tag:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def seek_object(arrays: ObjectArrays, at: int, tag: int, id_bytes: Bytes, start: int, stop: int) -> int:
    """Return the place in the index of the id ``id_bytes[start:stop]``, or the gap where it would be put.

    The search begins at `at`: where its hash `tag` begins to look, or what `seek_hash` found since the last removal.
    """
    prefix0 = _prefix(id_bytes, start, stop)
    at = seek_hash(arrays, at, tag)
    while arrays.table[at, 1] >= 0 and not _same_id(arrays, arrays.table[at, 1], id_bytes, start, stop, prefix0):
        at = seek_hash(arrays, (at + 1) & (len(arrays.table) - 1), tag)
    return at


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def find_object(arrays: ObjectArrays, tag: int, id_bytes: Bytes, start: int, stop: int) -> int:
    """Return the slot of the id ``id_bytes[start:stop]`` with hash `tag`, or -1. Cost O(1) expected."""
    at = seek_object(arrays, tag & (len(arrays.table) - 1), tag, id_bytes, start, stop)
    return int(arrays.table[at, 1])


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def add_object(arrays: ObjectArrays, tag: int, id_bytes: Bytes, start: int, stop: int, gap: int) -> int:
    """Give a new slot to an id that has none, and list it in the index at `gap`, which `seek_object` found (-1: not).

    Room must have been reserved. Cost O(length of the id).
    """
    counts = arrays.counts
    if counts[FREE] > 0:
        counts[FREE] -= 1
        slot = int(arrays.free[counts[FREE]])
    else:
        slot = int(counts[TOP])
        counts[TOP] += 1
    counts[LIVE] += 1
    length = stop - start
    used = counts[USED]
    _copy_id(id_bytes, start, length, arrays.arena, used)
    counts[USED] = used + length
    arrays.records[slot, 0] = _prefix(id_bytes, start, stop)
    arrays.records[slot, 1] = _prefix(id_bytes, start + _PREFIX, stop)
    arrays.records[slot, 2] = (used << 20) | length
    arrays.records[slot, 3] = tag
    if gap >= 0:
        arrays.table[gap, 0] = tag
        arrays.table[gap, 1] = slot
    return slot


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def remove_object(arrays: ObjectArrays, slot: int, indexed: bool) -> None:
    """Free a slot. Its arena bytes stay until the next compaction. Cost O(1) expected."""
    counts = arrays.counts
    arrays.free[counts[FREE]] = slot
    counts[FREE] += 1
    counts[LIVE] -= 1
    arrays.records[slot, 2] = -1
    if not indexed:
        return
    mask = len(arrays.table) - 1
    hole = arrays.records[slot, 3] & mask
    while arrays.table[hole, 1] != slot:
        hole = (hole + 1) & mask
    # Backward shift: pull later entries of the run into the hole, so that no tombstone is ever needed.
    at = (hole + 1) & mask
    while arrays.table[at, 1] >= 0:
        home = arrays.table[at, 0] & mask
        if ((at - home) & mask) >= ((at - hole) & mask):
            arrays.table[hole, 0] = arrays.table[at, 0]
            arrays.table[hole, 1] = arrays.table[at, 1]
            hole = at
        at = (at + 1) & mask
    arrays.table[hole, 1] = -1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def id_before(arrays: ObjectArrays, a: int, b: int, by_row: bool) -> bool:
    """Return whether slot `a` wins a tie against slot `b`: smaller id bytes, then (`by_row`) earlier in total order."""
    for word in range(2):
        if arrays.records[a, word] != arrays.records[b, word]:
            return arrays.records[a, word] < arrays.records[b, word]
    place_a, place_b = arrays.records[a, 2], arrays.records[b, 2]
    length_a, length_b = place_a & MAX_ID_BYTES, place_b & MAX_ID_BYTES
    start_a, start_b = place_a >> 20, place_b >> 20
    for i in range(2 * _PREFIX, min(length_a, length_b)):
        if arrays.arena[start_a + i] != arrays.arena[start_b + i]:
            return arrays.arena[start_a + i] < arrays.arena[start_b + i]
    if length_a != length_b:
        return length_a < length_b
    return by_row and arrays.records[a, 3] < arrays.records[b, 3]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _reindex(arrays: ObjectArrays) -> None:
    mask = len(arrays.table) - 1
    for slot in range(arrays.counts[TOP]):
        if arrays.records[slot, 2] >= 0:
            at = arrays.records[slot, 3] & mask
            while arrays.table[at, 1] >= 0:
                at = (at + 1) & mask
            arrays.table[at, 0] = arrays.records[slot, 3]
            arrays.table[at, 1] = slot


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _move_ids(arrays: ObjectArrays, into: Bytes) -> None:
    used = 0
    for slot in range(arrays.counts[TOP]):
        place = arrays.records[slot, 2]
        if place >= 0:
            length = place & MAX_ID_BYTES
            start = place >> 20
            _copy_id(arrays.arena, start, length, into, used)
            arrays.records[slot, 2] = (used << 20) | length
            used += length
    arrays.counts[USED] = used


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def copy_ids(records: Ints, arena: Bytes, slots: Indexes, into: Bytes, ends: Ints) -> int:
    """Write where the ids of `slots` end, and the ids to `into` if they fit; return how many bytes they are."""
    used = 0
    for i in range(len(slots)):
        used += records[slots[i], 2] & MAX_ID_BYTES
        ends[i] = used
    if used <= len(into):
        for i in range(len(slots)):
            place = records[slots[i], 2]
            length = place & MAX_ID_BYTES
            _copy_id(arena, place >> 20, length, into, ends[i] - length)
    return used


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _copy_ids(records: Ints, arena: Bytes, slots: Indexes, into: Bytes, ends: Ints) -> int:
    return copy_ids(records, arena, slots, into, ends)


class ObjectTable:
    """Slots of live objects. `indexed` False: each record is an object, and nothing is ever looked up by id.

    Each slot has `words` more int64 for whoever keeps something of its object; a new object finds anything in them.
    """

    def __init__(self, *, indexed: bool = True, words: int = 0, capacity: int = 1024) -> None:
        self.indexed = indexed
        self._words = words
        self.capacity = capacity
        self._arrays = ObjectArrays(
            table=_empty_index(2 * capacity if indexed else 2),
            records=_records(capacity, 4 + words),
            arena=np.zeros(16 * capacity, np.uint8),
            free=np.zeros(capacity, np.int32),
            counts=np.zeros(4, np.int64),
        )

    @property
    def arrays(self) -> ObjectArrays:
        """The current arrays; invalid after the next `reserve`."""
        return self._arrays

    @property
    def own_words(self) -> npt.NDArray[np.int64]:
        """The words kept for others, int64[capacity, words]; invalid after the next `reserve`."""
        return self._arrays.records[:, 4:]

    @property
    def live(self) -> int:
        """Number of live objects."""
        return int(self._arrays.counts[LIVE])

    @property
    def top(self) -> int:
        """One more than the highest slot ever used."""
        return int(self._arrays.counts[TOP])

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self._arrays)

    def reserve(self, objects: int, id_bytes: int) -> None:
        """Make room for that many new objects and bytes of ids. Cost amortised O(1) per object."""
        need = self.live + objects
        if need > self.capacity:
            self._grow(max(need, 2 * self.capacity))
        arrays = self._arrays
        used = int(arrays.counts[USED])
        if used + id_bytes > len(arrays.arena):
            # Compacting frees what died; doubling against what is needed keeps compactions rare.
            arena = np.zeros(max(3 * self._live_bytes() + id_bytes, 1024), np.uint8)
            _move_ids(arrays, arena)
            if int(arrays.counts[USED]) + id_bytes > len(arena):
                raise AssertionError("arena too small after compaction")
            self._arrays = arrays._replace(arena=arena)

    def ids(self, slots: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return the ids of live `slots` as an arena and their ends in it."""
        arrays = self._arrays
        ends, into = np.empty(len(slots), np.int64), np.empty(0, np.uint8)
        size = int(_copy_ids(arrays.records, arrays.arena, slots, into, ends))
        if size:
            into = np.empty(size, np.uint8)
            _copy_ids(arrays.records, arrays.arena, slots, into, ends)
        return into, ends

    def state(self) -> dict[str, npt.NDArray[np.int64] | npt.NDArray[np.int32] | npt.NDArray[np.uint8]]:
        """Return its arrays, but the index, which follows from them. Cost: a copy."""
        arrays = self._arrays
        return {
            "records": arrays.records[: self.top].copy(),
            "arena": arrays.arena[: int(arrays.counts[USED])].copy(),
            "free": arrays.free[: int(arrays.counts[FREE])].copy(),
            "counts": arrays.counts.copy(),
        }

    def restore(self, state: SavedArrays) -> None:
        """Hold what another table held, slot for slot. Cost: a copy, and a hash probe for each object.

        Raises LogError for arrays that do not fit each other.
        """
        counts = array_of(state, "counts", np.int64, (4,))
        top, used = int(counts[TOP]), int(counts[USED])
        saved = array_of(state, "records", np.int64, (top, 4 + self._words))
        self.capacity = max(self.capacity, top + top // 4)
        records = _records(self.capacity, 4 + self._words)
        records[:top] = saved
        arena = np.zeros(max(16 * 1024, used + used // 4), np.uint8)
        arena[:used] = array_of(state, "arena", np.uint8, (used,))
        free = np.zeros(self.capacity, np.int32)
        free[: int(counts[FREE])] = array_of(state, "free", np.int32, (int(counts[FREE]),))
        table = _empty_index(2 * self.capacity if self.indexed else 2)
        self._arrays = ObjectArrays(table, records, arena, free, counts.copy())
        if self.indexed:
            _reindex(self._arrays)

    def _live_bytes(self) -> int:
        places = self._arrays.records[: self.top, 2]
        return int((places[places >= 0] & MAX_ID_BYTES).sum())

    def _grow(self, capacity: int) -> None:
        old = self._arrays
        records = _records(capacity, 4 + self._words)
        records[: len(old.records)] = old.records
        free = np.zeros(capacity, np.int32)
        free[: len(old.free)] = old.free
        self.capacity = capacity
        table = _empty_index(2 * capacity) if self.indexed else old.table
        self._arrays = old._replace(table=table, records=records, free=free)
        if self.indexed:
            _reindex(self._arrays)

    def _check(self) -> None:
        arrays = self._arrays
        live = {int(slot) for slot in np.flatnonzero(arrays.records[: self.top, 2] >= 0)}
        free = {int(slot) for slot in arrays.free[: arrays.counts[FREE]]}
        assert len(live) == self.live
        assert live.isdisjoint(free)
        assert len(live) + len(free) == self.top
        if not self.indexed:
            return
        assert {int(slot) for slot in arrays.table[:, 1] if slot >= 0} == live
        for slot in live:
            place = int(arrays.records[slot, 2])
            start, length = place >> 20, place & MAX_ID_BYTES
            assert find_object(arrays, int(arrays.records[slot, 3]), arrays.arena, start, start + length) == slot


def _records(capacity: int, words: int) -> npt.NDArray[np.int64]:
    """Return records that begin on a cache line."""
    raw = np.full(capacity * words + 8, -1, np.int64)
    skipped = (-raw.ctypes.data % 64) // 8
    return raw[skipped : skipped + capacity * words].reshape(capacity, words)


def _empty_index(at_least: int) -> npt.NDArray[np.int64]:
    size = 1 << max(1, (at_least - 1).bit_length())
    index = np.full((size, 2), -1, np.int64)
    return index
