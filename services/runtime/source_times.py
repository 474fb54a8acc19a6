"""Event times of source records in microseconds: whole numbers of a unit, fractional ones, and text.

A *scale* says what the number 1 is worth: above 0 so many microseconds, below 0 one microsecond is worth so many; 0: no
number is a time. Text is what it is in a file: ISO 8601, UTC without an offset, a part of a microsecond cut off towards
the past. Text that is a number counts as the number.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.files.times import event_times
from skyband.model.stream import TimeUnit

__all__ = [
    "LOGICAL_SCALES",
    "MAX_REAL_US",
    "UNIT_SCALES",
    "real_time",
    "real_times",
    "text_times",
    "time_words",
    "whole_time",
    "whole_times",
]

UNIT_SCALES = {TimeUnit.US: 1, TimeUnit.MS: 1_000, TimeUnit.S: 1_000_000, TimeUnit.ISO: 0, TimeUnit.KAFKA: 0}
# Of Avro's logical types; a local one has no offset, so it is UTC.
LOGICAL_SCALES = {
    "timestamp-nanos": -1_000,
    "timestamp-micros": 1,
    "timestamp-millis": 1_000,
    "local-timestamp-nanos": -1_000,
    "local-timestamp-micros": 1,
    "local-timestamp-millis": 1_000,
    "date": 86_400_000_000,
}
# Up to here a float64 tells whole microseconds apart.
MAX_REAL_US = 2**53

_MAX = 2**63 - 1
_WORDS = {-1_000: "nanoseconds", 1: "microseconds", 1_000: "milliseconds", 1_000_000: "seconds", 86_400_000_000: "days"}
_WHOLE = r"^[+-]?[0-9]{1,40}$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def time_words(scale: int) -> str:
    """Return in words what a time of this scale is."""
    return f"{_WORDS[scale]} or ISO 8601" if scale else "ISO 8601"


def whole_time(count: int, scale: int) -> int | None:
    """Return a whole number as a time, or None if it is none or beyond int64; what is below 1 us is cut off."""
    if scale < 0:
        return count // -scale
    limit = _MAX // scale if scale else -1
    return count * scale if -limit <= count <= limit else None


def real_time(count: float, scale: int) -> int | None:
    """Return a float as a time, or None if it is none.

    Microseconds must be whole. Of longer units the nearest microsecond is taken: 0.1 s is no float, but a float near
    it, which must not become 99,999 us.
    """
    if scale <= 0 or not abs(count) <= MAX_REAL_US:
        return None
    if scale == 1:
        return int(count) if count == int(count) else None
    time_us = round(count * scale)
    return time_us if abs(time_us) <= MAX_REAL_US else None


def whole_times(counts: npt.NDArray[np.int64], scale: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return whole numbers as times, and which are none, as `whole_time` does for one."""
    if scale < 0:
        return counts // -scale, np.zeros(len(counts), np.bool_)
    limit = _MAX // scale if scale else -1
    bad = (counts > limit) | (counts < -limit)
    return np.where(bad, 0, counts) * scale, bad


def real_times(counts: npt.NDArray[np.float64], scale: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return floats as times, and which are none, as `real_time` does for one."""
    if scale <= 0:
        return np.zeros(len(counts), np.int64), np.ones(len(counts), np.bool_)
    near = np.where(np.abs(counts) <= MAX_REAL_US, counts, np.nan) * scale
    times = np.floor(near) if scale == 1 else np.rint(near)
    bad = ~(np.abs(times) <= MAX_REAL_US)
    if scale == 1:
        bad |= times != near
    return np.where(bad, 0.0, times).astype(np.int64), bad


def text_times(texts: pa.Array | Sequence[str], scale: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return texts as times, and which are none. Numbers in text have the scale, which is 0 if only ISO 8601 is right.

    Cost: about 30 ns for a text of one shape, twice that where numbers are not microseconds.
    """
    if not isinstance(texts, pa.Array):
        texts = pa.array([_sayable(text) for text in texts], pa.large_string())
    time_us, found = event_times(texts)
    bad = np.zeros(len(texts), np.bool_) if found is None else found
    if scale != 1:
        trimmed = pc.utf8_trim_whitespace(texts)
        numeric = pc.match_substring_regex(trimmed, _NUMBER).fill_null(False)
        for row in np.flatnonzero(np.asarray(numeric)).tolist():
            one = _number_time(trimmed[row].as_py(), scale)
            time_us[row] = one or 0
            bad[row] = one is None
    return time_us, bad


def _number_time(text: str, scale: int) -> int | None:
    if pc.match_substring_regex(text, _WHOLE).as_py():
        time_us = whole_time(int(text), scale)
        return time_us if time_us is not None and abs(time_us) <= _MAX else None
    return real_time(float(text), scale)


def _sayable(text: str) -> str:
    # Half a character cannot be put into a column; with a mark in its place the text is no time either.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
