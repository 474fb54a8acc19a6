"""Rows of CSV, one by one, with the line each begins on: the slow and forgiving way."""

import csv
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from skyband.files.text_blocks import TextBlock

__all__ = ["CsvLines", "CsvRow", "wrong_width"]


class CsvRow(NamedTuple):
    """A row as it stands in the file: `cells`, or `error` if it is none."""

    line: int
    text: str
    cells: list[str]
    error: str = ""


class CsvLines:
    """Reads rows from lines, and from more blocks while a row is not complete.

    `pending` are lines not read yet, `line` is the number of the first of them. A row must have `width` cells (None:
    any number). When a quote that never closes makes several lines one bad row, only the first of them is lost: the
    others go back to `pending`.
    """

    def __init__(self, block: TextBlock, more: Iterator[TextBlock], width: int | None = None) -> None:
        self.pending = deque(_lines(block.text))
        self.line = block.first_line
        self._more = more
        self._width = width
        self._taken: list[str] = []
        self._is_at_end = False
        self._rows = csv.reader(self)

    def __iter__(self) -> "CsvLines":
        return self

    def __next__(self) -> str:
        """Return the next line, for the csv reader."""
        if not self.pending:
            block = next(self._more, None)
            if block is None:
                self._is_at_end = True
                raise StopIteration
            self.pending.extend(_lines(block.text))
        self._taken.append(self.pending.popleft())
        return self._taken[-1]

    def rows(self) -> Iterator[CsvRow]:
        """Yield rows until no line is pending; empty lines are none."""
        while self.pending:
            row = self._row()
            if row is not None:
                yield row

    def _row(self) -> CsvRow | None:
        self._taken = []
        self._is_at_end = False
        line, cells, error = self.line, [], ""
        try:
            cells = next(self._rows)
        except csv.Error as problem:
            # The reader's own words for this one are about opening files, and differ between versions of Python.
            is_return = str(problem).startswith("new-line")
            error = "a carriage return stands in a cell without quotes" if is_return else str(problem)
        if self._is_at_end or (error and len(self._taken) > 1):
            error = "a quoted cell is never closed"
        elif cells and self._width is not None and len(cells) != self._width:
            error = wrong_width(len(cells), self._width)
        if error:
            self.pending.extendleft(reversed(self._taken[1:]))
            del self._taken[1:]
        self.line += len(self._taken)
        text = "".join(self._taken)
        return CsvRow(line, text, cells, error) if cells or error else None


def wrong_width(cells: int, width: int) -> str:
    """Return what is wrong with a row of `cells` cells under a header of `width`."""
    return f"has {cells} cell{'s' if cells > 1 else ''}, where the header has {width}"


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, and keep them."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])
