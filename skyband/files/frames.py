"""Rows from frames: pyarrow, pandas, polars. A library is used only if the frame is its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.files.cells import id_column, number_column, time_column
from skyband.files.layout import EVENT_TIME, OBJECT_ID, Layout
from skyband.files.row_batch import RowBatch, arrow_batch

__all__ = ["FrameRows", "is_frame"]

# Columns, the number of rows, and which of them are broken.
_Part = tuple[Mapping[str, pa.Array], int, dict[int, str]]


def is_frame(rows: object) -> bool:
    """Whether `rows` is a table of pyarrow, pandas or polars."""
    return isinstance(rows, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)) or _owner(rows) != ""


def _owner(rows: object) -> str:
    """Return the library of a data frame, or nothing. It is not imported for that."""
    library = type(rows).__module__.partition(".")[0]
    names = {kind.__name__ for kind in type(rows).__mro__}
    return library if library in {"pandas", "polars"} and names & {"DataFrame", "LazyFrame"} else ""


class FrameRows:
    """The rows of a frame. Raises InputError at once for one that lacks a column."""

    total_bytes = None
    read_bytes = 0

    def __init__(self, frame: Any, layout: Layout, batch_rows: int, name: str) -> None:
        self.name = name
        self._batch_rows = batch_rows
        self.total_rows: int | None
        self._parts: Callable[[list[str]], Iterable[_Part]]
        match _owner(frame):
            case "pandas":
                names, self.total_rows = [str(column) for column in frame.columns], len(frame)
                self._parts = lambda wanted: self._pandas(frame, names, wanted)
            case "polars":
                if hasattr(frame, "collect"):
                    names = frame.collect_schema().names()
                    frame = frame.select(layout.check_columns(name, names)).collect()
                names, self.total_rows = frame.columns, frame.height
                self._parts = lambda wanted: self._polars(frame.select(wanted))
            case _:
                names = frame.schema.names
                self.total_rows = None if isinstance(frame, pa.RecordBatchReader) else frame.num_rows
                self._parts = lambda wanted: self._arrow(frame, wanted)
        self._wanted = layout.check_columns(name, names)

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows, at most `batch_rows` at a time."""
        first = 0
        for columns, rows, broken in self._parts(self._wanted):
            yield arrow_batch(self.name, columns, rows, _places(self.name, first), broken)
            first += rows

    def close(self) -> None:
        """Do nothing: the frame belongs to the caller."""

    def _arrow(self, frame: Any, wanted: list[str]) -> Iterator[_Part]:
        batches: Iterable[pa.RecordBatch] = frame
        if isinstance(frame, pa.Table):
            batches = frame.select(wanted).to_batches(max_chunksize=self._batch_rows)
        elif isinstance(frame, pa.RecordBatch):
            batches = [frame]
        for batch in batches:
            yield {name: batch.column(name) for name in wanted}, batch.num_rows, {}

    def _polars(self, frame: Any) -> Iterator[_Part]:
        for part in frame.iter_slices(self._batch_rows):
            table = part.to_arrow()
            yield {name: _one(table.column(name)) for name in table.column_names}, table.num_rows, {}

    def _pandas(self, frame: Any, names: list[str], wanted: list[str]) -> Iterator[_Part]:
        for start in range(0, len(frame), self._batch_rows):
            part = frame.iloc[start : start + self._batch_rows]
            broken: dict[int, str] = {}
            columns = {name: _from_pandas(part.iloc[:, names.index(name)], name, broken) for name in wanted}
            yield columns, len(part), broken


def _from_pandas(series: Any, name: str, broken: dict[int, str]) -> pa.Array:
    """Return a pandas column; NaN stays NaN in a column of floats, and is an empty cell elsewhere."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
        return pa.array(series.to_numpy())
    try:
        return _one(pa.array(series, from_pandas=True))
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        cells = [None if is_missing else cell for cell, is_missing in zip(series, series.isna(), strict=True)]
    if name == OBJECT_ID:
        return id_column(cells, broken)
    return time_column(cells) if name == EVENT_TIME else number_column(cells)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _places(name: str, first: int) -> Callable[[int], str]:
    return lambda row: f"{name}[{first + row}]"
