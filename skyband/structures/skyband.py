"""The hot tier: a K-skyband over instances; it answers every k <= K and window <= W of one score.

Words: an *instance* of an object is what the object would score if only its observations since some tick counted; it
lives until that tick leaves the window. Instance p *dominates* q if it is of another object, no older, and ranks before q.
An instance dominated by K distinct objects can never be shown again: all of them outlive it and, where every attribute is
steady, only rise. What is left is the skyband, about K(1 + ln(W/K)) instances on random order.

::

    score │ a              read for window (low, now]: from the top, skipping
          │     b          instances older than `low` and objects already seen;
          │        c       c stays (b is older), d goes for K = 2: b' and c
          │  d   b'        are no older and rank before it
          └──────────── tick

Initial state: empty. Invariant after `prune`: instances descend in tick; none is dominated by K distinct objects.
Sources: Shen, Cheema et al., TKDE 2014 (one skyband for many queries); Haghani et al., CIKM 2009, sec. 3 (instances).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.structures.changed_objects import ChangedObjects
from skyband.structures.question import Question, read_object
from skyband.structures.rank_order import heap_offer, sort_by_rank
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.window_store import WindowStore

__all__ = ["Instances", "Skyband"]

# An instance is firm, or loose (its object has a score that is not finite in some longer window, so it must neither be
# pruned nor prune), or a bar: in windows that reach back to it, its object is not eligible.
FIRM, LOOSE, BAR = 0, 1, 2

# Places in a skyband's `counts`: instances held, scores that were not finite, and of the floor its size and oldest tick.
HELD, NOT_FINITE, FLOOR, OLDEST, COUNTS = 0, 1, 2, 3, 4

# Instances between two sweeps: enough for the changes of a usual slide, few enough for the second cache.
_CAPACITY = 4096


class Instances(NamedTuple):
    """Instances in columns: tick, rank score, slot, bits of the columns present, their values, and firmness."""

    tick: npt.NDArray[np.int64]
    rank: npt.NDArray[np.float64]
    slot: npt.NDArray[np.int32]
    present: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    firmness: npt.NDArray[np.int8]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _copy(instances, source, into, target):
    into.tick[target] = instances.tick[source]
    into.rank[target] = instances.rank[source]
    into.slot[target] = instances.slot[source]
    into.present[target] = instances.present[source]
    into.firmness[target] = instances.firmness[source]
    for j in range(instances.values.shape[1]):
        into.values[target, j] = instances.values[source, j]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _drop_changed(instances, count, low, marks):
    """Keep instances that still live and whose object has not changed; return how many."""
    kept = 0
    for i in range(count):
        if instances.tick[i] >= low and marks[instances.slot[i]] == 0:
            if kept != i:
                _copy(instances, i, instances, kept)
            kept += 1
    return kept


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _newest_before(store, question, slot, tick):
    """Return the newest tick below `tick` in which the object has an entry that the question reads, or -2^62."""
    newest = -(1 << 62)
    for column in range(len(question.streams)):
        stream = question.streams[column]
        if column > 0 and stream == question.streams[column - 1]:
            continue
        block, head = store.chains[slot, stream, 0], store.chains[slot, stream, 1]
        length, mask = store.chains[slot, stream, 2], store.chains[slot, stream, 3] - 1
        for j in range(length - 1, -1, -1):
            seen = store.ticks[block + ((head + j) & mask), 0]
            if seen < tick:
                newest = max(newest, seen)
                break
    return newest


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _add_instances(store, question, instances, count, slot, low, stack, counts):
    """Append the instances of one object, newest first; return the new count, or -1 if they do not fit."""
    first = count
    tick = 1 << 62
    is_firm = True
    while True:
        tick = _newest_before(store, question, slot, tick)
        if tick < low:
            break
        if count == len(instances.tick):
            return -1
        bits = read_object(store, question, slot, tick, instances.values[count])
        if bits == 0:
            continue
        rank = question.sign * evaluate_one(question.code, question.constants, stack, instances.values[count])
        finite = np.isfinite(rank)
        if not finite:
            counts[NOT_FINITE] += 1
            if count == first:
                continue
            is_firm = False
            rank = np.inf
        elif count > first and not _differs(instances, count, rank, bits):
            continue
        instances.tick[count] = tick
        instances.rank[count] = rank
        instances.slot[count] = slot
        instances.present[count] = bits
        instances.firmness[count] = FIRM if finite else BAR
        count += 1
        if not finite:
            break
    if not is_firm:
        for i in range(first, count):
            if instances.firmness[i] == FIRM:
                instances.firmness[i] = LOOSE
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _differs(instances, at, rank, bits):
    """Return whether an instance shows anything that the object's next newer one does not."""
    if instances.rank[at - 1] != rank or instances.present[at - 1] != bits:
        return True
    for j in range(instances.values.shape[1]):
        if instances.values[at, j] != instances.values[at - 1, j]:
            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _offer_floor(floor, size, rank):
    """Keep the best ranks in the min-heap `floor`; return its new size. Cost O(log k)."""
    if size < len(floor):
        at = size
        size += 1
        while at > 0 and floor[(at - 1) >> 1] > rank:
            floor[at] = floor[(at - 1) >> 1]
            at = (at - 1) >> 1
        floor[at] = rank
        return size
    if rank <= floor[0]:
        return size
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and floor[child + 1] < floor[child]:
            child += 1
        if floor[child] >= rank:
            break
        floor[at] = floor[child]
        at = child
    floor[at] = rank
    return size


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _add_changed(store, question, instances, counts, low, slots, floor, stack):
    """Append the instances of changed objects, last changed first; return how many of `slots` are left.

    `floor` holds the best ranks of k objects' newest instances, none older than counts[OLDEST]. An object that is not
    newer and would not beat the least of them even with all it has seen is dominated as a whole, and costs one score.
    """
    count = counts[HELD]
    left = len(slots)
    while left > 0:
        slot = slots[left - 1]
        newest = _newest_before(store, question, slot, 1 << 62)
        if newest >= low:
            if counts[FLOOR] == len(floor) and newest <= counts[OLDEST] and count < len(instances.tick):
                bits = read_object(store, question, slot, low, instances.values[count])
                rank = question.sign * evaluate_one(question.code, question.constants, stack, instances.values[count])
                if bits == 0 or rank < floor[0]:
                    left -= 1
                    continue
            added = _add_instances(store, question, instances, count, slot, low, stack, counts)
            if added < 0:
                break
            if added > count and instances.firmness[count] == FIRM and instances.tick[count] == newest:
                counts[FLOOR] = _offer_floor(floor, counts[FLOOR], instances.rank[count])
                counts[OLDEST] = min(counts[OLDEST], newest)
            count = added
        left -= 1
    counts[HELD] = count
    return left


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _prune(objects, by_row, instances, spare, order, heap, where):
    """Sweep in `order`, youngest to oldest, equal ticks together; move what is not dominated to `spare`.

    Return how many are kept. Cost: O(1) for an instance that does not beat the k-th object so far, else O(log k).
    """
    count = len(order)
    size = 0
    kept = 0
    i = 0
    while i < count:
        j = i
        tick = instances.tick[order[i]]
        while j < count and instances.tick[order[j]] == tick:
            at = order[j]
            if instances.firmness[at] == FIRM:
                size = heap_offer(objects, by_row, instances.rank, instances.slot, heap, size, where, at)
            j += 1
        for m in range(i, j):
            at = order[m]
            place = where[instances.slot[at]]
            if instances.firmness[at] != FIRM or (place >= 0 and heap[place] == at):
                _copy(instances, at, spare, kept)
                kept += 1
        i = j
    for i in range(size):
        where[instances.slot[heap[i]]] = -1
    return kept


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _read(instances, order, lows, ks, seen, stamp, ranking, starts):
    """Write each query's ranking; query q sees instances with tick >= lows[q]. Return the number written."""
    written = 0
    for q in range(len(lows)):
        starts[q] = written
        left = ks[q]
        for at in order:
            if left == 0:
                break
            if instances.tick[at] < lows[q]:
                continue
            slot = instances.slot[at]
            if seen[slot] == stamp + q:
                continue
            seen[slot] = stamp + q
            if instances.firmness[at] != BAR:
                ranking[written] = at
                written += 1
                left -= 1
    starts[len(lows)] = written
    return written


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
        self._counts = np.zeros(COUNTS, np.int64)
        self._where = np.zeros(0, np.int32)
        self._seen = np.zeros(0, np.int64)
        self._stamp = 1
        self._heap = np.zeros(0, np.int32)
        self._floor = np.zeros(0, np.float64)
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
        self._counts[HELD] = _drop_changed(self._instances, self.size, low, self.changed.marks)
        self._counts[FLOOR], self._counts[OLDEST] = 0, MAX_TIME_US
        left = len(slots)
        while True:
            before = left
            left = _add_changed(
                self._store.arrays,
                self._question,
                self._instances,
                self._counts,
                low,
                slots[:before],
                self._floor[:k],
                self._stack,
            )
            self._prune(k)
            if left == 0:
                break
            if left == before or 2 * self.size > len(self._instances.tick):
                self._grow()
        self.changed.clear()
        self.peak = max(self.peak, self.size)

    def _prune(self, k: int) -> None:
        order = np.argsort(-self._instances.tick[: self.size])
        self._counts[HELD] = _prune(
            self._store.objects.arrays,
            self._by_row,
            self._instances,
            self._spare,
            order,
            self._heap[:k],
            self._where,
        )
        self._instances, self._spare = self._spare, self._instances

    def restart(self) -> None:
        """Forget everything and read all live objects at the next `refresh`."""
        self._counts[HELD] = 0
        self.changed.add_all()

    def order(self) -> npt.NDArray[np.int32]:
        """Return the instances' indexes in rank order. Cost O(n log n)."""
        at = self._instances
        order: npt.NDArray[np.int32] = sort_by_rank(
            self._store.objects.arrays, self._by_row, at.rank, at.slot, at.tick, self.size
        )
        return order

    def read(
        self, order: npt.NDArray[np.int32], lows: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the rankings of many queries, as indexes of instances, and where each begins.

        Cost: per query the instances passed until its k-th object.
        """
        ranking = np.empty(int(np.minimum(ks, self.size).sum()), np.int32)
        starts = np.empty(len(lows) + 1, np.int64)
        written = _read(self._instances, order, lows, ks, self._seen, self._stamp, ranking, starts)
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
        # A heap for more objects than there are is never full, and then nothing is pruned: exact, and bounded by the data.
        if len(self._heap) < k:
            self._heap = np.zeros(k, np.int32)
            self._floor = np.zeros(k, np.float64)

    def _grow(self) -> None:
        capacity = 2 * len(self._instances.tick)
        old, self._instances = self._instances, self._make(capacity)
        for source, target in zip(old, self._instances, strict=True):
            target[: self.size] = source[: self.size]
        self._spare = self._make(capacity)

    def _check(self) -> None:
        self.changed._check()
        assert (np.diff(self._instances.tick[: self.size]) <= 0).all()
        assert (self._where == -1).all()

    def _check_pruned(self, k: int) -> None:
        """Assert that no firm instance is dominated by k distinct other objects (quadratic)."""
        at = self._instances
        order = self.order()
        for place, q in enumerate(order):
            better = [p for p in order[:place] if at.tick[p] >= at.tick[q] and at.firmness[p] == FIRM]
            assert at.firmness[q] != FIRM or len({int(at.slot[p]) for p in better} - {int(at.slot[q])}) < k
