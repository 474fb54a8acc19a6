"""Event times in microseconds, from columns of numbers, timestamps, dates and text.

Text is a whole number of microseconds or ISO 8601; without an offset it is UTC. A part of a microsecond is cut off,
towards the past.
"""

import re
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skyband.files.text_columns import as_text, is_text, text_bytes

__all__ = ["event_times", "is_time_column"]

_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX = np.iinfo(np.int64).max
# Times, writable, and which cells hold none (None: all do).
_Times = tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]

# Up to here a float64 tells whole numbers apart.
_MAX_WHOLE = 2.0**53

_NAIVE_TYPE = pa.timestamp("us")
_UTC_TYPE = pa.timestamp("us", "UTC")
_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
# What arrow surely reads, but for days like 30 February; all else is read cell by cell.
_SHAPES = (
    (r"^-?[0-9]{1,18}$", pa.int64()),
    (rf"^{_DATE}({_CLOCK})?$", _NAIVE_TYPE),
    (rf"^{_DATE}{_CLOCK}(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])$", _UTC_TYPE),
)
_LONGEST = 40
_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")


def is_time_column(kind: pa.DataType) -> bool:
    """Whether a column of type `kind` can hold event times."""
    return (
        is_text(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_timestamp(kind)
        or types.is_date(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def event_times(column: pa.Array) -> _Times:
    """Return the times of a column, writable, and which cells hold none (None: all do).

    Cost: about 5 ns a cell for numbers and timestamps, 30 ns for text of one shape.
    """
    if is_text(column.type) or types.is_decimal(column.type):
        return _from_text(as_text(column))
    if types.is_null(column.type):
        return np.zeros(len(column), np.int64), np.ones(len(column), np.bool_)
    bad = np.asarray(column.is_null()) if column.null_count else None
    if types.is_floating(column.type):
        found: _Times = _whole(np.asarray(column.cast(pa.float64()).fill_null(np.nan)))
    else:
        found = _from_numbers(column)
    time_us, unfit = found
    if unfit is None or not unfit.any():
        return time_us, bad
    return time_us, unfit if bad is None else bad | unfit


def _from_numbers(column: pa.Array) -> _Times:
    """Return times of integers, timestamps or dates, and which are past the time line."""
    kind = column.type
    if types.is_uint64(kind):
        unsigned = np.asarray(column.fill_null(0))
        unfit = unsigned > np.uint64(_MAX)
        return np.where(unfit, 0, unsigned).astype(np.int64), unfit
    if types.is_date32(kind):
        return np.asarray(column.cast(pa.int32()).fill_null(0)).astype(np.int64) * _DAY_US, None
    counts = np.array(column.cast(pa.int64()).fill_null(0), np.int64)
    if types.is_integer(kind):
        return counts, None
    unit_ns = _UNIT_NS["ms" if types.is_date64(kind) else kind.unit]
    if unit_ns < 1_000:
        return counts // 1_000, None
    scale = unit_ns // 1_000
    unfit = (counts > _MAX // scale) | (counts < -(_MAX // scale))
    return np.where(unfit, 0, counts) * scale, unfit


def _whole(numbers: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return floats as times, and which are no whole numbers."""
    unfit = ~((np.abs(numbers) <= _MAX_WHOLE) & (np.floor(numbers) == numbers))
    return np.where(unfit, 0.0, numbers).astype(np.int64), unfit


def _from_text(column: pa.Array) -> _Times:
    """Return the times of a text column: all cells at once if they have the shape of the first, else shape by shape."""
    first = column[0].as_py() if len(column) else ""
    kind = next((kind for pattern, kind in _SHAPES if re.search(pattern, first)), None)
    # Arrow reads hexadecimal numbers, which no other way in does.
    if kind is not None and not (kind == pa.int64() and any(mark in text_bytes(column) for mark in b"xX")):
        try:
            return np.array(column.cast(kind).cast(pa.int64()), np.int64), None
        except pa.ArrowInvalid:
            pass
    return _from_shapes(pc.utf8_trim_whitespace(column))


def _from_shapes(column: pa.Array) -> _Times:
    time_us = np.zeros(len(column), np.int64)
    bad = np.ones(len(column), np.bool_)
    for pattern, kind in _SHAPES:
        fits = pc.match_substring_regex(column, pattern)
        where = np.asarray(fits)
        if not where.any():
            continue
        try:
            time_us[where] = np.asarray(column.filter(fits).cast(kind).cast(pa.int64()))
        except pa.ArrowInvalid:
            continue
        bad[where] = False
    for row in np.flatnonzero(bad).tolist():
        one = _one(column[row].as_py())
        if one is not None:
            time_us[row] = one
            bad[row] = False
    return time_us, bad if bad.any() else None


def _one(text: str) -> int | None:
    """Return the time that a text of any shape means, or None."""
    if _WHOLE.fullmatch(text):
        digits = text.partition(".")[0]
        number = int(digits) if len(digits) <= _LONGEST else _MAX + 1
        return number if -_MAX <= number <= _MAX else None
    if not text.isascii():
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        pass
    else:
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    try:
        number_us, unfit = _whole(np.array([pa.scalar(text).cast(pa.float64()).as_py()]))
    except pa.ArrowInvalid:
        return None
    return None if unfit[0] else int(number_us[0])
