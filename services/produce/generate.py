"""Rows that nobody measured: objects that come again and again on all streams of a group, out of order as promised."""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from skyband.files.rows import Chunk
from skyband.generate.arrivals import arrival_order, event_times, source_rows
from skyband.model.group import Group
from skyband.model.stream import Stream

__all__ = ["generated"]

# The span of values where a stream has no bound.
_SPAN = 100.0
_OWN = 0.7


def generated(
    group: Group,
    *,
    begin_us: int,
    rows_per_second: float,
    objects: int = 1_000,
    seed: int = 0,
    rows: int | None = None,
    batch_rows: int = 1_000,
) -> Iterator[Chunk]:
    """Yield `rows` rows (None: without end), `rows_per_second` of event time from `begin_us` on, evenly over streams.

    Each object has values of its own, around which its rows lie. A row is late by at most the max_delay of its stream.
    The same seed gives the same rows for the same batches.
    """
    random = np.random.default_rng(seed)
    own = [random.random((objects, len(stream.attributes))) for stream in group.streams]
    counts = _batches(rows, batch_rows)
    start_us = begin_us
    for count in counts:
        times = event_times(random, count, rows_per_second, start_us)
        start_us = int(times[-1])
        which = random.integers(0, len(group.streams), count)
        numbers = random.integers(0, objects, count)
        for index, stream in enumerate(group.streams):
            mine = np.flatnonzero(which == index)
            if not len(mine):
                continue
            values = _values(stream, own[index][numbers[mine]], random)
            order = arrival_order(random, times[mine], stream.max_delay_us)
            found = source_rows(times[mine], numbers[mine], values, order)
            yield Chunk(index, 0, 0, len(mine), found)


def _batches(rows: int | None, batch_rows: int) -> Iterator[int]:
    if rows is None:
        yield from itertools.repeat(batch_rows)
        return
    while rows > 0:
        yield min(rows, batch_rows)
        rows -= batch_rows


def _values(stream: Stream, own: npt.NDArray[np.float64], random: np.random.Generator) -> npt.NDArray[np.float64]:
    lo = np.array([a.lo if np.isfinite(a.lo) else 0.0 for a in stream.attributes])
    hi = np.array([a.hi if np.isfinite(a.hi) else low + _SPAN for a, low in zip(stream.attributes, lo, strict=True)])
    share = _OWN * own + (1.0 - _OWN) * random.random(own.shape)
    values: npt.NDArray[np.float64] = np.round(lo + (hi - lo) * share, 3).clip(lo, hi)
    return values
