"""Rows of several streams as an engine sees them: one after the other, row n at time n."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete.own_recall import picked
from skyband.generate.arrivals import object_ids
from skyband.generate.attribute_streams import distinct_objects
from skyband.structures.hashing import hash_ids
from skyband.structures.store_arrays import Rows

__all__ = ["distinct_rows", "numbered", "timed_rows"]


def timed_rows(seed: int, count: int, **more: Any) -> Rows:
    """Return generated rows of distinct objects in the order of their event times (us)."""
    parts = distinct_objects(seed, count, **more)
    starts = np.cumsum([0, *(len(part.id_bytes) for part in parts)])
    id_bytes = np.concatenate([part.id_bytes for part in parts])
    id_ends = np.concatenate([part.id_ends + start for part, start in zip(parts, starts, strict=False)])
    times = np.concatenate([part.event_time_us for part in parts])
    rows = Rows(
        stream=np.repeat(np.arange(len(parts), dtype=np.int32), [part.rows for part in parts]),
        event_time_us=times,
        id_bytes=id_bytes,
        id_ends=id_ends,
        id_hash=hash_ids(id_bytes, id_ends).view(np.int64),
        values=np.concatenate([part.values for part in parts]),
    )
    order = np.argsort(times, kind="stable")
    return picked(rows, order, times[order])


def distinct_rows(seed: int, count: int, **more: Any) -> Rows:
    """Return the rows of `timed_rows`, at times counted from 0."""
    return timed_rows(seed, count, **more)._replace(event_time_us=np.arange(count))


def numbered(stream: npt.ArrayLike, objects: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Rows:
    """Return rows, in the order given, of objects that have numbers."""
    id_bytes, id_ends = object_ids(objects)
    return Rows(
        stream=np.asarray(stream, np.int32),
        event_time_us=np.arange(len(objects)),
        id_bytes=id_bytes,
        id_ends=id_ends,
        id_hash=hash_ids(id_bytes, id_ends).view(np.int64),
        values=np.ascontiguousarray(values[:, None]),
    )
