"""What align writes and every reader behind it reads: rows in columns, and sections that say what they cover.

A *section* covers source offsets [from, to) of one source partition for one aligned partition (shard), also when no
row fell into it. Rows lie section after section, in offset order within a section.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US

__all__ = ["AlignedBatch", "CatalogRecord", "Section"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Coverage of one source partition.

    `watermark_us`: promise that later rows have a release time of at least this (MAX_TIME_US: finished, no more rows).
    `newest_us`: newest accepted event time so far. `idle_until_us`: lease on the writer's clock during which the
    partition does not hold time up (0: not idle).
    """

    stream: int
    partition: int
    from_offset: int
    to_offset: int
    rows: int
    watermark_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US
    idle_until_us: int = 0


@dataclass(frozen=True, slots=True)
class CatalogRecord:
    """One catalog offset inside a catalog section; `change` None for what does not concern the group."""

    offset: int
    change: QueryChange | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedBatch:
    """One flush of one writer for one shard.

    For n rows: `offset`, `event_time_us`, `release_time_us` int64[n]; `id_bytes` uint8 arena with `id_ends` int64[n]
    (end of each id); `id_hash` uint64[n]; `values` float64[n, width], unused cells 0. `catalog` holds the records of
    the catalog section, if there is one (its `rows` is 0).
    """

    group: str
    generation: int
    shard: int
    writer: str
    written_us: int
    sections: tuple[Section, ...]
    offset: npt.NDArray[np.int64]
    event_time_us: npt.NDArray[np.int64]
    release_time_us: npt.NDArray[np.int64]
    id_bytes: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int64]
    id_hash: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]
    catalog: tuple[CatalogRecord, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offset)
