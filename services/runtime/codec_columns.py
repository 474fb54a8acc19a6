"""Columns of numbers as the bytes of an Avro record: little-endian, row after row."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["column_bytes", "read_column"]

_Scalar = TypeVar("_Scalar", bound=np.generic)


def column_bytes(column: npt.NDArray[np.generic], kind: type[np.generic]) -> bytes:
    """Return a column's bytes as numbers of this kind. Cost: one copy."""
    return column.astype(np.dtype(kind).newbyteorder("<"), copy=False).tobytes()


def read_column(data: bytes, kind: type[_Scalar]) -> npt.NDArray[_Scalar]:
    """Return the column that bytes hold: an array of its own, writable, in this machine's byte order.

    Raises ValueError if a number is cut off. Cost: one copy.
    """
    return np.frombuffer(data, np.dtype(kind).newbyteorder("<")).astype(kind)
