"""Dead letters of a checked chunk: where each rejected record was, and in words why."""

import math
from collections.abc import Iterator

import numpy as np

from skyband.align.checks import CheckedRows
from skyband.log.record_log import Position
from skyband.model.duration import format_duration
from skyband.model.source_rows import DeadLetter, Reason, SourceRows
from skyband.model.stream import OutOfRange, Stream

__all__ = ["dead_letters"]


def dead_letters(
    rows: SourceRows, start: int, checked: CheckedRows, stream: Stream, position: Position
) -> Iterator[DeadLetter]:
    """Yield a dead letter for each rejected row of `checked`, which holds the rows from `start` on of `rows`.

    Cost: some microseconds a rejected row, nothing for the others.
    """
    for index in np.flatnonzero(checked.reason).tolist():
        row = start + index
        reason = Reason(int(checked.reason[index]))
        yield DeadLetter(
            stream=stream.name,
            topic=position.topic,
            partition=position.partition,
            offset=int(rows.offset[row]),
            reason=reason,
            error=_error(rows, row, reason, stream),
            raw=rows.raw(row),
        )


def _error(rows: SourceRows, row: int, reason: Reason, stream: Stream) -> str:
    """Return what is wrong with a row that is rejected for `reason`."""
    time_us = int(rows.event_time_us[row])
    match reason:
        case _ if rows.reason[row]:
            return rows.explain(row) or f"record is {reason.label}"
        case Reason.BAD_TIME:
            return f"event time {time_us} us is beyond the time line"
        case Reason.MISSING_ID:
            return f"{stream.fields.object_id} is missing or empty"
        case Reason.FUTURE:
            ahead_us = time_us - int(rows.timestamp_us[row])
            return (
                f"event time {time_us} us is {format_duration(ahead_us)} past the record's own time; "
                f"max_ahead is {format_duration(stream.max_ahead_us)}"
            )
        case Reason.LATE:
            return f"event time {time_us} us is behind the partition's watermark, and the stream drops late rows"
        case _:
            return _error_of_values(rows.values[row].tolist(), stream)


def _error_of_values(values: list[float], stream: Stream) -> str:
    """Return which values are not finite, or else which are out of range."""
    named = list(zip(stream.attributes, values, strict=True))
    not_finite = [f"{a.name} is {value}" for a, value in named if not math.isfinite(value)]
    if not_finite:
        return f"{', '.join(not_finite)}: not a finite number"
    outside = [
        f"{a.name} is {value!r}, outside [{a.lo:g}, {a.hi:g}]"
        for a, value in named
        if a.out_of_range is OutOfRange.REJECT and not a.lo <= value <= a.hi
    ]
    return ", ".join(outside)
