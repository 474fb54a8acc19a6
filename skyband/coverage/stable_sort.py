"""Sorting rows of several source partitions into the total order, in linear time.

The total order is (release time, stream, partition, offset). Callers list rows so that those of one source partition
already stand in offset order; a stable sort by the partition's rank and then by release time does the rest.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["sort_slots"]

_HALF = 2**62
# Below this an insertion sort is faster than clearing a histogram.
_SMALL = 48
# Eleven bits a pass sort the microseconds of four seconds in two passes; a small input does not repay 2048 counters.
_WIDE_BITS, _NARROW_BITS, _WIDE_FROM = 11, 8, 2048


@njit(cache=True, nogil=True, error_model="numpy")
def _bits(number: np.uint64) -> int:
    """Return how many bits `number` needs."""
    bits = 0
    while bits < 64 and (number >> np.uint64(bits)) != np.uint64(0):
        bits += 1
    return bits


@njit(cache=True, nogil=True, error_model="numpy")
def _insertion_sort(
    slots: npt.NDArray[np.int64],
    release: npt.NDArray[np.int64],
    source: npt.NDArray[np.int32],
    rank: npt.NDArray[np.int64],
) -> None:
    """Sort a few slots in place by (release time, rank), stable. Cost: the number of inversions."""
    for i in range(1, len(slots)):
        slot = slots[i]
        time, place = release[slot], rank[source[slot]]
        j = i
        while j > 0:
            before = slots[j - 1]
            if release[before] < time or (release[before] == time and rank[source[before]] <= place):
                break
            slots[j] = before
            j -= 1
        slots[j] = slot


@njit(cache=True, nogil=True, error_model="numpy")
def _radix_sort(keys: npt.NDArray[np.uint64], slots: npt.NDArray[np.int64], highest: np.uint64) -> None:
    """Sort `slots` in place by `keys` (whose maximum is `highest`), stable; `keys` is destroyed.

    Cost: one pass for each 11 bits (8, if few) of `highest`.
    """
    n = len(slots)
    bits = _WIDE_BITS if n >= _WIDE_FROM else _NARROW_BITS
    buckets = 1 << bits
    mask = np.uint64(buckets - 1)
    counts = np.zeros(buckets, np.int64)
    other_keys = np.empty(n, np.uint64)
    other_slots = np.empty(n, np.int64)
    shift = 0
    flipped = False
    while shift < 64 and (highest >> np.uint64(shift)) != np.uint64(0):
        from_keys, from_slots = (other_keys, other_slots) if flipped else (keys, slots)
        to_keys, to_slots = (keys, slots) if flipped else (other_keys, other_slots)
        by = np.uint64(shift)
        counts[:] = 0
        for i in range(n):
            counts[np.int64((from_keys[i] >> by) & mask)] += 1
        total = 0
        for b in range(buckets):
            count = counts[b]
            counts[b] = total
            total += count
        for i in range(n):
            key = from_keys[i]
            digit = np.int64((key >> by) & mask)
            place = counts[digit]
            counts[digit] = place + 1
            to_keys[place] = key
            to_slots[place] = from_slots[i]
        flipped = not flipped
        shift += bits
    if flipped:
        slots[:] = other_slots


@njit(cache=True, nogil=True, error_model="numpy")
def sort_slots(
    slots: npt.NDArray[np.int64],
    release: npt.NDArray[np.int64],
    source: npt.NDArray[np.int32],
    rank: npt.NDArray[np.int64],
) -> None:
    """Sort `slots` in place by (release time, rank of the source), stable.

    `release` and `source` are indexed by slot, `rank` by source. Cost: one pass if already sorted, else linear, with a
    pass for each 11 bits that the range of release times and the ranks need together.
    """
    n = len(slots)
    if n < 2:
        return
    is_sorted, ranks_ascend = True, True
    low = high = last_time = release[slots[0]]
    top_rank = last_rank = rank[source[slots[0]]]
    for i in range(1, n):
        time = release[slots[i]]
        place = rank[source[slots[i]]]
        if time < last_time or (time == last_time and place < last_rank):
            is_sorted = False
        if place < last_rank:
            ranks_ascend = False
        low, high, top_rank = min(low, time), max(high, time), max(top_rank, place)
        last_time, last_rank = time, place
    if is_sorted:
        return
    if n <= _SMALL:
        _insertion_sort(slots, release, source, rank)
        return
    keys = np.empty(n, np.uint64)
    # Times lie within +-2^62, so a difference fits 63 bits.
    range_us = np.uint64(high + _HALF) - np.uint64(low + _HALF)
    rank_bits = 0 if ranks_ascend else _bits(np.uint64(top_rank))
    if rank_bits and _bits(range_us) + rank_bits > 64:
        for i in range(n):
            keys[i] = np.uint64(rank[source[slots[i]]])
        _radix_sort(keys, slots, np.uint64(top_rank))
        rank_bits = 0
    base, by = low + _HALF, np.uint64(rank_bits)
    if rank_bits:
        # Rank and time in one key: mostly no more passes than for the time alone.
        for i in range(n):
            time = np.uint64(release[slots[i]] + _HALF - base)
            keys[i] = (time << by) | np.uint64(rank[source[slots[i]]])
    else:
        for i in range(n):
            keys[i] = np.uint64(release[slots[i]] + _HALF - base)
    _radix_sort(keys, slots, (range_us << by) | np.uint64((1 << rank_bits) - 1))
