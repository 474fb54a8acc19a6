"""How a group's sketch is laid out in bytes: little endian, one version number, the same content always the same bytes.

::

    magic "SKYS" │ version │ shape │ sample's counts │ oldest and newest pane │ CRC-32 of all the rest
    bitmaps     int64[streams, bitmaps, positions]
    sample      uint64[n] hashes, ascending; int64[n] births; int64[n, streams] times; float64[n, streams, width] values
    tallies     int32[panes kept, streams, columns], oldest pane first
"""

import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.errors import LogError
from skyband.sketch.repetition import SecondMoment
from skyband.sketch.sketch_kernels import LOW_PANE, NEWEST_PANE, POSITIONS
from skyband.structures.coordinated_sample_kernels import COUNTS, LEVEL, LOW, MAX_LEVEL, SIZE, Sample, drop_objects

__all__ = ["SketchShape", "read_sketch", "write_sketch"]

_MAGIC = b"SKYS"
_VERSION = 1
_BEGIN = struct.Struct("<4sI")
_HEADER = struct.Struct(f"<7q{COUNTS}q2qI")

Fill = Callable[[npt.NDArray[np.int64], Sample, SecondMoment], None]


class SketchShape(NamedTuple):
    """What two sketches must have in common to be merged."""

    streams: int
    width: int
    window_us: int
    pane_us: int
    bitmaps: int
    columns: int
    budget_bytes: int


def write_sketch(shape: SketchShape, newest_us: npt.NDArray[np.int64], sample: Sample, moments: SecondMoment) -> bytes:
    """Return a sketch as bytes."""
    size = int(sample.counts[SIZE])
    order = np.argsort(sample.id_hash[:size])
    places = [pane % len(moments.tallies) for pane in _panes(moments.ring, len(moments.tallies))]
    parts: list[npt.NDArray[Any]] = [
        newest_us.astype("<i8", copy=False),
        sample.id_hash[order].astype("<u8", copy=False),
        sample.first_us[order].astype("<i8", copy=False),
        sample.times_us[order].astype("<i8", copy=False),
        sample.values[order].astype("<f8", copy=False),
        moments.tallies[np.array(places, np.intp)].astype("<i4", copy=False),
    ]
    body = b"".join(part.tobytes() for part in parts)
    numbers = [*shape, *sample.counts.tolist(), *moments.ring.tolist()]
    header = _HEADER.pack(*numbers, 0)[:-4]
    begin = _BEGIN.pack(_MAGIC, _VERSION)
    return begin + header + struct.pack("<I", zlib.crc32(body, zlib.crc32(begin + header))) + body


def read_sketch(data: bytes) -> tuple[SketchShape, Fill]:
    """Return the shape of a sketch that was written as bytes, and what fills a new one of that shape with the rest.

    Raises LogError for another version, or what is damaged, now or while filling.
    """
    if len(data) < _BEGIN.size or data[:4] != _MAGIC:
        raise LogError("a sketch is damaged (it does not begin as one); delete it, it is made anew from the log")
    version = _BEGIN.unpack_from(data)[1]
    if version != _VERSION:
        raise LogError(
            f"a sketch has version {version}, this release reads {_VERSION}; start the release that wrote it, or "
            "delete it, it is made anew from the log"
        )
    begin = _BEGIN.size + _HEADER.size
    if len(data) < begin:
        raise _damaged(f"{len(data)} bytes are less than its header")
    *numbers, crc = _HEADER.unpack_from(data, _BEGIN.size)
    if zlib.crc32(data[begin:], zlib.crc32(data[: begin - 4])) != crc:
        raise _damaged("its checksum does not fit")
    shape = SketchShape(*numbers[:7])
    counts = np.array(numbers[7 : 7 + COUNTS], np.int64)
    ring = np.array(numbers[7 + COUNTS :], np.int64)

    def fill(newest_us: npt.NDArray[np.int64], sample: Sample, moments: SecondMoment) -> None:
        size = int(counts[SIZE])
        if not 0 <= size <= len(sample.id_hash) or not 0 <= counts[LEVEL] <= MAX_LEVEL:
            raise _damaged(f"it says that it holds {size} objects at level {counts[LEVEL]}")
        panes = _panes(ring, len(moments.tallies))
        reader = _Reader(data, begin)
        newest_us[...] = reader.take("<i8", (shape.streams, shape.bitmaps, POSITIONS))
        sample.id_hash[:size] = reader.take("<u8", (size,))
        sample.first_us[:size] = reader.take("<i8", (size,))
        sample.times_us[:size] = reader.take("<i8", (size, shape.streams))
        sample.values[:size] = reader.take("<f8", (size, shape.streams, shape.width))
        tallies = reader.take("<i4", (len(panes), shape.streams, shape.columns))
        reader.end()
        moments.tallies[np.array([pane % len(moments.tallies) for pane in panes], np.intp)] = tallies
        moments.ring[...] = ring
        sample.counts[...] = counts
        # Lists the objects anew, and drops none of them.
        drop_objects(tuple(sample))
        if sample.counts[SIZE] != size:
            raise _damaged(f"it holds objects past its threshold or older than {counts[LOW]} us")

    return shape, fill


class _Reader:
    """Takes arrays off the front of bytes, and refuses to read past their end or to leave a rest."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, kind: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        dtype = np.dtype(kind)
        items = int(np.prod(shape))
        if items * dtype.itemsize > len(self._data) - self._at:
            raise _damaged(f"{len(self._data)} bytes are too few for its shape")
        array = np.frombuffer(self._data, dtype, items, self._at).reshape(shape)
        self._at += items * dtype.itemsize
        return array

    def end(self) -> None:
        if self._at != len(self._data):
            raise _damaged(f"{len(self._data)} bytes are {len(self._data) - self._at} too many for its shape")


def _panes(ring: npt.NDArray[np.int64], panes: int) -> range:
    """Return the numbers of the panes kept."""
    newest = int(ring[NEWEST_PANE])
    return range(max(int(ring[LOW_PANE]), newest - panes + 1), newest + 1)


def _damaged(why: str) -> LogError:
    return LogError(f"a sketch is damaged ({why}); delete it, it is made anew from the log")
