"""Writes what is new of one shard's aligned log: rows by hours, and sections."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from services.runtime.codec_sections import SECTION_FIELDS, section_numbers
from services.runtime.codecs import Codecs
from skyband.coverage.aligned_batch import AlignedBatch
from spark.archive_files import ArchiveFiles
from spark.archive_layout import ROW_SCHEMA, ROWS, SECTION_SCHEMA, SECTIONS, ArchiveFile, aligned_folder
from spark.archive_parquet import FileWriter, HourWriter, check_text

__all__ = ["AlignedWriter", "row_table", "section_table"]

# So many rows, or bytes of ids, make a row group: a reader holds one of each open file.
_GROUP_ROWS = 131_072
_GROUP_SECTIONS = 65_536
_GROUP_BYTES = 64 << 20

Batch = tuple[int, AlignedBatch]


class AlignedWriter:
    """Writes the accepted batches of one shard, in order; one thread owns it.

    Initially nothing is written. Rows wait until they make a row group.
    """

    def __init__(self, files: ArchiveFiles, group: str, generation: int, shard: int, codecs: Codecs) -> None:
        self._files = files
        self._topic = f"aligned.{group}.{generation}"
        self._codecs = codecs
        rows = aligned_folder(ROWS, group, generation, shard)
        self._hours = HourWriter(files, ROWS, rows, ROW_SCHEMA, "aligned_offset")
        self._folder = aligned_folder(SECTIONS, group, generation, shard)
        self._sections: FileWriter | None = None
        self._waiting: list[Batch] = []
        self._rows = self._bytes = self._count = 0
        self.rows = 0

    def add(self, offset: int, batch: AlignedBatch) -> None:
        """Write an accepted batch at its aligned offset."""
        self._waiting.append((offset, batch))
        self._rows += batch.rows
        self._bytes += len(batch.id_bytes)
        self._count += len(batch.sections)
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES or self._count >= _GROUP_SECTIONS:
            self._write()

    def close(self) -> list[ArchiveFile]:
        """Complete the files and return them."""
        self._write()
        done = self._hours.close()
        return done if self._sections is None else [*done, self._sections.close()]

    def abandon(self) -> None:
        """Close the files; nobody will be told of them."""
        self._hours.abandon()
        if self._sections is not None:
            self._sections.abandon()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._rows:
            with_rows = [its for its in waiting if its[1].rows]
            self._hours.write(row_table(with_rows), np.concatenate([batch.event_time_us for _, batch in with_rows]))
        if self._sections is None:
            self._sections = FileWriter(self._files, SECTIONS, self._folder, SECTION_SCHEMA, waiting[0][0])
        written = np.array([batch.written_us for _, batch in waiting], np.int64)
        self._sections.write(section_table(waiting, self._catalog), waiting[-1][0], written)
        self.rows += self._rows
        self._rows = self._bytes = self._count = 0

    def _catalog(self, batch: AlignedBatch) -> bytes | None:
        """Return the catalog's records alone, in the form in which the log has them."""
        if not batch.catalog:
            return None
        empty = np.zeros(0, np.int64)
        only = replace(
            batch,
            sections=(),
            offset=empty,
            event_time_us=empty,
            release_time_us=empty,
            id_ends=empty,
            id_bytes=np.zeros(0, np.uint8),
            id_hash=np.zeros(0, np.uint64),
            values=np.zeros((0, batch.values.shape[1]), np.float64),
        )
        return self._codecs.encode(self._topic, only)


def row_table(batches: Sequence[Batch]) -> pa.Table:
    """Return the rows of batches, in order. Cost: some copies of the columns, and a few microseconds a section."""
    rows = np.array([batch.rows for _, batch in batches])
    sections = [section for _, batch in batches for section in batch.sections]
    counts = np.array([section.rows for section in sections])
    numbers = np.concatenate([np.arange(len(batch.sections)) for _, batch in batches])
    starts = np.cumsum(rows) - rows
    total = int(rows.sum())

    def column(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(batch, name) for _, batch in batches])

    def each(values: Sequence[int] | npt.NDArray[Any], by: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.repeat(np.asarray(values), by)

    values = column("values")
    columns = {
        "aligned_offset": each([offset for offset, _ in batches], rows),
        "place": (np.arange(total) - each(starts, rows)).astype(np.int32),
        "section": each(numbers.astype(np.int32), counts),
        "stream": each(np.array([section.stream for section in sections], np.int32), counts),
        "partition": each(np.array([section.partition for section in sections], np.int32), counts),
        "source_offset": column("offset"),
        "event_time": _times(column("event_time_us")),
        "release_time": _times(column("release_time_us")),
        "object_id": _ids(batches, total),
        "id_hash": column("id_hash").view(np.int64),
        "values": pa.ListArray.from_arrays(
            pa.array(np.arange(total + 1, dtype=np.int32) * np.int32(values.shape[1])),
            pa.array(values.ravel()),
            type=ROW_SCHEMA.field("values").type,
        ),
    }
    return pa.table(columns, schema=ROW_SCHEMA)


def section_table(batches: Sequence[Batch], catalog: Any) -> pa.Table:
    """Return the sections of batches, in order; `catalog` makes bytes of a batch's records of the catalog."""
    counts = np.array([len(batch.sections) for _, batch in batches])
    numbers = section_numbers(section for _, batch in batches for section in batch.sections)

    def each(values: Sequence[Any], kind: Any) -> npt.NDArray[Any]:
        return np.repeat(np.array(values, kind), counts)

    records: list[bytes | None] = []
    for _, batch in batches:
        records += [catalog(batch), *[None] * (len(batch.sections) - 1)]
    columns = {
        "aligned_offset": each([offset for offset, _ in batches], np.int64),
        "section": np.concatenate([np.arange(count, dtype=np.int32) for count in counts]),
        "writer": each([batch.writer for _, batch in batches], object),
        "written_us": each([batch.written_us for _, batch in batches], np.int64),
        "width": each([batch.values.shape[1] for _, batch in batches], np.int32),
        **{name: numbers[:, place].copy() for place, name in enumerate(SECTION_FIELDS)},
        "catalog": pa.array(records, pa.binary()),
    }
    for name in ("stream", "partition"):
        columns[name] = columns[name].astype(np.int32)
    return pa.table(columns, schema=SECTION_SCHEMA)


def _times(time_us: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(time_us).view(ROW_SCHEMA.field("event_time").type)


def _ids(batches: Sequence[Batch], total: int) -> pa.Array:
    lengths = np.concatenate([np.diff(batch.id_ends, prepend=0) for _, batch in batches])
    ends = np.zeros(total + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    arena = np.concatenate([batch.id_bytes for _, batch in batches])
    ids = pa.Array.from_buffers(pa.string(), total, [None, pa.py_buffer(ends), pa.py_buffer(arena)])
    first, last = batches[0][0], batches[-1][0]
    check_text(ids, f"at aligned offsets {first} to {last}")
    return ids
