"""Kernels of the sketches: one row into the bitmaps, one into the panes; and one for a whole batch into everything.

What the arrays mean is told in `sliding_fm` and `repetition`. Each use of an id's hash mixes it with a seed of its own,
so that what one sketch makes of an object says nothing of what another does.
"""

from typing import Any

import numpy as np
from numba import njit

from skyband.structures.array_types import Floats, Ints
from skyband.structures.coordinated_sample_kernels import Sample, mix, observe

__all__ = ["BITMAP_SEED", "PANE_SEED", "POSITIONS", "add_rows", "count_rows", "set_bits", "tally_rows"]

# A position for each of 31 bits of the hash and one for what is left: enough for 2**36 objects in 64 bitmaps, and a
# bitmap is four cache lines, of which nearly all rows touch the first.
POSITIONS = 32

# Seeds of the two sketches here: they are stored in what other shards merge, so they may never change.
BITMAP_SEED = np.uint64(0xD1B54A32D192ED03)
PANE_SEED = np.uint64(0x8CB92BA72F3D8DD7)

# Places in the `ring` of panes: the newest pane begun, and the oldest that still counts.
NEWEST_PANE, LOW_PANE, RING = 0, 1, 2

# Below every pane.
NO_PANE = -(1 << 62)

_LOW_31 = np.uint64(0x7FFFFFFF)
_U31 = np.uint64(31)
_U63 = np.uint64(63)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _set_bit(newest_us: Ints, stream: int, time_us: int, id_hash: Any) -> None:
    """Set the bit of an object in one of its stream's bitmaps: bit i with a chance of 2**-(i + 1)."""
    mixed = mix(id_hash ^ BITMAP_SEED)
    bitmap = np.int64(mixed & _LOW_31) & (newest_us.shape[1] - 1)
    rest = np.int64(mixed >> _U31)
    position = 0
    while position < POSITIONS - 1 and rest & 1 == 0:
        rest >>= 1
        position += 1
    if time_us > newest_us[stream, bitmap, position]:
        newest_us[stream, bitmap, position] = time_us


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _begin_pane(tallies: Ints, ring: Ints, pane: int) -> None:
    """Let `pane` be the newest: those that it pushes out of the ring are emptied."""
    panes = tallies.shape[0]
    for begun in range(max(ring[NEWEST_PANE] + 1, pane - panes + 1), pane + 1):
        place = begun % panes
        for stream in range(tallies.shape[1]):
            for j in range(tallies.shape[2]):
                tallies[place, stream, j] = 0
    ring[NEWEST_PANE] = pane
    ring[LOW_PANE] = max(ring[LOW_PANE], pane - panes + 1)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _tally(tallies: Ints, stream: int, place: int, id_hash: Any) -> None:
    """Add an object's sign to its tally in one pane."""
    mixed = mix(id_hash ^ PANE_SEED)
    column = np.int64(mixed & _LOW_31) & (tallies.shape[2] - 1)
    tallies[place, stream, column] += 1 - 2 * np.int64(mixed >> _U63)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def set_bits(newest_us: Ints, stream: Ints, time_us: Ints, id_hash: Any) -> None:
    """Set the bits of rows in columns: int32, int64, uint64. Cost O(1) a row."""
    for i in range(len(time_us)):
        _set_bit(newest_us, stream[i], time_us[i], id_hash[i])


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def tally_rows(tallies: Ints, ring: Ints, pane_us: int, stream: Ints, time_us: Ints, id_hash: Any) -> None:
    """Tally rows in columns: int32, int64, uint64; those older than the ring are left out. Cost O(1) a row."""
    for i in range(len(time_us)):
        pane = time_us[i] // pane_us
        if pane > ring[NEWEST_PANE]:
            _begin_pane(tallies, ring, pane)
        if pane >= ring[LOW_PANE]:
            _tally(tallies, stream[i], pane % tallies.shape[0], id_hash[i])


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def begin_pane(tallies: Ints, ring: Ints, pane: int) -> None:
    """Let `pane` be the newest, if it is. Cost: the panes pushed out."""
    if pane > ring[NEWEST_PANE]:
        _begin_pane(tallies, ring, pane)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def add_rows(
    newest_us: Ints,
    tallies: Ints,
    ring: Ints,
    pane_us: int,
    sample_arrays: tuple[Any, ...],
    stream: Ints,
    time_us: Ints,
    id_hash: Any,
    values: Floats,
) -> None:
    """Take rows in columns into bitmaps, panes and sample: int32, int64, uint64, float64[n, width]. Cost O(1) a row."""
    sample = Sample(*sample_arrays)
    begin_us, end_us, place = 1, 0, 0
    is_tallied = False
    for i in range(len(time_us)):
        time, of, bits = time_us[i], stream[i], id_hash[i]
        if time < begin_us or time >= end_us:
            # Rows come nearly in order: a division for each pane rather than for each row.
            pane = time // pane_us
            begin_us, end_us, place = pane * pane_us, (pane + 1) * pane_us, pane % tallies.shape[0]
            if pane > ring[NEWEST_PANE]:
                _begin_pane(tallies, ring, pane)
            is_tallied = pane >= ring[LOW_PANE]
        _set_bit(newest_us, of, time, bits)
        if is_tallied:
            _tally(tallies, of, place, bits)
        observe(sample, of, time, time, bits, values, i)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def count_rows(table: Any, objects: Ints, largest: Ints, stream: Ints, id_hash: Any, first: int, change: int) -> int:
    """Change the counts of the objects of rows from `first` on by 1 or -1; return the first row that had no room.

    `table` uint64[n, 2] holds hashes mixed with their stream, and counts: open addressing, at most half full of what
    was ever counted. `objects` int64[streams, m]: how many objects have each count. `largest` int64[streams + 1]: the
    largest count of each stream, and how many places of the table are taken.
    """
    mask = len(table) - 1
    streams = objects.shape[0]
    zero, one = np.uint64(0), np.uint64(1)
    for i in range(first, len(stream)):
        of = stream[i]
        if change > 0 and (2 * (largest[streams] + 1) > len(table) or largest[of] + 1 >= objects.shape[1]):
            return i
        key = mix(id_hash[i] ^ mix(np.uint64(of) + one))
        at = np.int64(key & _LOW_31) & mask
        while table[at, 1] != zero and table[at, 0] != key:
            at = (at + 1) & mask
        if table[at, 1] == zero:
            table[at, 0] = key
            table[at, 1] = one
            largest[streams] += 1
        # A count lies one higher than it is, so that 0 marks a place that was never taken.
        count = np.int64(table[at, 1]) - 1
        table[at, 1] = np.uint64(count + change + 1)
        if count > 0:
            objects[of, count] -= 1
        if count + change > 0:
            objects[of, count + change] += 1
        largest[of] = max(largest[of], count + change)
        while largest[of] > 0 and objects[of, largest[of]] == 0:
            largest[of] -= 1
    return len(stream)
