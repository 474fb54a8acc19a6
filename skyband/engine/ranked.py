"""What the shard asks of a ranking, and what it gets."""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skyband.model.approximation import Approximation
from skyband.model.binding import BoundQuery
from skyband.model.saved_arrays import SavedArrays
from skyband.structures.object_table import ObjectTable
from skyband.structures.store_arrays import Rows
from skyband.structures.view import Members

__all__ = ["ForgettingRanking", "Ranked", "Ranking", "first_members"]


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


def first_members(members: Members, count: int, ks: npt.NDArray[np.int64]) -> Ranked:
    """Return for each k the first k of a view's `count` sorted members."""
    counts = np.minimum(ks, count)
    starts = np.concatenate(([0], np.cumsum(counts)))
    ranking = np.concatenate([np.arange(number, dtype=np.int32) for number in counts])
    return Ranked(ranking, starts, members.slot, members.rank, members.present, members.values)


class Ranking(Protocol):
    """How one score is kept ranked, for one query or several."""

    bound: BoundQuery
    attribute_names: tuple[str, ...]

    def demand(self, k: int, size: int) -> None:
        """Serve queries of up to this k and this window size in ticks from now on."""

    def rank(self, end: int, sizes: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]) -> Ranked:
        """Rank for several queries whose windows end before tick `end`."""

    def _check(self) -> None:
        """Assert the invariants."""

    @property
    def objects(self) -> ObjectTable:
        """The objects that the slots of a ranking name."""

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
        """Bytes held, without what it shares with others."""


class ForgettingRanking(Ranking, Protocol):
    """A ranking that keeps no window: it sees each row once, and forgets what can no longer matter.

    It serves one query: its window and slide are those of `bound.query`, its k at most that. Initially it has seen
    nothing; from then on it is right for windows that begin after that.
    """

    def take(self, rows: Rows, first: int, last: int, low: int, number: int) -> None:
        """Take rows [first, last), in total order after all before; ticks below `low` will not be asked for any more.

        `number`: how many rows of the shard came before `first`, the tick of that row where windows are in rows.
        """

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that it remembers."""

    def restore(self, state: SavedArrays) -> None:
        """Remember what another ranking of the query remembered; `demand` comes before."""

    @property
    def broken_promises(self) -> int:
        """Observations that came again although their stream's `repeat_after` says that they do not."""

    @property
    def approximation(self) -> Approximation | None:
        """How it is doing; None for an exact one."""
