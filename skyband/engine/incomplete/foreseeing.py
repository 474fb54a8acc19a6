"""What the approximate rankings share: an outlook that is renewed, their own recall, and how much they dare to forget.

Words: *epsilon* is the chance below which an instance is given up. The *asked* one is the user's, or follows the recall
where a target precision is asked for; the *forced* one comes from a memory budget and counts where it is larger.

Initial state: nothing is foreseen, so that only what is dominated for certain goes. Everything is renewed at the first
evaluation of each quarter of a window, never in between: what is forgotten depends on the rows and on the evaluations,
not on how the rows were cut into batches.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.incomplete.foresight import EXPECTED, no_foresight
from skyband.engine.incomplete.options import ApproximationOptions
from skyband.engine.incomplete.outlook import Outlook
from skyband.engine.incomplete.own_recall import OwnRecall, Recall
from skyband.engine.ranked import Ranked
from skyband.model.approximation import FEWEST_DUE, Approximation
from skyband.model.binding import BoundQuery
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.saved_arrays import SavedArrays, array_of, part_of, prefixed
from skyband.structures.store_arrays import Rows

__all__ = ["ForeseeingRanking"]

# Steps by which epsilon grows and falls, and its bounds.
_FORCED_STEP = 1.5
_STEERED_UP, _STEERED_DOWN = 1.1, 1.5
_LEAST_ERROR, _MOST_ERROR = 0.001, 0.95


class ForeseeingRanking(EaaRelaxed):
    """A relaxed ranking whose best scores are foreseen; see `foresight` for how."""

    kind: int

    def __init__(self, bound: BoundQuery, group: Group, options: ApproximationOptions | None = None) -> None:
        super().__init__(bound, group)
        self._options = options or ApproximationOptions()
        self._outlook = Outlook(self._set.ask, group.width)
        self._own = OwnRecall(self._set.ask, bound.score.stack_size)
        self._asked_error = 0.0 if self.kind == EXPECTED else self._options.first_error
        self._forced_error = 0.0
        self._renewed_at: int | None = None
        self._steered_at: int | None = None
        self._recent = Recall(0, 0, 0)

    @property
    def epsilon(self) -> float:
        """The epsilon in force."""
        return max(self._asked_error, self._forced_error)

    @property
    def used_bytes(self) -> int:
        """Bytes of the instances and their objects: what a memory budget is for. The samples come on top."""
        return self._set.used_bytes

    @property
    def over_budget(self) -> bool:
        """Whether more is held than the memory budget allows, so that epsilon grows."""
        budget = self._options.memory_budget
        return budget is not None and self.used_bytes > budget

    @property
    def unknown_patterns(self) -> int:
        """Patterns of which too few examples were seen, so that their best case counts."""
        return self._outlook.unknown_patterns

    @property
    def approximation(self) -> Approximation | None:
        """What it measured of itself over all evaluations, and how it forgets now."""
        shown, due, objects = self._own.total
        return Approximation(
            shown,
            due,
            objects=objects,
            error=None if self.kind == EXPECTED else self.epsilon,
            is_over_budget=self.over_budget,
            unknown=self.unknown_patterns,
        )

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self._set.state_bytes + self._own.state_bytes + self._outlook.sample.state_bytes

    def take(self, rows: Rows, first: int, last: int, low: int, number: int) -> None:
        """Take rows [first, last). Cost: as the exact form, and a score for each example of the object's pattern."""
        self._outlook.add(rows, first, last, number)
        self._own.take(rows, first, last, low, number)
        self._set.take(rows, first, last, low, number)

    def rank(self, end: int, sizes: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]) -> Ranked:
        """Rank for the one query, and count what of the sample is shown. Cost: one sweep, O(instances)."""
        size = self._set.ask.size
        self._set.pass_to(end - size)
        if self._renewed_at is None or end - self._renewed_at >= max(1, size // 4):
            self._renew(end)
        k = int(ks[0])
        shown = self._set.sweep(k)
        counted = self._own.compare(self.objects, shown, min(k, self._set.k), end - size)
        self._recent = Recall(*(a + b for a, b in zip(self._recent, counted, strict=True)))
        return shown.as_ranked()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that it remembers, samples and errors among it. Cost: a copy."""
        times = (MIN_TIME_US if at is None else at for at in (self._renewed_at, self._steered_at))
        return {
            **super().state(),
            **prefixed("own", self._own.state()),
            **prefixed("outlook", self._outlook.state()),
            "errors": np.array([self._asked_error, self._forced_error], np.float64),
            "numbers": np.array([*times, *self._recent], np.int64),
        }

    def restore(self, state: SavedArrays) -> None:
        """Remember what another ranking of the query did, after `demand`; raises LogError for what does not fit."""
        super().restore(state)
        self._own.restore(part_of(state, "own"))
        self._outlook.restore(part_of(state, "outlook"))
        self._asked_error, self._forced_error = array_of(state, "errors", np.float64, (2,)).tolist()
        renewed_at, steered_at, *recent = array_of(state, "numbers", np.int64, (5,)).tolist()
        self._renewed_at = None if renewed_at == MIN_TIME_US else renewed_at
        self._steered_at = None if steered_at == MIN_TIME_US else steered_at
        self._recent = Recall(*recent)

    def _renew(self, end: int) -> None:
        self._renewed_at = end
        self._steer(end)
        self._keep_to_budget()
        if self.kind != EXPECTED and self.epsilon == 0.0:
            self._set.foresight = no_foresight(len(self._set.ask.missing))
            self._set.rescore()
            return
        while True:
            # Twice, if patterns are met that were not met before.
            self._outlook.meet(self._set.asked)
            self._set.foresight = self._outlook.renew(end, self.kind, self.epsilon)
            self._set.rescore()
            if not self._outlook.knows_not(self._set.asked):
                return

    def _steer(self, end: int) -> None:
        """Follow the target precision by the recall of the rows counted since the last step.

        At most one step a window, and down faster than up: what is forgotten now will be missed a window later.
        """
        target = self._options.target_precision
        if target is None or self.kind == EXPECTED or self._recent.due < FEWEST_DUE:
            return
        if self._steered_at is not None and end - self._steered_at < self._set.ask.size:
            return
        self._steered_at = end
        missed = 1.0 - self._recent.shown / self._recent.due
        if missed > 1.0 - target:
            self._asked_error = max(_LEAST_ERROR, self._asked_error / _STEERED_DOWN)
        elif missed < (1.0 - target) / 2:
            self._asked_error = min(_MOST_ERROR, max(_LEAST_ERROR, self._asked_error) * _STEERED_UP)
        self._recent = Recall(0, 0, 0)

    def _keep_to_budget(self) -> None:
        budget = self._options.memory_budget
        if budget is None:
            return
        if self.used_bytes > budget:
            self._forced_error = min(_MOST_ERROR, max(self.epsilon, 0.01) * _FORCED_STEP)
        elif 2 * self.used_bytes < budget and self._forced_error:
            self._forced_error /= _FORCED_STEP
            if self._forced_error <= max(self._asked_error, 0.01):
                self._forced_error = 0.0

    def _check(self) -> None:
        super()._check()
        self._own._check()
        self._outlook.sample._check()
