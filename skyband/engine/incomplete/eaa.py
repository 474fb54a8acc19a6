"""Early aggregation as published: after each row it looks at every pair of instances. Exact; for small windows.

Source: Haghani et al., CIKM 2009, sec. 3.2. The paper keeps a counter of dominators for each instance and three sorted
lists; counting them anew gives the same set, and nothing that could go stale.

The relaxed form keeps the same instances if it is swept after each row. Swept less often it may keep fewer, never
others: an object that falls and comes back between two sweeps has its past still known, so that its best is lower.
"""

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.ranked import Ranked
from skyband.structures.rank_order import sort_by_rank
from skyband.structures.store_arrays import Rows

__all__ = ["EaaStrict"]


class EaaStrict(EaaRelaxed):
    """A query's instances, of which none is dominated by k distinct other objects after any row."""

    def take(self, rows: Rows, first: int, last: int, low: int, number: int) -> None:
        """Take rows [first, last), one after the other. Cost O(instances**2) a row."""
        for row in range(first, last):
            self._set.take(rows, row, row + 1, low, number + row - first)
            self._set.examine()

    def rank(self, end: int, sizes: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]) -> Ranked:
        """Rank for the one query. Cost O(n log n)."""
        assert len(sizes) == 1
        self._set.pass_to(end - self._set.ask.size)
        self._set.examine()
        at, places = self._set.instances, self._set.live()
        current = at.scores[places, 0]
        places = places[current > -np.inf]
        rank, slot = at.scores[places, 0].copy(), at.links[places, 0].copy()
        order = sort_by_rank(self.objects.arrays, False, rank, slot, at.tick[places], len(places))
        _, firsts = np.unique(slot[order], return_index=True)
        best = order[np.sort(firsts)][: int(ks[0])]
        return self._set.show(places[best].astype(np.int32)).as_ranked()
