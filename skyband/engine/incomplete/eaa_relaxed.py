"""Early aggregation with sweeps: exact, keeps what the strict form keeps, at a cost per row that does not grow.

Initial state: nothing seen. Invariant: right for windows that begin after the first row was taken.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete.bounds import ask
from skyband.engine.incomplete.instance_set import InstanceSet
from skyband.engine.incomplete.options import ApproximationOptions
from skyband.engine.ranked import Ranked
from skyband.errors import NotServedError
from skyband.model.ability import why_not_forget
from skyband.model.approximation import Approximation
from skyband.model.binding import BoundQuery
from skyband.model.group import Group
from skyband.model.saved_arrays import SavedArrays, part_of, prefixed
from skyband.structures.object_table import ObjectTable
from skyband.structures.store_arrays import Rows

__all__ = ["EaaRelaxed"]


class EaaRelaxed:
    """A query's instances, swept when they have grown and at each evaluation. See `instance_set` for words and sources.

    Raises NotServedError where `why_not_forget` finds a reason. `options` ask nothing of an exact ranking.
    """

    refills = 0
    not_finite = 0

    def __init__(self, bound: BoundQuery, group: Group, options: ApproximationOptions | None = None) -> None:
        reason = why_not_forget(group, bound)
        if reason is not None:
            raise NotServedError(
                f"query {bound.query.name!r} cannot use an algorithm that forgets, because {reason}", field="algorithm"
            )
        self.bound = bound
        self.attribute_names = tuple(column.name for column in bound.columns)
        self._set = InstanceSet(ask(bound, group), bound.score.stack_size, bound.query.k)

    def demand(self, k: int, size: int) -> None:
        """Serve this k from now on; a larger one than before is right for windows that begin after this."""
        assert size == self._set.ask.size
        if k != self._set.k:
            self._set.set_k(k)

    def take(self, rows: Rows, first: int, last: int, low: int, number: int) -> None:
        """Take rows [first, last). Cost: for each a hash probe, the instances of its object, a share of sweeps."""
        self._set.take(rows, first, last, low, number)

    def rank(self, end: int, sizes: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]) -> Ranked:
        """Rank for the one query. Cost: one sweep, O(instances)."""
        assert len(sizes) == 1
        self._set.pass_to(end - self._set.ask.size)
        return self._set.sweep(int(ks[0])).as_ranked()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that it remembers. Cost: a copy."""
        return prefixed("set", self._set.state())

    def restore(self, state: SavedArrays) -> None:
        """Remember what another ranking of the query did, after `demand`; raises LogError for what does not fit."""
        self._set.restore(part_of(state, "set"))

    def _check(self) -> None:
        self._set._check()

    @property
    def instances(self) -> InstanceSet:
        """What is remembered."""
        return self._set

    @property
    def objects(self) -> ObjectTable:
        """The objects that the slots of a ranking name."""
        return self._set.objects

    @property
    def broken_promises(self) -> int:
        """Observations that came again where the bounds rely on a promise that they do not."""
        return self._set.broken

    @property
    def approximation(self) -> Approximation | None:
        """None: it is exact."""
        return None

    @property
    def held(self) -> int:
        """Instances held."""
        return self._set.size

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self._set.state_bytes
