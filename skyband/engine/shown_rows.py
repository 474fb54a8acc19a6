"""The rows that a shard shows: gathered out of a ranking's columns and the object table."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Bytes, Flags, Floats, Indexes, Ints
from skyband.structures.object_table import ObjectArrays, ObjectTable, copy_ids

__all__ = ["ShownRows", "gather"]

# Bytes that a row's id is expected to need: where it is more, a second call gathers the ids.
_ID_BYTES = 32


class ShownRows(NamedTuple):
    """Columns of n rows: slot int32, score float64, attributes and whether each is present [n, columns], ids."""

    slots: npt.NDArray[np.int32]
    score: npt.NDArray[np.float64]
    attributes: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]
    id_bytes: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _gather(
    object_arrays: tuple[Any, ...],
    used: Indexes,
    slot: Indexes,
    rank: Floats,
    bits: Ints,
    values: Floats,
    descending: bool,
    slots: Indexes,
    score: Floats,
    attributes: Floats,
    present: Flags,
    id_bytes: Bytes,
    id_ends: Ints,
) -> int:
    """Fill the columns; return the bytes of all ids, which are copied only if they fit."""
    objects = ObjectArrays(*object_arrays)
    for row in range(len(used)):
        at = used[row]
        slots[row] = slot[at]
        # Never -0.0.
        score[row] = rank[at] if descending else 0.0 - rank[at]
        for j in range(values.shape[1]):
            attributes[row, j] = values[at, j]
            present[row, j] = (bits[at] >> j) & 1 != 0
    size: int = copy_ids(objects.records, objects.arena, slots, id_bytes, id_ends)
    return size


def gather(
    objects: ObjectTable,
    used: npt.NDArray[np.int32],
    slot: npt.NDArray[np.int32],
    rank: npt.NDArray[np.float64],
    bits: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    *,
    descending: bool,
) -> ShownRows:
    """Return rows `used` of a ranking's columns. One kernel: a dozen array operations cost 30 us when out of cache."""
    n, columns = len(used), values.shape[1]
    shown = ShownRows(
        slots=np.empty(n, np.int32),
        score=np.empty(n, np.float64),
        attributes=np.empty((n, columns), np.float64),
        present=np.empty((n, columns), np.bool_),
        id_bytes=np.empty(_ID_BYTES * n, np.uint8),
        id_ends=np.empty(n, np.int64),
    )
    size = _gather(tuple(objects.arrays), used, slot, rank, bits, values, descending, *shown)
    if size > len(shown.id_bytes):
        return shown._replace(id_bytes=objects.ids(shown.slots)[0])
    return shown._replace(id_bytes=shown.id_bytes[:size])
