"""Object streams: points with several attributes, and objects with one score that moves with time."""

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from skyband.generate.arrivals import arrival_order, event_times, source_rows
from skyband.generate.values import Trend, moving_values
from skyband.model.source_rows import SourceRows

__all__ = ["Shape", "point_stream", "points", "scored_stream"]


class Shape(StrEnum):
    """How the coordinates of a point depend on each other."""

    INDEPENDENT = "independent"
    CORRELATED = "correlated"
    ANTICORRELATED = "anticorrelated"


def points(random: np.random.Generator, rows: int, dimensions: int, shape: Shape) -> npt.NDArray[np.float64]:
    """Return float64[rows, dimensions] in [0, 1] (Börzsönyi et al., ICDE 2001, sec. 4).

    `CORRELATED`: near the diagonal; good in one is good in all. `ANTICORRELATED`: near the plane where the coordinates'
    mean is a half; good in one is bad in others. A point is made from its mean by moving shares from one coordinate to
    the next, and thrown away if it leaves the cube. One dimension is its mean. Cost: a few draws a point.
    """
    if dimensions < 1:
        raise ValueError("dimensions must be at least 1")
    if shape is Shape.INDEPENDENT:
        return random.random((rows, dimensions))
    kept = np.empty((0, dimensions))
    while len(kept) < rows:
        tried = _around_mean(random, max(64, rows - len(kept)), dimensions, shape)
        inside = ((tried >= 0.0) & (tried <= 1.0)).all(axis=1)
        kept = np.concatenate([kept, tried[inside]])
    return np.ascontiguousarray(kept[:rows])


def _around_mean(random: np.random.Generator, rows: int, dimensions: int, shape: Shape) -> npt.NDArray[np.float64]:
    correlated = shape is Shape.CORRELATED
    # Means of correlated points spread over the diagonal; those of anticorrelated ones stay close to its middle.
    mean = random.random((rows, 2)).mean(axis=1) if correlated else random.normal(0.5, 0.05, rows)
    reach = np.minimum(mean, 1.0 - mean).clip(0.0)[:, None]
    if correlated:
        moved = random.normal(0.0, 0.15, (rows, dimensions)) * reach
    else:
        moved = random.uniform(-1.0, 1.0, (rows, dimensions)) * reach
    made: npt.NDArray[np.float64] = mean[:, None] + moved - np.roll(moved, 1, axis=1)
    return made


def point_stream(
    seed: int,
    rows: int,
    *,
    dimensions: int = 2,
    shape: Shape = Shape.INDEPENDENT,
    rows_per_second: float = 1_000.0,
    start_us: int = 0,
    disorder_us: int = 0,
) -> SourceRows:
    """Return one object stream of distinct objects, whose attributes are the coordinates of a point each."""
    random = np.random.default_rng(seed)
    time = event_times(random, rows, rows_per_second, start_us)
    values = points(random, rows, dimensions, shape)
    return source_rows(time, np.arange(rows), values, arrival_order(random, time, disorder_us))


def scored_stream(
    seed: int,
    rows: int,
    *,
    trend: Trend = Trend.RANDOM,
    noise: float = 0.3,
    day_us: int = 86_400_000_000,
    rows_per_second: float = 1_000.0,
    start_us: int = 0,
    disorder_us: int = 0,
) -> SourceRows:
    """Return one stream of distinct objects with one value each, which moves with time as `trend` says."""
    random = np.random.default_rng(seed)
    time = event_times(random, rows, rows_per_second, start_us)
    values = moving_values(random, time, trend, noise, day_us)
    return source_rows(time, np.arange(rows), values, arrival_order(random, time, disorder_us))
