"""The hot tier: a K-skyband over instances; it answers every k <= K and window <= W of one score.

Words: an *instance* of an object is what the object would score if only its observations since some tick counted; it
lives until that tick leaves the window. Instance p *dominates* q if it is of another object, no older, and ranks before
q. An instance dominated by K distinct objects can never be shown again: all of them outlive it and, where every
attribute is steady, only rise. What is left is the skyband, about K(1 + ln(W/K)) instances on random order.

::

    score │ a              read for window (low, now]: from the top, skipping
          │     b          instances older than `low` and objects already seen;
          │        c       c stays (b is older), d goes for K = 2: b' and c
          │  d   b'        are no older and rank before it
          └──────────── tick

A *sweep* throws out the dominated; between sweeps some of them wait, at most a quarter of the rest and a few, which
changes no answer: a ranking puts in order what it reads of all of them. The first of the instances held descend in
tick, as the last sweep left them; those that wait stand behind and are sorted when the next sweep comes.

Initial state: empty. Invariant: after a sweep instances descend in tick, and none is dominated by K distinct objects.
Sources: Shen, Cheema et al., TKDE 2014 (one skyband for many queries); Haghani et al., CIKM 2009, sec. 3 (instances).
"""

import numpy as np
import numpy.typing as npt

from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.structures.changed_objects import ChangedObjects
from skyband.structures.instance_kernels import (
    COUNTS,
    FIRM,
    FLOOR,
    HELD,
    LOST,
    NOT_FINITE,
    OLDEST,
    ROOM,
    SORTED,
    STEPS,
    Instances,
)
from skyband.structures.question import Question
from skyband.structures.rank_order import sort_by_rank
from skyband.structures.skyband_kernels import Workplace, read, refresh
from skyband.structures.window_store import WindowStore

__all__ = ["Skyband"]

# Instances between two sweeps: enough for the changes of a usual slide, few enough for the second cache.
_CAPACITY = 4096


class Skyband:
    """One hot tier over a window store: `refresh` at an evaluation, then `read` for any of its queries."""

    def __init__(self, store: WindowStore, question: Question, stack_size: int) -> None:
        self._store = store
        self._question = tuple(question)
        self._columns = len(question.streams)
        self._by_row = store.layout.by_row
        self.changed = ChangedObjects(store)
        self._instances = self._make(_CAPACITY)
        self._spare = self._make(_CAPACITY)
        self._work = Workplace(
            counts=np.zeros(COUNTS, np.int64),
            floor=np.zeros(0, np.float64),
            stair_ticks=np.zeros(_CAPACITY, np.int64),
            stair_ranks=np.zeros(_CAPACITY, np.float64),
            stack=np.empty(stack_size, np.float64),
            order=np.zeros(_CAPACITY, np.int32),
            late=np.zeros(_CAPACITY, np.int32),
            heap=np.zeros(0, np.int32),
            where=np.zeros(0, np.int32),
        )
        self._counts = self._work.counts
        self._seen = np.zeros(0, np.int64)
        self._stamp = 1
        self._low = MIN_TIME_US
        self.peak = 0

    @property
    def size(self) -> int:
        """Number of instances held."""
        return int(self._counts[HELD])

    @property
    def not_finite(self) -> int:
        """How often a score was infinite or not a number, which makes its object ineligible."""
        return int(self._counts[NOT_FINITE])

    @property
    def instances(self) -> Instances:
        """The instances; the first `size` places count."""
        return self._instances

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        arrays = (*self._instances, *self._spare, *self._work)
        return sum(array.nbytes for array in arrays) + self._seen.nbytes + self.changed.state_bytes

    def refresh(self, k: int, low: int) -> None:
        """Bring the skyband up to date for every query with k' <= `k` and lowest tick >= `low`.

        A larger `k` than before needs `restart` first; a smaller `low` restarts by itself. Cost: amortised O(log n) per
        changed object.
        """
        if low < self._low:
            self.restart()
        self._low = low
        self._fit(k)
        self._renew(low, -1)
        if self._counts[LOST]:
            # An object rose out of what is finite: it gives back the places that it kept from others.
            self.restart()
            changed = self.changed.fitted()
            changed.marks[changed.slots[: self.changed.count]] = 1
            self._renew(low, self.changed.count)
        self.peak = max(self.peak, self.size)

    def _renew(self, low: int, left: int) -> None:
        """Read the instances of changed objects, as `refresh` does, making room where they do not fit."""
        self._counts[LOST] = self._counts[FLOOR] = 0
        self._counts[OLDEST] = MAX_TIME_US
        while True:
            before = left
            left, swept = refresh(
                tuple(self._store.objects.arrays),
                self._by_row,
                tuple(self._store.arrays),
                self._question,
                tuple(self._instances),
                tuple(self._spare),
                tuple(self.changed.fitted()),
                tuple(self._work),
                low,
                left,
            )
            if swept:
                self._instances, self._spare = self._spare, self._instances
            if left == 0:
                return
            if left == before or 2 * self.size > len(self._instances.tick):
                self._grow()

    def restart(self) -> None:
        """Forget everything and read all live objects at the next `refresh`."""
        self._counts[HELD] = self._counts[SORTED] = self._counts[STEPS] = 0
        self.changed.add_all()

    def read(
        self, lows: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the rankings of many queries, as indexes of instances, and where each begins.

        Cost: O(n), and per query the instances passed until its k-th object; log n for each that is passed at all.
        """
        size = self.size
        most = min(int(ks[0]), size) if len(ks) == 1 else int(np.minimum(ks, size).sum())
        ranking, starts = np.empty(most, np.int32), np.empty(len(lows) + 1, np.int64)
        written = read(
            tuple(self._store.objects.arrays),
            self._by_row,
            tuple(self._instances),
            self._work.order[:size],
            lows,
            ks,
            self._seen,
            self._stamp,
            ranking,
            starts,
        )
        self._stamp += len(lows)
        return ranking[:written], starts

    def _make(self, capacity: int) -> Instances:
        return Instances(
            tick=np.zeros(capacity, np.int64),
            rank=np.zeros(capacity, np.float64),
            slot=np.zeros(capacity, np.int32),
            present=np.zeros(capacity, np.int64),
            values=np.zeros((capacity, self._columns), np.float64),
            firmness=np.zeros(capacity, np.int8),
        )

    def _fit(self, k: int) -> None:
        capacity = self._store.objects.capacity
        if len(self._work.where) < capacity:
            self._work = self._work._replace(where=np.full(capacity, -1, np.int32))
            self._seen = np.zeros(capacity, np.int64)
        # A heap for more objects than there are is never full, and nothing is pruned: exact, and bounded by the data.
        if len(self._work.heap) != k:
            self._work = self._work._replace(heap=np.zeros(k, np.int32), floor=np.zeros(k, np.float64))

    def _grow(self) -> None:
        capacity, size, steps = 2 * len(self._instances.tick), self.size, int(self._counts[STEPS])
        old, self._instances = self._instances, self._make(capacity)
        for name in old._fields:
            getattr(self._instances, name)[:size] = getattr(old, name)[:size]
        self._spare = self._make(capacity)
        stair_ticks, stair_ranks = np.zeros(capacity, np.int64), np.zeros(capacity, np.float64)
        stair_ticks[:steps] = self._work.stair_ticks[:steps]
        stair_ranks[:steps] = self._work.stair_ranks[:steps]
        order, late = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
        self._work = self._work._replace(stair_ticks=stair_ticks, stair_ranks=stair_ranks, order=order, late=late)

    def _check(self) -> None:
        self.changed._check()
        assert self.size <= self._counts[ROOM]
        assert self._counts[SORTED] <= self.size
        assert (np.diff(self._instances.tick[: self._counts[SORTED]]) <= 0).all()
        assert (self._work.where == -1).all()

    def _check_pruned(self, k: int) -> None:
        """Assert that after a sweep no firm instance is dominated by k distinct other objects (quadratic)."""
        self._counts[ROOM] = -1
        self._fit(k)
        self._renew(self._low, -1)
        at = self._instances
        assert (np.diff(at.tick[: self.size]) <= 0).all()
        order = sort_by_rank(self._store.objects.arrays, self._by_row, at.rank, at.slot, at.tick, self.size)
        for place, q in enumerate(order):
            better = [p for p in order[:place] if at.tick[p] >= at.tick[q] and at.firmness[p] == FIRM]
            assert at.firmness[q] != FIRM or len({int(at.slot[p]) for p in better} - {int(at.slot[q])}) < k
