"""Numbers and times as people read them."""

from datetime import UTC, datetime, timedelta

__all__ = ["as_time", "bytes_of", "count", "end_of", "joined", "moment", "moment_of", "score", "span"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things: ``1 row``, ``1,204 rows``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def bytes_of(size: float) -> str:
    """Return a size with its unit: ``12.3 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def score(value: float) -> str:
    """Return a score of a table: six digits are enough to see the order; whole numbers without a point."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else f"{value:.6g}"


def as_time(time_us: int) -> str:
    """Return an event time on this machine's clock with its offset; a number where the calendar ends."""
    try:
        moment = (_EPOCH + timedelta(microseconds=time_us)).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{time_us:,} us"
    return moment.isoformat(sep=" ", timespec="auto")


def end_of(window_end: int, in_rows: bool) -> str:
    """Return where a window ends: a time, or a row number."""
    return f"row {window_end:,}" if in_rows else as_time(window_end)


def joined(words: list[str]) -> str:
    """Return words as a list in a sentence: ``a, b or c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def moment(time_us: int, now_us: int, *, offset: bool = True) -> str:
    """Return a time on this machine's clock, to the second; with its date if it is not within a day of now.

    `offset`: whether the clock's is told; a line that tells it once need not tell it again.
    """
    try:
        when = (_EPOCH + timedelta(microseconds=time_us)).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{time_us:,} us"
    text = (when if offset else when.replace(tzinfo=None)).isoformat(sep=" ", timespec="seconds")
    return text if abs(time_us - now_us) >= _DAY_US else text[11:]


def moment_of(window_end: int, in_rows: bool, now_us: int, *, offset: bool = True) -> str:
    """Return where a window ends, shortly: a time as `moment` writes it, or a row number."""
    return f"row {window_end:,}" if in_rows else moment(window_end, now_us, offset=offset)


def span(seconds: float) -> str:
    """Return a length of time, rounded: ``0.8 s``, ``48 s``, ``5 min``, ``3 h``, ``2 d``."""
    seconds = max(0.0, seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    for limit, unit, length in ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600)):
        if seconds < limit:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} d"
