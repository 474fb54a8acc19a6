"""Kernels over the columns of pending rows: taking those that are due, and packing those that remain."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.coverage.pending_runs import Ints, Sources, choose, live_slots, renumber_runs

__all__ = ["ID_SLACK", "Bytes", "Hashes", "Values", "pack_rows", "take_rows"]

# Bytes that every arena of ids has beyond its ids.
ID_SLACK = 8

Bytes: TypeAlias = npt.NDArray[np.uint8]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Values: TypeAlias = npt.NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def _copy_id(id_bytes: Bytes, start: int, size: int, arena: Bytes, to: int) -> None:
    """Copy an id by eights, which is five times as fast as byte by byte (for ids of 6 to 14 bytes).

    Up to 7 bytes too many are read and written: arenas have 8 bytes more than their ids, and the next id overwrites.
    """
    at = 0
    while at < size:
        source = id_bytes[start + at : start + at + 8]
        target = arena[to + at : to + at + 8]
        b0, b1, b2, b3 = source[0], source[1], source[2], source[3]
        b4, b5, b6, b7 = source[4], source[5], source[6], source[7]
        target[0], target[1], target[2], target[3] = b0, b1, b2, b3
        target[4], target[5], target[6], target[7] = b4, b5, b6, b7
        at += 8


@njit(cache=True, nogil=True, error_model="numpy")
def _gather_ids(slots: Ints, id_bytes: Bytes, id_ends: Ints, arena: Bytes, ends: Ints) -> None:
    """Write the ids of `slots` side by side into `arena`, and their ends into `ends`."""
    to = 0
    for i in range(len(slots)):
        start = id_ends[slots[i]]
        size = id_ends[slots[i] + 1] - start
        _copy_id(id_bytes, start, size, arena, to)
        to += size
        ends[i] = to


@njit(cache=True, nogil=True, error_model="numpy")
def _pack_ids(slots: Ints, id_bytes: Bytes, id_ends: Ints, to_bytes: Bytes, to_ends: Ints, in_place: bool) -> None:
    """Write the ids of ascending `slots` side by side into `to_bytes`, and where each begins into `to_ends`."""
    to = 0
    to_ends[0] = 0
    for i in range(len(slots)):
        start, end = id_ends[slots[i]], id_ends[slots[i] + 1]
        if in_place and start - to < 8:
            # Eights would run into an id that is still to be moved.
            for b in range(end - start):
                to_bytes[to + b] = id_bytes[start + b]
        else:
            _copy_id(id_bytes, start, end - start, to_bytes, to)
        to += end - start
        to_ends[i + 1] = to


@njit(cache=True, nogil=True, error_model="numpy")
def _size_of_ids(slots: Ints, id_ends: Ints) -> int:
    """Return the bytes of the ids of `slots`."""
    total = 0
    for i in range(len(slots)):
        total += id_ends[slots[i] + 1] - id_ends[slots[i]]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _is_stretch(slots: Ints) -> bool:
    """Return whether each slot is the one behind the slot before."""
    first = slots[0]
    for i in range(len(slots)):
        if slots[i] != first + i:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(
    slots: Ints,
    release: Ints,
    event: Ints,
    offset: Ints,
    source: Sources,
    id_hash: Hashes,
    values: Values,
    to_release: Ints,
    to_event: Ints,
    to_offset: Ints,
    to_source: Sources,
    to_id_hash: Hashes,
    to_values: Values,
) -> None:
    """Write the columns of `slots` to the heads of the `to` columns.

    One loop a column, so that few streams of memory are open at a time.
    """
    n = len(slots)
    if n and _is_stretch(slots):
        first, stop = slots[0], slots[n - 1] + 1
        to_release[:n] = release[first:stop]
        to_event[:n] = event[first:stop]
        to_offset[:n] = offset[first:stop]
        to_source[:n] = source[first:stop]
        to_id_hash[:n] = id_hash[first:stop]
        to_values[:n] = values[first:stop]
        return
    for i in range(n):
        to_release[i] = release[slots[i]]
    for i in range(n):
        to_event[i] = event[slots[i]]
    for i in range(n):
        to_offset[i] = offset[slots[i]]
    for i in range(n):
        to_source[i] = source[slots[i]]
    for i in range(n):
        to_id_hash[i] = id_hash[slots[i]]
    for i in range(n):
        for v in range(values.shape[1]):
            to_values[i, v] = values[slots[i], v]


@njit(cache=True, nogil=True, error_model="numpy")
def take_rows(
    until_us: int,
    runs: Ints,
    count: int,
    fresh: int,
    tail: int,
    with_fresh: bool,
    order: Ints,
    release: Ints,
    event: Ints,
    offset: Ints,
    source: Sources,
    id_bytes: Bytes,
    id_ends: Ints,
    id_hash: Hashes,
    values: Values,
    rank: Ints,
    stream_of: Sources,
    partition_of: Sources,
) -> tuple[int, Sources, Sources, Ints, Ints, Ints, Bytes, Ints, Hashes, Values]:
    """Remove the rows with release time below `until_us`; return the new number of runs and the rows' columns in order.

    With `with_fresh` the fresh slots become a run before. Cost: linear in the rows taken and in the fresh ones, plus a
    binary search in each run.
    """
    chosen, count = choose(until_us, runs, count, fresh, tail, with_fresh, order, release, source, rank)
    n = len(chosen)
    out_release = np.empty(n, np.int64)
    out_event = np.empty(n, np.int64)
    out_offset = np.empty(n, np.int64)
    out_source = np.empty(n, np.int32)
    out_hash = np.empty(n, np.uint64)
    out_values = np.empty((n, values.shape[1]), np.float64)
    _gather(
        chosen,
        release,
        event,
        offset,
        source,
        id_hash,
        values,
        out_release,
        out_event,
        out_offset,
        out_source,
        out_hash,
        out_values,
    )
    out_stream = np.empty(n, np.int32)
    out_partition = np.empty(n, np.int32)
    for i in range(n):
        out_stream[i] = stream_of[out_source[i]]
    for i in range(n):
        out_partition[i] = partition_of[out_source[i]]
    ends = np.empty(n, np.int64)
    if n and _is_stretch(chosen):
        start = id_ends[chosen[0]]
        size = id_ends[chosen[n - 1] + 1] - start
        arena = id_bytes[start : start + size + ID_SLACK].copy()
        for i in range(n):
            ends[i] = id_ends[chosen[0] + i + 1] - start
    else:
        size = _size_of_ids(chosen, id_ends)
        arena = np.empty(size + ID_SLACK, np.uint8)
        _gather_ids(chosen, id_bytes, id_ends, arena, ends)
    ids = arena[:size]
    return count, out_stream, out_partition, out_offset, out_event, out_release, ids, ends, out_hash, out_values


@njit(cache=True, nogil=True, error_model="numpy")
def pack_rows(
    in_place: bool,
    runs: Ints,
    count: int,
    fresh: int,
    tail: int,
    order: Ints,
    release: Ints,
    event: Ints,
    offset: Ints,
    source: Sources,
    id_bytes: Bytes,
    id_ends: Ints,
    id_hash: Hashes,
    values: Values,
    to_order: Ints,
    to_release: Ints,
    to_event: Ints,
    to_offset: Ints,
    to_source: Sources,
    to_id_bytes: Bytes,
    to_id_ends: Ints,
    to_id_hash: Hashes,
    to_values: Values,
) -> int:
    """Move the pending rows together into the `to` columns; return the new `fresh`.

    With `in_place` the `to` columns are the columns themselves: slots ascend, so no row moves up. Cost: linear in
    `tail`.
    """
    slots = live_slots(runs, count, fresh, tail, order)
    _gather(
        slots,
        release,
        event,
        offset,
        source,
        id_hash,
        values,
        to_release,
        to_event,
        to_offset,
        to_source,
        to_id_hash,
        to_values,
    )
    _pack_ids(slots, id_bytes, id_ends, to_id_bytes, to_id_ends, in_place)
    fresh_then: int = renumber_runs(runs, count, slots, tail, order, to_order)
    return fresh_then
