"""The log that stages read and write, and clocks."""

from skyband.log.clock import Clock, ManualClock, SystemClock
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.memory import MemoryLog
from skyband.log.record_log import Committed, Consumer, Member, Position, Producer, Record, RecordLog

__all__ = [
    "Clock",
    "CommitRefusedError",
    "Committed",
    "Consumer",
    "ManualClock",
    "Member",
    "MemoryLog",
    "Position",
    "Producer",
    "Record",
    "RecordLog",
    "SystemClock",
]
