"""Flat Avro records, many at once, from their joined bytes to columns.

Verdicts are those of fastavro, but stricter where it is not careful: a whole number must fit 64 bits (it drops the bits
above), an index of a union or enum must not be negative (it counts from the end), and a record ends where its bytes end
(it leaves what is behind). Booleans are any byte, an int is read as a long; text must be UTF-8, also where unused.

The inner loops index with uint64: numba need not ask whether such an index counts from the end, which made decoding
twice as fast. Nothing is allocated, so references are not counted (docs/decisions/0011-how-kernels-are-compiled.md).
"""

from typing import Any

import numpy as np
from numba import njit

from skyband.model.source_rows import Reason
from skyband.structures.array_types import Bytes, Floats, Ints

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DOUBLE",
    "ENUM",
    "FIXED",
    "FLOAT",
    "ID",
    "NULL",
    "STRING",
    "TIME",
    "UNUSED",
    "WHOLE",
    "decode_flat",
]

# Kinds of fields.
NULL, BOOLEAN, WHOLE, FLOAT, DOUBLE, BYTES, STRING, ENUM, FIXED = range(9)

# Roles of fields; a value's role is its column.
UNUSED, ID, TIME = -1, -2, -3

_UNDECODABLE = int(Reason.UNDECODABLE)
_BAD_TIME = int(Reason.BAD_TIME)
_MAX = 2**63 - 1
_MAX_REAL = 2.0**53

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U2 = np.uint64(2)
_U7 = np.uint64(0x7F)
_MINUS = 45
_ZERO = 48


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _varint(data: Bytes, at: int, stop: int) -> Any:
    """Return the unsigned number at `at` and where it ends, or -1 if it does not end or does not fit 64 bits."""
    value = _U0
    shift = 0
    place = np.uint64(at)
    end = np.uint64(stop)
    while place < end and shift < 70:
        byte = np.uint64(data[place])
        place += _U1
        if shift == 63 and byte > _U1:
            break
        value |= (byte & _U7) << np.uint64(shift)
        if byte <= _U7:
            return value, np.int64(place)
        shift += 7
    return _U0, -1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _length(data: Bytes, at: int, stop: int) -> Any:
    """Return where bytes that stand behind their length begin and end, or -1 twice if they do not fit."""
    # Nearly every length is one byte.
    if at < stop and data[at] < 128:
        code = np.uint64(data[at])
        at += 1
    else:
        code, at = _varint(data, at, stop)
    size = np.int64(code >> _U1)
    if at < 0 or code & _U1 or size > stop - at:
        return -1, -1
    return at, at + size


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _is_utf8(data: Bytes, start: int, stop: int) -> bool:
    """Whether ``data[start:stop]`` is UTF-8: shortest forms only, no halves of surrogate pairs."""
    marks = np.uint8(0)
    for i in range(start, stop):
        marks |= data[i]
    if marks < 128:
        return True
    at = start
    while at < stop:
        first = data[at]
        at += 1
        if first < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + more > stop or not low <= data[at] <= high:
            return False
        for i in range(at + 1, at + more):
            if not 0x80 <= data[i] <= 0xBF:
                return False
        at += more
    return True


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _union(data: Bytes, at: int, stop: int, null: int) -> Any:
    """Return whether a field is null and where its value begins, or -1; `null` below 0: it is no union."""
    if null < 0 or at < 0:
        return False, at
    branch, at = _varint(data, at, stop)
    if branch & _U1 or branch > _U2:
        return False, -1
    return at >= 0 and np.int64(branch >> _U1) == null, at


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _bits(data: Bytes, at: int, size: int) -> Any:
    """Return `size` bytes as a little-endian number."""
    bits = _U0
    place = np.uint64(at)
    for i in range(size):
        bits |= np.uint64(data[place]) << np.uint64(8 * i)
        place += _U1
    return bits


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _real(data: Bytes, at: int, stop: int, kind: int) -> Any:
    """Return a float or double and where it ends, or -1."""
    if kind == DOUBLE and stop - at >= 8:
        return np.uint64(_bits(data, at, 8)).view(np.float64), at + 8
    if kind == FLOAT and stop - at >= 4:
        return np.float64(np.uint32(_bits(data, at, 4)).view(np.float32)), at + 4
    return 0.0, -1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _put_digits(number: int, arena: Bytes, at: int) -> int:
    """Write a whole number in decimal to the arena at `at`; return where it ends."""
    if number < 0:
        arena[at] = _MINUS
        at += 1
        # The lowest number has no positive counterpart.
        rest = np.uint64(-(number + 1)) + _U1
    else:
        rest = np.uint64(number)
    ten = np.uint64(10)
    end = at + 1
    left = rest // ten
    while left > _U0:
        end += 1
        left //= ten
    for i in range(end - 1, at - 1, -1):
        arena[i] = _ZERO + np.int64(rest % ten)
        rest //= ten
    return end


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _whole_time(count: int, scale: int) -> Any:
    """Return a whole number as a time and whether int64 holds it; a scale is what source_times says."""
    if scale < 0:
        return count // -scale, True
    if scale == 0 or not -(_MAX // scale) <= count <= _MAX // scale:
        return 0, False
    return count * scale, True


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _real_time(count: float, scale: int) -> Any:
    """Return a float as a time and whether it is one: whole microseconds, or the nearest to parts of longer units."""
    if scale <= 0 or not abs(count) <= _MAX_REAL:
        return 0, False
    if scale == 1:
        return np.int64(count), np.floor(count) == count
    near = np.rint(count * scale)
    if not abs(near) <= _MAX_REAL:
        return 0, False
    return np.int64(near), True


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _take_text(data: Bytes, start: int, stop: int, arena: Bytes, at: int) -> int:
    """Copy ``data[start:stop]`` to the arena at `at`; return where the copy ends, or -1 if it is not UTF-8."""
    marks = np.uint8(0)
    source = np.uint64(start)
    target = np.uint64(at)
    while source < np.uint64(stop):
        byte = data[source]
        marks |= byte
        arena[target] = byte
        source += _U1
        target += _U1
    return at + stop - start if marks < 128 or _is_utf8(data, start, stop) else -1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _skip(data: Bytes, at: int, stop: int, kind: int, limit: int) -> int:
    """Return where a field that has no role ends, or -1 if it is broken."""
    if kind in (STRING, BYTES):
        start, end = _length(data, at, stop)
        return end if kind == BYTES or end < 0 or _is_utf8(data, start, end) else -1
    if kind in (WHOLE, ENUM):
        code, end = _varint(data, at, stop)
        return end if kind == WHOLE or (not code & _U1 and np.int64(code >> _U1) < limit) else -1
    size = 0
    if kind == DOUBLE:
        size = 8
    elif kind == FLOAT:
        size = 4
    elif kind == BOOLEAN:
        size = 1
    elif kind == FIXED:
        size = limit
    return at + size if size <= stop - at else -1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def decode_flat(
    data: Bytes,
    ends: Ints,
    skipped: int,
    fields: Ints,
    whole_scale: int,
    real_scale: int,
    time_us: Ints,
    id_bytes: Bytes,
    id_ends: Ints,
    text_bytes: Bytes,
    text_ends: Ints,
    values: Floats,
    reason: Bytes,
) -> None:
    """Decode the records that end at `ends` in `data`, the first `skipped` bytes of each left out.

    `fields` is a plan (see source_avro_schema), the scales are those of whole and of fractional times. Filled are, for
    n records, all arrays from `time_us` on; times that are text go to the second arena. A record that cannot be decoded
    has an empty id. Cost: about 40 ns for a record of id, time and value.
    """
    id_at = 0
    text_at = 0
    at = 0
    for row in range(len(ends)):
        stop = ends[row]
        at = at + skipped if skipped <= stop - at else -1
        why = 0
        id_stop = id_at
        text_stop = text_at
        for field in range(len(fields)):
            kind = fields[field, 0]
            role = fields[field, 1]
            is_null, at = _union(data, at, stop, fields[field, 2])
            if is_null and role < 0:
                # An id that is missing is noticed later, a value must be there.
                why = _BAD_TIME if role == TIME else why
                continue
            if at < 0 or is_null:
                at = -1
                break
            if role == UNUSED:
                at = _skip(data, at, stop, kind, fields[field, 3])
            elif kind == WHOLE:
                code, at = _varint(data, at, stop)
                number = np.int64(code >> _U1) ^ -np.int64(code & _U1)
                if role >= 0:
                    values[row, role] = np.float64(number)
                elif role == ID:
                    id_stop = _put_digits(number, id_bytes, id_at)
                else:
                    time_us[row], is_time = _whole_time(number, whole_scale)
                    why = why if is_time else _BAD_TIME
            elif kind in (STRING, BYTES):
                start, at = _length(data, at, stop)
                if at < 0:
                    break
                if role == ID:
                    id_stop = _take_text(data, start, at, id_bytes, id_at)
                    at = at if id_stop >= 0 else -1
                else:
                    text_stop = _take_text(data, start, at, text_bytes, text_at)
                    at = at if text_stop >= 0 else -1
            else:
                real, at = _real(data, at, stop, kind)
                if role >= 0:
                    values[row, role] = real
                else:
                    time_us[row], is_time = _real_time(real, real_scale)
                    why = why if is_time else _BAD_TIME
        if at != stop:
            why = _UNDECODABLE
            id_stop = id_at
            text_stop = text_at
        reason[row] = why
        id_at = id_stop
        text_at = text_stop
        id_ends[row] = id_at
        text_ends[row] = text_at
        at = stop
