"""Numbers and times as people read them."""

from datetime import UTC, datetime, timedelta

__all__ = ["as_time", "bytes_of", "count", "end_of", "joined", "score"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
