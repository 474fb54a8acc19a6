"""How much of what it should show an approximate ranking does show, measured on a sample of its objects while it runs.

Words: the objects of the *sample* keep all their instances, so that their exact scores are known. At an evaluation a
sampled object is *due* if its exact (score, id) is no worse than that of the last row shown, or if fewer than k rows
are shown; it is *shown* if it is one of them. Whether it is in the sample depends on its hash alone, on other bits than
anything else does, so that shown/due estimates the recall of all.

Initial state: every object is in the sample. Invariant: it holds at most 2,000 objects; over that, every other goes.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.engine.incomplete.bounds import Ask
from skyband.engine.incomplete.instance_set import InstanceSet, Shown
from skyband.engine.incomplete.instances import CURRENT, DEAD, OLDER, PLACES, SLOT, START, Instances
from skyband.engine.incomplete.sweep_kernels import SHARE_MASK, SHARE_SHIFT
from skyband.model.saved_arrays import SavedArrays, array_of, part_of, prefixed
from skyband.structures.array_types import Indexes, Ints
from skyband.structures.object_table import MAX_ID_BYTES, ObjectArrays, ObjectTable, find_object
from skyband.structures.store_arrays import Rows

__all__ = ["OwnRecall", "Recall", "picked"]

_MOST_OBJECTS = 2_000


class Recall(NamedTuple):
    """Of `due` rows that results should have shown, `shown` were; they are of `objects` objects.

    One that is due again after it was not counts as another.
    """

    shown: int
    due: int
    objects: int


class OwnRecall:
    """A sample of exact scores beside an approximate ranking, and the rows counted so far."""

    def __init__(self, ask: Ask, stack_size: int) -> None:
        # Ticks that are rows are handed on as times, since the rows of the sample do not follow each other.
        self._in_rows = ask.tick_us == 0
        self._set = InstanceSet(ask._replace(tick_us=ask.tick_us or 1), stack_size, 0)
        self._limit = SHARE_MASK + 1
        self._due_at = np.zeros(self._set.objects.capacity, np.int64)
        self._evaluations = 1
        self.total = Recall(0, 0, 0)

    @property
    def objects(self) -> int:
        """Number of objects in the sample."""
        return self._set.objects.live

    @property
    def share(self) -> float:
        """The share of all objects that is in the sample."""
        return self._limit / (SHARE_MASK + 1)

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self._set.state_bytes

    def take(self, rows: Rows, first: int, last: int, low: int, number: int) -> None:
        """Take the sampled of rows [first, last). Cost: a look at each hash, and what the sampled ones need."""
        chosen = first + np.flatnonzero(((rows.id_hash[first:last] >> SHARE_SHIFT) & SHARE_MASK) < self._limit)
        if not len(chosen):
            return
        times = number - first + chosen if self._in_rows else rows.event_time_us[chosen]
        # In parts: a burst of new objects must not make the sample larger than it may be.
        own = picked(rows, chosen, times)
        for at in range(0, len(chosen), _MOST_OBJECTS):
            self._set.take(own, at, min(at + _MOST_OBJECTS, len(chosen)), low, 0)
            if self.objects > _MOST_OBJECTS:
                self._set.sweep()
            while self.objects > _MOST_OBJECTS:
                self._limit //= 2
                self._set.leave_out(self._limit)

    def compare(self, objects: ObjectTable, shown: Shown, k: int, low: int) -> Recall:
        """Count the due and the shown of an evaluation whose window begins at tick `low`; return them.

        Cost: the instances of the sample, and a hash probe for each that is due.
        """
        self._set.pass_to(low)
        self._set.sweep()
        if len(self._due_at) < self._set.objects.capacity:
            grown = np.zeros(self._set.objects.capacity, np.int64)
            grown[: len(self._due_at)] = self._due_at
            self._due_at = grown
        self._evaluations += 1
        counted = count_due(
            tuple(self._set.objects.arrays),
            tuple(self._set.instances),
            self._set.counts,
            tuple(objects.arrays),
            np.sort(shown.slot),
            int(shown.slot[-1]) if len(shown.slot) == k else -1,
            float(shown.rank[-1]) if len(shown.slot) == k else -np.inf,
            self._due_at,
            self._evaluations,
        )
        recall = Recall(*map(int, counted))
        self.total = Recall(*(a + b for a, b in zip(self.total, recall, strict=True)))
        return recall

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sample, and what was counted. Cost: a copy."""
        return {
            **prefixed("set", self._set.state()),
            "due_at": self._due_at[: self._set.objects.top].copy(),
            "numbers": np.array([self._limit, self._evaluations, *self.total], np.int64),
        }

    def restore(self, state: SavedArrays) -> None:
        """Know what the recall of another ranking of the query knew. Raises LogError if it does not fit."""
        self._set.restore(part_of(state, "set"))
        due_at = array_of(state, "due_at", np.int64, (-1,))
        self._due_at = np.zeros(self._set.objects.capacity, np.int64)
        self._due_at[: len(due_at)] = due_at
        self._limit, self._evaluations, *total = array_of(state, "numbers", np.int64, (5,)).tolist()
        self.total = Recall(*total)

    def _check(self) -> None:
        self._set._check()
        tags = self._set.objects.arrays.records[self._set.instances.links[self._set.live(), SLOT], 3]
        assert (((tags >> SHARE_SHIFT) & SHARE_MASK) < self._limit).all()
        assert self.objects <= _MOST_OBJECTS
        assert self.total.shown <= self.total.due


def picked(rows: Rows, chosen: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> Rows:
    """Return the chosen rows (at least one, in any order) in columns of their own, at other times. Cost O(chosen)."""
    stops = rows.id_ends[chosen]
    starts = np.where(chosen > 0, rows.id_ends[chosen - 1], 0)
    ends = np.cumsum(stops - starts)
    places = np.arange(ends[-1]) + np.repeat(starts - ends + (stops - starts), stops - starts)
    return Rows(
        stream=rows.stream[chosen],
        event_time_us=np.ascontiguousarray(times),
        id_bytes=rows.id_bytes[places],
        id_ends=ends,
        id_hash=rows.id_hash[chosen],
        values=np.ascontiguousarray(rows.values[chosen]),
    )


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _wins_tie(own: ObjectArrays, slot: int, others: ObjectArrays, other: int) -> bool:
    """Return whether the id of `slot` is smaller than that of a slot of another table."""
    place, place_other = own.records[slot, 2], others.records[other, 2]
    length, length_other = place & MAX_ID_BYTES, place_other & MAX_ID_BYTES
    start, start_other = place >> 20, place_other >> 20
    for i in range(min(length, length_other)):
        if own.arena[start + i] != others.arena[start_other + i]:
            return bool(own.arena[start + i] < others.arena[start_other + i])
    return bool(length < length_other)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def count_due(
    object_arrays: tuple[Any, ...],
    held: tuple[Any, ...],
    counts: Ints,
    shown_arrays: tuple[Any, ...],
    shown: Indexes,
    last: int,
    rank: float,
    due_at: Ints,
    evaluation: int,
) -> tuple[int, int, int]:
    """Return how many of the due are shown, how many are due, and how many of these were not at the last evaluation.

    `shown`: slots of the other table, ascending; `last`, `rank`: slot and rank score of the k-th row, or -1 and -inf.
    `due_at`: when each slot was due last.
    """
    objects, others, instances = ObjectArrays(*object_arrays), ObjectArrays(*shown_arrays), Instances(*held)
    found = due = begun = 0
    for at in range(counts[START], counts[PLACES]):
        current = instances.scores[at, CURRENT]
        if instances.tick[at] == DEAD or instances.links[at, OLDER] >= 0 or current < rank or current == -np.inf:
            continue
        slot = instances.links[at, SLOT]
        place = objects.records[slot, 2]
        start, stop = place >> 20, (place >> 20) + (place & MAX_ID_BYTES)
        other = find_object(others, objects.records[slot, 3], objects.arena, start, stop)
        low, high = 0, len(shown)
        while low < high:
            middle = (low + high) >> 1
            if shown[middle] < other:
                low = middle + 1
            else:
                high = middle
        is_shown = other >= 0 and low < len(shown) and shown[low] == other
        if is_shown or last < 0 or current > rank or _wins_tie(objects, slot, others, last):
            found += is_shown
            due += 1
            begun += due_at[slot] != evaluation - 1
            due_at[slot] = evaluation
    return found, due, begun
