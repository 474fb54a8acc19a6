"""Rows for a replay, from files, frames and iterables: one chunk of one source partition after the other.

Several files advance together: the next rows come from the file whose newest event time is the oldest, so that none
runs ahead and what waits for the others stays small.
"""

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from skyband.errors import InputError
from skyband.files.columns import split_rows
from skyband.files.csv_rows import CsvRows
from skyband.files.frames import FrameRows, is_frame
from skyband.files.json_lines import JsonLines
from skyband.files.layout import Layout
from skyband.files.parquet import ParquetRows
from skyband.files.python_rows import PythonRows
from skyband.files.row_batch import RowReader
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.source_rows import SourceRows

__all__ = ["Chunk", "RowSource", "open_rows"]

BATCH_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one source partition: all that it has at offsets [from_offset, to_offset)."""

    stream: int
    partition: int
    from_offset: int
    to_offset: int
    rows: SourceRows


def open_rows(group: Group, inputs: Any, *, batch_rows: int = BATCH_ROWS) -> "RowSource":
    """Open inputs with rows of `group`: a path or frame, several of them, or an iterable of rows.

    Files are .parquet, .csv, .jsonl, .ndjson or .json, the text ones also with .gz. Columns are `stream` (not needed
    in a group of one stream), `object_id`, `event_time` and `value`, or in place of `value` the attributes of an
    object stream. Input number p is source partition p of every stream. A chunk has at most `batch_rows` rows; they
    are the same rows whatever it is.

    Raises InputError, here or while reading, for what cannot be read at all. A single row that cannot be used is a row
    with a reason.
    """
    if batch_rows < 1:
        raise InputError(f"batch_rows is {batch_rows}; it must be at least 1")
    layout = Layout(group)
    readers: list[RowReader] = []
    try:
        for one in _several(inputs):
            readers.append(_reader(one, layout, batch_rows))
    except BaseException:
        for reader in readers:
            reader.close()
        raise
    return RowSource(layout, readers, batch_rows)


class RowSource:
    """Rows of a group's source partitions, read once and in an order that lets all inputs advance together.

    `partitions` are all (stream, partition) that it covers, also those without a row. A stream's rows in one input are
    numbered from 0. It knows no time yet at the beginning; inputs then are taken in their order.
    """

    def __init__(self, layout: Layout, readers: Sequence[RowReader], batch_rows: int) -> None:
        self._layout = layout
        self._readers = readers
        self._batch_rows = batch_rows
        self.partitions = tuple(
            (stream, partition) for partition in range(len(readers)) for stream in range(len(layout.group.streams))
        )
        self.read_rows = 0
        self._ended: list[tuple[int, int]] = []

    @property
    def read_bytes(self) -> int:
        """Bytes of files that have been read so far."""
        return sum(reader.read_bytes for reader in self._readers)

    @property
    def total_bytes(self) -> int | None:
        """Bytes of all files, or None if rows come from memory."""
        return _sum([reader.total_bytes for reader in self._readers])

    @property
    def total_rows(self) -> int | None:
        """Number of all rows, or None if that is not known before they are read."""
        return _sum([reader.total_rows for reader in self._readers])

    def __iter__(self) -> Iterator[Chunk]:
        """Yield all chunks; raise InputError where an input cannot be read. Closes what it has read to the end."""
        parts = [self._parts(reader, partition) for partition, reader in enumerate(self._readers)]
        waiting = [(MIN_TIME_US, partition) for partition in range(len(parts))]
        while waiting:
            newest_us, partition = waiting[0]
            part = next(parts[partition], None)
            if part is None:
                heapq.heappop(waiting)
                self._readers[partition].close()
                self._ended += [(stream, partition) for stream in range(len(self._layout.group.streams))]
                continue
            for chunk in part:
                self.read_rows += chunk.rows.rows
                newest_us = max(newest_us, _newest_us(chunk.rows))
                yield chunk
            heapq.heapreplace(waiting, (newest_us, partition))

    def take_ended(self) -> list[tuple[int, int]]:
        """Return the source partitions that have come to their end since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        """Close all files."""
        for reader in self._readers:
            reader.close()

    def __enter__(self) -> "RowSource":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _parts(self, reader: RowReader, partition: int) -> Iterator[list[Chunk]]:
        """Yield the chunks of at most `batch_rows` rows of one input, and again."""
        offsets = [0] * len(self._layout.group.streams)
        for batch in reader.batches():
            for found in split_rows(batch, self._layout, self._batch_rows, offsets):
                yield [
                    Chunk(stream, partition, int(rows.offset[0]), int(rows.offset[-1]) + 1, rows)
                    for stream, rows in found
                ]


def _newest_us(rows: SourceRows) -> int:
    """Return the newest event time of the rows that have one."""
    usable = rows.event_time_us[rows.reason == 0] if rows.reason.any() else rows.event_time_us
    return int(np.max(usable)) if len(usable) else MIN_TIME_US


def _several(inputs: Any) -> list[Any]:
    """Return the inputs one by one: paths, frames, or one iterable of rows."""
    if isinstance(inputs, (list, tuple)) and inputs and all(_is_path(one) or is_frame(one) for one in inputs):
        return list(inputs)
    return [inputs]


def _is_path(one: object) -> bool:
    return isinstance(one, (str, os.PathLike))


def _reader(one: Any, layout: Layout, batch_rows: int) -> RowReader:
    if _is_path(one):
        return _file_reader(Path(one), layout, batch_rows)
    if is_frame(one):
        return FrameRows(one, layout, batch_rows, "frame")
    if isinstance(one, Iterable) and not isinstance(one, (bytes, Mapping)):
        return PythonRows(one, layout, batch_rows, "rows")
    kind = type(one).__name__
    raise InputError(f"rows cannot be read from what is of type {kind}; give paths, a frame or an iterable of rows")


def _file_reader(path: Path, layout: Layout, batch_rows: int) -> RowReader:
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    match plain.suffix.lower():
        case ".csv":
            return CsvRows(path, layout)
        case ".jsonl" | ".ndjson" | ".json":
            return JsonLines(path, layout)
        case ".parquet" if plain is path:
            return ParquetRows(path, layout, batch_rows)
    if path.is_dir():
        raise InputError(f"{path}: is a directory; name the files in it")
    raise InputError(
        f"{path}: is no kind of file that rows are read from; these are .parquet, .csv, .jsonl, .ndjson and .json, "
        "all but .parquet also with .gz"
    )


def _sum(totals: list[int | None]) -> int | None:
    known = [total for total in totals if total is not None]
    return sum(known) if len(known) == len(totals) else None
