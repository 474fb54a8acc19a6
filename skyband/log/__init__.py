"""The log that stages read and write, and clocks."""

from skyband.log.clock import Clock, ManualClock, SystemClock
from skyband.log.memory import MemoryLog
from skyband.log.record_log import Consumer, Position, Producer, Record, RecordLog

__all__ = [
    "Clock",
    "Consumer",
    "ManualClock",
    "MemoryLog",
    "Position",
    "Producer",
    "Record",
    "RecordLog",
    "SystemClock",
]
