"""How a shard keeps one score ranked: the skyband for what only rises while it lives, the view for all else.

A *ranking* serves every query of the shard that shares its key: the same score, order and required streams (and, for a
view, the same window size).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skyband.model.binding import BoundQuery
from skyband.model.query import Algorithm
from skyband.structures.changed_objects import ChangedObjects
from skyband.structures.question import pose
from skyband.structures.skyband import Skyband
from skyband.structures.view import View
from skyband.structures.window_store import WindowStore

__all__ = ["Ranked", "Ranking", "RankingKey", "SkybandRanking", "ViewRanking", "make_ranking", "ranking_key"]


@dataclass(frozen=True, slots=True)
class RankingKey:
    """What queries must share to be served by one ranking. `size` 0: any (skyband)."""

    is_view: bool
    in_rows: bool
    score: str
    descending: bool
    required: tuple[int, ...]
    size: int


def ranking_key(bound: BoundQuery) -> RankingKey:
    """Return the key of the ranking that serves a planned query."""
    is_view = bound.query.algorithm is Algorithm.VIEW
    window = bound.query.window
    return RankingKey(
        is_view=is_view,
        in_rows=window.in_rows,
        score=bound.query.score,
        descending=bound.descending,
        required=bound.required_streams,
        size=window.size if is_view else 0,
    )


class Ranked(NamedTuple):
    """Rankings of several queries over shared rows: query q's are ``ranking[starts[q]:starts[q + 1]]``, best first.

    Columns of the rows: slot int32, rank score float64, bits of the columns present int64, values float64[n, columns].
    """

    ranking: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int32]
    rank: npt.NDArray[np.float64]
    present: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class Ranking(Protocol):
    """What the shard asks of a ranking."""

    bound: BoundQuery
    attribute_names: tuple[str, ...]
    changed: ChangedObjects

    def leave(self, low: int) -> None:
        """Learn that ticks below `low` are about to leave the store."""

    def demand(self, k: int, size: int) -> None:
        """Serve queries of up to this k and this window size in ticks from now on."""

    def rank(self, end: int, sizes: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]) -> Ranked:
        """Rank for several queries whose windows end before tick `end`."""

    def _check(self) -> None:
        """Assert the invariants."""

    @property
    def held(self) -> int:
        """Instances or members held."""

    @property
    def refills(self) -> int:
        """Scans of all objects so far."""

    @property
    def not_finite(self) -> int:
        """Scores met that were infinite or not a number."""

    @property
    def state_bytes(self) -> int:
        """Bytes held."""


class SkybandRanking:
    """A skyband with the largest k and window that its queries ask for."""

    refills = 0

    def __init__(self, bound: BoundQuery, store: WindowStore) -> None:
        self.bound = bound
        self.attribute_names = tuple(column.name for column in bound.columns)
        self._skyband = Skyband(store, pose(bound, store.layout), bound.score.stack_size)
        self.changed = self._skyband.changed
        self._k = 0
        self._size = 0

    def leave(self, low: int) -> None:
        """Nothing to do: instances carry their tick."""

    def demand(self, k: int, size: int) -> None:
        """Serve up to this k and size; a larger k than before reads all objects again, a longer window by itself."""
        if k > self._k:
            self._skyband.restart()
        self._k, self._size = k, size

    def rank(self, end: int, sizes: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]) -> Ranked:
        """Rank for several queries. Cost: one sweep over the changed, then per query what it passes."""
        self._skyband.refresh(self._k, end - self._size)
        ranking, starts = self._skyband.read(end - sizes, ks)
        at = self._skyband.instances
        return Ranked(ranking, starts, at.slot, at.rank, at.present, at.values)

    def _check(self) -> None:
        self._skyband._check()

    @property
    def held(self) -> int:
        """Instances held."""
        return self._skyband.size

    @property
    def not_finite(self) -> int:
        """Scores met that were not finite."""
        return self._skyband.not_finite

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self._skyband.state_bytes


class ViewRanking:
    """A view over one window size."""

    def __init__(self, bound: BoundQuery, store: WindowStore) -> None:
        self.bound = bound
        self.attribute_names = tuple(column.name for column in bound.columns)
        self._view = View(store, pose(bound, store.layout), bound.score.stack_size)
        self.changed = self._view.changed
        self._k = 0
        self._size = 0

    def leave(self, low: int) -> None:
        """Note whom the ticks below `low` concern."""
        self._view.leave_ticks(low)

    def demand(self, k: int, size: int) -> None:
        """Serve up to this k; `size` is fixed by the key."""
        self._k, self._size = k, size

    def rank(self, end: int, sizes: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]) -> Ranked:
        """Rank for several queries of one window size. Cost: the entries of the changed objects."""
        self._view.refresh(self._k, end - self._size)
        counts = np.minimum(ks, self._view.count)
        starts = np.concatenate(([0], np.cumsum(counts)))
        ranking = np.concatenate([np.arange(count, dtype=np.int32) for count in counts])
        at = self._view.members
        return Ranked(ranking, starts, at.slot, at.rank, at.present, at.values)

    def _check(self) -> None:
        self._view._check()

    @property
    def held(self) -> int:
        """Members held."""
        return self._view.count

    @property
    def refills(self) -> int:
        """Scans of all objects so far."""
        return self._view.refills

    @property
    def not_finite(self) -> int:
        """Scores met that were not finite."""
        return self._view.not_finite

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self._view.state_bytes


def make_ranking(bound: BoundQuery, store: WindowStore) -> Ranking:
    """Return a new ranking for a planned query."""
    return ViewRanking(bound, store) if bound.query.algorithm is Algorithm.VIEW else SkybandRanking(bound, store)
