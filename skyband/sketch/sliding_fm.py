"""Distinct objects of streams in a sliding window, from bitmaps of times.

Words: an object's hash chooses one of m *bitmaps* and in it a *position*, i with a chance of 2**-(i + 1), the last with
what is left. The bit there holds the newest event time that set it. At time T and for a window W it counts as set iff
that time is at least T - W: what came before has slid out, with nothing to be done.

::

    position       0     1     2     3     4        T = 60, W = 10
    newest time   58    57    44    59     –
    counts as      1     1     0     1     0        lowest unset: 2

One seed serves all streams, so that a bitmap of the union is the element-wise maximum of bitmaps. What counts is which
objects came when, not how often nor in which order.

Initial state: no bit was ever set. Invariant: none but that times only grow. A question about the past is answered as
if nothing had come since: ask for a T above every event time added.

Sources: Flajolet and Martin, J. Comput. Syst. Sci. 1985 (bitmaps, 0.77351 and 0.78); Scheuermann and Mauve, DIALM-POMC
2007 (the exponent 1.75); Datar et al., SIAM J. Comput. 2002 (a time for each bit).
"""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.errors import DefinitionError
from skyband.model.duration import MIN_TIME_US
from skyband.model.statistics import Estimate
from skyband.sketch.sketch_kernels import POSITIONS, set_bits
from skyband.structures.store_arrays import Rows

__all__ = ["ESTIMATE_ERROR", "LIKELY_ERROR", "SlidingFM"]

_PHI = 0.77351
_KAPPA = 1.75

# Relative standard error of `estimate`, times sqrt(m), from four objects a bitmap on. With fewer it is biased upwards
# (by 6 % with 1.6 objects a bitmap), which `likely` is not.
ESTIMATE_ERROR = 0.78

# Relative standard error of `likely`, times sqrt(m). With x = n 2**-(i + 1) / m, position i of a bitmap tells about
# log n a Fisher information of x**2 / (exp(x) - 1). Summed over positions that is, but for ripples below 1e-4, the
# integral of x / (exp(x) - 1) over log(2) = pi**2 / (6 log 2) = 2.373, and 1 / sqrt(2.373) = 0.649. The rest is for the
# terms of order 1/m from m = 32 on.
LIKELY_ERROR = 0.68

# The weight of each position: the chance of an object that came to this bitmap.
_WEIGHTS = 0.5 ** np.minimum(np.arange(1, POSITIONS + 1), POSITIONS - 1)
# Halvings of the 48 octaves in which the number of objects may lie: to a relative 1e-10.
_STEPS = 38


class SlidingFM:
    """Bitmaps of `streams` streams, `bitmaps` (m, a power of two from 2 on) each: 256 bytes a bitmap.

    The relative errors are 0.78/sqrt(m) for `estimate` and 0.68/sqrt(m) for `likely`: 10 % and 8.5 % at m = 64.
    Raises DefinitionError for another number of bitmaps.
    """

    def __init__(self, streams: int, bitmaps: int = 64) -> None:
        if streams < 1 or bitmaps < 2 or bitmaps & (bitmaps - 1) or bitmaps > 1 << 16:
            raise DefinitionError(
                f"bitmaps must be a power of two from 2 to 65536 for at least one stream, not {bitmaps} for {streams}",
                field="bitmaps",
            )
        self.newest_us: npt.NDArray[np.int64] = np.full((streams, bitmaps, POSITIONS), MIN_TIME_US, np.int64)

    @property
    def bitmaps(self) -> int:
        """Number of bitmaps of a stream."""
        return int(self.newest_us.shape[1])

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self.newest_us.nbytes

    def add(self, rows: Rows, first: int, last: int) -> None:
        """Take in rows [first, last), in any order; a row that came before changes nothing. Cost O(1) a row."""
        part = slice(first, last)
        set_bits(self.newest_us, rows.stream[part], rows.event_time_us[part], rows.id_hash[part].view(np.uint64))

    def merge(self, other: "SlidingFM") -> None:
        """Take in the bitmaps of other rows of the same streams. Raises DefinitionError if their shape differs."""
        if self.newest_us.shape != other.newest_us.shape:
            raise DefinitionError(
                f"bitmaps of shape {other.newest_us.shape} cannot be merged into {self.newest_us.shape}; build both "
                "with the same streams and bitmaps"
            )
        np.maximum(self.newest_us, other.newest_us, out=self.newest_us)

    def estimate(self, stream: int, at_us: int, window_us: int) -> Estimate:
        """Return the number of distinct objects in ``[at_us - window_us, at_us)`` by the mean lowest unset position."""
        is_set = self._is_set((stream,), at_us, window_us)
        lowest = float(np.where(is_set.all(axis=1), POSITIONS, is_set.argmin(axis=1)).mean())
        m = self.bitmaps
        objects = m / _PHI * (2.0**lowest - 2.0 ** (-_KAPPA * lowest))
        return Estimate(objects, ESTIMATE_ERROR / math.sqrt(m) * objects)

    def likely(self, stream: int, at_us: int, window_us: int) -> Estimate:
        """Return the number of distinct objects in the window that makes the bits most likely. Cost O(m)."""
        return self.union((stream,), at_us, window_us)

    def union(self, streams: Collection[int], at_us: int, window_us: int) -> Estimate:
        """Return the number of distinct objects on any of `streams` in the window, by likelihood."""
        objects = _most_likely(self._is_set(streams, at_us, window_us))
        return Estimate(objects, LIKELY_ERROR / math.sqrt(self.bitmaps) * objects)

    def intersection(self, first: int, second: int, at_us: int, window_us: int) -> Estimate:
        """Return the number of objects on both of two streams in the window, by inclusion and exclusion.

        The result is clamped to what is possible. Its error is proportional to the union, so that a small intersection
        of large streams drowns: prefer the sample.
        """
        one = self.likely(first, at_us, window_us)
        two = self.likely(second, at_us, window_us)
        either = self.union((first, second), at_us, window_us)
        both = one.value + two.value - either.value
        return Estimate(min(max(0.0, both), one.value, two.value), either.error)

    def _is_set(self, streams: Collection[int], at_us: int, window_us: int) -> npt.NDArray[np.bool_]:
        """Return bool[m, positions]: which bits of the union count."""
        newest: npt.NDArray[Any] = self.newest_us[list(streams)].max(axis=0)
        return newest >= at_us - window_us


def _most_likely(is_set: npt.NDArray[np.bool_]) -> float:
    """Return the n under which bits set independently with chances 1 - exp(-n w / m) are most likely what they are.

    The likelihood has one maximum, where sum(set w / (exp(n w / m) - 1)) = sum(unset w): halving finds its logarithm.
    """
    m = len(is_set)
    set_weights = is_set.sum(axis=0) * _WEIGHTS
    unset = float((m - is_set.sum(axis=0)) @ _WEIGHTS)
    if not set_weights.any():
        return 0.0
    low, high = -math.log2(m) - 8.0, POSITIONS + 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if float((set_weights / np.expm1(np.minimum(2.0**middle * _WEIGHTS, 700.0))).sum()) > unset:
            low = middle
        else:
            high = middle
    return float(m * 2.0**high)
