"""Decoded rows of one source partition in columns, and why some of them cannot be used."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

__all__ = ["DeadLetter", "Reason", "SourceRows"]


class Reason(IntEnum):
    """Why a record is not used. Those up to BAD_TIME are found while decoding, the others by align."""

    ACCEPTED = 0
    UNDECODABLE = 1
    UNKNOWN_SCHEMA = 2
    BAD_TIME = 3
    MISSING_ID = 4
    NOT_FINITE = 5
    OUT_OF_RANGE = 6
    FUTURE = 7
    LATE = 8

    @property
    def label(self) -> str:
        """The reason as it is shown and counted."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class SourceRows:
    """A chunk of one source partition, decoded.

    For n rows: `offset` int64[n] ascending (a chunk may skip offsets that hold no record); `event_time_us` int64[n];
    `id_bytes` uint8 arena with `id_ends` int64[n]; `values` float64[n, attributes of the stream]; `reason` uint8[n], a
    Reason up to BAD_TIME (other cells of such a row mean nothing); `timestamp_us` int64[n], when the log got the
    record, or length 0 if unknown. `explain(i)` gives the error text and `raw(i)` the bytes of row i, for dead letters.
    """

    offset: npt.NDArray[np.int64]
    event_time_us: npt.NDArray[np.int64]
    id_bytes: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    reason: npt.NDArray[np.uint8]
    timestamp_us: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    explain: Callable[[int], str] = lambda index: ""
    raw: Callable[[int], bytes] = lambda index: b""

    @property
    def rows(self) -> int:
        """Number of rows, usable or not."""
        return len(self.offset)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was not used: where it was, why, and its bytes."""

    stream: str
    topic: str
    partition: int
    offset: int
    reason: Reason
    error: str
    raw: bytes
