"""Kernels of the sorted lists: put an object into its lists, take it out, walk. Words as in `sorted_list`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Floats

__all__ = ["FREE", "OBJECTS", "ListArrays", "has_room", "place_object"]

# Places in the lists' `counts`: free blocks, objects that stand in any list.
FREE, OBJECTS = 0, 1


class ListArrays(NamedTuple):
    """The lists' arrays, as kernels take them.

    Block b holds the entries ``(keys[b, i], slots[b, i])``, i < ``sizes[b]``; the blocks of list c are
    ``order[c, :blocks[c]]``, and its entries ``lengths[c]``. ``free[:counts[FREE]]`` are blocks of no list. Of an
    object, ``own_keys[slot, c]`` is its key in list c, and bit c of ``listed[slot]`` whether it stands there.
    """

    keys: npt.NDArray[np.float64]
    slots: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]
    blocks: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    own_keys: npt.NDArray[np.float64]
    listed: npt.NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def has_room(lists: ListArrays) -> bool:
    """Return whether any object can be placed: each of its lists may need a new block."""
    return lists.counts[FREE] >= len(lists.blocks)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def place_object(lists: ListArrays, slot: int, bits: int, keys: Floats) -> None:
    """Let object `slot` stand in the lists of `bits` with `keys`, and in no other; there must be room.

    `keys` holds a key per list, no NaN. Cost: nothing for a list where it stands already; else O(log n) steps and the
    moves of half a block, and once in half a block of entries those of the list's blocks.
    """
    before = lists.listed[slot]
    for c in range(len(lists.blocks)):
        was, now = (before >> c) & 1, (bits >> c) & 1
        key = keys[c]
        if was == 1 and (now == 0 or lists.own_keys[slot, c] != key):
            _take_out(lists, c, lists.own_keys[slot, c], slot)
            was = 0
        if was == 0 and now == 1:
            _put_in(lists, c, key, slot)
            lists.own_keys[slot, c] = key
    lists.listed[slot] = bits
    lists.counts[OBJECTS] += (1 if bits != 0 else 0) - (1 if before != 0 else 0)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _is_before(lists: ListArrays, block: int, i: int, key: float, slot: int) -> bool:
    """Return whether entry i of a block comes strictly before (key, slot)."""
    if lists.keys[block, i] != key:
        return lists.keys[block, i] < key
    return lists.slots[block, i] < slot


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _seek_block(lists: ListArrays, c: int, key: float, slot: int) -> int:
    """Return the place of the last block that begins at or before (key, slot); the first if none does."""
    before, after = 0, lists.blocks[c]
    while after - before > 1:
        middle = (before + after) >> 1
        block = lists.order[c, middle]
        begins = lists.keys[block, 0]
        if begins < key or (begins == key and lists.slots[block, 0] <= slot):
            before = middle
        else:
            after = middle
    return before


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _seek_entry(lists: ListArrays, block: int, key: float, slot: int) -> int:
    """Return the place of the first entry of a block at or after (key, slot)."""
    low, high = 0, lists.sizes[block]
    while low < high:
        middle = (low + high) >> 1
        if _is_before(lists, block, middle, key, slot):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _insert_block(lists: ListArrays, c: int, at: int) -> int:
    """Give list c an empty block at place `at`; return it."""
    lists.counts[FREE] -= 1
    block = lists.free[lists.counts[FREE]]
    for i in range(lists.blocks[c], at, -1):
        lists.order[c, i] = lists.order[c, i - 1]
    lists.order[c, at] = block
    lists.blocks[c] += 1
    lists.sizes[block] = 0
    return block


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _remove_block(lists: ListArrays, c: int, at: int) -> None:
    """Free the block at place `at` of list c."""
    lists.free[lists.counts[FREE]] = lists.order[c, at]
    lists.counts[FREE] += 1
    lists.blocks[c] -= 1
    for i in range(at, lists.blocks[c]):
        lists.order[c, i] = lists.order[c, i + 1]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _move_entries(lists: ListArrays, source: int, first: int, into: int) -> None:
    """Append the entries of block `source` from place `first` on to block `into`."""
    to = lists.sizes[into]
    for i in range(first, lists.sizes[source]):
        lists.keys[into, to] = lists.keys[source, i]
        lists.slots[into, to] = lists.slots[source, i]
        to += 1
    lists.sizes[into] = to
    lists.sizes[source] = first


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _put_in(lists: ListArrays, c: int, key: float, slot: int) -> None:
    """Insert an entry; a full block splits in halves."""
    if lists.blocks[c] == 0:
        _insert_block(lists, c, 0)
    at = _seek_block(lists, c, key, slot)
    block = lists.order[c, at]
    if lists.sizes[block] == lists.keys.shape[1]:
        other = _insert_block(lists, c, at + 1)
        _move_entries(lists, block, lists.sizes[block] >> 1, other)
        if _is_before(lists, other, 0, key, slot):
            block = other
    place = _seek_entry(lists, block, key, slot)
    for i in range(lists.sizes[block], place, -1):
        lists.keys[block, i] = lists.keys[block, i - 1]
        lists.slots[block, i] = lists.slots[block, i - 1]
    lists.keys[block, place] = key
    lists.slots[block, place] = slot
    lists.sizes[block] += 1
    lists.lengths[c] += 1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _take_out(lists: ListArrays, c: int, key: float, slot: int) -> None:
    """Remove an entry; a block of less than a quarter joins a neighbour if both fit into three quarters of one."""
    at = _seek_block(lists, c, key, slot)
    block = lists.order[c, at]
    size = lists.sizes[block] - 1
    for i in range(_seek_entry(lists, block, key, slot), size):
        lists.keys[block, i] = lists.keys[block, i + 1]
        lists.slots[block, i] = lists.slots[block, i + 1]
    lists.sizes[block] = size
    lists.lengths[c] -= 1
    if size == 0:
        _remove_block(lists, c, at)
        return
    capacity = lists.keys.shape[1]
    if 4 * size >= capacity:
        return
    for first in (at, at - 1):
        if first >= 0 and first + 1 < lists.blocks[c]:
            left, right = lists.order[c, first], lists.order[c, first + 1]
            if 4 * (lists.sizes[left] + lists.sizes[right]) <= 3 * capacity:
                _move_entries(lists, right, 0, left)
                _remove_block(lists, c, first + 1)
                return
