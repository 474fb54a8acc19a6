"""What brute force says the queries of a group show while they come, change and go."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skyband.engine.query_set import first_multiple_after
from skyband.local.brute_force import rank
from skyband.local.brute_force_score import scorer
from skyband.model.binding import bind
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query
from tests.oracle import Seen


@dataclass
class Asked:
    """A query with its life: `turns` are (first window end, whether it is evaluated from there on, k), ascending."""

    query: Query
    turns: list[tuple[int, bool, int]] = field(default_factory=list)
    done: int = MIN_TIME_US
    shown: bool = False

    def turn(self, first: int, is_active: bool, k: int) -> None:
        """Take a revision; those it overtakes before they began never count."""
        if self.query.window.in_rows and is_active and self.turns and not self.turns[-1][1]:
            # Of count windows nobody is told that they are empty unless they were not just before.
            self.shown = False
        self.turns = [turn for turn in self.turns if turn[0] < first] + [(first, is_active, k)]

    def begin_later(self, first: int, latest: int) -> None:
        """Take the turn at `first` for one at `latest`, before which there is nothing, if nothing has overtaken it."""
        turns = [(latest if at == first and is_active else at, is_active, k) for at, is_active, k in self.turns]
        self.turns = sorted(turns, key=lambda turn: turn[0])

    def at(self, end: int) -> int | None:
        """Return k at a window end, None if it is not evaluated there."""
        place = bisect_right(self.turns, end, key=lambda turn: turn[0])
        _, is_active, k = self.turns[place - 1] if place else (0, False, 0)
        return k if is_active else None


class Reference:
    """The queries of one group, and how far each has been shown."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.asked: dict[str, Asked] = {}

    def advance(
        self, rows: Sequence[Seen], covered: Callable[[int], int], counted: Sequence[Seen] = ()
    ) -> list[dict[str, Any]]:
        """Return what is shown now: `rows` so far in total order, time covered by slide, rows seen by count windows."""
        results = []
        for name, asked in self.asked.items():
            in_rows, slide = asked.query.window.in_rows, asked.query.window.slide
            limit = len(counted) if in_rows else covered(slide)
            for end in self._ends(asked, rows, limit):
                k = asked.at(end)
                if k is None:
                    continue
                query = replace(asked.query, k=k)
                size = query.window.size
                seen = counted[max(0, end - size) : end] if in_rows else self._window(rows, end, size)
                ranking = rank(self.group, bind(self.group, query), scorer(query.score), list(seen))
                if ranking or asked.shown:
                    results.append({"query": name, "window_start": end - size, "window_end": end, "rows": ranking})
                asked.shown = bool(ranking)
            asked.done = max(asked.done, limit)
        return sorted(results, key=self.place)

    def place(self, result: dict[str, Any]) -> tuple[bool, int, str]:
        """Return where a result stands among others."""
        return self.asked[result["query"]].query.window.in_rows, result["window_end"], result["query"]

    @staticmethod
    def _ends(asked: Asked, rows: Sequence[Seen], limit: int) -> Iterator[int]:
        slide, done = asked.query.window.slide, asked.done
        if not rows or not asked.turns:
            return
        first = 0 if asked.query.window.in_rows else min(row.event for row in rows)
        for end in range(first_multiple_after(slide, max(done, first)), limit + 1, slide):
            if end >= asked.turns[0][0]:
                yield end

    @staticmethod
    def _window(rows: Sequence[Seen], end: int, size: int) -> Sequence[Seen]:
        seen = rows[: bisect_left(rows, end, key=lambda row: row.release)]
        return [row for row in seen if end - size <= row.event < end]
