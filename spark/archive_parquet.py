"""Writes the Parquet files of one shelf: a shard's rows by hours, its sections, a source partition's records."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skyband.errors import LogError
from spark.archive_files import ArchiveFiles
from spark.archive_layout import ArchiveFile, hour_name, hours_of, new_name

__all__ = ["COMPRESSION", "FileWriter", "HourWriter", "by_hour"]

COMPRESSION: dict[str, Any] = {"compression": "zstd", "compression_level": 1}
# Few values for many rows; dictionaries of what is nearly unique cost time and save nothing.
_DICTIONARY = {"section", "stream", "partition", "object_id", "id_hash", "writer", "reason"}
# A late row may open an hour again; so many stay open at once.
_MOST_OPEN = 24


class FileWriter:
    """One file in the making, sorted by `order`, the name of its column of offsets."""

    def __init__(self, files: ArchiveFiles, kind: str, folder: str, schema: pa.Schema, first: int) -> None:
        self._files = files
        self._kind, self._folder = kind, folder
        self._first = first
        self._path = f"{folder}/{new_name(first)}"
        self._stream = files.open_output(self._path)
        dictionary = [name for name in schema.names if name in _DICTIONARY]
        self._writer = pq.ParquetWriter(self._stream, schema, use_dictionary=dictionary, **COMPRESSION)
        self._rows = 0
        self._last = first
        self._oldest_us = np.iinfo(np.int64).max
        self._newest_us = np.iinfo(np.int64).min

    def write(self, table: pa.Table, last: int, time_us: npt.NDArray[np.int64]) -> None:
        """Append rows up to offset `last`, with the times that count for the file."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._rows += table.num_rows
        self._last = last
        self._oldest_us = min(self._oldest_us, int(time_us.min()))
        self._newest_us = max(self._newest_us, int(time_us.max()))

    @property
    def bytes(self) -> int:
        """What is written so far."""
        return int(self._stream.tell())

    def close(self) -> ArchiveFile:
        """Complete the file and return what a commit shall say of it."""
        self._writer.close()
        size = self.bytes
        self._stream.close()
        self._files.keep(self._path)
        return ArchiveFile(
            path=self._path,
            kind=self._kind,
            folder=self._folder,
            first=self._first,
            last=self._last,
            rows=self._rows,
            bytes=size,
            oldest_us=int(self._oldest_us),
            newest_us=int(self._newest_us),
        )

    def abandon(self) -> None:
        """Close the file, of which nobody will be told."""
        self._writer.close()
        self._stream.close()


class HourWriter:
    """Files of one shelf by hour, in order of offsets.

    Initially none is open. Invariant: offsets ascend over `write`, so files of one hour follow each other.
    """

    def __init__(self, files: ArchiveFiles, kind: str, shelf: str, schema: pa.Schema, order: str) -> None:
        self._files = files
        self._kind, self._shelf, self._schema, self._order = kind, shelf, schema, order
        self._open: dict[int, FileWriter] = {}
        self.done: list[ArchiveFile] = []

    def write(self, table: pa.Table, time_us: npt.NDArray[np.int64]) -> None:
        """Append rows to the hours of their times. Cost: a copy if there are several hours."""
        for hour, part, times in by_hour(table, time_us):
            offsets = part.column(self._order)
            writer = self._writer(hour, offsets[0].as_py())
            writer.write(part, offsets[len(offsets) - 1].as_py(), times)

    def close(self) -> list[ArchiveFile]:
        """Complete all files and return them."""
        for hour in list(self._open):
            self._close(hour)
        return self.done

    def abandon(self) -> None:
        """Close what is open without telling of it."""
        for writer in self._open.values():
            writer.abandon()
        self._open.clear()

    def _writer(self, hour: int, first: int) -> FileWriter:
        # The hour written last stands last: what has waited longest is closed.
        writer = self._open.pop(hour, None)
        if writer is None:
            if len(self._open) >= _MOST_OPEN:
                self._close(next(iter(self._open)))
            folder = f"{self._shelf}/hour={hour_name(hour)}"
            writer = FileWriter(self._files, self._kind, folder, self._schema, first)
        self._open[hour] = writer
        return writer

    def _close(self, hour: int) -> None:
        self.done.append(self._open.pop(hour).close())


def by_hour(table: pa.Table, time_us: npt.NDArray[np.int64]) -> Iterator[tuple[int, pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of each hour, in the order they had, with their times."""
    hours = hours_of(time_us)
    if not len(hours):
        return
    if hours[0] == hours[-1] and (hours == hours[0]).all():
        yield int(hours[0]), table, time_us
        return
    order = np.argsort(hours, kind="stable")
    sorted_hours = hours[order]
    edges = [0, *(np.flatnonzero(np.diff(sorted_hours)) + 1).tolist(), len(order)]
    for low, high in pairwise(edges):
        places = order[low:high]
        yield int(sorted_hours[low]), table.take(pa.array(places)), time_us[places]


def check_text(ids: pa.Array, where: str) -> None:
    """Raise LogError for ids that are not UTF-8: files with such text are refused by most readers."""
    try:
        ids.validate(full=True)
    except pa.ArrowInvalid as error:
        raise LogError(f"an object id {where} is not UTF-8 ({error}); see what else writes to the topic") from None


def total_bytes(column: pa.ChunkedArray) -> int:
    """Return the bytes of all values of a column."""
    return int(pc.sum(pc.binary_length(column)).as_py() or 0)
