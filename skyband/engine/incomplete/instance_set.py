"""The instances of one query's objects, for algorithms that keep no window.

Words: an *instance* of an object at a tick covers what the object showed from that tick on, and lives until the tick
leaves the window. Its *current* score counts what it covers, and the worst of all else; its *best* score is what it may
still reach: of a covered attribute its value if the stream promises that no other comes, else the best there is; of one
never seen the best there is; of one seen before the tick the worst if it cannot come again while the instance lives.
The *class* of an instance is the last evaluation that it can take part in. Instance p *dominates* q if it is of another
object, its class is no older, and its current score is above q's best. Dominated by k distinct objects, q can never be
shown again: all of them outlive it, current scores only rise and best scores only fall.

::

    score │   ┬ best
          │   │          ┬
          │   ┴ current  │        ● settled: all that can come has come
          │              ┴
          └──────────────────────── tick      ● dominates the first, not the second
              class 7    class 8

A row updates the instances of its object that are no younger, and adds one at its tick. One that comes behind a younger
one (a late row) covers what that one covers, too. An instance that covers the same values as the object's next younger
one is dropped: the other shows the same for longer.

A *sweep* passes from the youngest class to the oldest with the k + 1 best distinct objects so far: what is best below
the k-th of the others is dominated. It is due when the set has grown by a share, and at each evaluation, whose result
are the k best that it ends with. What falls leaves its place empty until a quarter of the places are.

Initial state: empty. Invariant: after `settle` the live places ascend in tick; each object's instances are linked from
its newest to its oldest, with distinct ticks; an object has a slot iff it has an instance.
Sources: Haghani et al., CIKM 2009, sec. 3.2; the sweep, the classes and the columns are ours.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete.bounds import Ask
from skyband.engine.incomplete.foresight import EXAMPLES, PATTERNS, Foresight, no_foresight
from skyband.engine.incomplete.instances import (
    BROKEN,
    COUNTS,
    DEAD,
    HEAD,
    LATE,
    LATER,
    LIVE,
    LOW,
    NEWER,
    NEWEST,
    OLDER,
    PLACES,
    ROOM,
    SLOT,
    SORTED,
    START,
    TURN,
    Instances,
    Workplace,
    rescore_all,
    take_rows,
)
from skyband.engine.incomplete.sweep_kernels import compact, examine, expire, leave_out, relink, sweep
from skyband.engine.ranked import Ranked
from skyband.model.duration import MIN_TIME_US
from skyband.model.saved_arrays import SavedArrays, array_of, part_of, prefixed
from skyband.structures.object_table import ObjectTable
from skyband.structures.store_arrays import Rows

__all__ = ["InstanceSet", "Shown"]

_CAPACITY = 4_096
_GROUP_ROWS = 64
_ASKED = 256

# A sweep is due when the set has grown by one part of so many: it costs 2 ns an instance, less often saves little.
_GROWTH = 4


class Shown(NamedTuple):
    """The best objects of an evaluation, best first."""

    slot: npt.NDArray[np.int32]
    rank: npt.NDArray[np.float64]
    present: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    def as_ranked(self) -> Ranked:
        """Return it as the one ranking of one query."""
        ranking = np.arange(len(self.slot), dtype=np.int32)
        return Ranked(ranking, np.array([0, len(ranking)]), self.slot, self.rank, self.present, self.values)


class InstanceSet:
    """Instances of a query's objects; `k` 0: nothing is ever dominated, only what is too old goes.

    `foresight` is what best scores are made by; after it has been set, `rescore` brings all of them up to date.
    """

    def __init__(self, ask: Ask, stack_size: int, k: int, *, growth: int = _GROWTH) -> None:
        self.ask = ask
        self.k = k
        self.objects = ObjectTable(words=1)
        self.foresight: Foresight = no_foresight(len(ask.missing))
        self._growth = growth
        self._instances = self._make(_CAPACITY)
        self._work = Workplace(
            counts=np.zeros(COUNTS, np.int64),
            scratch=np.zeros(_GROUP_ROWS, np.int64),
            stack=np.zeros(stack_size, np.float64),
            trial=np.zeros(len(ask.missing), np.float64),
            ranks=np.zeros(EXAMPLES, np.float64),
            asked=np.zeros(PATTERNS + _ASKED, np.int64),
            heap=np.zeros(k + 1, np.int32),
            where=np.full(self.objects.capacity, -1, np.int32),
            fallen=np.zeros(_CAPACITY, np.int32),
        )
        counts = self.counts = self._work.counts
        counts[[NEWEST, LOW, TURN]] = MIN_TIME_US
        counts[LATE] = LATER
        counts[ROOM] = _CAPACITY // 2

    @property
    def size(self) -> int:
        """Number of instances alive."""
        return int(self.counts[LIVE])

    @property
    def broken(self) -> int:
        """Observations that came again although they were promised not to."""
        return int(self.counts[BROKEN])

    @property
    def instances(self) -> Instances:
        """The places; those with tick `DEAD`, and all from `places` on, hold nothing."""
        return self._instances

    @property
    def asked(self) -> npt.NDArray[np.int64]:
        """Patterns that no foresight was there for; see `foresight`."""
        return self._work.asked

    @property
    def used_bytes(self) -> int:
        """Bytes that what is alive needs, however much has been set aside for more."""
        instance = sum(array[:1].nbytes for array in self._instances)
        arrays = self.objects.arrays
        return self.size * instance + self.objects.live * (arrays.records[:1].nbytes + 2 * arrays.table[:1].nbytes)

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self.objects.state_bytes + sum(array.nbytes for array in (*self._instances, *self._work))

    def live(self) -> npt.NDArray[np.int64]:
        """Return the places that hold an instance."""
        counts = self.counts
        first = int(counts[START])
        return first + np.flatnonzero(self._instances.tick[first : counts[PLACES]] != DEAD)

    def set_k(self, k: int) -> None:
        """Keep what is needed for another k from now on; what a smaller k has given up does not come back."""
        self.k = k
        self._work = self._work._replace(heap=np.zeros(k + 1, np.int32))

    def take(self, rows: Rows, first: int, last: int, low: int, number: int) -> None:
        """Take rows [first, last); see `ForgettingRanking.take`. Cost: one hash probe and the object's instances a row.

        Sweeps whenever the set has grown by its share.
        """
        if first >= last:
            return
        ends = rows.id_ends
        self.objects.reserve(last - first, int(ends[last - 1]) - (int(ends[first - 1]) if first else 0))
        self._fit()
        self.counts[LOW] = max(int(self.counts[LOW]), low)
        at = first
        while True:
            at = take_rows(
                tuple(self.objects.arrays),
                tuple(self._instances),
                tuple(self.ask),
                tuple(self.foresight),
                tuple(self._work),
                tuple(rows),
                at,
                last,
                number - first,
            )
            if at == last:
                return
            self.sweep()

    def settle(self) -> None:
        """Put the places in order of their ticks, after rows that came late. Cost: the places younger than those."""
        counts, instances = self.counts, self._instances
        first, sorted_to, last = int(counts[START]), int(counts[SORTED]), int(counts[PLACES])
        counts[SORTED] = last
        if counts[LATE] == LATER:
            return
        younger = np.flatnonzero(instances.tick[first : max(first, sorted_to)] > counts[LATE])
        first = first + int(younger[0]) if len(younger) else max(first, sorted_to)
        counts[LATE] = LATER
        part = slice(first, last)
        order = np.argsort(instances.tick[part], kind="stable")
        moved_to = np.empty(len(order), np.int64)
        moved_to[order] = np.arange(len(order))
        for array in instances:
            array[part] = array[part][order]
        relink(tuple(self.objects.arrays), tuple(instances), first, last, moved_to)

    def sweep(self, shown: int = 0) -> Shown:
        """Give up what is dominated or too old; return the best `shown` objects (at most k). Cost O(n)."""
        self.settle()
        self._fit()
        places = np.zeros(min(shown, self.k), np.int32)
        written = 0
        if self.k:
            written = sweep(
                tuple(self.objects.arrays),
                tuple(self._instances),
                tuple(self._work),
                self.ask.size,
                self.ask.slide,
                self._growth,
                places,
            )
        else:
            expire(tuple(self.objects.arrays), tuple(self._instances), self.counts, self._growth)
        best = self.show(places[:written])
        self._gather()
        return best

    def examine(self) -> None:
        """Give up what is dominated or too old by looking at each pair of instances. Cost O(n**2)."""
        self.settle()
        self._fit()
        arrays, instances = tuple(self.objects.arrays), tuple(self._instances)
        expire(arrays, instances, self.counts, self._growth)
        examine(arrays, instances, tuple(self._work), self.ask.size, self.ask.slide, self.k)
        self._gather()

    def show(self, places: npt.NDArray[np.int32]) -> Shown:
        """Return the objects at these places."""
        at = self._instances
        return Shown(
            at.links[places, SLOT], at.scores[places, 0], at.bits[places, 0], np.ascontiguousarray(at.values[places])
        )

    def pass_to(self, low: int) -> None:
        """Learn that ticks below `low` are over."""
        self.counts[LOW] = max(int(self.counts[LOW]), low)

    def rescore(self) -> None:
        """Work out all best scores again by the foresight there is now. Cost O(n)."""
        rescore_all(tuple(self._instances), tuple(self.ask), tuple(self.foresight), tuple(self._work))

    def leave_out(self, limit: int) -> None:
        """Give up the objects whose share of the hash is not below `limit`. Cost O(n)."""
        leave_out(tuple(self.objects.arrays), tuple(self._instances), self.counts, limit)
        self.settle()
        self._gather()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return its arrays, those of the foresight among them. Cost: a copy."""
        used, sight = int(self.counts[PLACES]), self.foresight._asdict()
        return {
            **{name: array[:used].copy() for name, array in self._instances._asdict().items()},
            "counts": self.counts.copy(),
            "asked": self._work.asked.copy(),
            # When a sweep is due depends on the room that there is, and what an approximate set forgets on sweeps.
            "room": np.array([len(self._instances.tick)], np.int64),
            **{f"foresight.{name}": np.array(value) for name, value in sight.items()},
            **prefixed("objects", self.objects.state()),
        }

    def restore(self, state: SavedArrays) -> None:
        """Hold what another set of the same query and k held. Raises LogError for arrays that do not fit.

        Cost: a copy, and an index of the objects.
        """
        counts = array_of(state, "counts", np.int64, (COUNTS,))
        used, room = int(counts[PLACES]), int(array_of(state, "room", np.int64, (1,))[0])
        self._instances = self._make(room)
        for name, array in self._instances._asdict().items():
            array[:used] = array_of(state, name, array.dtype, (used, *array.shape[1:]))
        asked = array_of(state, "asked", np.int64, self._work.asked.shape)
        self._work = self._work._replace(fallen=np.zeros(room, np.int32))
        self._work.counts[...] = counts
        self._work.asked[...] = asked
        self.objects.restore(part_of(state, "objects"))
        self._fit()
        sight = part_of(state, "foresight")
        columns = {
            name: array_of(sight, name, array.dtype, (-1, *array.shape[1:])).copy()
            for name, array in self.foresight._asdict().items()
            if isinstance(array, np.ndarray)
        }
        kind, step = (int(array_of(sight, name, np.int64, ())) for name in ("kind", "step"))
        self.foresight = Foresight(kind, step, **columns)

    def _make(self, capacity: int) -> Instances:
        return Instances(
            tick=np.zeros(capacity, np.int64),
            scores=np.zeros((capacity, 2), np.float64),
            links=np.zeros((capacity, 3), np.int32),
            bits=np.zeros((capacity, 2), np.int64),
            values=np.zeros((capacity, len(self.ask.missing)), np.float64),
        )

    def _fit(self) -> None:
        if len(self._work.where) < self.objects.capacity:
            self._work = self._work._replace(where=np.full(self.objects.capacity, -1, np.int32))

    def _gather(self) -> None:
        """Move the live together where a quarter is dead, and make room where the rest fills it."""
        counts, capacity = self.counts, len(self._instances.tick)
        places, live = int(counts[PLACES]), int(counts[LIVE])
        if 4 * (places - live) > max(live, _CAPACITY) or 4 * places > 3 * capacity:
            compact(tuple(self.objects.arrays), tuple(self._instances), counts)
        if 3 * int(counts[ROOM]) > 2 * capacity:
            self._grow(2 * capacity)

    def _grow(self, capacity: int) -> None:
        old, used = self._instances, int(self.counts[PLACES])
        self._instances = self._make(capacity)
        for name in old._fields:
            getattr(self._instances, name)[:used] = getattr(old, name)[:used]
        self._work = self._work._replace(fallen=np.zeros(capacity, np.int32))

    def _check(self) -> None:
        self.objects._check()
        counts, at = self.counts, self._instances
        places = self.live()
        assert len(places) == self.size
        assert (self._work.where == -1).all()
        sorted_places = places[places < counts[SORTED]]
        assert (np.diff(at.tick[sorted_places]) >= 0).all()
        found = 0
        for slot in np.flatnonzero(self.objects.arrays.records[: self.objects.top, 2] >= 0):
            newer, place = -1, int(self.objects.arrays.records[slot, HEAD])
            assert place >= 0
            while place >= 0:
                assert at.links[place, SLOT] == slot
                assert at.links[place, NEWER] == newer
                assert newer < 0 or at.tick[place] < at.tick[newer]
                assert at.bits[place, 0] != 0
                newer, place, found = place, int(at.links[place, OLDER]), found + 1
        assert found == self.size
