"""Columns from records that are Python mappings, as JSON and the records of rarer Avro schemas are.

What a cell may be: an id is text, bytes of UTF-8 or a whole number, and may be absent; a time is a number or text; a
value is a number. A cell that is none of that is refused with a sentence.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from services.runtime.source_columns import Columns, Roles
from services.runtime.source_times import real_time, text_times, time_words, whole_time
from skyband.model.source_rows import Reason

__all__ = ["Cells"]

_SHOWN = 60
_INT64 = 2**63


class _UnfitError(Exception):
    """A cell is not what its role asks for; the message says what it is."""


class Cells:
    """Reads the cells of records. `scale` is what whole numbers are worth as times, if that is known of the field."""

    def __init__(self, roles: Roles, scale: int | None = None) -> None:
        self._roles = roles
        self._scale = roles.scale if scale is None else scale

    def columns(self, records: Sequence[Mapping[str, Any] | None]) -> Columns:
        """Return all records in columns; None is one that could not be decoded. Cost: 1 to 2 us a record."""
        roles = self._roles
        found = Columns.refused(len(records), len(roles.values), Reason.ACCEPTED)
        ids: list[bytes] = []
        texts: dict[int, str] = {}
        for row, record in enumerate(records):
            who = b""
            if record is None:
                found.reason[row] = Reason.UNDECODABLE
            else:
                try:
                    if roles.event_time is not None:
                        self._take_time(record.get(roles.event_time), row, found, texts)
                    for column, name in enumerate(roles.values):
                        found.values[row, column] = _value(record.get(name))
                    who = _id(record.get(roles.object_id))
                except _UnfitError:
                    found.reason[row] = Reason.UNDECODABLE
            ids.append(who)
        if texts:
            rows = np.fromiter(texts, np.int64, len(texts))
            found.time_us[rows], bad = text_times(list(texts.values()), roles.scale)
            unfit = rows[bad]
            found.reason[unfit[found.reason[unfit] == 0]] = Reason.BAD_TIME
        return Columns(
            time_us=found.time_us,
            id_bytes=np.frombuffer(bytearray(b"".join(ids)), np.uint8),
            id_ends=np.cumsum(np.fromiter(map(len, ids), np.int64, len(ids))),
            values=found.values,
            reason=found.reason,
        )

    def explain(self, record: Mapping[str, Any]) -> str:
        """Return which cells of a record are not what they should be, and what they are."""
        roles = self._roles
        wrong = []
        for name in dict.fromkeys(roles.names):
            cell = record.get(name)
            try:
                if name == roles.object_id:
                    _id(cell)
                if name in roles.values:
                    _value(cell)
            except _UnfitError as error:
                wrong.append(f"{name} {error}")
            if name == roles.event_time and (complaint := self._complaint_of_time(cell)):
                wrong.append(f"{name} {complaint}")
        return ", ".join(wrong)

    def _take_time(self, cell: Any, row: int, found: Columns, texts: dict[int, str]) -> None:
        if isinstance(cell, str):
            texts[row] = cell
            return
        time_us = self._number_time(cell)
        if time_us is None:
            found.reason[row] = Reason.BAD_TIME
        else:
            found.time_us[row] = time_us

    def _number_time(self, cell: Any) -> int | None:
        if isinstance(cell, float):
            return real_time(cell, self._roles.scale)
        if isinstance(cell, int) and not isinstance(cell, bool):
            time_us = whole_time(cell, self._scale)
            return time_us if time_us is not None and -_INT64 <= time_us < _INT64 else None
        return None

    def _complaint_of_time(self, cell: Any) -> str:
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            return "is empty"
        if isinstance(cell, str):
            fits = not text_times([cell], self._roles.scale)[1][0]
        else:
            fits = self._number_time(cell) is not None
        scale = self._scale if isinstance(cell, int) else self._roles.scale
        return "" if fits else f"{_shown(cell)} is no time in {time_words(scale)}"


def _id(cell: Any) -> bytes:
    if cell is None:
        return b""
    try:
        if isinstance(cell, str):
            return cell.encode()
        if isinstance(cell, bytes):
            return cell.decode().encode()
    except UnicodeEncodeError:
        raise _UnfitError(f"{_shown(cell)} holds half a character") from None
    except UnicodeDecodeError:
        raise _UnfitError(f"{_shown(cell)} is not UTF-8") from None
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell).encode()
    raise _UnfitError(f"{_shown(cell)} is neither text nor a whole number")


def _value(cell: Any) -> float:
    if isinstance(cell, float):
        return cell
    if cell is None:
        raise _UnfitError("is empty")
    if isinstance(cell, (int, Decimal)) and not isinstance(cell, bool):
        try:
            return float(cell)
        except OverflowError:
            return np.inf if cell > 0 else -np.inf
    raise _UnfitError(f"{_shown(cell)} is not a number")


def _shown(cell: Any) -> str:
    text = {True: "true", False: "false"}[cell] if isinstance(cell, bool) else repr(cell)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
