"""Values in [0, 1): uniform, Zipf, correlated between the streams of an object, drifting, or moving with time."""

import functools
import math
from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = [
    "Trend",
    "Values",
    "correlated_shares",
    "cycle",
    "draw_values",
    "drifting_values",
    "moving_values",
    "stream_values",
    "zipf_ranks",
]

_ZIPF_RANKS = 1_000
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


class Values(StrEnum):
    """How the values of an object are distributed over its streams."""

    UNIFORM = "uniform"
    ZIPF = "zipf"
    CORRELATED = "correlated"


class Trend(StrEnum):
    """How scores move with time."""

    RANDOM = "random"
    RISING = "rising"
    FALLING = "falling"
    DAILY = "daily"


@functools.lru_cache(maxsize=8)
def _reached(ranks: int, exponent: float) -> npt.NDArray[np.float64]:
    """Return for each rank the probability of it or a smaller one."""
    weights = np.arange(1, ranks + 1, dtype=np.float64) ** -exponent
    reached = np.cumsum(weights / weights.sum())
    reached.flags.writeable = False
    return reached


def zipf_ranks(random: np.random.Generator, rows: int, ranks: int, exponent: float = 1.0) -> npt.NDArray[np.int64]:
    """Return `rows` ranks in [0, ranks), rank r with probability proportional to 1/(r + 1)**exponent.

    Cost: log(ranks) a row; the first time for so many ranks, their number too.
    """
    reached = _reached(ranks, exponent)
    return np.minimum(np.searchsorted(reached, random.random(rows), side="right"), ranks - 1).astype(np.int64)


def draw_values(random: np.random.Generator, shape: tuple[int, ...], kind: Values) -> npt.NDArray[np.float64]:
    """Return independent values: `ZIPF`: most near 0, few near 1 (exponent 1); else uniform."""
    if kind is not Values.ZIPF:
        return random.random(shape)
    count = math.prod(shape)
    return ((zipf_ranks(random, count, _ZIPF_RANKS) + random.random(count)) / _ZIPF_RANKS).reshape(shape)


def correlated_shares(correlation: float) -> tuple[float, float]:
    """Return the shares of a common and of an own draw, 1 together, whose sums correlate so (Pearson).

    Of two sums with the same common draw; all draws are independent and of the same distribution.
    """
    if not 0.0 <= correlation <= 1.0:
        raise ValueError("correlation must be between 0 and 1")
    common, own = math.sqrt(correlation), math.sqrt(1.0 - correlation)
    return common / (common + own), own / (common + own)


def stream_values(
    random: np.random.Generator, objects: npt.NDArray[np.int64], kind: Values, correlation: float = 0.8
) -> npt.NDArray[np.float64]:
    """Return one value per row, for rows of any streams.

    `UNIFORM` and `ZIPF`: independent, as `draw_values` has them. `CORRELATED`: any two values of an object, on whatever
    streams, have this `correlation`.
    """
    if kind is not Values.CORRELATED:
        return draw_values(random, (len(objects),), kind)
    common, own = correlated_shares(correlation)
    values = random.random(1 + int(objects.max(initial=0)))[objects]
    return common * values + own * random.random(len(objects))


def drifting_values(
    values: npt.NDArray[np.float64], event_time_us: npt.NDArray[np.int64], drift: float
) -> npt.NDArray[np.float64]:
    """Return values whose distribution moves evenly from the first to the last of their times, which ascend.

    It is squeezed to a width of ``1 - |drift|`` and moves by `drift`, in [-1, 1]: from the low end up, or from the high
    end down if that is negative.
    """
    if not -1.0 <= drift <= 1.0:
        raise ValueError("drift must be between -1 and 1")
    if not drift or not len(values):
        return values
    progress = (event_time_us - event_time_us[0]) / max(1, int(event_time_us[-1] - event_time_us[0]))
    if drift < 0.0:
        progress = 1.0 - progress
    moved: npt.NDArray[np.float64] = np.minimum((1.0 - abs(drift)) * values + abs(drift) * progress, _BELOW_ONE)
    return moved


def cycle(event_time_us: npt.NDArray[np.int64], period_us: int) -> npt.NDArray[np.float64]:
    """Return what is 1 in the middle of each period and 0 at its ends; periods begin at multiples of `period_us`."""
    # A parabola, not a sine: plain arithmetic gives the same bits on every machine.
    phase = event_time_us % period_us / period_us
    found: npt.NDArray[np.float64] = 4.0 * phase * (1.0 - phase)
    return found


def moving_values(
    random: np.random.Generator,
    event_time_us: npt.NDArray[np.int64],
    trend: Trend,
    noise: float = 0.3,
    day_us: int = 86_400_000_000,
) -> npt.NDArray[np.float64]:
    """Return one value per row that moves with its event time, which ascends.

    `noise` in [0, 1] is the share of chance. `DAILY` is highest in the middle of each `day_us` and lowest at its ends.
    """
    chance = random.random(len(event_time_us))
    if trend is Trend.RANDOM or not len(event_time_us):
        return chance
    passed = event_time_us - event_time_us[0]
    share = passed / max(1, int(passed[-1]) + 1)
    if trend is Trend.FALLING:
        share = 1.0 - share
    if trend is Trend.DAILY:
        share = cycle(event_time_us, day_us)
    values: npt.NDArray[np.float64] = np.minimum((1.0 - noise) * share + noise * chance, _BELOW_ONE)
    return values
