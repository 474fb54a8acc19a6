"""Rows of aligned batches in columns, taken, cut and put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.coverage.aligned_batch import AlignedBatch

__all__ = ["Rows", "empty_rows", "rows_of", "together"]

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The row columns of an AlignedBatch, or a part of them; `id_ends` begin at the part's own first id."""

    offset: _Ints
    event_time_us: _Ints
    release_time_us: _Ints
    id_bytes: npt.NDArray[np.uint8]
    id_ends: _Ints
    id_hash: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.offset)

    def part(self, low: int, high: int) -> "Rows":
        """Return rows [low, high). Cost: their ends of ids; all else is shared."""
        begin = int(self.id_ends[low - 1]) if low else 0
        end = int(self.id_ends[high - 1]) if high > low else begin
        return Rows(
            offset=self.offset[low:high],
            event_time_us=self.event_time_us[low:high],
            release_time_us=self.release_time_us[low:high],
            id_bytes=self.id_bytes[begin:end],
            id_ends=self.id_ends[low:high] - begin,
            id_hash=self.id_hash[low:high],
            values=self.values[low:high],
        )

    def take(self, index: _Ints) -> "Rows":
        """Return the rows at these places, in their order. Cost: a gather."""
        starts = np.concatenate([np.zeros(1, np.int64), self.id_ends[:-1]])[: len(self)]
        lengths = (self.id_ends - starts)[index]
        ends = np.cumsum(lengths)
        shift = np.repeat(starts[index] - (ends - lengths), lengths)
        return Rows(
            offset=self.offset[index],
            event_time_us=self.event_time_us[index],
            release_time_us=self.release_time_us[index],
            id_bytes=self.id_bytes[shift + np.arange(len(shift))],
            id_ends=ends,
            id_hash=self.id_hash[index],
            values=self.values[index],
        )

    def columns(self) -> dict[str, Any]:
        """Return the columns by their names in an AlignedBatch."""
        return {name: getattr(self, name) for name in self.__slots__}


def rows_of(batch: AlignedBatch) -> Rows:
    """Return all rows of a batch; nothing is copied."""
    return Rows(
        offset=batch.offset,
        event_time_us=batch.event_time_us,
        release_time_us=batch.release_time_us,
        id_bytes=batch.id_bytes,
        id_ends=batch.id_ends,
        id_hash=batch.id_hash,
        values=batch.values,
    )


def empty_rows(width: int) -> Rows:
    """Return no rows, of `width` values."""
    none = np.zeros(0, np.int64)
    return Rows(none, none, none, np.zeros(0, np.uint8), none, np.zeros(0, np.uint64), np.zeros((0, width)))


def together(parts: Sequence[Rows], width: int) -> Rows:
    """Return the rows of all parts, one part after another. Cost: a copy if there are several."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else empty_rows(width)
    bases = np.cumsum([0, *(len(part.id_bytes) for part in parts[:-1])])
    return Rows(
        offset=np.concatenate([part.offset for part in parts]),
        event_time_us=np.concatenate([part.event_time_us for part in parts]),
        release_time_us=np.concatenate([part.release_time_us for part in parts]),
        id_bytes=np.concatenate([part.id_bytes for part in parts]),
        id_ends=np.concatenate([part.id_ends + base for part, base in zip(parts, bases, strict=True)]),
        id_hash=np.concatenate([part.id_hash for part in parts]),
        values=np.concatenate([part.values for part in parts]),
    )
