"""Rows in the total order of their group: what the sequencer hands on."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SequencedRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencedRows:
    """Rows in total order: (release time, stream, partition, offset).

    For n rows: `stream`, `partition` int32[n]; `offset`, `event_time_us`, `release_time_us` int64[n]; `id_bytes` uint8
    arena with `id_ends` int64[n] (end of each id); `id_hash` uint64[n]; `values` float64[n, width].
    """

    stream: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    event_time_us: npt.NDArray[np.int64]
    release_time_us: npt.NDArray[np.int64]
    id_bytes: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int64]
    id_hash: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offset)

    @staticmethod
    def empty(width: int) -> "SequencedRows":
        """Return no rows, with `width` values each."""
        return SequencedRows(
            stream=np.zeros(0, np.int32),
            partition=np.zeros(0, np.int32),
            offset=np.zeros(0, np.int64),
            event_time_us=np.zeros(0, np.int64),
            release_time_us=np.zeros(0, np.int64),
            id_bytes=np.zeros(0, np.uint8),
            id_ends=np.zeros(0, np.int64),
            id_hash=np.zeros(0, np.uint64),
            values=np.zeros((0, width), np.float64),
        )
