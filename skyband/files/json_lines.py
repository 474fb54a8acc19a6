"""Rows from JSON Lines: one JSON object a line.

Arrow reads a block at once, as far as its lines are like the first. Where it fails, or where rows and lines may not be
the same, the block is read line by line; that is also what decides how anything unusual is read.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from skyband.errors import InputError
from skyband.files.cells import columns_of
from skyband.files.layout import EVENT_TIME, OBJECT_ID, STREAM, Layout
from skyband.files.row_batch import RowBatch
from skyband.files.text_blocks import TextBlock, TextFile

__all__ = ["JsonLines"]

_decode = json.JSONDecoder().raw_decode

# Arrow descends into nested values by recursion; a line of this length cannot nest deep enough to exhaust the stack.
_LONGEST_LINE_BYTES = 4096
_TYPES = {int: pa.int64(), str: pa.string()}


class JsonLines:
    """The rows of a file of JSON Lines. Fields that none of the first rows has are an InputError, as is a JSON list."""

    total_rows = None

    def __init__(self, path: Path, layout: Layout) -> None:
        self._layout = layout
        self._file = TextFile(path)
        self.name = self._file.name
        self.total_bytes = self._file.total_bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of the file that have been read."""
        return self._file.read_bytes

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows, a block at a time."""
        is_first = True
        for block in self._file.blocks():
            # The first block always line by line: its rows show whether a field is there and empty, or not there.
            batch = None if is_first else self._at_once(block)
            batch = batch or self._line_by_line(block, is_first)
            if batch is not None:
                is_first = False
                yield batch

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _at_once(self, block: TextBlock) -> RowBatch | None:
        """Return the rows of a block if each line surely is one row, and all are like the first; else None."""
        data = block.data.replace(b"\r\n", b"\n") if b"\r" in block.data else block.data
        data = data.removesuffix(b"\n")
        lines = data.count(b"\n") + 1
        schema = self._schema(data.partition(b"\n")[0])
        # Between } and { nothing but the end of a row can be, so such lines begin and end with a row.
        is_row_by_row = data.startswith(b"{") and data.endswith(b"}") and data.count(b"}\n{") == lines - 1
        if schema is None or not is_row_by_row or not _is_shallow(data, lines):
            return None
        try:
            table = pa.json.read_json(
                pa.BufferReader(data),
                pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != lines or any(column.num_chunks != 1 for column in table.columns):
            return None
        columns = {name: table.column(name).chunk(0) for name in table.column_names}
        return self._batch(
            columns,
            range(block.first_line, block.first_line + lines),
            lambda row: data.split(b"\n", row + 1)[row],
            {},
        )

    def _schema(self, line: bytes) -> pa.Schema | None:
        """Return the types that the rows of a block have if they are like its first line, or None."""
        row, _ = _row(line.decode())
        kinds = {STREAM: pa.string()}
        for name in (OBJECT_ID, EVENT_TIME):
            kind = _TYPES.get(type(row.get(name)))
            if kind is None:
                return None
            kinds[name] = kind
        return pa.schema([(name, kinds.get(name, pa.float64())) for name in self._layout.names])

    def _line_by_line(self, block: TextBlock, is_first: bool) -> RowBatch | None:
        broken: dict[int, str] = {}
        rows, lines, numbers = self._rows(block, broken)
        if not rows:
            return None
        if is_first:
            self._check_first(lines[0], rows)
        columns = columns_of(rows, self._layout, broken)
        return self._batch(columns, numbers, lambda row: lines[row].rstrip("\r").encode(), broken)

    def _batch(
        self,
        columns: dict[str, pa.Array],
        numbers: Sequence[int],
        raw: Callable[[int], bytes],
        broken: dict[int, str],
    ) -> RowBatch:
        return RowBatch(self.name, len(numbers), columns, lambda row: f"{self.name} line {numbers[row]}", raw, broken)

    def _check_first(self, line: str, rows: list[dict[str, Any]]) -> None:
        if line.lstrip().startswith("[") and self.name.lower().removesuffix(".gz").endswith(".json"):
            raise InputError(f"{self.name}: begins with a list; write one JSON object a line, without '[' and commas")
        self._layout.check_fields(self.name, rows)

    def _rows(self, block: TextBlock, broken: dict[int, str]) -> tuple[list[dict[str, Any]], list[str], Sequence[int]]:
        """Return a block's rows (a broken one is empty), their lines and the numbers of these; empty lines are none."""
        lines = block.text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        numbers: Sequence[int] = range(block.first_line, block.first_line + len(lines))
        try:
            found = list(map(_decode, lines))
            if {type(row) for row, _ in found} == {dict} and [end for _, end in found] == list(map(len, lines)):
                return [row for row, _ in found], lines, numbers
        except (ValueError, RecursionError):
            pass
        kept = [(line, number) for line, number in zip(lines, numbers, strict=True) if line and not line.isspace()]
        rows = []
        for index, (line, _) in enumerate(kept):
            row, error = _row(line)
            rows.append(row)
            if error:
                broken[index] = error
        return rows, [line for line, _ in kept], [number for _, number in kept]


def _is_shallow(data: bytes, lines: int) -> bool:
    """Whether no row nests deeply: there are no lists and no objects in the rows, or else no line is long."""
    if b"[" not in data and data.count(b"{") == lines:
        return True
    return max(map(len, data.split(b"\n"))) <= _LONGEST_LINE_BYTES


def _row(line: str) -> tuple[dict[str, Any], str]:
    """Return the object on a line, or an empty one and why there is none."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        problem = error.msg.removesuffix(" at").removesuffix(" starting")
        return {}, f"is not JSON (column {error.colno}: {problem[0].lower()}{problem[1:]})"
    except RecursionError:
        return {}, "cannot be decoded: it nests too deeply"
    except ValueError as error:
        return {}, f"cannot be decoded: {error}"
    if not isinstance(row, dict):
        return {}, "is JSON, but no object"
    return row, ""
