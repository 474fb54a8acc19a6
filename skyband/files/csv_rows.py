"""Rows from CSV: a header, then one row a line, with cells between commas and quoted with double quotes if need be.

Arrow reads a block at once. Where that would not tell which row stands on which line (cells with line breaks, empty
lines), the block is read row by row.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from skyband.errors import InputError
from skyband.files.csv_lines import CsvLines, wrong_width
from skyband.files.layout import STREAM, Layout
from skyband.files.row_batch import RowBatch
from skyband.files.text_blocks import TextBlock, TextFile

__all__ = ["CsvRows"]


class CsvRows:
    """The rows of a CSV file. Raises InputError at once for a header that does not fit the layout."""

    total_rows = None

    def __init__(self, path: Path, layout: Layout) -> None:
        self._file = TextFile(path)
        self.name = self._file.name
        self.total_bytes = self._file.total_bytes
        self._blocks = self._file.blocks()
        try:
            self._header, self._first = self._read_header(layout)
            self._wanted = layout.check_columns(self.name, self._header)
        except BaseException:
            self.close()
            raise

    @property
    def read_bytes(self) -> int:
        """Bytes of the file that have been read."""
        return self._file.read_bytes

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows, a block at a time."""
        block: TextBlock | None = self._first
        while block is not None:
            if block.data:
                yield self._at_once(block) or self._row_by_row(block)
            block = next(self._blocks, None)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_header(self, layout: Layout) -> tuple[list[str], TextBlock]:
        """Return the names of the columns, and what is left of the first block."""
        for block in self._blocks:
            lines = CsvLines(block, self._blocks)
            for row in lines.rows():
                if row.error:
                    raise InputError(f"{self.name} line {row.line}: is no header: {row.error}")
                rest = "".join(lines.pending)
                return [cell.strip() for cell in row.cells], TextBlock(lines.line, rest.encode(), rest)
        needed = ", ".join(dict.fromkeys((*layout.required, *layout.values_of[0])))
        raise InputError(f"{self.name}: is empty; its first line must name its columns ({needed})")

    def _at_once(self, block: TextBlock) -> RowBatch | None:
        """Return the rows of a block if each stands on a line of its own, else None."""
        data = block.data
        # Arrow ends a row at a carriage return alone, too; without any, rows are never more than lines.
        if data.count(b'"') % 2 or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
            return None
        width = len(self._header)
        broken: dict[int, str] = {}

        def skip(row: Any) -> str:
            broken[row.number - 1] = wrong_width(row.actual_columns, width)
            return "skip"

        # Columns go by number: a name that is there twice may be one that nobody wants.
        number_of = {name: str(self._header.index(name)) for name in self._wanted}
        kinds = {number: pa.string() for number in number_of.values()}
        if STREAM in number_of:
            kinds[number_of[STREAM]] = pa.dictionary(pa.int32(), pa.string())
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(
                    use_threads=False,
                    block_size=len(data) + 1,
                    column_names=[str(number) for number in range(width)],
                ),
                pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
                pa.csv.ConvertOptions(
                    include_columns=list(kinds), column_types=kinds, strings_can_be_null=False, check_utf8=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        rows = table.num_rows + len(broken)
        if not table.num_rows or rows != data.count(b"\n") + (not data.endswith(b"\n")):
            return None
        columns = {name: table.column(number).chunk(0) for name, number in number_of.items()}
        if broken:
            where = _with_gaps(rows, broken)
            columns = {name: column.take(where) for name, column in columns.items()}

        def raw(row: int) -> bytes:
            return data.split(b"\n", row + 1)[row].removesuffix(b"\r")

        return RowBatch(self.name, rows, columns, lambda row: self._place(block.first_line + row), raw, broken)

    def _row_by_row(self, block: TextBlock) -> RowBatch:
        rows = list(CsvLines(block, self._blocks, len(self._header)).rows())
        broken = {index: row.error for index, row in enumerate(rows) if row.error}
        columns = {}
        for name in self._wanted:
            number = self._header.index(name)
            columns[name] = pa.array([None if row.error else row.cells[number] for row in rows], pa.string())
        return RowBatch(
            self.name,
            len(rows),
            columns,
            lambda row: self._place(rows[row].line),
            lambda row: rows[row].text.rstrip("\r\n").encode(),
            broken,
        )

    def _place(self, line: int) -> str:
        return f"{self.name} line {line}"


def _with_gaps(rows: int, gaps: Iterable[int]) -> pa.Array:
    """Return the numbers 0, 1, 2, … with an empty cell at each of `gaps`, `rows` cells in all."""
    is_gap = np.zeros(rows, np.bool_)
    is_gap[list(gaps)] = True
    return pa.array(np.cumsum(~is_gap) - 1, mask=is_gap)
