"""How well an approximate query does, by its own measure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["FEWEST_DUE", "Approximation", "recall_interval"]

# Below so many objects that were due, nothing is said of the share that was shown.
FEWEST_DUE = 30
_Z = 1.959963984540054  # 95 %


@dataclass(frozen=True, slots=True)
class Approximation:
    """What an approximate query measured of itself, and how it forgets now.

    Of `due` rows that exact results would have shown, among objects sampled by hash whose exact scores are kept beside,
    `shown` were there, over all evaluations so far. They are of `objects` objects, each due in several evaluations that
    follow one another: only between objects is it chance anew whether they are missed. `error` is the probability in
    force with which a forgotten object may matter after all (None: the algorithm knows none), `is_over_budget` whether
    it is higher than was asked for, to stay within the memory. `unknown`: combinations of attributes of which too few
    objects were seen to expect anything of them.
    """

    shown: int = 0
    due: int = 0
    error: float | None = None
    is_over_budget: bool = False
    unknown: int = 0
    objects: int = 0

    def interval(self) -> tuple[float, float] | None:
        """Return between what bounds its recall lies with a confidence of 95 %; None while that is unknown."""
        return recall_interval(self.shown / self.due, self.objects) if self.due else None

    def describe(self) -> str:
        """Return in words what share of the exact rows its results show, and how much it dares to forget."""
        between = self.interval()
        if between is None:
            text = f"unknown yet: {self.objects:,} of the {FEWEST_DUE} sampled objects that it takes"
        else:
            sampled = f"{self.shown:,} of {self.due:,} sampled, of {self.objects:,} objects"
            text = f"{between[0]:.1%} to {between[1]:.1%} of the exact rows shown ({sampled})"
        if self.error is not None:
            text += f" · forgets what matters with less than {self.error:.3g}"
        return text

    @staticmethod
    def of(parts: Iterable["Approximation"]) -> "Approximation | None":
        """Return that of several shards together: counts add up, and the largest error counts; None of none."""
        found = list(parts)
        if not found:
            return None
        return Approximation(
            shown=sum(part.shown for part in found),
            due=sum(part.due for part in found),
            error=max((part.error for part in found if part.error is not None), default=None),
            is_over_budget=any(part.is_over_budget for part in found),
            unknown=sum(part.unknown for part in found),
            objects=sum(part.objects for part in found),
        )


def recall_interval(share: float, n: int) -> tuple[float, float] | None:
    """Return the 95 % interval (Wilson, 1927) of a share that was seen in `n` trials; None below 30.

    >>> recall_interval(1.0, 29)
    >>> tuple(round(end, 3) for end in recall_interval(0.95, 100))
    (0.888, 0.978)
    """
    if n < FEWEST_DUE:
        return None
    spread = _Z * _Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)
