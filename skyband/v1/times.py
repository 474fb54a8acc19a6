"""Durations and timestamps of messages, exact to the microsecond."""

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from skyband.errors import DefinitionError

__all__ = ["duration", "duration_us", "timestamp", "timestamp_us"]

_MICRO = 1_000_000
_NANO = 1_000_000_000
_LONGEST_S = 3_660 * 86_400
# Timestamp reaches from the year 1 to the end of the year 9999.
_FIRST_S = -62_135_596_800
_LAST_S = 253_402_300_799


def duration(us: int) -> Duration:
    """Return a duration that is not negative as a message."""
    seconds, micros = divmod(us, _MICRO)
    return Duration(seconds=seconds, nanos=micros * 1_000)


def duration_us(message: Duration, field: str) -> int:
    """Return a duration in microseconds.

    Raises DefinitionError, with `field`, for one that is malformed, negative, longer than ten years, or that holds a
    part of a microsecond.
    """
    seconds, nanos = message.seconds, message.nanos
    if seconds < 0 or nanos < 0:
        raise DefinitionError(f"{field} must not be negative", field=field)
    if nanos >= _NANO:
        raise DefinitionError(f"{field} has nanos {nanos:,}, a whole second or more; count it as seconds", field=field)
    if seconds >= _LONGEST_S and (seconds > _LONGEST_S or nanos):
        raise DefinitionError(f"{field} is longer than ten years; use a shorter duration", field=field)
    return seconds * _MICRO + _micros(nanos, field)


def timestamp(us: int) -> Timestamp:
    """Return a time as a message."""
    seconds, micros = divmod(us, _MICRO)
    return Timestamp(seconds=seconds, nanos=micros * 1_000)


def timestamp_us(message: Timestamp, field: str) -> int:
    """Return a time in microseconds; raise DefinitionError with `field` for one that is malformed or too fine."""
    if not _FIRST_S <= message.seconds <= _LAST_S or not 0 <= message.nanos < _NANO:
        raise DefinitionError(
            f"{field} is no time between the years 1 and 9999; mend its seconds or nanos", field=field
        )
    return message.seconds * _MICRO + _micros(message.nanos, field)


def _micros(nanos: int, field: str) -> int:
    micros, part = divmod(nanos, 1_000)
    if part:
        raise DefinitionError(f"{field} holds a part of a microsecond; use whole microseconds", field=field)
    return micros
