"""From the columns of an input to the rows of each stream: split, cast, and marked where a cell cannot be used."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.errors import InputError
from skyband.files.layout import EVENT_TIME, NO_STREAM, OBJECT_ID, STREAM, Layout
from skyband.files.row_batch import RowBatch
from skyband.files.text_columns import id_arena, is_id_column, is_text, plain
from skyband.files.times import event_times, is_time_column
from skyband.files.values import is_value_column, numbers
from skyband.model.source_rows import Reason, SourceRows

__all__ = ["split_rows"]

_UNKNOWN = -2
_SHOWN = 60

# Which types a column may have, and how that is said.
_KINDS = {
    STREAM: (is_text, "text"),
    OBJECT_ID: (is_id_column, "text or whole numbers"),
    EVENT_TIME: (is_time_column, "microseconds, timestamps or ISO 8601"),
}
_VALUES = (is_value_column, "numbers")


def split_rows(
    batch: RowBatch, layout: Layout, most: int, offsets: list[int]
) -> Iterator[list[tuple[int, SourceRows]]]:
    """Yield the rows of `batch`, at most `most` at a time, as (stream index, rows) in stream order.

    `offsets` are the next offsets of the streams and are moved on. A row that names no stream counts for the first.
    Raises InputError for a stream that the group does not have, a column that a stream needs, and one of a wrong type.
    Cost: some 20 us a stream, and what its cells cost.
    """
    batch = replace(batch, columns={name: _takeable(batch, name) for name in batch.columns})
    streams = _streams(batch, layout)
    for start in range(0, batch.rows, most):
        part = streams[start : start + most]
        found = []
        for stream in np.flatnonzero(np.bincount(part, minlength=len(offsets))).tolist():
            chosen = np.flatnonzero(part == stream) + start
            rows = _Selection(batch, layout, stream, chosen).source_rows(offsets[stream])
            offsets[stream] += rows.rows
            found.append((stream, rows))
        yield found


def _streams(batch: RowBatch, layout: Layout) -> npt.NDArray[np.int64]:
    """Return each row's stream; rows that must name one and do not are added to those that are broken."""
    column = batch.columns.get(STREAM)
    if column is None or pa.types.is_null(column.type):
        streams = np.full(batch.rows, NO_STREAM, np.int64)
    else:
        encoded = column if pa.types.is_dictionary(column.type) else _plain(batch, STREAM, column).dictionary_encode()
        names = _plain(batch, STREAM, encoded.dictionary).to_pylist()
        known = [_UNKNOWN if (index := layout.stream_index(name)) is None else index for name in names]
        indices = np.asarray(encoded.indices.cast(pa.int64()).fill_null(len(names)))
        streams = np.array([*known, NO_STREAM], np.int64)[indices]
        unknown = np.flatnonzero(streams == _UNKNOWN)
        if len(unknown):
            row = int(unknown[0])
            raise layout.unknown_stream(batch.place(row), names[indices[row]])
    nameless = streams == NO_STREAM
    if not layout.is_single:
        for row in np.flatnonzero(nameless).tolist():
            batch.broken.setdefault(row, f"{STREAM} is empty")
    streams[nameless] = 0
    return streams


class _Selection:
    """Those rows of a batch that belong to one stream: `chosen`, ascending."""

    def __init__(self, batch: RowBatch, layout: Layout, stream: int, chosen: npt.NDArray[np.int64]) -> None:
        self._batch = batch
        self._chosen = chosen
        self._names = layout.values_of[stream]
        self._broken = np.zeros(len(chosen), np.bool_)
        if batch.broken:
            self._broken = np.isin(chosen, np.fromiter(batch.broken, np.int64, len(batch.broken)))
        for name in self._names:
            if name not in batch.columns and not self._broken.all():
                place = batch.place(int(chosen[np.argmin(self._broken)]))
                raise layout.missing(place, name, batch.columns, noun="column", stream=stream)

    def source_rows(self, first_offset: int) -> SourceRows:
        """Return the rows, at offsets from `first_offset` on."""
        count = len(self._chosen)
        reason = np.zeros(count, np.uint8)
        time_us, bad = event_times(self._column(EVENT_TIME))
        if bad is not None:
            reason[bad] = Reason.BAD_TIME
        values = np.full((count, len(self._names)), np.nan)
        for index, name in enumerate(self._names):
            if name in self._batch.columns:
                values[:, index], bad = numbers(self._column(name))
                if bad is not None:
                    reason[bad] = Reason.UNDECODABLE
        reason[self._broken] = Reason.UNDECODABLE
        try:
            id_bytes, id_ends = id_arena(self._column(OBJECT_ID))
        except pa.ArrowInvalid:
            raise InputError(f"{self._batch.name}: column {OBJECT_ID!r} holds text that is not UTF-8") from None
        return SourceRows(
            offset=np.arange(first_offset, first_offset + count, dtype=np.int64),
            event_time_us=time_us,
            id_bytes=id_bytes,
            id_ends=id_ends,
            values=values,
            reason=reason,
            explain=self.explain,
            raw=self.raw,
        )

    def explain(self, index: int) -> str:
        """Return where a row stands and which of its cells cannot be read."""
        row = int(self._chosen[index])
        if row in self._batch.broken:
            return f"{self._batch.place(row)}: {self._batch.broken[row]}"
        wrong = []
        for name in (EVENT_TIME, *self._names):
            cell = _plain(self._batch, name, self._batch.columns[name].slice(row, 1))
            _, bad = event_times(cell) if name == EVENT_TIME else numbers(cell)
            if bad is not None:
                wrong.append(f"{name} {_complaint(cell, name)}")
        return f"{self._batch.place(row)}: {', '.join(wrong)}"

    def raw(self, index: int) -> bytes:
        """Return the bytes of a row."""
        return self._batch.raw(int(self._chosen[index]))

    def _column(self, name: str) -> pa.Array:
        column = self._batch.columns[name]
        first, count = int(self._chosen[0]), len(self._chosen)
        if int(self._chosen[-1]) - first + 1 == count:
            column = column.slice(first, count)
        else:
            column = column.take(pa.array(self._chosen))
        return _plain(self._batch, name, column)


def _takeable(batch: RowBatch, name: str) -> pa.Array:
    """Return a column from which rows can be taken: of a plain type, or a dictionary, which is decoded after that."""
    column = batch.columns[name]
    if pa.types.is_dictionary(column.type):
        return column
    try:
        return plain(column)
    except pa.ArrowInvalid:
        raise InputError(f"{batch.name}: column {name!r} holds bytes that are not UTF-8") from None


def _plain(batch: RowBatch, name: str, column: pa.Array) -> pa.Array:
    """Return a column in its plain form; raise InputError if its type is none that `name` can have."""
    try:
        found = plain(column)
    except pa.ArrowInvalid:
        raise InputError(f"{batch.name}: column {name!r} holds bytes that are not UTF-8") from None
    fits, wanted = _KINDS.get(name, _VALUES)
    if not fits(found.type):
        raise InputError(f"{batch.name}: column {name!r} is {column.type}, not {wanted}")
    return found


def _complaint(cell: pa.Array, name: str) -> str:
    """Return what is wrong with the one cell of an array."""
    if cell.null_count:
        return "is empty"
    try:
        value = cell[0].as_py()
    except (ValueError, OverflowError):
        return "is beyond the time line"
    if isinstance(value, str) and not value.strip():
        return "is empty"
    shown = repr(value if not isinstance(value, str) or len(value) <= _SHOWN else value[: _SHOWN - 1] + "…")
    return f"{shown} is neither microseconds nor ISO 8601" if name == EVENT_TIME else f"{shown} is not a number"
