"""Rows in columns, for sketches: nothing but what they read."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from skyband.model.source_rows import SourceRows
from skyband.structures.hashing import hash_ids
from skyband.structures.store_arrays import Rows

S = 1_000_000


def rows_of(
    stream: npt.ArrayLike, time_us: npt.ArrayLike, objects: npt.ArrayLike, values: npt.ArrayLike | None = None
) -> Rows:
    """Return rows of objects named by number; without values, all are 0."""
    streams = np.asarray(stream, np.int32)
    numbers = np.asarray(objects, np.int64)
    ids = numbers.astype("<i8").view(np.uint8)
    ends = np.arange(8, 8 * len(numbers) + 1, 8, np.int64)
    given = np.zeros(len(numbers)) if values is None else np.asarray(values, np.float64)
    given = given if given.ndim == 2 else given[:, np.newaxis]
    times = np.asarray(time_us, np.int64)
    return Rows(streams, times, ids, ends, hash_ids(ids, ends).view(np.int64), np.ascontiguousarray(given))


def some_rows(
    seed: int, count: int, *, streams: int = 3, objects: int = 200, seconds: int = 20, width: int = 2
) -> Rows:
    """Return rows of few objects that come again and again, nearly in the order of their times."""
    random = np.random.default_rng(seed)
    time = np.sort(random.integers(0, seconds * S, count))
    time = np.maximum(0, time - random.integers(0, S, count) * (random.random(count) < 0.2))
    values = random.integers(0, 9, (count, width)).astype(np.float64)
    return rows_of(random.integers(0, streams, count), time, random.integers(0, objects, count), values)


def taken(rows: Rows, places: npt.ArrayLike) -> Rows:
    """Return some of the rows, in the given order; ids are left as they are, for no sketch reads them."""
    at = np.asarray(places, np.int64)
    return rows._replace(
        stream=rows.stream[at],
        event_time_us=rows.event_time_us[at],
        id_hash=rows.id_hash[at],
        values=np.ascontiguousarray(rows.values[at]),
    )


def in_order(streams: Iterable[SourceRows]) -> Rows:
    """Return the rows of generated streams by time."""
    parts = list(streams)
    stream = np.concatenate([np.full(len(part.event_time_us), i, np.int32) for i, part in enumerate(parts)])
    time = np.concatenate([part.event_time_us for part in parts])
    hashes = np.concatenate([hash_ids(part.id_bytes, part.id_ends) for part in parts]).view(np.int64)
    values = np.concatenate([part.values for part in parts]).astype(np.float64)
    rows = Rows(stream, time, np.zeros(0, np.uint8), np.zeros(0, np.int64), hashes, values)
    return taken(rows, np.argsort(time, kind="stable"))
