"""Values in [0, 1): uniform, Zipf, correlated between the streams of an object, or moving with time."""

from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = ["Trend", "Values", "moving_values", "stream_values", "zipf_ranks"]

_ZIPF_RANKS = 1_000


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


def zipf_ranks(random: np.random.Generator, rows: int, ranks: int, exponent: float = 1.0) -> npt.NDArray[np.int64]:
    """Return `rows` ranks in [0, ranks), rank r with probability proportional to 1/(r + 1)**exponent."""
    weights = np.arange(1, ranks + 1, dtype=np.float64) ** -exponent
    reached = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(reached, random.random(rows), side="right"), ranks - 1).astype(np.int64)


def stream_values(
    random: np.random.Generator, objects: npt.NDArray[np.int64], kind: Values, correlation: float = 0.8
) -> npt.NDArray[np.float64]:
    """Return one value per row, for rows of any streams.

    `UNIFORM`: independent. `ZIPF`: independent, most near 0, few near 1 (exponent 1). `CORRELATED`: an object has one
    value of its own; `correlation` in [0, 1] is the share it has in each row of the object, in whatever stream.
    """
    if kind is Values.ZIPF:
        return (zipf_ranks(random, len(objects), _ZIPF_RANKS) + random.random(len(objects))) / _ZIPF_RANKS
    if kind is Values.CORRELATED:
        own = random.random(1 + int(objects.max(initial=0)))[objects]
        return correlation * own + (1.0 - correlation) * random.random(len(objects))
    return random.random(len(objects))


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
        # A parabola a day, not a sine: plain arithmetic gives the same bits on every machine.
        phase = event_time_us % day_us / day_us
        share = 4.0 * phase * (1.0 - phase)
    values: npt.NDArray[np.float64] = np.minimum((1.0 - noise) * share + noise * chance, np.nextafter(1.0, 0.0))
    return values
