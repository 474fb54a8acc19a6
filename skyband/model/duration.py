"""Durations as text: ``90s``, ``1h30m``, ``250ms``."""

import re

from skyband.errors import DefinitionError

__all__ = [
    "FIRST_EVENT_US",
    "LAST_EVENT_US",
    "MAX_TIME_US",
    "MIN_TIME_US",
    "format_duration",
    "parse_duration",
]

# Sentinels of the time line: far from int64's ends, so that adding a window size to them cannot wrap.
MIN_TIME_US = -(2**62)
MAX_TIME_US = 2**62
# Event times lie strictly between these (73,000 years around the epoch): no slide reaches a sentinel from there.
FIRST_EVENT_US = -(2**61)
LAST_EVENT_US = 2**61

_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|d|h|m|s)")
_LIMIT_US = 3_660 * _UNITS["d"]


def parse_duration(text: object, *, field: str = "duration") -> int:
    """Return a duration in microseconds.

    Units are d, h, m, s, ms and us, largest first, each at most once: ``90s``, ``1h30m``, ``1.5s``. A bare ``0`` is
    zero. Raises DefinitionError for anything else, for a part of a microsecond, and for more than ten years.

    >>> parse_duration("1h30m")
    5400000000
    """
    raw = str(text).strip()
    if raw == "0":
        return 0
    total, end, last = 0.0, 0, len(_UNITS)
    exact = 0
    order = list(_UNITS)
    for match in _PART.finditer(raw):
        number, unit = match.groups()
        if match.start() != end or (last < len(order) and order.index(unit) <= last):
            end = -1
            break
        end, last = match.end(), order.index(unit)
        total = float(number) * _UNITS[unit]
        whole = round(total)
        if abs(total - whole) > 1e-6:
            raise DefinitionError(f"{field} {raw!r} holds a part of a microsecond; use whole microseconds", field=field)
        exact += int(number) * _UNITS[unit] if number.isdigit() else whole
    if isinstance(text, bool) or not raw or end != len(raw):
        raise DefinitionError(f"{field} {raw!r} is no duration; write for example 250ms, 90s or 1h30m", field=field)
    if exact > _LIMIT_US:
        raise DefinitionError(f"{field} {raw!r} is longer than ten years", field=field)
    return exact


def format_duration(us: int) -> str:
    """Return the shortest text that `parse_duration` reads back as `us` microseconds.

    >>> format_duration(5_400_000_000)
    '1h30m'
    """
    if us == 0:
        return "0s"
    sign, rest, parts = ("-" if us < 0 else ""), abs(us), []
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + "".join(parts)
