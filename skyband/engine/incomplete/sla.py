"""SLA, the Sorted List Algorithm (Haghani et al., CIKM 2009, sec. 3.1): exact, over the whole window."""

import numpy as np
import numpy.typing as npt

from skyband.engine.ranked import Ranked, first_members
from skyband.model.binding import BoundQuery
from skyband.structures.object_table import ObjectTable
from skyband.structures.threshold_view import ThresholdView
from skyband.structures.window_store import WindowStore

__all__ = ["SlaRanking"]


class SlaRanking:
    """A view over one window size that is refilled from sorted lists of its attributes by the Threshold Algorithm.

    The window store is the queue from which what expires is taken. Each attribute of the score must rank objects better
    in one direction (`skyband.model.ability.why_not_listed`); it may be steady or not.
    """

    def __init__(self, bound: BoundQuery, store: WindowStore) -> None:
        self.bound = bound
        self.attribute_names = tuple(column.name for column in bound.columns)
        self.objects: ObjectTable = store.objects
        self._view = ThresholdView(store, bound)
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
        """Rank for several queries of one window size. Cost: see `ThresholdView.refresh`."""
        self._view.refresh(self._k, end - self._size)
        return first_members(self._view.members, self._view.count, ks)

    def _check(self) -> None:
        self._view._check()

    @property
    def held(self) -> int:
        """Entries of the sorted lists: what each object of the window has of each attribute."""
        return self._view.lists.entries

    @property
    def refills(self) -> int:
        """Searches of the lists so far."""
        return self._view.searches

    @property
    def not_finite(self) -> int:
        """Scores met that were not finite."""
        return self._view.not_finite

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self._view.state_bytes
