"""When rows happen, in which order they arrive, and rows as a decoder would hand them over.

Every generator is a pure function of its arguments: the same seed gives the same columns.
"""

import numpy as np
import numpy.typing as npt

from skyband.generate.rhythm import Bursts, ramp_times
from skyband.model.source_rows import SourceRows

__all__ = ["arrival_order", "event_times", "object_ids", "source_rows"]

_US_PER_S = 1_000_000


def event_times(
    random: np.random.Generator,
    rows: int,
    rows_per_second: float,
    start_us: int = 0,
    *,
    bursts: Bursts | None = None,
    rate_factor: float = 1.0,
) -> npt.NDArray[np.int64]:
    """Return `rows` ascending event times in microseconds: independent arrivals (Poisson).

    Their rate is steady; or comes in `bursts`, with `rows_per_second` as its mean; or moves evenly until the last row
    comes at `rate_factor` times `rows_per_second`. Raises ValueError for both together.
    """
    if rows_per_second <= 0:
        raise ValueError("rows_per_second must be above 0")
    if bursts is not None and rate_factor != 1.0:
        raise ValueError("ask for bursts or for a rate_factor, not for both")
    steady_us = np.cumsum(random.exponential(_US_PER_S / rows_per_second, rows))
    if bursts is not None:
        return bursts.times(start_us, steady_us)
    return ramp_times(start_us, steady_us, rate_factor)


def arrival_order(
    random: np.random.Generator, event_time_us: npt.NDArray[np.int64], disorder_us: int
) -> npt.NDArray[np.int64]:
    """Return the indexes of rows by arrival: each comes up to `disorder_us` after its event, uniformly.

    A row then stands at most `disorder_us` of event time behind one before it: a `max_delay` of that keeps all in time.
    """
    if disorder_us <= 0:
        return np.argsort(event_time_us, kind="stable")
    return np.argsort(event_time_us + random.integers(0, disorder_us + 1, len(event_time_us)), kind="stable")


def object_ids(
    numbers: npt.NDArray[np.int64], prefix: str = "o"
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the ids ``o0``, ``o17``, … of objects as arena and ends. `numbers` are not negative."""
    cells = numbers.astype("S19").view(np.uint8).reshape(len(numbers), 19)
    head = np.frombuffer(prefix.encode(), np.uint8)
    full = np.concatenate([np.broadcast_to(head, (len(numbers), len(head))), cells], axis=1)
    used = np.concatenate([np.ones((len(numbers), len(head)), np.bool_), cells != 0], axis=1)
    return full[used], np.cumsum(used.sum(axis=1), dtype=np.int64)


def source_rows(
    event_time_us: npt.NDArray[np.int64],
    objects: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    order: npt.NDArray[np.int64],
) -> SourceRows:
    """Return rows of one source partition in `order`, at offsets from 0; `values` is float64[n] or float64[n, d]."""
    id_bytes, id_ends = object_ids(objects[order])
    return SourceRows(
        offset=np.arange(len(order), dtype=np.int64),
        event_time_us=event_time_us[order],
        id_bytes=id_bytes,
        id_ends=id_ends,
        values=np.ascontiguousarray((values if values.ndim == 2 else values[:, None])[order]),
        reason=np.zeros(len(order), np.uint8),
    )
