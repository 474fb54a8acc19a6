"""How a shard keeps one score ranked: the skyband for what only rises while it lives, the view or lists for all else.

A *ranking* serves every query of the shard that shares its key: the same score, order and required streams (and, for a
view or lists, the same window size). One that forgets serves a single query: see `skyband.engine.incomplete`.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete import ApproximationOptions, EaaExpected, EaaRelaxed, EaaStrict, EaaTail, SlaRanking
from skyband.engine.ranked import ForgettingRanking, Ranked, Ranking, first_members
from skyband.model.binding import BoundQuery
from skyband.model.group import Group
from skyband.model.query import Algorithm
from skyband.structures.changed_objects import ChangedObjects
from skyband.structures.object_table import ObjectTable
from skyband.structures.question import pose
from skyband.structures.skyband import Skyband
from skyband.structures.view import View
from skyband.structures.window_store import WindowStore

__all__ = [
    "RankingKey",
    "SkybandRanking",
    "StoreRanking",
    "ViewRanking",
    "make_forgetting",
    "make_ranking",
    "ranking_key",
]

# Two names of the same structure: over objects and over records.
_SKYBANDS = (Algorithm.TWO_TIER, Algorithm.SKYBAND)


@dataclass(frozen=True, slots=True)
class RankingKey:
    """What queries must share to be served by one ranking. `size` 0: any (skyband); `owner`: who has it alone."""

    algorithm: Algorithm
    in_rows: bool
    score: str
    descending: bool
    required: tuple[int, ...]
    size: int
    owner: str = ""


def ranking_key(bound: BoundQuery, uid: str) -> RankingKey:
    """Return the key of the ranking that serves a planned query."""
    algorithm, window = bound.query.algorithm, bound.query.window
    is_skyband = algorithm in _SKYBANDS
    return RankingKey(
        algorithm=Algorithm.SKYBAND if is_skyband else algorithm,
        in_rows=window.in_rows,
        score=bound.query.score,
        descending=bound.descending,
        required=bound.required_streams,
        size=0 if is_skyband else window.size,
        # What was forgotten for one k and window may matter for another.
        owner=uid if algorithm.forgets else "",
    )


class StoreRanking(Ranking, Protocol):
    """A ranking over the window store."""

    changed: ChangedObjects

    def leave(self, low: int) -> None:
        """Learn that ticks below `low` are about to leave the store."""


class SkybandRanking:
    """A skyband with the largest k and window that its queries ask for."""

    refills = 0

    def __init__(self, bound: BoundQuery, store: WindowStore) -> None:
        self.bound = bound
        self.attribute_names = tuple(column.name for column in bound.columns)
        self.objects: ObjectTable = store.objects
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
        self.objects: ObjectTable = store.objects
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
        return first_members(self._view.members, self._view.count, ks)

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


def make_ranking(bound: BoundQuery, store: WindowStore) -> StoreRanking:
    """Return a new ranking over the store for a planned query."""
    match bound.query.algorithm:
        case Algorithm.VIEW:
            return ViewRanking(bound, store)
        case Algorithm.SLA:
            return SlaRanking(bound, store)
        case _:
            return SkybandRanking(bound, store)


def make_forgetting(bound: BoundQuery, group: Group) -> ForgettingRanking:
    """Return a new ranking that keeps no window, for a planned query."""
    query = bound.query
    # Who says only how much memory there is wants nothing missed while it fits.
    default = 0.0 if query.memory_budget is not None else ApproximationOptions().max_error
    options = ApproximationOptions(
        max_error=default if query.max_error is None else query.max_error,
        memory_budget=query.memory_budget,
        target_precision=query.target_precision,
    )
    match query.algorithm:
        case Algorithm.EAA:
            return EaaStrict(bound, group)
        case Algorithm.EAA_RELAXED:
            return EaaRelaxed(bound, group)
        case Algorithm.EAA_EXPECTED:
            return EaaExpected(bound, group, options)
        case _:
            return EaaTail(bound, group, options)
