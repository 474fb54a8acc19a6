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
changes no answer: a ranking puts in order whatever it reads.

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
    STEPS,
    Instances,
    prune,
    read,
    renew,
)
from skyband.structures.question import Question
from skyband.structures.rank_order import sort_by_rank
from skyband.structures.window_store import WindowStore

__all__ = ["Skyband"]

# Instances between two sweeps: enough for the changes of a usual slide, few enough for the second cache.
_CAPACITY = 4096
# Instances beyond a quarter that may wait for the next sweep.
_SLACK = 16


class Skyband:
    """One hot tier over a window store: `refresh` at an evaluation, then `read` for any of its queries."""

    def __init__(self, store: WindowStore, question: Question, stack_size: int) -> None:
        self._store = store
        self._question = question
        self._stack = np.empty(stack_size, np.float64)
        self._by_row = store.layout.by_row
        self.changed = ChangedObjects(store)
        self._instances = self._make(_CAPACITY)
        self._spare = self._make(_CAPACITY)
        self._stair_ticks = np.zeros(_CAPACITY, np.int64)
        self._stair_ranks = np.zeros(_CAPACITY, np.float64)
        self._counts = np.zeros(COUNTS, np.int64)
        self._where = np.zeros(0, np.int32)
        self._seen = np.zeros(0, np.int64)
        self._stamp = 1
        self._heap = np.zeros(0, np.int32)
        self._floor = np.zeros(0, np.float64)
        self._low = MIN_TIME_US
        self._room = 0
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
        return sum(array.nbytes for pair in (self._instances, self._spare) for array in pair) + self._where.nbytes

    def refresh(self, k: int, low: int) -> None:
        """Bring the skyband up to date for every query with k' <= `k` and lowest tick >= `low`.

        A larger `k` than before needs `restart` first; a smaller `low` restarts by itself. Cost: amortised O(log n) per
        changed object.
        """
        if low < self._low:
            self.restart()
        self._low = low
        self.changed.add_changes()
        self._fit(k)
        slots = self.changed.slots[: self.changed.count]
        self._renew(k, low, slots, is_first=True)
        if self._counts[LOST]:
            # An object rose out of what is finite: it gives back the places that it kept from others.
            self.restart()
            slots = self.changed.slots[: self.changed.count]
            self.changed.marks[slots] = 1
            self._renew(k, low, slots, is_first=False)
        self.changed.clear()
        self.peak = max(self.peak, self.size)

    def _renew(self, k: int, low: int, slots: npt.NDArray[np.int32], *, is_first: bool) -> None:
        """Read the instances of changed objects, pruning whenever they have grown by a quarter or fill up."""
        self._counts[LOST] = self._counts[FLOOR] = 0
        self._counts[OLDEST] = MAX_TIME_US
        left = len(slots)
        while True:
            before = left
            left = renew(
                tuple(self._store.arrays),
                tuple(self._question),
                tuple(self._instances),
                self._counts,
                low,
                slots[:before],
                self.changed.marks,
                self._floor[:k],
                self._stair_ticks,
                self._stair_ranks,
                self._stack,
                is_first,
            )
            is_first = False
            if left or self.size > self._room:
                self._prune(k)
            if left == 0:
                break
            if left == before or 2 * self.size > len(self._instances.tick):
                self._grow()

    def _prune(self, k: int) -> None:
        order = np.argsort(-self._instances.tick[: self.size])
        prune(
            tuple(self._store.objects.arrays),
            self._by_row,
            tuple(self._instances),
            tuple(self._spare),
            order,
            self._heap[:k],
            self._where,
            self._counts,
            self._stair_ticks,
            self._stair_ranks,
        )
        self._instances, self._spare = self._spare, self._instances
        # A sweep passes all instances, a slide adds a few: a quarter more to read costs less than a sweep each time.
        self._room = self.size + self.size // 4 + _SLACK

    def restart(self) -> None:
        """Forget everything and read all live objects at the next `refresh`."""
        self._counts[HELD] = self._counts[STEPS] = 0
        self.changed.add_all()

    def read(
        self, lows: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the rankings of many queries, as indexes of instances, and where each begins.

        Cost: O(n log n), and per query the instances passed until its k-th object.
        """
        order = np.argsort(-self._instances.rank[: self.size]).astype(np.int32)
        ranking = np.empty(int(np.minimum(ks, self.size).sum()), np.int32)
        starts = np.empty(len(lows) + 1, np.int64)
        written = read(
            tuple(self._store.objects.arrays),
            self._by_row,
            tuple(self._instances),
            order,
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
            values=np.zeros((capacity, len(self._question.streams)), np.float64),
            firmness=np.zeros(capacity, np.int8),
        )

    def _fit(self, k: int) -> None:
        capacity = self._store.objects.capacity
        if len(self._where) < capacity:
            self._where = np.full(capacity, -1, np.int32)
            self._seen = np.zeros(capacity, np.int64)
        # A heap for more objects than there are is never full, and nothing is pruned: exact, and bounded by the data.
        if len(self._heap) < k:
            self._heap = np.zeros(k, np.int32)
            self._floor = np.zeros(k, np.float64)

    def _grow(self) -> None:
        capacity = 2 * len(self._instances.tick)
        old, self._instances = self._instances, self._make(capacity)
        for name in old._fields:
            getattr(self._instances, name)[: self.size] = getattr(old, name)[: self.size]
        self._spare = self._make(capacity)
        steps = int(self._counts[STEPS])
        for name in ("_stair_ticks", "_stair_ranks"):
            stair = np.zeros(capacity, getattr(self, name).dtype)
            stair[:steps] = getattr(self, name)[:steps]
            setattr(self, name, stair)

    def _check(self) -> None:
        self.changed._check()
        assert self.size <= self._room
        assert (self._where == -1).all()

    def _check_pruned(self, k: int) -> None:
        """Assert that after a sweep no firm instance is dominated by k distinct other objects (quadratic)."""
        self._prune(k)
        at = self._instances
        assert (np.diff(at.tick[: self.size]) <= 0).all()
        order = sort_by_rank(self._store.objects.arrays, self._by_row, at.rank, at.slot, at.tick, self.size)
        for place, q in enumerate(order):
            better = [p for p in order[:place] if at.tick[p] >= at.tick[q] and at.firmness[p] == FIRM]
            assert at.firmness[q] != FIRM or len({int(at.slot[p]) for p in better} - {int(at.slot[q])}) < k
