"""What an instance may still become, judged by objects that were seen where it was seen.

Words: a *pattern* is the columns that an object has shown so far, as bits. For each pattern there are *examples*: what
objects of that pattern showed in the end. One example of expected values gives the expected bound (Haghani et al., CIKM
2009, sec. 4); a few dozen sampled ones give the tail bound, the score that all but a share epsilon of them stay below
once the instance's own values are put in place of theirs. An instance *ages* by a step each half of a window: the
longer it has waited for an attribute, the less likely that still comes, and examples are kept for each age.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.engine.incomplete.bounds import BOTTOM, TOP, Ask
from skyband.structures.array_types import Floats, Ints
from skyband.structures.score_kernel import evaluate_one

__all__ = ["AGES", "EXAMPLES", "Foresight", "foreseen_best", "no_foresight"]

# Nothing is foreseen, or by expectation, or by examples.
NOTHING, EXPECTED, TAIL = 0, 1, 2

# Examples of a pattern at one age: at most.
EXAMPLES = 64
AGES = 2

# In `asked`: how many patterns follow; then the patterns.
ASKED, PATTERNS = 0, 1


class Foresight(NamedTuple):
    """Patterns, ascending; of each `AGES` ages, a step of `step` ticks each, the last for all that are older.

    Age a of pattern p is i = AGES * p + a, and has examples [starts[i], starts[i + 1]), each with bits of columns and
    values; the bound is the ``places[i]``-th largest score, 0: nothing is known. Of those that show no more than an
    instance does none need be listed: where fewer are than the place asks for, the bound is the current score.
    """

    kind: int
    step: int
    patterns: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    present: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


def no_foresight(columns: int, kind: int = NOTHING) -> Foresight:
    """Return a foresight that knows no pattern: the best case counts."""
    none = np.zeros(0, np.int64)
    return Foresight(kind, 1, none, np.zeros(1, np.int64), none.copy(), none.copy(), np.zeros((0, columns), np.float64))


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _find(patterns: Ints, pattern: int) -> int:
    low, high = 0, len(patterns)
    while low < high:
        middle = (low + high) >> 1
        if patterns[middle] < pattern:
            low = middle + 1
        else:
            high = middle
    return low if low < len(patterns) and patterns[low] == pattern else -1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _note(asked: Ints, pattern: int) -> None:
    """Put a pattern on the list of those asked for, if there is room."""
    for i in range(asked[ASKED]):
        if asked[PATTERNS + i] == pattern:
            return
    if PATTERNS + asked[ASKED] < len(asked):
        asked[PATTERNS + asked[ASKED]] = pattern
        asked[ASKED] += 1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def foreseen_best(
    ask: Ask,
    sight: Foresight,
    values: Floats,
    covered: int,
    seen: int,
    gone: int,
    age: int,
    trial: Floats,
    stack: Floats,
    ranks: Floats,
    asked: Ints,
    current: float,
    best: float,
) -> float:
    """Return the bound of an instance, between its current and its best score; its best if the pattern is unknown.

    Cost: a score for each example of the pattern.
    """
    pattern = covered | seen if sight.kind == EXPECTED else covered
    p = _find(sight.patterns, pattern)
    if p < 0:
        _note(asked, pattern)
        return best
    p = AGES * p + min(age // sight.step, AGES - 1)
    if sight.places[p] == 0:
        return best
    filled, most = 0, sight.places[p]
    for example in range(sight.starts[p], sight.starts[p + 1]):
        shown = sight.present[example]
        for column in range(len(trial)):
            bit = 1 << column
            value = values[column]
            if covered & bit != 0:
                if ask.once & bit == 0:
                    other = ask.best[column] if sight.kind == EXPECTED else sight.values[example, column]
                    if ask.kinds[column] == TOP:
                        value = max(value, other)
                    elif ask.kinds[column] == BOTTOM:
                        value = min(value, other)
            elif gone & bit == 0:
                if seen & bit != 0 and sight.kind == EXPECTED:
                    value = ask.best[column]
                elif shown & bit != 0:
                    value = sight.values[example, column]
            trial[column] = value
        rank: float = -np.inf
        if (covered | (shown & ~gone)) & ask.required == ask.required:
            rank = ask.sign * evaluate_one(ask.code, ask.constants, stack, trial)
        filled = _keep_largest(ranks, filled, most, rank)
    bound: float = current if filled < most else min(best, max(current, ranks[most - 1]))
    return bound


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _keep_largest(ranks: Floats, filled: int, most: int, rank: float) -> int:
    """Keep the `most` largest ranks, descending; return how many there are."""
    if filled == most:
        if rank <= ranks[most - 1]:
            return filled
        filled -= 1
    at = filled
    while at > 0 and ranks[at - 1] < rank:
        ranks[at] = ranks[at - 1]
        at -= 1
    ranks[at] = rank
    return filled + 1
