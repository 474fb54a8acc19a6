"""Columns from cells that are Python objects, as JSON and iterables give them.

Cells of one type go to arrow at once. Of mixed ones each becomes text, which means what the cell means, or shows in an
error what it was.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.files.layout import EVENT_TIME, OBJECT_ID, STREAM, Layout

__all__ = ["columns_of", "id_column", "number_column", "time_column"]

_SHOWN = 60
_NONE = type(None)


def columns_of(rows: Sequence[Mapping[str, Any]], layout: Layout, broken: dict[int, str]) -> dict[str, pa.Array]:
    """Return all columns of the layout; a row whose id cannot be one is added to `broken`. Cost: about 1 us a row."""
    columns = {}
    for name in layout.names:
        cells = [row.get(name) for row in rows]
        if name == OBJECT_ID:
            columns[name] = id_column(cells, broken)
        elif name == EVENT_TIME:
            columns[name] = time_column(cells)
        elif name == STREAM:
            columns[name] = _array(cells, {str, _NONE}, pa.string())
        else:
            columns[name] = number_column(cells)
    return columns


def time_column(cells: list[Any]) -> pa.Array:
    """Return a column of event times: whole numbers or text."""
    # Not with floats among them: arrow would cut them off.
    return _array(cells, {int, _NONE}, pa.int64())


def number_column(cells: list[Any]) -> pa.Array:
    """Return a column of values: numbers or text."""
    # Not with bool among them: arrow would make them 0 and 1.
    return _array(cells, {int, float, _NONE}, pa.float64())


def id_column(cells: list[Any], broken: dict[int, str]) -> pa.Array:
    """Return a column of ids; cells that are neither text nor a whole number are noted in `broken`."""
    found = set(map(type, cells))
    try:
        if found <= {str, _NONE}:
            return pa.array(cells, pa.string())
        if found <= {int, _NONE}:
            return pa.array(cells, pa.int64())
    except (ValueError, OverflowError):
        pass
    texts: list[str | None] = []
    for row, cell in enumerate(cells):
        text, error = _id(cell)
        texts.append(text)
        if error:
            broken.setdefault(row, f"{OBJECT_ID} {_short(repr(cell))} {error}")
    return pa.array(texts, pa.string())


def _array(cells: list[Any], types: set[type], kind: pa.DataType) -> pa.Array:
    found = set(map(type, cells))
    try:
        if found <= types:
            return pa.array(cells, kind)
        if found <= {str, _NONE}:
            return pa.array(cells, pa.string())
    except (ValueError, OverflowError):
        pass
    return pa.array(_texts(cells), pa.string())


def _id(cell: Any) -> tuple[str | None, str]:
    """Return a cell as an id, or why it cannot be one."""
    if isinstance(cell, bytes):
        try:
            return cell.decode(), ""
        except UnicodeDecodeError:
            return None, "is not UTF-8"
    if isinstance(cell, str):
        return (cell, "") if _is_whole_text(cell) else (None, "holds half a character")
    if isinstance(cell, (int, np.integer)) and not isinstance(cell, bool):
        return str(cell), ""
    return None, "" if cell is None else "is neither text nor a whole number"


def _texts(cells: Iterable[Any]) -> list[str | None]:
    return [None if cell is None else _text(cell) for cell in cells]


def _text(cell: Any) -> str:
    if isinstance(cell, str) and _is_whole_text(cell):
        return str(cell)
    if isinstance(cell, (datetime.datetime, datetime.date)):
        return cell.isoformat()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, (np.floating, float)):
        return repr(float(cell))
    try:
        # Whole numbers, decimals, numpy's numbers and times say in full what they are; of the rest it is for show.
        return str(cell) if isinstance(cell, (int, np.generic)) else _short(str(cell))
    except Exception:
        # The text of a foreign object may fail in any way, and it is one bad cell.
        return f"a {type(cell).__name__}"


def _is_whole_text(text: str) -> bool:
    """Whether a text has no halves of surrogate pairs, which UTF-8 cannot say."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
