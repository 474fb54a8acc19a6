"""The rows that a shard shows: gathered out of a ranking's columns and the object table."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Flags, Floats, Indexes, Ints

__all__ = ["ShownRows", "gather"]


class ShownRows(NamedTuple):
    """Columns of n rows: slot int32, score float64, attributes and whether each is present [n, columns]."""

    slots: npt.NDArray[np.int32]
    score: npt.NDArray[np.float64]
    attributes: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _gather(
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
) -> None:
    for row in range(len(used)):
        at = used[row]
        slots[row] = slot[at]
        # Never -0.0.
        score[row] = rank[at] if descending else 0.0 - rank[at]
        for j in range(values.shape[1]):
            attributes[row, j] = values[at, j]
            present[row, j] = (bits[at] >> j) & 1 != 0


def gather(
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
    )
    _gather(used, slot, rank, bits, values, descending, *shown)
    return shown
