"""The coordinated sample: a few objects of a group, the same few on every stream and in every shard, and what they did.

Words: an object is *sampled* if its mixed hash is at most a *threshold*, which is 2**-level of all hashes; so what
chance decides is decided alike everywhere, and samples of streams and shards can be merged and compared object by
object. A *slot* is what a sampled object last showed on one stream: time and values. A sampled object is *born* when it
is first seen on any stream, and dies when its last slot is older than the window.

::

    mixed hash   0 ──────┬──────────────┬────────────────────────────── 2**64
                 level 2 ┘      level 1 ┘      not sampled at level 1
    over budget: one level up, half of the objects are dropped
    a full window below a quarter of it: one level down; until another window has passed, `objects` shows only those
    below the old threshold, since of the others the past is not known

    who counts for an appearance:     ×──────●────────────────────●──────×   born at ● counts, born at × does not
                              window   - lag │                - lag      │
                                             └ at - window               └ at

An object born within a typical lag of the window's end may yet come on the other stream; one born within a typical lag
of its beginning may have come there before. Both would make the chance look smaller than it is.

Initial state: empty. Invariant: the index leads to each object held, each of them is sampled and has a slot that is not
older than `low`, and an empty slot has time MIN_TIME_US and values 0.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.errors import DefinitionError
from skyband.model.duration import MIN_TIME_US
from skyband.model.saved_arrays import SavedArrays, array_of
from skyband.model.statistics import Appearance
from skyband.structures.coordinated_sample_kernels import (
    COUNTS,
    DOUBLED,
    DOUBLED_FROM,
    LEVEL,
    LOW,
    MAX_LEVEL,
    NEWEST,
    NOT_SEEN,
    QUIET_SINCE,
    SAMPLE_SEED,
    SIZE,
    Sample,
    drop_objects,
    mix,
    observe_objects,
    observe_rows,
)
from skyband.structures.store_arrays import Rows

__all__ = [
    "LEAST_OBJECTS",
    "CoordinatedSample",
    "SampledObjects",
    "appearance_among",
    "lags_among",
    "quantiles_of",
]

# Fewer objects than this say nothing: the answer is "unknown".
LEAST_OBJECTS = 30
# Which quantile of the lags counts as a pair's typical lag.
_TYPICAL_LAG = 0.95
_LEAST_CAPACITY = 16
# Bits of the streams lie in an int64.
_MOST_STREAMS = 62


class SampledObjects(NamedTuple):
    """Sampled objects with an observation in ``[at_us - window_us, at_us)``, in the order of their hashes.

    `present` int64[n]: bit i tells that the slot of stream i lies in the window; where it does not, time and values are
    not to be read. `times` int64[n, streams], us, `values` float64[n, streams, width], `first_us` int64[n]: when the
    object was born. `rate`: which share of all objects was sampled.
    """

    present: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    first_us: npt.NDArray[np.int64]
    rate: float


class CoordinatedSample:
    """A sample of the objects of `streams` streams with up to `width` values each, within `budget_bytes`.

    `window_us` is the longest window that will be asked for. `budget_bytes` (default: 5 KB a stream) pays for hashes,
    births and slots: 16 + streams * (8 + 8 * width) bytes an object; the index adds 8 to 16 bytes an object. `level`
    is where the threshold begins. Raises DefinitionError if there are too many streams.
    """

    def __init__(
        self, streams: int, width: int, window_us: int, *, budget_bytes: int | None = None, level: int = 0
    ) -> None:
        if not 1 <= streams <= _MOST_STREAMS or width < 1 or window_us < 1 or not 0 <= level <= MAX_LEVEL:
            raise DefinitionError(
                f"a sample needs 1 to {_MOST_STREAMS} streams, a width, a window and a level of 0 to {MAX_LEVEL}, not "
                f"{streams}, {width}, {window_us} and {level}"
            )
        self.window_us = window_us
        self.budget_bytes = 5 * 1024 * streams if budget_bytes is None else budget_bytes
        capacity = max(_LEAST_CAPACITY, self.budget_bytes // (16 + streams * (8 + 8 * width)))
        self.arrays = Sample(
            places=np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32),
            id_hash=np.zeros(capacity, np.uint64),
            first_us=np.zeros(capacity, np.int64),
            times_us=np.full((capacity, streams), NOT_SEEN, np.int64),
            values=np.zeros((capacity, streams, width), np.float64),
            counts=np.zeros(COUNTS, np.int64),
        )
        self.arrays.counts[[LOW, QUIET_SINCE, DOUBLED, NEWEST]] = MIN_TIME_US
        self.arrays.counts[LEVEL] = level

    @property
    def size(self) -> int:
        """Number of objects held."""
        return int(self.arrays.counts[SIZE])

    @property
    def capacity(self) -> int:
        """Number of objects that the budget pays for."""
        return len(self.arrays.id_hash)

    @property
    def level(self) -> int:
        """How often the threshold is halved: an object is taken in with a chance of 2**-level."""
        return int(self.arrays.counts[LEVEL])

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self.arrays)

    def add(self, rows: Rows, first: int, last: int) -> None:
        """Take in rows [first, last); a row that came before changes nothing. Cost O(1) a row."""
        part = slice(first, last)
        observe_rows(
            tuple(self.arrays),
            rows.stream[part],
            rows.event_time_us[part],
            rows.id_hash[part].view(np.uint64),
            rows.values[part],
        )

    def expire(self, before_us: int) -> None:
        """Forget observations before `before_us`, which is where a window of the full length begins now.

        Doubles the threshold if a full window has passed with less than a quarter of the budget in use. Cost O(held).
        """
        counts = self.arrays.counts
        if before_us <= counts[LOW]:
            return
        counts[LOW] = before_us
        now = before_us + self.window_us
        if 4 * self.size >= self.capacity or not counts[LEVEL] or counts[QUIET_SINCE] == MIN_TIME_US:
            counts[QUIET_SINCE] = max(int(counts[QUIET_SINCE]), now)
        elif now - int(counts[QUIET_SINCE]) >= self.window_us:
            counts[DOUBLED_FROM] = counts[LEVEL]
            counts[LEVEL] -= 1
            counts[DOUBLED] = counts[QUIET_SINCE] = now
        drop_objects(tuple(self.arrays))

    def merge(self, other: "CoordinatedSample") -> None:
        """Take in another sample: the smaller threshold; in each slot the later time, of equal times the larger value.

        Raises DefinitionError if it has other streams, another width or another window.
        """
        own, theirs = self.arrays, other.arrays
        if own.values.shape[1:] != theirs.values.shape[1:] or self.window_us != other.window_us:
            raise DefinitionError(
                f"a sample of {theirs.values.shape[1]} streams, width {theirs.values.shape[2]} and window "
                f"{other.window_us} us cannot be merged into one of {own.values.shape[1]}, {own.values.shape[2]} and "
                f"{self.window_us} us; make them alike"
            )
        for place in (LEVEL, LOW, QUIET_SINCE, NEWEST, DOUBLED, DOUBLED_FROM):
            own.counts[place] = max(int(own.counts[place]), int(theirs.counts[place]))
        drop_objects(tuple(own))
        observe_objects(tuple(own), tuple(theirs), theirs.values.reshape(-1, theirs.values.shape[2]))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return its arrays. Cost: a copy of the budget."""
        return {name: array.copy() for name, array in self.arrays._asdict().items()}

    def restore(self, state: SavedArrays) -> None:
        """Hold what another sample of the same streams, window and budget held. Raises LogError if it was not."""
        for name, array in self.arrays._asdict().items():
            array[...] = array_of(state, name, array.dtype, array.shape)

    def objects(self, at_us: int, window_us: int) -> SampledObjects:
        """Return the objects seen in ``[at_us - window_us, at_us)``; the arrays are copies. Cost O(n log n)."""
        arrays, size, level = self.arrays, self.size, self._settled_level(at_us, window_us)
        times = arrays.times_us[:size]
        present = ((times >= at_us - window_us) & (times < at_us)) @ (1 << np.arange(times.shape[1], dtype=np.int64))
        shown = present != 0
        if level > self.level:
            limit = (1 << (64 - level)) - 1
            shown &= np.array([int(mix(bits ^ SAMPLE_SEED)) <= limit for bits in arrays.id_hash[:size]], np.bool_)
        chosen = np.flatnonzero(shown)
        chosen = chosen[np.argsort(arrays.id_hash[chosen])]
        return SampledObjects(
            present[chosen], times[chosen], arrays.values[chosen], arrays.first_us[chosen], 1.0 / (1 << level)
        )

    def appearance(self, given_bits: int, stream: int, at_us: int, window_us: int) -> Appearance | None:
        """Return the chance that an object seen on all streams of `given_bits` comes on `stream` too; None: unknown.

        See `appearance_among`. Cost O(n log n).
        """
        return appearance_among(self.objects(at_us, window_us), given_bits, stream, at_us, window_us)

    def lag_quantiles(
        self, given: int, stream: int, levels: Sequence[float], at_us: int, window_us: int
    ) -> tuple[int, ...]:
        """Return quantiles of the time on `stream` less that on `given`, us; empty if too few objects came on both."""
        lags = lags_among(self.objects(at_us, window_us), given, stream)
        return tuple(int(lag) for lag in quantiles_of(lags, levels))

    def value_quantiles(
        self, stream: int, attribute: int, levels: Sequence[float], at_us: int, window_us: int
    ) -> tuple[float, ...]:
        """Return quantiles of one attribute of a stream over objects, each with its latest value; empty: too few."""
        objects = self.objects(at_us, window_us)
        values = objects.values[(objects.present >> stream) & 1 == 1, stream, attribute]
        return tuple(float(value) for value in quantiles_of(values, levels))

    def _settled_level(self, at_us: int, window_us: int) -> int:
        counts = self.arrays.counts
        if at_us - window_us < int(counts[DOUBLED]):
            return max(self.level, int(counts[DOUBLED_FROM]))
        return self.level

    def _check(self) -> None:
        arrays, size = self.arrays, self.size
        limit = (1 << (64 - self.level)) - 1
        assert all(int(mix(bits ^ SAMPLE_SEED)) <= limit for bits in arrays.id_hash[:size])
        assert len(np.unique(arrays.id_hash[:size])) == size
        assert sorted(arrays.places[arrays.places >= 0]) == list(range(size))
        times = arrays.times_us[:size]
        seen = times != NOT_SEEN
        assert seen.any(axis=1).all()
        assert (times[seen] >= arrays.counts[LOW]).all()
        assert (np.where(seen, times, 1 << 62) >= arrays.first_us[:size, np.newaxis]).all()
        assert (arrays.values[:size][~seen] == 0.0).all()


def lags_among(objects: SampledObjects, given: int, stream: int) -> npt.NDArray[np.int64]:
    """Return the time on `stream` less the time on `given`, us, of every object present on both."""
    both = ((objects.present >> given) & (objects.present >> stream) & 1) == 1
    return objects.times[both, stream] - objects.times[both, given]


def appearance_among(
    objects: SampledObjects, given_bits: int, stream: int, at_us: int, window_us: int
) -> Appearance | None:
    """Return the chance that an object seen on all streams of `given_bits` comes on `stream` too; None: unknown.

    A ratio of counts with error sqrt(p (1 - p) / n), over objects that were not born within a typical lag of either end
    of the window; the typical lag is the 0.95 quantile of the lags between the streams, at most half the window. So the
    chance is that of an object whose time has come. Unknown: fewer than 30 objects.
    """
    given = [i for i in range(objects.times.shape[1]) if given_bits >> i & 1]
    lags = [np.abs(lags_among(objects, i, stream)) for i in given if i != stream]
    typical = max((int(_nearest(lag, _TYPICAL_LAG)) for lag in lags if len(lag)), default=0)
    typical = min(typical, window_us // 2)
    born, begin = objects.first_us, at_us - window_us
    settled = (born <= at_us - typical) & ((born >= begin) | (born < begin - typical))
    counted = settled & (objects.present & given_bits == given_bits)
    n = int(np.count_nonzero(counted))
    if n < LEAST_OBJECTS:
        return None
    p = int(np.count_nonzero(counted & ((objects.present >> stream) & 1 == 1))) / n
    return Appearance(p, float(np.sqrt(p * (1.0 - p) / n)), n)


def quantiles_of(sample: npt.NDArray[np.int64] | npt.NDArray[np.float64], levels: Sequence[float]) -> list[int | float]:
    """Return quantiles of a sample, one for each level (0 to 1); nothing if it has fewer than 30 elements."""
    if len(sample) < LEAST_OBJECTS:
        return []
    return [_nearest(sample, level) for level in levels]


def _nearest(sample: npt.NDArray[np.int64] | npt.NDArray[np.float64], level: float) -> int | float:
    """Return the smallest element that is not below a share `level` of the sample: one that was seen, never a mean."""
    return np.sort(sample)[max(0, int(np.ceil(level * len(sample))) - 1)].item()
