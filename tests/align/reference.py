"""Align, a row at a time and to be checked by eye; and rows and batches as plain Python values."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skyband.coverage.aligned_batch import AlignedBatch, Section
from skyband.model.duration import FIRST_EVENT_US, LAST_EVENT_US, MIN_TIME_US
from skyband.model.source_rows import Reason, SourceRows
from skyband.model.stream import Late, OutOfRange, Stream


@dataclass(frozen=True)
class Row:
    """A source record; `given` is the decoder's reason, `timestamp_us` -1 if unknown."""

    offset: int
    time_us: int
    object_id: bytes = b"a"
    values: tuple[float, ...] = (1.0,)
    given: Reason = Reason.ACCEPTED
    timestamp_us: int = -1


@dataclass(frozen=True)
class Aligned:
    """A row as it leaves align."""

    offset: int
    time_us: int
    release_us: int
    object_id: bytes
    values: tuple[float, ...]


class Reference:
    """One source partition, row after row."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.watermark_us = MIN_TIME_US
        self.newest_us = MIN_TIME_US
        self.late = 0
        self.reasons: list[Reason] = []
        self.accepted: list[Aligned] = []

    def add(self, row: Row) -> None:
        """Take the next row."""
        release_us = max(row.time_us, self.watermark_us)
        reasons = [row.given] if row.given else []
        has_time = row.given == Reason.ACCEPTED
        if has_time and not FIRST_EVENT_US < row.time_us < LAST_EVENT_US:
            reasons, has_time = [Reason.BAD_TIME], False
        if has_time:
            reasons += self._content_reasons(row)
            if 0 <= row.timestamp_us < row.time_us - self.stream.max_ahead_us:
                reasons.append(Reason.FUTURE)
            else:
                self.watermark_us = max(self.watermark_us, row.time_us - self.stream.max_delay_us)
                if not reasons and release_us > row.time_us and self.stream.late is Late.DROP:
                    reasons.append(Reason.LATE)
        self.reasons.append(min(reasons, default=Reason.ACCEPTED))
        if not reasons:
            self.late += release_us > row.time_us
            self.newest_us = max(self.newest_us, row.time_us)
            values = tuple(self._clean(a.lo, a.hi, v) for a, v in zip(self.stream.attributes, row.values, strict=True))
            self.accepted.append(Aligned(row.offset, row.time_us, release_us, row.object_id, values))

    def _content_reasons(self, row: Row) -> list[Reason]:
        reasons = [] if row.object_id else [Reason.MISSING_ID]
        for attribute, value in zip(self.stream.attributes, row.values, strict=True):
            if not math.isfinite(value):
                reasons.append(Reason.NOT_FINITE)
            elif attribute.out_of_range is OutOfRange.REJECT and not attribute.lo <= value <= attribute.hi:
                reasons.append(Reason.OUT_OF_RANGE)
        return reasons

    def _clean(self, lo: float, hi: float, value: float) -> float:
        return min(max(value, lo), hi) + 0.0


def source_rows(rows: Sequence[Row]) -> SourceRows:
    """Return the columns of `rows`; timestamps only if some row has one."""
    is_timed = any(row.timestamp_us >= 0 for row in rows)
    return SourceRows(
        offset=np.array([row.offset for row in rows], np.int64),
        event_time_us=np.array([row.time_us for row in rows], np.int64),
        id_bytes=np.frombuffer(bytearray(b"".join(row.object_id for row in rows)), np.uint8),
        id_ends=np.cumsum([len(row.object_id) for row in rows]).astype(np.int64),
        values=np.array([row.values for row in rows], np.float64).reshape(
            len(rows), len(rows[0].values) if rows else 0
        ),
        reason=np.array([row.given for row in rows], np.uint8),
        timestamp_us=np.array([row.timestamp_us for row in rows] if is_timed else [], np.int64),
        explain=lambda index: f"row {rows[index].offset} cannot be decoded",
        raw=lambda index: b"raw %d" % rows[index].offset,
    )


def sections(batches: Iterable[AlignedBatch], shard: int, key: tuple[int, int]) -> list[Section]:
    """Return the sections of a source partition on a shard, in order."""
    return [s for b in batches if b.shard == shard for s in b.sections if (s.stream, s.partition) == key]


def rows_of(batches: Iterable[AlignedBatch], shard: int, key: tuple[int, int], width: int) -> list[Aligned]:
    """Return the rows of a source partition on a shard, in order; `width`: values of its stream."""
    found = []
    for batch in batches:
        begins = [0, *batch.id_ends.tolist()]
        row = 0
        for section in batch.sections:
            for at in range(row, row + section.rows):
                if batch.shard == shard and (section.stream, section.partition) == key:
                    found.append(
                        Aligned(
                            int(batch.offset[at]),
                            int(batch.event_time_us[at]),
                            int(batch.release_time_us[at]),
                            batch.id_bytes[begins[at] : begins[at + 1]].tobytes(),
                            tuple(batch.values[at, :width].tolist()),
                        )
                    )
            row += section.rows
        assert row == batch.rows == len(batch.values) == len(batch.id_hash)
        assert begins[-1] == len(batch.id_bytes)
    return found
