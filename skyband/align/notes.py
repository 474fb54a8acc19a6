"""What is committed with an offset: the times that the rows below it have made.

::

    offset 42, note {"watermark_us":1700000000000000,"newest_us":1700000000500000}

Whoever takes the source partition over goes on from the offset with these times, and gives the rows from there on the
release times of an unbroken run. An empty note means that no time is known: so begins a generation.
"""

import json

from skyband.align.source import SourceStart
from skyband.errors import LogError
from skyband.log.record_log import Committed, Position

__all__ = ["note_of", "start_of"]


def note_of(start: SourceStart) -> str:
    """Return the note to commit with the offset of `start`."""
    times = {"watermark_us": start.watermark_us, "newest_us": start.newest_us}
    return json.dumps(times, separators=(",", ":"))


def start_of(position: Position, committed: Committed) -> SourceStart:
    """Return where reading of `position` resumes; LogError if the note is not one of align."""
    if not committed.note:
        return SourceStart(committed.offset)
    try:
        times = json.loads(committed.note)
        return SourceStart(committed.offset, int(times["watermark_us"]), int(times["newest_us"]))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise LogError(
            f"topic {position.topic!r}, partition {position.partition}: the note {committed.note!r}, committed with "
            f"offset {committed.offset}, does not say its times; begin a new generation of the group"
        ) from error
