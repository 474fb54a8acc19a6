"""Decoded records in columns, and how columns become the rows of a source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.runtime.payloads import Payloads, pick
from services.runtime.source_times import UNIT_SCALES
from skyband.model.source_rows import Reason, SourceRows
from skyband.model.stream import Stream, TimeUnit

__all__ = ["Columns", "Roles", "in_order", "source_rows"]


@dataclass(frozen=True, slots=True)
class Roles:
    """Which fields of a record are what: `event_time` None means the record's timestamp; `scale`: see source_times."""

    object_id: str
    event_time: str | None
    values: tuple[str, ...]
    scale: int

    @classmethod
    def of(cls, stream: Stream) -> "Roles":
        """Return the roles that a stream's definition gives; an object stream has a field for each attribute."""
        fields = stream.fields
        return cls(
            object_id=fields.object_id,
            event_time=None if fields.time_unit is TimeUnit.KAFKA else fields.event_time,
            values=tuple(a.name for a in stream.attributes) if stream.is_object_stream else (fields.value,),
            scale=UNIT_SCALES[fields.time_unit],
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All fields that are read, one that has two roles twice."""
        times = () if self.event_time is None else (self.event_time,)
        return (self.object_id, *times, *self.values)


@dataclass(frozen=True, slots=True)
class Columns:
    """Decoded records: time_us int64[n], an arena of ids with int64[n] ends, values float64[n, d], reason uint8[n]."""

    time_us: npt.NDArray[np.int64]
    id_bytes: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    reason: npt.NDArray[np.uint8]

    @classmethod
    def refused(cls, count: int, width: int, reason: Reason) -> "Columns":
        """Return `count` records that cannot be used."""
        return cls(
            time_us=np.zeros(count, np.int64),
            id_bytes=np.zeros(0, np.uint8),
            id_ends=np.zeros(count, np.int64),
            values=np.full((count, width), np.nan),
            reason=np.full(count, reason, np.uint8),
        )


def in_order(parts: Sequence[tuple[npt.NDArray[np.int64], Columns]]) -> Columns:
    """Return records that were decoded in parts as one, the rows of each part at the indexes beside it."""
    if len(parts) == 1:
        return parts[0][1]
    places = np.concatenate([where for where, _ in parts])
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    lengths = np.concatenate([np.diff(columns.id_ends, prepend=0) for _, columns in parts])
    arena = np.concatenate([columns.id_bytes for _, columns in parts])
    id_bytes, id_ends = pick(arena, np.cumsum(lengths), order)
    return Columns(
        time_us=np.concatenate([columns.time_us for _, columns in parts])[order],
        id_bytes=id_bytes,
        id_ends=id_ends,
        values=np.concatenate([columns.values for _, columns in parts])[order],
        reason=np.concatenate([columns.reason for _, columns in parts])[order],
    )


def source_rows(
    roles: Roles,
    offsets: npt.NDArray[np.int64],
    timestamps_us: npt.NDArray[np.int64],
    values: Payloads,
    columns: Columns,
    explain: Callable[[int], str],
) -> SourceRows:
    """Return columns as rows of a source; where the record's timestamp is the event time, it is taken."""
    time_us, reason = columns.time_us, columns.reason
    if roles.event_time is None:
        # A timestamp below 0 is Kafka's way to say that there is none.
        time_us = timestamps_us.copy()
        reason = np.where((reason == 0) & (timestamps_us < 0), np.uint8(Reason.BAD_TIME), reason)

    def why(index: int) -> str:
        if reason[index] == 0:
            return ""
        if reason[index] == Reason.BAD_TIME and roles.event_time is None:
            return "record has no timestamp, which is the event time of this stream"
        return "record has no value" if values[index] is None else explain(index)

    return SourceRows(
        offset=offsets,
        event_time_us=time_us,
        id_bytes=columns.id_bytes,
        id_ends=columns.id_ends,
        values=columns.values,
        reason=reason,
        timestamp_us=timestamps_us,
        explain=why,
        raw=lambda index: values[index] or b"",
    )
