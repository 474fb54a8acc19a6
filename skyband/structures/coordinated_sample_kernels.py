"""Kernels of the coordinated sample: observe, drop, merge. What the arrays mean is told in `coordinated_sample`.

Here too is the mixer from which all sketches draw their bits. All arithmetic on hashes is kept below 2**64, so that
nothing wraps and the kernels give the same bits interpreted.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Floats, Ints

__all__ = ["SAMPLE_SEED", "Sample", "drop_objects", "mix", "observe", "observe_objects", "observe_rows"]

# Places in a sample's `counts`: objects held; the level (objects are sampled with a chance of 2**-level); the least
# event time that still counts; since when less than a quarter was in use; when the threshold was doubled last, and the
# level until then; the newest event time.
SIZE, LEVEL, LOW, QUIET_SINCE, DOUBLED, DOUBLED_FROM, NEWEST, COUNTS = 0, 1, 2, 3, 4, 5, 6, 7

# The time of a slot in which nothing was seen: MIN_TIME_US, below every event time.
NOT_SEEN = -(1 << 62)

MAX_LEVEL = 60

# Which bits an id's hash turns into here. Samples of different shards merge because it is the same everywhere.
SAMPLE_SEED = np.uint64(0x9E3779B97F4A7C15)

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW_32 = np.uint64(0xFFFFFFFF)
_LOW_31 = np.uint64(0x7FFFFFFF)
_U27 = np.uint64(27)
_U30 = np.uint64(30)
_U31 = np.uint64(31)
_U32 = np.uint64(32)

# The multipliers of splitmix64's finaliser.
_FACTOR_0 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_1 = np.uint64(0x94D049BB133111EB)


class Sample(NamedTuple):
    """The sample's arrays, as kernels take them; the first ``counts[SIZE]`` objects count, `places` leads to them."""

    places: npt.NDArray[np.int32]
    id_hash: npt.NDArray[np.uint64]
    first_us: npt.NDArray[np.int64]
    times_us: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _times(a: Any, b: Any) -> Any:
    """Return the low 64 bits of a product, put together from halves."""
    a_low, b_low = a & _LOW_32, b & _LOW_32
    bottom = a_low * b_low
    middle = (((a >> _U32) * b_low) & _LOW_32) + ((a_low * (b >> _U32)) & _LOW_32) + (bottom >> _U32)
    return ((middle & _LOW_32) << _U32) | (bottom & _LOW_32)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def mix(bits: Any) -> Any:
    """Return 64 bits that each depend on all of `bits` (uint64), by splitmix64's finaliser: one to one."""
    bits = _times(bits ^ (bits >> _U30), _FACTOR_0)
    bits = _times(bits ^ (bits >> _U27), _FACTOR_1)
    return bits ^ (bits >> _U31)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _seek(sample: Sample, mixed: Any, id_hash: Any) -> int:
    """Return the place in the index of an object, or the gap where it would be put."""
    mask = len(sample.places) - 1
    at = np.int64(mixed & _LOW_31) & mask
    while sample.places[at] >= 0 and sample.id_hash[sample.places[at]] != id_hash:
        at = (at + 1) & mask
    return int(at)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _drop(sample: Sample) -> None:
    """Empty slots below `LOW`; keep objects with a slot left and a hash below the threshold; list them anew."""
    counts = sample.counts
    limit = _ALL >> np.uint64(counts[LEVEL])
    streams, width = sample.values.shape[1], sample.values.shape[2]
    low = counts[LOW]
    for at in range(len(sample.places)):
        sample.places[at] = -1
    kept = 0
    for i in range(counts[SIZE]):
        mixed = mix(sample.id_hash[i] ^ SAMPLE_SEED)
        live = False
        for stream in range(streams):
            if sample.times_us[i, stream] >= low:
                live = True
        if not live or mixed > limit:
            continue
        sample.id_hash[kept] = sample.id_hash[i]
        sample.first_us[kept] = sample.first_us[i]
        for stream in range(streams):
            seen = sample.times_us[i, stream] >= low
            sample.times_us[kept, stream] = sample.times_us[i, stream] if seen else NOT_SEEN
            for j in range(width):
                sample.values[kept, stream, j] = sample.values[i, stream, j] if seen else 0.0
        sample.places[_seek(sample, mixed, sample.id_hash[kept])] = kept
        kept += 1
    counts[SIZE] = kept


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _add_object(sample: Sample, mixed: Any, id_hash: Any, first_us: int, gap: int) -> int:
    """Give an object its place, halving the threshold until it has room; -1 if the object itself falls out."""
    counts = sample.counts
    while counts[SIZE] == len(sample.id_hash):
        if counts[LEVEL] == MAX_LEVEL:
            return -1
        counts[LEVEL] += 1
        counts[QUIET_SINCE] = max(counts[QUIET_SINCE], counts[NEWEST])
        _drop(sample)
        if mixed > _ALL >> np.uint64(counts[LEVEL]):
            return -1
        gap = _seek(sample, mixed, id_hash)
    slot = counts[SIZE]
    counts[SIZE] = slot + 1
    sample.places[gap] = slot
    sample.id_hash[slot] = id_hash
    sample.first_us[slot] = first_us
    for stream in range(sample.times_us.shape[1]):
        sample.times_us[slot, stream] = NOT_SEEN
        for j in range(sample.values.shape[2]):
            sample.values[slot, stream, j] = 0.0
    return slot


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _is_newer(sample: Sample, slot: int, stream: int, time_us: int, values: Floats, row: int) -> bool:
    """Return whether an observation takes the place of the slot's: later, or as late and larger."""
    if time_us != sample.times_us[slot, stream]:
        return time_us > sample.times_us[slot, stream]
    for j in range(sample.values.shape[2]):
        if values[row, j] != sample.values[slot, stream, j]:
            return values[row, j] > sample.values[slot, stream, j]
    return False


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def observe(sample: Sample, stream: int, time_us: int, first_us: int, id_hash: Any, values: Floats, row: int) -> None:
    """Take in one observation: ``values[row]`` of an object at `time_us`, which was first seen at `first_us`.

    The order of observations makes no difference as long as the threshold stays. Cost O(1); a halving O(objects held).
    """
    counts = sample.counts
    counts[NEWEST] = max(counts[NEWEST], time_us)
    mixed = mix(id_hash ^ SAMPLE_SEED)
    if mixed > _ALL >> np.uint64(counts[LEVEL]) or time_us < counts[LOW]:
        return
    at = _seek(sample, mixed, id_hash)
    slot = np.int64(sample.places[at])
    if slot < 0:
        slot = np.int64(_add_object(sample, mixed, id_hash, first_us, at))
        if slot < 0:
            return
    sample.first_us[slot] = min(sample.first_us[slot], first_us)
    if _is_newer(sample, slot, stream, time_us, values, row):
        sample.times_us[slot, stream] = time_us
        for j in range(sample.values.shape[2]):
            sample.values[slot, stream, j] = values[row, j]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def drop_objects(arrays: tuple[Any, ...]) -> None:
    """Empty slots below ``counts[LOW]``, drop objects that have none left or are past the threshold. Cost O(held)."""
    _drop(Sample(*arrays))


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def observe_rows(arrays: tuple[Any, ...], stream: Ints, time_us: Ints, id_hash: Any, values: Floats) -> None:
    """Take in rows in columns: int32, int64, uint64, float64[n, width]. Cost O(1) a row."""
    sample = Sample(*arrays)
    for i in range(len(time_us)):
        observe(sample, stream[i], time_us[i], time_us[i], id_hash[i], values, i)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def observe_objects(arrays: tuple[Any, ...], others: tuple[Any, ...], values: Floats) -> None:
    """Take in what another sample holds; `values` are its values as float64[objects * streams, width]."""
    sample, other = Sample(*arrays), Sample(*others)
    streams = sample.times_us.shape[1]
    for i in range(other.counts[SIZE]):
        for stream in range(streams):
            time_us = other.times_us[i, stream]
            if time_us != NOT_SEEN:
                row = i * streams + stream
                observe(sample, stream, time_us, other.first_us[i], other.id_hash[i], values, row)
