"""From where a restart may replay the aligned log without missing a row that still counts."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["Mark", "ReplayHorizon"]


@dataclass(slots=True)
class Mark:
    """A place in the aligned log: `state` is the sequencer's before the batch at `aligned_offset`.

    `newest_us` and `newest_release_us`: bounds on the event and release times before it. `taken_beyond`: how many rows
    had been taken when the last row before it was, None while it waits.
    """

    aligned_offset: int
    state: Mapping[str, Any]
    newest_us: int
    newest_release_us: int
    taken_beyond: int | None = None


class ReplayHorizon:
    """Chooses the newest mark from which a restart is safe.

    A mark is *safe* once no row before it can count in an evaluation to come: each was taken, its event time is below
    (evaluated time - retention), and as many rows as the group retains have been taken after it. A restart restores
    the mark's state, replays the log from its aligned offset and evaluates nothing up to the evaluated time.

    Initially there is no mark. Marks lie apart by at least a *spacing* in newest event time, first `limit` / 2 to the
    retention; beyond `limit` marks every second one is given up and the spacing doubles, until a quarter is left. So
    replay is longer than needed by about one spacing. Invariant: there are at most `limit` marks, and they ascend.
    """

    def __init__(self, retention_us: int, retention_rows: int = 0, limit: int = 64) -> None:
        self._retention_us = retention_us
        self._retention_rows = retention_rows
        self._limit = limit
        self._least_spacing_us = self._spacing_us = max(1, 2 * retention_us // limit)
        self._marks: deque[Mark] = deque()

    def mark(
        self, aligned_offset: int, newest_us: int, newest_release_us: int, state: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Remember a place, unless it is too near to the one before.

        `newest_us` and `newest_release_us` are the sequencer's, and `state` gives its state; call it between batches,
        with the offset of the next. Cost: mostly one comparison.
        """
        if self._marks and newest_us < self._marks[-1].newest_us + self._spacing_us:
            return
        self._marks.append(Mark(aligned_offset, state(), newest_us, newest_release_us))
        if len(self._marks) > self._limit:
            self._marks = deque(mark for i, mark in enumerate(self._marks) if i % 2 == 0)
            self._spacing_us *= 2

    def advance(self, taken_until_us: int, taken_rows: int, evaluated_us: int) -> Mark | None:
        """Return the newest safe mark, or None.

        `taken_until_us`: of the last take; `taken_rows`: by all takes; every evaluation up to
        `evaluated_us` is done and reported. Marks older than the returned one are forgotten. Cost: the number of marks.
        """
        safe = 0
        for i, mark in enumerate(self._marks, start=1):
            if mark.newest_release_us >= taken_until_us:
                break
            if mark.taken_beyond is None:
                mark.taken_beyond = taken_rows
            if mark.newest_us < evaluated_us - self._retention_us and self._rows_after(mark, taken_rows):
                safe = i
        for _ in range(safe - 1):
            self._marks.popleft()
        if len(self._marks) < self._limit // 4:
            self._spacing_us = max(self._least_spacing_us, self._spacing_us // 2)
        return self._marks[0] if safe else None

    def _rows_after(self, mark: Mark, taken_rows: int) -> bool:
        return mark.taken_beyond is not None and taken_rows - mark.taken_beyond >= self._retention_rows

    def _check(self) -> None:
        """Assert the invariants."""
        marks = list(self._marks)
        assert len(marks) <= self._limit
        for older, newer in pairwise(marks):
            assert older.aligned_offset < newer.aligned_offset
            assert older.newest_us + self._least_spacing_us <= newer.newest_us
            assert older.newest_release_us <= newer.newest_release_us
