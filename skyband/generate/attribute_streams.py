"""Streams that carry one attribute each of the same objects, and never line up."""

import numba as nb
import numpy as np
import numpy.typing as npt

from skyband.generate.arrivals import arrival_order, event_times, source_rows
from skyband.generate.rhythm import Bursts
from skyband.generate.values import Values, drifting_values, stream_values, zipf_ranks
from skyband.model.source_rows import SourceRows

__all__ = ["distinct_objects", "repeated_objects"]


def distinct_objects(
    seed: int,
    rows: int,
    *,
    streams: int = 2,
    alpha: float | tuple[float, float] = 0.5,
    recent: int = 100,
    values: Values = Values.UNIFORM,
    correlation: float = 0.8,
    drift: float = 0.0,
    rows_per_second: float = 1_000.0,
    bursts: Bursts | None = None,
    rate_factor: float = 1.0,
    start_us: int = 0,
    disorder_us: int = 0,
) -> tuple[SourceRows, ...]:
    """Return `rows` rows over streams in which an object comes at most once each (Haghani et al., CIKM 2009, sec. 6).

    The streams take turns by chance. With probability `alpha` a row is of an object among the last `recent` ones of
    another stream that has not come on its own stream yet, if there is one; else of a new object. So `alpha` sets how
    many objects come on several streams, `recent` how far apart. `correlation`: of the values of an object, if `values`
    is `CORRELATED`.

    What the algorithms take to be steady may move evenly from the first row to the last: a pair `alpha` from one to the
    other, the values by `drift` (see `drifting_values`), the rate up to `rate_factor` times what it was; or the rate
    comes in `bursts`. Cost: rows * streams * recent.
    """
    first, last = alpha if isinstance(alpha, tuple) else (alpha, alpha)
    if streams < 1 or recent < 1 or not 0.0 <= min(first, last) <= max(first, last) <= 1.0:
        raise ValueError("streams and recent must be at least 1, alpha between 0 and 1")
    random = np.random.default_rng(seed)
    time = event_times(random, rows, rows_per_second, start_us, bursts=bursts, rate_factor=rate_factor)
    stream = random.integers(0, streams, rows)
    objects = _reappearing(stream, random.random((rows, 2)), np.linspace(first, last, rows), streams, recent)
    found = drifting_values(stream_values(random, objects, values, correlation), time, drift)
    return _split(random, streams, stream, time, objects, found, disorder_us)


def repeated_objects(
    seed: int,
    rows: int,
    *,
    streams: int = 4,
    objects: int = 10_000,
    exponent: float = 0.0,
    values: Values = Values.UNIFORM,
    correlation: float = 0.8,
    drift: float = 0.0,
    rows_per_second: float = 6_667.0,
    bursts: Bursts | None = None,
    rate_factor: float = 1.0,
    start_us: int = 0,
    disorder_us: int = 1_000_000,
) -> tuple[SourceRows, ...]:
    """Return `rows` rows, evenly over streams, of `objects` objects that come again and again.

    All objects are equally frequent if `exponent` is 0; else the n-th is proportional to 1/n**exponent. Values and rate
    may move as in `distinct_objects`. The defaults are the workload of the benchmarks: four streams, 10,000 objects,
    disorder of up to a second.
    """
    if streams < 1 or objects < 1:
        raise ValueError("streams and objects must be at least 1")
    random = np.random.default_rng(seed)
    time = event_times(random, rows, rows_per_second, start_us, bursts=bursts, rate_factor=rate_factor)
    stream = random.integers(0, streams, rows)
    which = zipf_ranks(random, rows, objects, exponent) if exponent else random.integers(0, objects, rows)
    found = drifting_values(stream_values(random, which, values, correlation), time, drift)
    return _split(random, streams, stream, time, which, found, disorder_us)


def _split(
    random: np.random.Generator,
    streams: int,
    stream: npt.NDArray[np.int64],
    time: npt.NDArray[np.int64],
    objects: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    disorder_us: int,
) -> tuple[SourceRows, ...]:
    order = arrival_order(random, time, disorder_us)
    return tuple(source_rows(time, objects, values, order[stream[order] == index]) for index in range(streams))


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _reappearing(
    stream: npt.NDArray[np.int64],
    chances: npt.NDArray[np.float64],
    alpha: npt.NDArray[np.float64],
    streams: int,
    recent: int,
) -> npt.NDArray[np.int64]:
    """Return the object of each row; `chances` decide whether it is an old one (with `alpha` of the row), and which."""
    rows = len(stream)
    objects = np.empty(rows, np.int64)
    came = np.zeros((rows, streams), np.bool_)
    ring = np.full((streams, recent), -1, np.int64)
    sent = np.zeros(streams, np.int64)
    candidates = np.empty(streams * recent, np.int64)
    fresh = 0
    for row in range(rows):
        own = stream[row]
        found = 0
        if chances[row, 0] < alpha[row]:
            for other in range(streams):
                if other == own:
                    continue
                for place in range(min(recent, sent[other])):
                    if not came[ring[other, place], own]:
                        candidates[found] = ring[other, place]
                        found += 1
        if found:
            chosen = candidates[int(chances[row, 1] * found)]
        else:
            chosen = fresh
            fresh += 1
        objects[row] = chosen
        came[chosen, own] = True
        ring[own, sent[own] % recent] = chosen
        sent[own] += 1
    return objects
