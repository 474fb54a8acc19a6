"""Rows of several streams in the order of their time, so that no stream runs ahead of the others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skyband.files.rows import Chunk
from skyband.model.duration import MIN_TIME_US

__all__ = ["Row", "interleaved"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row to write: stream number, object id, event time in microseconds, values; no values: it cannot be used."""

    stream: int
    key: bytes
    event_us: int
    values: list[float] | None


def interleaved(chunks: Iterable[Chunk]) -> Iterator[Row]:
    """Yield the rows of chunks that come one after the other for different streams, merged by time.

    A stream's rows keep their order: a row that is out of order goes with the one before it. Cost: a sort of what one
    read of an input brings.
    """
    batch: list[Chunk] = []
    for chunk in chunks:
        if batch and (chunk.partition != batch[0].partition or any(chunk.stream == other.stream for other in batch)):
            yield from _merged(batch)
            batch = []
        batch.append(chunk)
    yield from _merged(batch)


def _merged(batch: list[Chunk]) -> Iterator[Row]:
    if not batch:
        return
    order = np.argsort(np.concatenate([_places(chunk) for chunk in batch]), kind="stable")
    rows = [row for chunk in batch for row in _rows(chunk)]
    for place in order.tolist():
        yield rows[place]


def _places(chunk: Chunk) -> npt.NDArray[np.int64]:
    """Return when each row is due: the newest event time up to it."""
    usable = np.where(chunk.rows.reason == 0, chunk.rows.event_time_us, MIN_TIME_US)
    places: npt.NDArray[np.int64] = np.maximum.accumulate(usable)
    return places


def _rows(chunk: Chunk) -> Iterator[Row]:
    rows = chunk.rows
    arena, begin = rows.id_bytes.tobytes(), 0
    finite = np.isfinite(rows.values).all(axis=1)
    is_bad = ((rows.reason != 0) | ~finite).tolist()
    for end, event_us, values, bad in zip(
        rows.id_ends.tolist(), rows.event_time_us.tolist(), rows.values.tolist(), is_bad, strict=True
    ):
        # What a broken row says of itself is not to be relied on.
        key = b"" if bad else arena[begin:end]
        yield Row(chunk.stream, key, event_us, values if key else None)
        begin = end
