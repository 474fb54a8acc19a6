"""The window stores of a shard, and all that ranks their objects."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.coverage.sequenced_rows import SequencedRows
from skyband.engine.ranked import ForgettingRanking, Ranking
from skyband.engine.ranking import RankingKey, StoreRanking, make_forgetting, make_ranking
from skyband.model.binding import BoundQuery
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.saved_arrays import SavedArrays, array_of, part_of, prefixed
from skyband.structures.window_store import Rows, WindowStore

__all__ = ["Rankings", "as_rows"]

# Changes wait in one shared list; past this many every ranking takes them in, so that the list stays bounded.
_CHANGES_KEPT = 65_536
# Parts of a state: the stores of time and of rows, and the rankings that forget, by the uid of their query.
_STORES = {False: "times", True: "rows"}
_FORGETTING = "forgetting"
_SEEN = "seen_from"


class Rankings:
    """One store for windows of time and one for windows of rows (if the group has such), with the rankings of each.

    Rankings over a store are asked at evaluations; those that forget are given each row once. While all rankings of a
    store's kind forget, it is *left out*: it counts rows, and keeps none. A store or a ranking has *seen all* from some
    point of time (row number) on: a window is complete if it begins there or later. Initially there is no ranking, and
    the stores have seen all.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self.stores = {False: WindowStore(group)}
        if group.retention_rows:
            self.stores[True] = WindowStore(group, in_rows=True)
        self._over_store: dict[RankingKey, StoreRanking] = {}
        self._forgetting: dict[RankingKey, ForgettingRanking] = {}
        self._seen_from: dict[RankingKey | bool, int] = dict.fromkeys(self.stores, MIN_TIME_US)

    def __getitem__(self, key: RankingKey) -> Ranking:
        """Return the ranking of a key."""
        return self._forgetting[key] if key in self._forgetting else self._over_store[key]

    def all(self) -> list[Ranking]:
        """Return all rankings."""
        return [*self._over_store.values(), *self._forgetting.values()]

    def forgetting(self, key: RankingKey | None = None) -> list[ForgettingRanking]:
        """Return the rankings that forget: all, or that of a key if it is one."""
        return [ranking for its, ranking in self._forgetting.items() if key in (None, its)]

    def begin(self, key: RankingKey, bound: BoundQuery, taken_until_us: int) -> int:
        """Make a ranking, unless there is one; return from which point on it has seen all.

        `taken_until_us`: the release time below which all rows have been given to the stores.
        """
        if key.algorithm.forgets:
            if key not in self._forgetting:
                self._forgetting[key] = make_forgetting(bound, self._group)
                self._seen_from[key] = self._now(key.in_rows, taken_until_us)
                self._leave_out(key.in_rows)
            return self._seen_from[key]
        if key not in self._over_store:
            if self._is_left_out(key.in_rows):
                self._seen_from[key.in_rows] = self._now(key.in_rows, taken_until_us)
            self._over_store[key] = make_ranking(bound, self.stores[key.in_rows])
        return self._seen_from[key.in_rows]

    def end(self, key: RankingKey, taken_until_us: int) -> None:
        """Drop a ranking."""
        if key in self._over_store:
            del self._over_store[key]
            self._leave_out(key.in_rows)
            return
        was_left_out = self._is_left_out(key.in_rows)
        del self._forgetting[key], self._seen_from[key]
        if was_left_out and not self._is_left_out(key.in_rows):
            self._seen_from[key.in_rows] = self._now(key.in_rows, taken_until_us)

    def see_all_again(self) -> None:
        """Take note that all rows that can still count will be given again."""
        self._seen_from = dict.fromkeys(self._seen_from, MIN_TIME_US)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the stores, and what the rankings that forget remember; all others follow from the stores.

        Cost: a copy of everything.
        """
        found: dict[str, npt.NDArray[Any]] = {}
        for in_rows, store in self.stores.items():
            found |= prefixed(_STORES[in_rows], self._with_seen(in_rows, store.state()))
        for key, ranking in self._forgetting.items():
            found |= prefixed(f"{_FORGETTING}.{key.owner}", self._with_seen(key, ranking.state()))
        return found

    def restore(self, state: SavedArrays) -> None:
        """Hold what `state` returned, and read the stores anew; the same rankings must have been begun before.

        Raises LogError for what does not fit the group or the queries. Cost: a copy, and an index of the objects.
        """
        for in_rows, store in self.stores.items():
            own = part_of(state, _STORES[in_rows])
            store.restore(own)
            self._seen_from[in_rows] = _seen(own)
        for ranking in self._over_store.values():
            ranking.changed.add_all()
        for key, forgetting in self._forgetting.items():
            own = part_of(state, f"{_FORGETTING}.{key.owner}")
            forgetting.restore(own)
            self._seen_from[key] = _seen(own)

    def _with_seen(self, key: RankingKey | bool, state: SavedArrays) -> dict[str, npt.NDArray[Any]]:
        return {**state, _SEEN: np.array([self._seen_from[key]], np.int64)}

    def take(self, rows: Rows, first: int, last: int, *, in_rows: bool, end: int) -> None:
        """Give rows [first, last) to the store, unless it is left out, and to the rankings that forget.

        No window that ends before tick `end` will be asked for any more.
        """
        store, tick = self.stores[in_rows], 1 if in_rows else self._group.pane_us
        low = end - store.retention_ticks
        for key, ranking in self._over_store.items():
            if key.in_rows == in_rows:
                ranking.leave(low)
        store.expire(low)
        for key, forgetting in self._forgetting.items():
            if key.in_rows == in_rows:
                forgetting.take(rows, first, last, end - key.size // tick, store.rows_applied)
        if self._is_left_out(in_rows):
            store.pass_by(rows, first, last)
            return
        store.apply(rows, first, last)
        self._absorb(store)

    def _absorb(self, store: WindowStore) -> None:
        rankings = [ranking for key, ranking in self._over_store.items() if key.in_rows == store.in_rows]
        if rankings and len(store.changes) < _CHANGES_KEPT:
            return
        for ranking in rankings:
            ranking.changed.add_changes()
            ranking.changed.changes_forgotten()
        store.forget_changes()

    def _is_left_out(self, in_rows: bool) -> bool:
        over_store = any(key.in_rows == in_rows for key in self._over_store)
        return not over_store and any(key.in_rows == in_rows for key in self._forgetting)

    def _leave_out(self, in_rows: bool) -> None:
        """Empty the store if no ranking reads it any more."""
        if self._is_left_out(in_rows):
            self.stores[in_rows] = self.stores[in_rows].emptied()

    def _now(self, in_rows: bool, taken_until_us: int) -> int:
        """Return the point of time (row number) from which on no row has been taken."""
        store = self.stores[in_rows]
        if not store.rows_applied:
            return MIN_TIME_US
        return store.rows_applied if in_rows else min(taken_until_us, (store.newest + 1) * self._group.pane_us)


def as_rows(rows: SequencedRows) -> Rows:
    """Return rows in total order as stores and rankings take them, over the same memory."""
    return Rows(
        stream=rows.stream,
        event_time_us=rows.event_time_us,
        id_bytes=rows.id_bytes,
        id_ends=rows.id_ends,
        id_hash=rows.id_hash.view(np.int64),
        values=rows.values,
    )


def _seen(state: SavedArrays) -> int:
    return int(array_of(state, _SEEN, np.int64, (1,))[0])
