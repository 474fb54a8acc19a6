"""Makes aligned batches of archived rows and sections again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from services.runtime.codec_sections import SECTION_FIELDS, section_of
from services.runtime.codecs import Codecs
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord
from skyband.errors import LogError
from spark.archive_cursor import OffsetMerge, chunks
from spark.archive_files import ArchiveFiles
from spark.archive_layout import ROW_SCHEMA, SECTION_SCHEMA, ArchiveFile

__all__ = ["ShardReader"]

# So many rows are read at once; a batch with more comes alone.
_RUN_ROWS = 131_072
_RUN_BATCHES = 4_096

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Run:
    """Sections of consecutive batches, and where each batch's begin: int64[batches + 1]."""

    table: pa.Table
    edges: _Ints
    offsets: _Ints


class ShardReader:
    """Reads one shard of an archive in aligned order.

    Rows with event times outside [from_us, to_us) are left out, and files that hold no others are not opened; sections
    stay, with as many rows as are left. Memory: a run of batches, and a row group of each open file.
    """

    def __init__(
        self,
        files: ArchiveFiles,
        place: tuple[str, int, int],
        sections: Sequence[ArchiveFile],
        rows: Sequence[ArchiveFile],
        from_us: int | None,
        to_us: int | None,
    ) -> None:
        self._files = files
        self._group, self._generation, self._shard = place
        self._sections = sorted(sections, key=lambda its: its.first)
        self._from_us, self._to_us = from_us, to_us
        self._is_part = from_us is not None or to_us is not None
        wanted = [its for its in rows if _overlaps(its, from_us, to_us)]
        self._rows = OffsetMerge(files, wanted, ROW_SCHEMA, "aligned_offset", "place")
        self._codecs = Codecs()

    def batches(self) -> Iterator[tuple[int, AlignedBatch]]:
        """Yield each batch with its aligned offset. Raises LogError if the archive is damaged."""
        try:
            for run in _runs(self._files, self._sections):
                yield from self._of(run)
        finally:
            self._rows.close()

    def _of(self, run: _Run) -> Iterator[tuple[int, AlignedBatch]]:
        table = self._wanted(self._rows.take(int(run.offsets[-1])))
        columns = {name: run.table.column(name).to_numpy() for name in ("rows", "written_us", "width")}
        counts = self._counts(run, table, columns["rows"])
        numbers = [counts.tolist() if name == "rows" else run.table.column(name).to_pylist() for name in SECTION_FIELDS]
        sections = [section_of(*its) for its in zip(*numbers, strict=True)]
        stops = np.concatenate([[0], np.cumsum(counts)])[run.edges]
        writers = run.table.column("writer").take(pa.array(run.edges[:-1])).to_pylist()
        records = run.table.column("catalog").take(pa.array(run.edges[:-1])).to_pylist()
        rows = _Columns(table, int(columns["width"][0]))
        edges, ends = run.edges.tolist(), stops.tolist()
        for place, offset in enumerate(run.offsets.tolist()):
            first = edges[place]
            yield (
                offset,
                AlignedBatch(
                    group=self._group,
                    generation=self._generation,
                    shard=self._shard,
                    writer=writers[place],
                    written_us=int(columns["written_us"][first]),
                    sections=tuple(sections[first : edges[place + 1]]),
                    catalog=self._catalog(records[place]),
                    **rows.part(ends[place], ends[place + 1]),
                ),
            )

    def _wanted(self, table: pa.Table) -> pa.Table:
        if not self._is_part or not table.num_rows:
            return table
        time_us = _numpy(table, "event_time")
        inside = np.ones(len(time_us), np.bool_)
        if self._from_us is not None:
            inside &= time_us >= self._from_us
        if self._to_us is not None:
            inside &= time_us < self._to_us
        return table if inside.all() else table.filter(pa.array(inside)).combine_chunks()

    def _counts(self, run: _Run, table: pa.Table, expected: _Ints) -> _Ints:
        """Return how many rows of each section of the run there are; each row's section must be one of the run."""
        offset = _numpy(table, "aligned_offset")
        batch = np.searchsorted(run.offsets, offset)
        known = (batch < len(run.offsets)) & (run.offsets[np.minimum(batch, len(run.offsets) - 1)] == offset)
        section = run.edges[batch[known]] + _numpy(table, "section")[known]
        counts = np.bincount(section, minlength=len(expected)).astype(np.int64)
        complete = known.all() and len(counts) == len(expected)
        if not complete or (not self._is_part and not np.array_equal(counts, expected)):
            raise LogError(
                f"rows and sections of the archive {self._files.uri} differ for group {self._group!r}, generation "
                f"{self._generation}, shard {self._shard}, at aligned offsets {run.offsets[0]} to {run.offsets[-1]}; "
                "restore its files, or archive anew"
            )
        return counts

    def _catalog(self, data: bytes | None) -> tuple[CatalogRecord, ...]:
        if data is None:
            return ()
        batch = self._codecs.decode(f"aligned.{self._group}.{self._generation}", data)
        return batch.catalog if isinstance(batch, AlignedBatch) else ()


class _Columns:
    """The rows of a run as arrays, of which batches are parts; they are writable and contiguous."""

    def __init__(self, table: pa.Table, width: int) -> None:
        ids = table.column("object_id").combine_chunks()
        ids = ids.chunk(0) if isinstance(ids, pa.ChunkedArray) else ids
        _, ends, arena = ids.buffers()
        bounds = np.zeros(1, np.int64)
        if table.num_rows:
            bounds = np.frombuffer(ends, np.int32)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
        self._bounds = bounds
        self._arena = np.frombuffer(arena or b"", np.uint8)
        flat = pc.list_flatten(table.column("values")).to_numpy()
        self._values = flat.reshape(-1, width).copy()
        self._columns = {
            "offset": _numpy(table, "source_offset").copy(),
            "event_time_us": _numpy(table, "event_time").copy(),
            "release_time_us": _numpy(table, "release_time").copy(),
            "id_hash": _numpy(table, "id_hash").copy().view(np.uint64),
        }

    def part(self, low: int, high: int) -> dict[str, Any]:
        """Return the columns of rows [low, high)."""
        begin, end = int(self._bounds[low]), int(self._bounds[high])
        return {
            **{name: column[low:high] for name, column in self._columns.items()},
            "values": self._values[low:high],
            "id_ends": self._bounds[low + 1 : high + 1] - begin,
            "id_bytes": self._arena[begin:end].copy(),
        }


def _runs(files: ArchiveFiles, sections: Sequence[ArchiveFile]) -> Iterator[_Run]:
    """Yield the sections of all files, cut between batches."""
    for file in sections:
        rest: pa.Table | None = None
        for chunk in chunks(files, file, SECTION_SCHEMA):
            table = chunk if rest is None else pa.concat_tables([rest, chunk])
            offsets = table.column("aligned_offset").to_numpy()
            # The last batch may go on in the next chunk.
            stop = int(np.searchsorted(offsets, offsets[-1]))
            rest = table.slice(stop)
            yield from _cut(table.slice(0, stop))
        if rest is not None:
            yield from _cut(rest)


def _cut(table: pa.Table) -> Iterator[_Run]:
    """Yield whole batches, so many that their rows make a run."""
    if not table.num_rows:
        return
    offsets = table.column("aligned_offset").to_numpy()
    edges = np.concatenate([[0], np.flatnonzero(np.diff(offsets)) + 1, [len(offsets)]])
    rows = np.concatenate([[0], np.cumsum(table.column("rows").to_numpy())])[edges]
    first, batches = 0, len(edges) - 1
    while first < batches:
        last = int(np.searchsorted(rows, rows[first] + _RUN_ROWS, side="right")) - 1
        last = max(first + 1, min(last, first + _RUN_BATCHES))
        low = int(edges[first])
        part = table.slice(low, int(edges[last]) - low)
        yield _Run(part, edges[first : last + 1] - low, offsets[edges[first:last]])
        first = last


def _numpy(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """Return a column as numbers, times as microseconds."""
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())
    return np.asarray(column.to_numpy())


def _overlaps(file: ArchiveFile, from_us: int | None, to_us: int | None) -> bool:
    return (from_us is None or file.newest_us >= from_us) and (to_us is None or file.oldest_us < to_us)
