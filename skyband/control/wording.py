"""Numbers and times as people read them."""

from datetime import UTC, datetime, tzinfo

from skyband.model.duration import MAX_TIME_US, MIN_TIME_US

__all__ = ["count", "instant", "lines", "plural", "size", "span"]

_DAY_US = 86_400_000_000


def span(us: int) -> str:
    """Return a length of time, rounded: ``0.8 s``, ``48 s``, ``5 min``, ``3 h``, ``2 d``."""
    seconds = max(0, us) / 1e6
    if seconds < 10:
        return f"{seconds:.1f} s"
    for limit, unit, length in ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600)):
        if seconds < limit:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} d"


def instant(us: int, now_us: int, zone: tzinfo = UTC) -> str:
    """Return a time in `zone` with its offset, with its date if that is not within a day of now."""
    if us <= MIN_TIME_US or us >= MAX_TIME_US:
        return "the beginning" if us <= MIN_TIME_US else "the end"
    try:
        when = datetime.fromtimestamp(us // 1_000_000, zone)
    except (OverflowError, ValueError, OSError):
        # Streams may count time from anywhere.
        return f"{us:,} us"
    form = "%H:%M:%S" if abs(us - now_us) < _DAY_US else "%Y-%m-%d %H:%M:%S"
    offset = when.strftime("%z")
    return when.strftime(form) + ("Z" if offset == "+0000" else f"{offset[:3]}:{offset[3:]}")


def count(n: int) -> str:
    """Return a number with thousands separators, in millions from ten million on."""
    return f"{n:,}" if abs(n) < 10_000_000 else f"{n / 1e6:,.1f} M"


def plural(n: int, one: str, many: str = "") -> str:
    """Return ``1 row``, ``2 rows``."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def size(n: int) -> str:
    """Return a number of bytes: ``9.1 MB``."""
    if n < 1_000:
        return f"{n} B"
    amount = float(n)
    for unit in ("kB", "MB", "GB"):
        amount /= 1_000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1_000:,.1f} TB"


def lines(rows: list[tuple[str, ...]], indent: str = "  ", gap: str = "  ") -> list[str]:
    """Return rows of cells as lines whose columns stand under one another."""
    widths = [
        max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(max(map(len, rows), default=0))
    ]
    return [indent + gap.join(cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip() for row in rows]
