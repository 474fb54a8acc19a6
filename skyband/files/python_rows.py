"""Rows from iterables: mappings, tuples, and objects with attributes."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from skyband.files.cells import columns_of
from skyband.files.layout import EVENT_TIME, OBJECT_ID, STREAM, Layout
from skyband.files.row_batch import RowBatch

__all__ = ["PythonRows"]

# So many rows are looked at before a field is called missing.
_FIRST_ROWS = 1_000


class PythonRows:
    """The rows of an iterable, taken from it as they are asked for.

    A row is a mapping by name, a tuple (stream, object_id, event_time, value or the attributes in order), or an object
    with attributes of these names. In a group of one stream a tuple may leave the stream out.
    """

    total_bytes = None
    read_bytes = 0
    total_rows = None

    def __init__(self, rows: Iterable[Any], layout: Layout, batch_rows: int, name: str) -> None:
        self.name = name
        self._rows = iter(rows)
        self._layout = layout
        self._batch_rows = batch_rows

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows as they come, about `batch_rows` at a time."""
        first = 0
        most = _FIRST_ROWS
        while taken := list(islice(self._rows, most)):
            broken: dict[int, str] = {}
            rows = [self._row(row, index, broken) for index, row in enumerate(taken)]
            if first == 0:
                self._layout.check_fields(self.name, (row for index, row in enumerate(rows) if index not in broken))
            yield self._batch(taken, rows, first, broken)
            first += len(rows)
            most = self._batch_rows

    def close(self) -> None:
        """Do nothing: the iterable belongs to the caller."""

    def _batch(self, taken: list[Any], rows: list[Mapping[str, Any]], first: int, broken: dict[int, str]) -> RowBatch:
        return RowBatch(
            self.name,
            len(rows),
            columns_of(rows, self._layout, broken),
            lambda row: f"{self.name}[{first + row}]",
            lambda row: repr(taken[row]).encode("utf-8", "backslashreplace"),
            broken,
        )

    def _row(self, row: Any, index: int, broken: dict[int, str]) -> Mapping[str, Any]:
        if isinstance(row, Mapping):
            return row
        if hasattr(row, "keys"):
            return dict(row)
        if hasattr(row, "_asdict"):
            return dict(row._asdict())
        if isinstance(row, (tuple, list)):
            return self._by_position(row, index, broken)
        fields = {name: getattr(row, name) for name in self._layout.names if hasattr(row, name)}
        if not fields:
            kind = type(row).__name__
            broken[index] = f"is of type {kind}: neither a mapping, nor a tuple, nor an object with fields"
        return fields

    def _by_position(self, row: tuple[Any, ...] | list[Any], index: int, broken: dict[int, str]) -> Mapping[str, Any]:
        layout = self._layout
        if layout.is_single and len(row) == 2 + len(layout.values_of[0]):
            return dict(zip((OBJECT_ID, EVENT_TIME, *layout.values_of[0]), row, strict=True))
        name = row[0] if row else None
        stream = layout.stream_index(name) if isinstance(name, str) else None
        if stream is None and isinstance(name, str):
            # No stream of the group, so its items have no names; that will be said of the stream.
            return dict.fromkeys(layout.names) | {STREAM: name}
        names = (STREAM, OBJECT_ID, EVENT_TIME, *layout.values_of[max(stream or 0, 0)])
        if len(row) != len(names):
            broken[index] = f"has {len(row)} items, not {len(names)} ({', '.join(names)})"
            return {STREAM: name} if stream is not None else {}
        return dict(zip(names, row, strict=True))
