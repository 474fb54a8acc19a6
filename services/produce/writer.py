"""Writes rows to source topics, each under its object's key, as fast as the pace and the broker allow."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from services.produce.encode import make_encoder
from services.produce.interleave import Row
from services.produce.pace import Pace
from skyband.errors import LogError
from skyband.model.group import Group

__all__ = ["Writes", "Written", "not_stored", "write_rows"]

# A wait shorter than this is not worth giving the processor away.
_LEAST_WAIT_S = 0.002
# Waiting, news of the broker is heard at least so often.
_LONGEST_WAIT_S = 0.5


class Writes(Protocol):
    """What rows are written with; see Sender."""

    def write(self, topic: str, key: bytes, value: bytes) -> None:
        """Append a record."""

    def serve(self, timeout_s: float) -> None:
        """Raise what went wrong meanwhile."""


@dataclass(slots=True)
class Written:
    """What has been written so far: rows by stream, rows that were not (they have no id, time or finite value)."""

    rows: int = 0
    skipped: int = 0
    event_us: int | None = None
    by_stream: dict[str, int] = field(default_factory=dict)


def write_rows(
    sender: Writes,
    group: Group,
    rows: Iterable[Row],
    pace: Pace,
    stop: threading.Event,
    written: Written,
) -> None:
    """Write all rows, or until `stop`; `written` grows meanwhile. Raises LogError if the broker takes no more.

    Cost: 5–10 µs a row, most of it the encoder's and the client's.
    """
    encoders = [make_encoder(stream) for stream in group.streams]
    topics = [stream.topic or stream.name for stream in group.streams]
    names = [stream.name for stream in group.streams]
    is_paced = bool(pace.rate or pace.speed)
    for row in rows:
        if row.values is None:
            written.skipped += 1
            continue
        if is_paced and not _is_due(pace, written.rows, row.event_us, stop, sender):
            return
        if stop.is_set():
            return
        sender.write(topics[row.stream], row.key, encoders[row.stream](row.key.decode(), row.event_us, row.values))
        written.rows += 1
        written.event_us = row.event_us
        name = names[row.stream]
        written.by_stream[name] = written.by_stream.get(name, 0) + 1


def _is_due(pace: Pace, number: int, event_us: int, stop: threading.Event, sender: Writes) -> bool:
    """Wait until a row is due; return False if `stop` came before."""
    while (wait_s := pace.wait_s(number, event_us)) > _LEAST_WAIT_S:
        if stop.wait(min(wait_s, _LONGEST_WAIT_S)):
            return False
        sender.serve(0.0)
    return True


def not_stored(left: int) -> LogError:
    """Return the error for records whose fate is not known."""
    return LogError(f"{left:,} records were not stored in time; see whether the broker is well, and send them again")
