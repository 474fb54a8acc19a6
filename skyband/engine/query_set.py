"""Queries of one ranking that are evaluated at the same instants, in columns.

Window ends are multiples of the slide; a query may begin later than others (see `put`). Initial state: no queries; all
ends up to `passed` are done. Invariant: the arrays have one place per query, in the order of `members`.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.engine.checkpoint import QueryDone, QueryStanding
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.partials import Evaluation
from skyband.structures.array_types import Flags, Ints

__all__ = ["Evaluations", "QuerySet", "first_multiple_after"]


def first_multiple_after(step: int, point: int) -> int:
    """Return the first multiple of `step` greater than `point`.

    >>> first_multiple_after(10, 20), first_multiple_after(10, -1)
    (30, 0)
    """
    return (point // step + 1) * step


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _note_evaluation(starts: Ints, end: int, first: Ints, had_rows: Flags, done: Ints, told: Ints) -> int:
    """Note which queries have rows; write to `told` those that had or have some, and return how many."""
    count = 0
    for place in range(len(had_rows)):
        if end < first[place]:
            continue
        has_rows = starts[place + 1] > starts[place]
        if has_rows or had_rows[place]:
            told[count] = place
            count += 1
        had_rows[place] = has_rows
        done[place, 0] += 1
        if has_rows:
            done[place, 1] = end
    return count


class Evaluations(Sequence[Evaluation]):
    """Evaluations kept in columns until somebody looks: most of them only pass through."""

    def __init__(
        self,
        members: Sequence[QueryChange],
        indexes: npt.NDArray[np.int64],
        end: int,
        sizes: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
    ) -> None:
        self._members = members
        self._indexes = indexes
        self._end = end
        self._sizes = sizes
        self._starts = starts

    def __len__(self) -> int:
        return len(self._indexes)

    def __getitem__(self, place: int | slice) -> "Evaluation | tuple[Evaluation, ...]":  # type: ignore[override]
        if isinstance(place, slice):
            return tuple(self)[place]
        index = int(self._indexes[place])
        member = self._members[index]
        return Evaluation(
            uid=member.uid,
            revision=member.revision,
            k=member.query.k,
            window_start=self._end - int(self._sizes[index]),
            window_end=self._end,
            start=int(self._starts[index]),
            stop=int(self._starts[index + 1]),
        )

    def __iter__(self) -> Iterator[Evaluation]:
        for place in range(len(self)):
            yield self[place]  # type: ignore[misc]


class QuerySet:
    """The queries of one ranking with one slide."""

    def __init__(self, slide: int, passed: int) -> None:
        self.slide = slide
        self.members: tuple[QueryChange, ...] = ()
        self.sizes: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.ks: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._first: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._had_rows: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        # Per query: evaluations so far, and the last window end that had rows (MIN_TIME_US: none).
        self._done: npt.NDArray[np.int64] = np.zeros((0, 2), np.int64)
        # Whether some query tells who could still come in.
        self.asks_candidates = False
        # Whether no query would have to say that it has become empty.
        self.is_quiet = True
        self._passed = passed

    @property
    def largest_size(self) -> int:
        """The largest window."""
        return int(self.sizes.max())

    @property
    def next_end(self) -> int:
        """The next window end (MIN_TIME_US: as early as there are rows)."""
        return MIN_TIME_US if self._passed == MIN_TIME_US else first_multiple_after(self.slide, self._passed)

    def passed(self, point: int) -> None:
        """Note that all window ends up to `point` are done."""
        self._passed = max(self._passed, point)

    def standing(self) -> list[QueryStanding]:
        """Return the queries, and up to where their window ends have passed."""
        return [QueryStanding(member, self._passed) for member in self.members]

    def done(self) -> dict[str, QueryDone]:
        """Return what was told of each query."""
        found = {}
        for place, member in enumerate(self.members):
            (count, last_end), first = self._done[place].tolist(), int(self._first[place])
            found[member.uid] = QueryDone(self._passed, bool(self._had_rows[place]), count, last_end, first)
        return found

    def stand_at(self, passed: int) -> None:
        """Take all window ends up to `passed`, and no others, for done."""
        self._passed = passed

    def resume(self, done: Mapping[str, QueryDone]) -> None:
        """Take for told what was told of these queries."""
        for place, member in enumerate(self.members):
            told = done.get(member.uid)
            if told is not None:
                self._passed = told.passed
                self._had_rows[place] = told.had_rows
                self._done[place] = told.evaluations, told.last_end
                self._first[place] = told.first
        self.is_quiet = not self._had_rows.any()

    def put(self, change: QueryChange, first: int = MIN_TIME_US) -> None:
        """Add a query that begins with window end `first`, or replace its revision."""
        for place, member in enumerate(self.members):
            if member.uid == change.uid:
                self._set((*self.members[:place], change, *self.members[place + 1 :]))
                return
        self._first = np.append(self._first, first)
        self._had_rows = np.append(self._had_rows, False)
        self._done = np.concatenate((self._done, np.array([[0, MIN_TIME_US]], np.int64)))
        self._set((*self.members, change))

    def remove(self, uid: str) -> None:
        """Take a query out."""
        keep = [place for place, member in enumerate(self.members) if member.uid != uid]
        self._first, self._had_rows, self._done = self._first[keep], self._had_rows[keep], self._done[keep]
        self._set(tuple(self.members[place] for place in keep))

    def history(self, uid: str) -> tuple[int, int | None]:
        """Return a query's number of evaluations, and its last window end that had rows."""
        place = next(place for place, member in enumerate(self.members) if member.uid == uid)
        done, last = (int(value) for value in self._done[place])
        return done, None if last == MIN_TIME_US else last

    def _set(self, members: tuple[QueryChange, ...]) -> None:
        self.members = members
        self.sizes = np.array([member.query.window.size for member in members], np.int64)
        self.ks = np.array([member.query.k for member in members], np.int64)
        self.is_quiet = not self._had_rows.any()
        self.asks_candidates = any(member.query.candidates for member in members)

    def is_told(self, place: int, end: int) -> bool:
        """Return whether what the query at a place shows at `end` is told: it may begin later than others."""
        return end >= int(self._first[place])

    def evaluated(self, end: int, starts: npt.NDArray[np.int64]) -> Evaluations:
        """Note the evaluation at `end`; return what is worth telling: rows, and the first emptiness after rows."""
        told = np.empty(len(self.members), np.int64)
        count = _note_evaluation(starts, end, self._first, self._had_rows, self._done, told)
        self.is_quiet = not self._had_rows.any()
        told = told[:count]
        self.passed(end)
        return Evaluations(self.members, told, end, self.sizes, starts)
