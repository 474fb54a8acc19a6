"""Rows of an aligned batch packed for the wire: all columns in one buffer, whole numbers as small as they can be.

A packed column is a *base* and, for each row, the unsigned difference from it in *size* bytes: 0, 1, 2, 4 or 8, as few
as the batch allows. Source offsets, times and lengths of ids shrink from 32 bytes a row to about 8. That costs some
nanoseconds a row here, and saves the producer many more, where lz4 takes 30 ns a row for each wide column of times::

    | values | hashes | offset steps | event times | delays | lengths of ids | ids ...
    each begins at a multiple of 8 bytes; the four before the ids are packed
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["FROM_OFFSET", "PACKED", "ROWS", "PackedRows", "RowColumns", "SectionTable", "pack_rows", "unpack_rows"]

# int64[sections, 8]: the fields of Section in their order.
SectionTable = npt.NDArray[np.int64]
FROM_OFFSET = 2
ROWS = 4
PACKED = 4
_SIZES = (0, 1, 2, 4, 8)

_Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]


class RowColumns(NamedTuple):
    """Columns of n rows, as in AlignedBatch."""

    offset: _Ints
    event_time_us: _Ints
    release_time_us: _Ints
    id_ends: _Ints
    id_bytes: _Bytes
    id_hash: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]


class PackedRows(NamedTuple):
    """`packing` int64[PACKED, 2]: base and size of the packed columns; `columns` uint8: all that the rows hold."""

    packing: _Ints
    columns: _Bytes


@njit(cache=True, nogil=True, error_model="numpy")
def _narrow(values: _Ints, out: _Bytes, start: int, packing: _Ints) -> int:
    """Put `values` into `out` from `start` on, base and size into `packing`; return where the next column begins."""
    rows = len(values)
    low = high = values[0]
    for row in range(rows):
        low = min(low, values[row])
        high = max(high, values[row])
    span = high - low
    # A span beyond int64 comes out negative and takes all 8 bytes, in which sums are right again.
    if span == 0:
        size = 0
    elif 0 < span < 1 << 8:
        size = 1
        for row in range(rows):
            out[start + row] = values[row] - low
    elif 0 < span < 1 << 16:
        size = 2
        out_2 = out[start : start + 2 * rows].view(np.uint16)
        for row in range(rows):
            out_2[row] = values[row] - low
    elif 0 < span < 1 << 32:
        size = 4
        out_4 = out[start : start + 4 * rows].view(np.uint32)
        for row in range(rows):
            out_4[row] = values[row] - low
    else:
        size = 8
        out_8 = out[start : start + 8 * rows].view(np.int64)
        for row in range(rows):
            out_8[row] = values[row] - low
    packing[0] = low
    packing[1] = size
    end = start + size * rows
    start = (end + 7) & ~7
    for byte in range(end, start):
        out[byte] = 0
    return start


@njit(cache=True, nogil=True, error_model="numpy")
def _pack(
    sections: npt.NDArray[np.int64],
    offset: _Ints,
    event_time_us: _Ints,
    release_time_us: _Ints,
    id_ends: _Ints,
    scratch: _Ints,
    start: int,
    packing: npt.NDArray[np.int64],
    out: _Bytes,
) -> int:
    """Pack four columns into `out` from `start` on; return where the ids begin. `scratch`: room for a column."""
    rows = len(offset)
    row = 0
    for section in range(len(sections)):
        stop = row + sections[section, ROWS]
        if row < stop:
            scratch[row] = offset[row] - (sections[section, FROM_OFFSET] - 1)
            for i in range(row + 1, stop):
                scratch[i] = offset[i] - offset[i - 1]
        row = stop
    start = _narrow(scratch, out, start, packing[0])
    start = _narrow(event_time_us, out, start, packing[1])
    for row in range(rows):
        scratch[row] = release_time_us[row] - event_time_us[row]
    start = _narrow(scratch, out, start, packing[2])
    scratch[0] = id_ends[0]
    for row in range(1, rows):
        scratch[row] = id_ends[row] - id_ends[row - 1]
    return int(_narrow(scratch, out, start, packing[3]))


@njit(cache=True, nogil=True, error_model="numpy")
def _widen(data: _Bytes, start: int, packing: _Ints, out: _Ints) -> int:
    """Undo `_narrow`; return where the next column begins. The caller has made sure that `data` is long enough."""
    rows = len(out)
    base, size = packing[0], packing[1]
    if size == 0:
        for row in range(rows):
            out[row] = base
    elif size == 1:
        for row in range(rows):
            out[row] = base + np.int64(data[start + row])
    elif size == 2:
        data_2 = data[start : start + 2 * rows].view(np.uint16)
        for row in range(rows):
            out[row] = base + np.int64(data_2[row])
    elif size == 4:
        data_4 = data[start : start + 4 * rows].view(np.uint32)
        for row in range(rows):
            out[row] = base + np.int64(data_4[row])
    else:
        data_8 = data[start : start + 8 * rows].view(np.int64)
        for row in range(rows):
            out[row] = base + data_8[row]
    return int((start + size * rows + 7) & ~7)


@njit(cache=True, nogil=True, error_model="numpy")
def _unpack(
    sections: npt.NDArray[np.int64],
    packing: npt.NDArray[np.int64],
    data: _Bytes,
    start: int,
    arena_bytes: int,
    offset: _Ints,
    event_time_us: _Ints,
    release_time_us: _Ints,
    id_ends: _Ints,
) -> bool:
    """Fill the last four arrays; return whether the ids fill the arena."""
    start = _widen(data, start, packing[0], offset)
    start = _widen(data, start, packing[1], event_time_us)
    start = _widen(data, start, packing[2], release_time_us)
    start = _widen(data, start, packing[3], id_ends)
    row = 0
    for section in range(len(sections)):
        before = sections[section, FROM_OFFSET] - 1
        stop = row + sections[section, ROWS]
        for i in range(row, stop):
            before += offset[i]
            offset[i] = before
        row = stop
    fits = True
    end = np.int64(0)
    for row in range(len(offset)):
        release_time_us[row] += event_time_us[row]
        length = id_ends[row]
        fits = fits and 0 <= length <= arena_bytes - end
        if fits:
            end += length
        id_ends[row] = end
    return fits and end == arena_bytes


def pack_rows(sections: SectionTable, rows: RowColumns) -> PackedRows:
    """Return at least one row, packed. Cost: about 10 us and 10 ns a row."""
    count, wide = len(rows.offset), 8 * rows.values.size
    packed_at = wide + 8 * count
    out = np.empty(packed_at + PACKED * (8 * count + 7) + len(rows.id_bytes), np.uint8)
    out[:wide].view(np.float64)[:] = rows.values.ravel()
    out[wide:packed_at].view(np.uint64)[:] = rows.id_hash
    packing = np.empty((PACKED, 2), np.int64)
    columns = rows.offset, rows.event_time_us, rows.release_time_us, rows.id_ends
    ids_at = _pack(sections, *columns, np.empty(count, np.int64), packed_at, packing, out)
    end = ids_at + len(rows.id_bytes)
    out[ids_at:end] = rows.id_bytes
    return PackedRows(packing, out[:end])


def unpack_rows(sections: SectionTable, width: int, packed: PackedRows) -> RowColumns:
    """Return at least one row of `width` values as it was packed, in arrays that stand alone.

    Raises ValueError for what `pack_rows` does not make. Cost: about 10 us and 6 ns a row.
    """
    packing, data = packed
    count = int(sections[:, ROWS].sum())
    sizes: list[int] = packing[:, 1].tolist()
    packed_at = 8 * count * (width + 1)
    ids_at = packed_at + sum((size * count + 7) & ~7 for size in sizes)
    if width < 0 or any(size not in _SIZES for size in sizes) or ids_at > len(data):
        raise ValueError(f"{count} rows of {width} values in {sizes} bytes do not fit {len(data)} bytes of columns")
    offset, event_time_us = np.empty(count, np.int64), np.empty(count, np.int64)
    release_time_us, id_ends = np.empty(count, np.int64), np.empty(count, np.int64)
    if not _unpack(
        sections, packing, data, packed_at, len(data) - ids_at, offset, event_time_us, release_time_us, id_ends
    ):
        raise ValueError(f"the lengths of {count} ids do not add up to {len(data) - ids_at} bytes")
    return RowColumns(
        offset,
        event_time_us,
        release_time_us,
        id_ends,
        id_bytes=data[ids_at:].copy(),
        id_hash=data[packed_at - 8 * count : packed_at].view(np.uint64).copy(),
        values=data[: 8 * count * width].view(np.float64).reshape(count, width).copy(),
    )
