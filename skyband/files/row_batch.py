"""Rows as a reader hands them over: columns as they were written, and where each row stood."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from skyband.files.times import event_times

__all__ = ["RowBatch", "RowReader", "arrow_batch"]


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Consecutive rows of one input, with those columns of the group's layout that are there.

    `broken` rows could not be decoded at all, and says why; their cells mean nothing. `place(row)` says in words where
    a row stands, `raw(row)` gives its bytes.
    """

    name: str
    rows: int
    columns: Mapping[str, pa.Array]
    place: Callable[[int], str]
    raw: Callable[[int], bytes]
    broken: dict[int, str] = field(default_factory=dict)


class RowReader(Protocol):
    """One input, read once from its beginning to its end.

    Begins checked as far as that can be done without reading rows. A total is None where it is not known.
    """

    name: str

    @property
    def total_bytes(self) -> int | None:
        """Bytes of the file, packed ones if it is packed."""
        ...

    @property
    def total_rows(self) -> int | None:
        """Number of rows."""
        ...

    @property
    def read_bytes(self) -> int:
        """Bytes of the file that have been read, packed ones if it is packed; 0 for rows in memory."""
        ...

    def batches(self) -> Iterator[RowBatch]:
        """Yield all rows in order; raise InputError where they cannot be read."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


def arrow_batch(
    name: str,
    columns: Mapping[str, pa.Array],
    rows: int,
    place: Callable[[int], str],
    broken: dict[int, str] | None = None,
) -> RowBatch:
    """Return a batch of arrow columns; a row's bytes are its cells as JSON."""

    def raw(row: int) -> bytes:
        cells = {column: _plain(array.slice(row, 1)) for column, array in columns.items()}
        return json.dumps(cells, default=str, ensure_ascii=False).encode("utf-8", "replace")

    return RowBatch(name, rows, columns, place, raw, {} if broken is None else broken)


def _plain(cell: pa.Array) -> Any:
    """Return the one cell of an array as a Python value, a timestamp in microseconds."""
    if pa.types.is_timestamp(cell.type):
        time_us, bad = event_times(cell)
        return None if bad is not None and bad[0] else int(time_us[0])
    try:
        return cell[0].as_py()
    except UnicodeDecodeError:
        return None
