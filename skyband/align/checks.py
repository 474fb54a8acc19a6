"""Which rows of a chunk are used, when they count, and where they go: one pass over decoded columns.

Time of one partition with max_delay 2, row after row::

    event time          1    2    9    6    12
    watermark before    -   -1    0    7     7
    release time        1    2    9    7    12       late: 6, released at 7

The reason of a rejected row is the least `Reason` that applies, over all its attributes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.model.duration import FIRST_EVENT_US, LAST_EVENT_US
from skyband.model.source_rows import Reason, SourceRows
from skyband.model.stream import Late, OutOfRange, Stream
from skyband.structures.hashing import hash_id, shard_of

__all__ = ["CheckedRows", "StreamRules", "check_rows"]

_BAD_TIME = int(Reason.BAD_TIME)
_MISSING_ID = int(Reason.MISSING_ID)
_NOT_FINITE = int(Reason.NOT_FINITE)
_OUT_OF_RANGE = int(Reason.OUT_OF_RANGE)
_FUTURE = int(Reason.FUTURE)
_LATE = int(Reason.LATE)
_NONE = int(max(Reason)) + 1


@dataclass(frozen=True, slots=True)
class StreamRules:
    """What a stream's definition asks of each row, as the kernels read it: float64[d] bounds, bool[d] clamp."""

    lo: npt.NDArray[np.float64]
    hi: npt.NDArray[np.float64]
    clamp: npt.NDArray[np.bool_]
    max_delay_us: int
    max_ahead_us: int
    is_late_dropped: bool

    @classmethod
    def of(cls, stream: Stream) -> "StreamRules":
        """Return the rules of `stream`."""
        return cls(
            lo=np.array([a.lo for a in stream.attributes], np.float64),
            hi=np.array([a.hi for a in stream.attributes], np.float64),
            clamp=np.array([a.out_of_range is OutOfRange.CLAMP for a in stream.attributes], np.bool_),
            max_delay_us=stream.max_delay_us,
            max_ahead_us=stream.max_ahead_us,
            is_late_dropped=stream.late is Late.DROP,
        )


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Consecutive rows of one source partition after the checks, not yet moved.

    For n rows, used or not: `offset`, `event_time_us`, `id_ends`, `values` as decoded (`id_ends` into the whole arena,
    the first id begins at `id_start`), `reason` uint8[n], `release_us` int64[n], `shard` int32[n] and `id_hash`
    uint64[n] (meaningless where a row is rejected). Per shard: `shard_rows`, `shard_bytes` int64[shards] of used rows.
    `watermark_us` and `newest_us` are as of behind the last row; `usable` rows had a usable time, `late` ones are used.
    """

    offset: npt.NDArray[np.int64]
    event_time_us: npt.NDArray[np.int64]
    id_bytes: npt.NDArray[np.uint8]
    id_start: int
    id_ends: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    reason: npt.NDArray[np.uint8]
    release_us: npt.NDArray[np.int64]
    shard: npt.NDArray[np.int32]
    id_hash: npt.NDArray[np.uint64]
    shard_rows: npt.NDArray[np.int64]
    shard_bytes: npt.NDArray[np.int64]
    watermark_us: int
    newest_us: int
    usable: int
    late: int


@njit(cache=True, nogil=True, error_model="numpy")
def _reason_of_values(
    values: npt.NDArray[np.float64],
    row: int,
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
    clamp: npt.NDArray[np.bool_],
) -> int:
    """Return the least reason to reject the values of `row`, or _NONE."""
    reason = _NONE
    for column in range(len(lo)):
        value = values[row, column]
        if not math.isfinite(value):
            return _NOT_FINITE
        if (value < lo[column] or value > hi[column]) and not clamp[column]:
            reason = _OUT_OF_RANGE
    return reason


@njit(cache=True, nogil=True, error_model="numpy")
def _check_rows(
    event_time_us: npt.NDArray[np.int64],
    timestamp_us: npt.NDArray[np.int64],
    id_bytes: npt.NDArray[np.uint8],
    id_start: int,
    id_ends: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    given: npt.NDArray[np.uint8],
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
    clamp: npt.NDArray[np.bool_],
    max_delay_us: int,
    max_ahead_us: int,
    is_late_dropped: bool,
    watermark_us: int,
    newest_us: int,
    reason: npt.NDArray[np.uint8],
    release_us: npt.NDArray[np.int64],
    shard: npt.NDArray[np.int32],
    id_hash: npt.NDArray[np.uint64],
    shard_rows: npt.NDArray[np.int64],
    shard_bytes: npt.NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Fill `reason` … `id_hash` and add to `shard_rows`, `shard_bytes`; return watermark, newest, usable, late.

    Cost: one pass, two hashes a used row.
    """
    shards = len(shard_rows)
    is_timed = len(timestamp_us) > 0
    usable = 0
    late = 0
    start = id_start
    for row in range(len(event_time_us)):
        stop = id_ends[row]
        time_us = event_time_us[row]
        why: Any = np.int64(given[row])
        if why == 0:
            # The ends of the time line are sentinels: a row there would finish its partition, one near them confuse it.
            why = _NONE if FIRST_EVENT_US < time_us < LAST_EVENT_US else _BAD_TIME
        if why > _BAD_TIME:
            if stop <= start:
                why = min(why, _MISSING_ID)
            why = min(why, _reason_of_values(values, row, lo, hi, clamp))
            # A timestamp below 0 is Kafka's way to say that there is none.
            if is_timed and timestamp_us[row] >= 0 and time_us - max_ahead_us > timestamp_us[row]:
                why = min(why, _FUTURE)
            else:
                usable += 1
                release = max(time_us, watermark_us)
                watermark_us = max(watermark_us, time_us - max_delay_us)
                if why == _NONE:
                    if release > time_us and is_late_dropped:
                        why = _LATE
                    else:
                        why = 0
                        late += release > time_us
                        newest_us = max(newest_us, time_us)
                        at = shard_of(id_bytes, start, stop, shards)
                        release_us[row] = release
                        shard[row] = at
                        id_hash[row] = hash_id(id_bytes, start, stop)
                        shard_rows[at] += 1
                        shard_bytes[at] += stop - start
        reason[row] = why
        start = stop
    return watermark_us, newest_us, usable, late


def check_rows(
    rows: SourceRows, start: int, stop: int, rules: StreamRules, shards: int, watermark_us: int, newest_us: int
) -> CheckedRows:
    """Check rows [start, stop) of a chunk; the partition's watermark and newest time are as of just before them.

    Cost: about 80 ns a row and 15 us a call; nothing is copied.
    """
    count = stop - start
    given = rows.reason[start:stop]
    id_start = int(rows.id_ends[start - 1]) if start else 0
    reason = np.empty(count, np.uint8)
    release_us = np.empty(count, np.int64)
    shard = np.empty(count, np.int32)
    id_hash = np.empty(count, np.uint64)
    shard_rows = np.zeros(shards, np.int64)
    shard_bytes = np.zeros(shards, np.int64)
    watermark_us, newest_us, usable, late = _check_rows(
        rows.event_time_us[start:stop],
        rows.timestamp_us[start:stop] if len(rows.timestamp_us) else rows.timestamp_us,
        rows.id_bytes,
        id_start,
        rows.id_ends[start:stop],
        rows.values[start:stop],
        given,
        rules.lo,
        rules.hi,
        rules.clamp,
        rules.max_delay_us,
        rules.max_ahead_us,
        rules.is_late_dropped,
        watermark_us,
        newest_us,
        reason,
        release_us,
        shard,
        id_hash,
        shard_rows,
        shard_bytes,
    )
    return CheckedRows(
        offset=rows.offset[start:stop],
        event_time_us=rows.event_time_us[start:stop],
        id_bytes=rows.id_bytes,
        id_start=id_start,
        id_ends=rows.id_ends[start:stop],
        values=rows.values[start:stop],
        reason=reason,
        release_us=release_us,
        shard=shard,
        id_hash=id_hash,
        shard_rows=shard_rows,
        shard_bytes=shard_bytes,
        watermark_us=int(watermark_us),
        newest_us=int(newest_us),
        usable=int(usable),
        late=int(late),
    )
