"""How often the objects of a stream come again within a window: exactly, or from a few tallies.

`CountsOfCounts` knows of every object and is exact: how many objects came once, twice, and so on; the largest count is
the repetition bound. `SecondMoment` holds a fixed number of *tallies* for each *pane* of event time: every object has a
column and a sign, fixed by its hash, and each of its observations adds the sign to the column's tally. Panes of a
window are added up; the squares of the sums, added, are on average F2, the sum over objects of their squared counts.
No count can be larger than sqrt(F2).

::

    pane        41      42      43      44          ring of 4 panes; window [42, 44)
    tallies   3 -1    0  2    1  1    -1  0         1 3 → F2 = 1 + 9 = 10

Initial state: empty, no pane. Invariant: every pane that is not in ``[low, newest]`` holds zeros (in `CountsOfCounts`:
does not exist), and counts are those of the panes that are left.

Sources: Alon, Matias and Szegedy, J. Comput. Syst. Sci. 1999; Thorup and Zhang, SODA 2004 (one column an object instead
of all: the same error at one addition a row).
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.errors import DefinitionError
from skyband.model.duration import MIN_TIME_US
from skyband.model.statistics import Estimate
from skyband.sketch.sketch_kernels import (
    LOW_PANE,
    NEWEST_PANE,
    NO_PANE,
    RING,
    begin_pane,
    count_rows,
    tally_rows,
)
from skyband.structures.store_arrays import Rows

__all__ = ["CountsOfCounts", "SecondMoment"]

_FIRST_PLACES = 1024
_FIRST_COUNTS = 16


class CountsOfCounts:
    """How many objects have each number of observations, per stream; exact, in O(rows of the window) bytes.

    `pane_us` is how finely observations expire.
    """

    def __init__(self, streams: int, pane_us: int) -> None:
        if streams < 1 or pane_us < 1:
            raise DefinitionError(f"counts need a stream and a pane, not {streams} and {pane_us} us")
        self.pane_us = pane_us
        self.low = NO_PANE
        self._panes: dict[int, list[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]]] = {}
        self._table = np.zeros((_FIRST_PLACES, 2), np.uint64)
        self._objects = np.zeros((streams, _FIRST_COUNTS), np.int64)
        self._largest = np.zeros(streams + 1, np.int64)

    @property
    def streams(self) -> int:
        """Number of streams."""
        return len(self._objects)

    def bound(self, stream: int) -> int:
        """Return the largest number of observations of one object on a stream; 0 if there is none."""
        return int(self._largest[stream])

    def objects_by_count(self, stream: int) -> npt.NDArray[np.int64]:
        """Return int64[bound + 1]: how many objects have each number of observations; element 0 is 0."""
        return self._objects[stream, : self.bound(stream) + 1].copy()

    def second_moment(self, stream: int) -> int:
        """Return the sum over objects of their squared numbers of observations."""
        objects = self.objects_by_count(stream)
        return int(objects @ np.arange(len(objects)) ** 2)

    def add(self, rows: Rows, first: int, last: int) -> None:
        """Count rows [first, last), each once; rows in panes that have expired are left out. Cost O(1) a row."""
        part = slice(first, last)
        pane = rows.event_time_us[part] // self.pane_us
        stream, id_hash = rows.stream[part], rows.id_hash[part].view(np.uint64)
        for one in np.unique(pane[pane >= self.low]):
            self._add_to(int(one), stream[pane == one], id_hash[pane == one])

    def expire(self, before_us: int) -> None:
        """Subtract what came in panes before `before_us`, a multiple of the pane. Cost O(1) a row."""
        self.low = max(self.low, before_us // self.pane_us)
        for pane in sorted(self._panes):
            if pane < self.low:
                for stream, id_hash in self._panes.pop(pane):
                    count_rows(self._table, self._objects, self._largest, stream, id_hash, 0, -1)

    def merge(self, other: "CountsOfCounts") -> None:
        """Count what another has counted. Raises DefinitionError if it has other streams or panes."""
        if (self.streams, self.pane_us) != (other.streams, other.pane_us):
            raise DefinitionError(
                f"counts of {other.streams} streams in panes of {other.pane_us} us cannot be merged into counts of "
                f"{self.streams} in panes of {self.pane_us} us; make them alike"
            )
        self.expire(other.low * self.pane_us if other.low > NO_PANE else MIN_TIME_US)
        for pane, parts in sorted(other._panes.items()):
            if pane >= self.low:
                for stream, id_hash in parts:
                    self._add_to(pane, stream, id_hash)

    def _add_to(self, pane: int, stream: npt.NDArray[np.int32], id_hash: npt.NDArray[np.uint64]) -> None:
        self._panes.setdefault(pane, []).append((stream, id_hash))
        at = 0
        while True:
            at = count_rows(self._table, self._objects, self._largest, stream, id_hash, at, 1)
            if at == len(stream):
                return
            self._make_room()

    def _make_room(self) -> None:
        """Widen the counts, or list the objects that are left in a table that they fill to a quarter at most."""
        if int(self._largest[:-1].max()) + 1 >= self._objects.shape[1]:
            self._objects = np.pad(self._objects, ((0, 0), (0, self._objects.shape[1])))
            return
        left = self._table[self._table[:, 1] > 1]
        self._table = np.zeros((max(_FIRST_PLACES, 1 << (4 * len(left) - 1).bit_length()), 2), np.uint64)
        mask = len(self._table) - 1
        for key, count in left.tolist():
            at = key & 0x7FFFFFFF & mask
            while self._table[at, 1]:
                at = (at + 1) & mask
            self._table[at] = key, count
        self._largest[-1] = len(left)

    def _check(self) -> None:
        expected: dict[tuple[int, int], int] = {}
        for parts in self._panes.values():
            for streams, id_hash in parts:
                for key in zip(streams.tolist(), id_hash.tolist(), strict=True):
                    expected[key] = expected.get(key, 0) + 1
        for stream in range(self.streams):
            counts = [count for (of, _), count in expected.items() if of == stream]
            assert self.objects_by_count(stream).tolist() == np.bincount(counts, minlength=1).tolist()
        assert all(pane >= self.low for pane in self._panes)


class SecondMoment:
    """F2 of each stream over windows of up to `window_us`, from `columns` (a power of two) tallies a pane and stream.

    The relative standard error of F2 is sqrt(2 / columns): 9 % with 256. State: 4 bytes a tally, for the panes of the
    window and one more; choose `pane_us` so that these are few. The caller gives every row once.
    """

    def __init__(self, streams: int, window_us: int, pane_us: int, columns: int = 256) -> None:
        if streams < 1 or pane_us < 1 or window_us < pane_us or columns < 2 or columns & (columns - 1):
            raise DefinitionError(
                "a second moment needs a stream, a pane, a window of at least a pane, and a power of two of columns, "
                f"not {streams}, {pane_us} us, {window_us} us and {columns}"
            )
        self.pane_us = pane_us
        panes = -(-window_us // pane_us) + 1
        self.tallies: npt.NDArray[np.int32] = np.zeros((panes, streams, columns), np.int32)
        self.ring: npt.NDArray[np.int64] = np.full(RING, NO_PANE, np.int64)

    @property
    def relative_error(self) -> float:
        """Relative standard error of F2."""
        return math.sqrt(2.0 / self.tallies.shape[2])

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self.tallies.nbytes

    def add(self, rows: Rows, first: int, last: int) -> None:
        """Take in rows [first, last), each once, in any order; those older than the ring are left out. Cost O(1)."""
        part = slice(first, last)
        hashes = rows.id_hash[part].view(np.uint64)
        tally_rows(self.tallies, self.ring, self.pane_us, rows.stream[part], rows.event_time_us[part], hashes)

    def expire(self, before_us: int) -> None:
        """Forget the panes before `before_us`, a multiple of the pane. Cost: the panes forgotten."""
        low, panes = before_us // self.pane_us, len(self.tallies)
        for pane in range(max(int(self.ring[LOW_PANE]), int(self.ring[NEWEST_PANE]) - panes + 1), low):
            if pane > self.ring[NEWEST_PANE]:
                break
            self.tallies[pane % panes] = 0
        self.ring[LOW_PANE] = max(int(self.ring[LOW_PANE]), low)

    def merge(self, other: "SecondMoment") -> None:
        """Add the tallies of other rows. Raises DefinitionError if their shape or panes differ."""
        if self.tallies.shape != other.tallies.shape or self.pane_us != other.pane_us:
            raise DefinitionError(
                f"tallies of shape {other.tallies.shape} in panes of {other.pane_us} us cannot be merged into "
                f"{self.tallies.shape} in panes of {self.pane_us} us; make them alike"
            )
        newest, low = int(other.ring[NEWEST_PANE]), int(other.ring[LOW_PANE])
        begin_pane(self.tallies, self.ring, newest)
        if low > NO_PANE:
            self.expire(low * self.pane_us)
        panes = len(self.tallies)
        for pane in range(max(int(self.ring[LOW_PANE]), low), newest + 1):
            self.tallies[pane % panes] += other.tallies[pane % panes]

    def second_moment(self, stream: int, at_us: int, window_us: int) -> Estimate:
        """Return F2 in ``[at_us - window_us, at_us)``, both multiples of the pane. Cost: panes times columns."""
        newest, panes = int(self.ring[NEWEST_PANE]), len(self.tallies)
        begin = max((at_us - window_us) // self.pane_us, int(self.ring[LOW_PANE]), newest - panes + 1)
        places = [pane % panes for pane in range(begin, min(-(-at_us // self.pane_us), newest + 1))]
        sums: npt.NDArray[Any] = self.tallies[np.array(places, np.intp), stream].sum(axis=0, dtype=np.int64)
        value = float(sums @ sums)
        return Estimate(value, self.relative_error * value)

    def bound(self, stream: int, at_us: int, window_us: int) -> float:
        """Return what no object's number of observations exceeds: sqrt(F2), F2 taken two standard errors higher."""
        moment = self.second_moment(stream, at_us, window_us)
        return math.sqrt(moment.value + 2.0 * moment.error)

    def _check(self) -> None:
        newest, low, panes = int(self.ring[NEWEST_PANE]), int(self.ring[LOW_PANE]), len(self.tallies)
        living = {pane % panes for pane in range(max(low, newest - panes + 1), newest + 1)}
        dead = np.array([place for place in range(panes) if place not in living], np.intp)
        assert not self.tallies[dead].any()
