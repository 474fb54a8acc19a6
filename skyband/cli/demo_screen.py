"""The demo on a terminal: one frame as rich renderables, and as plain lines where there is no terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from skyband.local.demo import Flight, Frame, K, Line

__all__ = ["NEW_YORK", "Gauges", "day_line", "frame_view", "local_time", "title"]

# Summer time, which holds for the whole of the demo's month.
NEW_YORK = timezone(timedelta(hours=-4), "New York")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TITLE = (
    "Skyband demo",
    "flights leaving New York, July 2013",
    "two streams that never line up (departures, arrivals)",
)
_QUESTION = (
    "question: the 10 most delayed flights of the last 6 hours",
    "score = departure_delay + 2*arrival_delay",
)


@dataclass(frozen=True, slots=True)
class Gauges:
    """What the screen shows besides the frame. `speed` is event time per time; `remaining_s` None: unknown."""

    checked: int
    of: int
    late_rows: int
    rows_per_s: float
    speed: float | None
    remaining_s: float | None


def local_time(time_us: int) -> datetime:
    """Return a time of the data as clocks in New York showed it."""
    return (_EPOCH + timedelta(microseconds=time_us)).astimezone(NEW_YORK)


def title(width: int) -> Text:
    """Return what the demo shows and what it asks."""
    head, question = _fitted(_TITLE, width), _fitted(_QUESTION, width)
    text = Text(head, no_wrap=True)
    text.stylize("bold", 0, len(_TITLE[0]))
    return text.append("\n" + question, "dim")


def frame_view(frame: Frame, gauges: Gauges, width: int) -> RenderableType:
    """Return a frame; it has the same height whatever it shows."""
    return Group(
        Text(),
        _head(frame, gauges, width),
        _ranking(frame, width),
        Text(),
        _progress(gauges, width),
        Text(f" {gauges.checked:,} of {gauges.of:,} evaluations checked against brute force: all equal so far", "dim"),
    )


def _head(frame: Frame, gauges: Gauges, width: int) -> Text:
    start, end = local_time(frame.window_start), local_time(frame.window_end)
    now = f"{end:%m-%d %H:%M} ▸ window {start:%H:%M} – {end:%H:%M}"
    parts = (
        now,
        f"{frame.flights:,} flights in the window",
        f"{frame.in_the_air:,} still in the air",
        f"{gauges.late_rows:,} late rows",
        f"{gauges.rows_per_s:,.0f} rows/s",
    )
    text = Text(_fitted(parts, width, indent=1), no_wrap=True)
    text.stylize("bold cyan", 1, 1 + len(now))
    return text


def _ranking(frame: Frame, width: int) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2 if width >= 84 else 1, 0, 0), pad_edge=True)
    table.add_column("#", justify="right", width=3)
    table.add_column("move", width=4)
    table.add_column("flight", width=20, no_wrap=True)
    table.add_column("score", justify="right", width=5)
    table.add_column("departure", justify="right", width=9)
    table.add_column("arrival", justify="right", width=10)
    table.add_column("", width=16)
    for line in frame.lines:
        flight = line.flight
        score = f"{flight.score:.0f}{'…' if line.in_the_air else ' '}"
        reach = f"could reach {line.could_reach:.0f}" if line.could_reach is not None else ""
        arrival = Text("in the air", "cyan") if line.in_the_air else Text(_delay(flight.arrival))
        table.add_row(
            str(line.rank), move(line), flight.flight, score, _delay(flight.departure), arrival, Text(reach, "cyan")
        )
    for _ in range(K - len(frame.lines)):
        table.add_row()
    return table


def move(line: Line) -> Text:
    """Return how a flight moved: ``▲ 3``, ``▼ 1``, ``new`` or ``=``."""
    if line.moved is None:
        return Text("new", "yellow")
    if line.moved == 0:
        return Text("=", "dim")
    return Text(f"▲ {line.moved}", "green") if line.moved > 0 else Text(f"▼ {-line.moved}", "red")


def _delay(minutes: float | None) -> str:
    return "–" if minutes is None else f"+{minutes:.0f}"


def _progress(gauges: Gauges, width: int) -> Table:
    part = gauges.checked / max(1, gauges.of)
    words = [f"{part:4.0%}"]
    if gauges.speed is not None:
        words.append(f"event time ×{gauges.speed:,.0f}")
    if gauges.remaining_s is not None:
        words.append(f"ends in {gauges.remaining_s:.0f} s")
    figures = Text("   ".join(words), no_wrap=True)
    grid = Table.grid(padding=(0, 1))
    room = max(10, min(width, 110) - 44)
    grid.add_row("", ProgressBar(total=max(1, gauges.of), completed=gauges.checked, width=room), figures)
    return grid


def _fitted(parts: Sequence[str], width: int, indent: int = 0) -> str:
    """Return parts joined by dots, on as many lines as `width` needs, broken between parts only."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(" " * indent + part)
    return "\n".join(lines)


def day_line(day: str, worst: Flight | None, evaluations: int) -> str:
    """Return one simulated day in one line: its most delayed flight, and how many evaluations were equal so far."""
    found = "no flight" if worst is None else f"{worst.flight:<20} {worst.score:5.0f}"
    delays = "" if worst is None else f"  departure {_delay(worst.departure):>5}  arrival {_delay(worst.arrival):>5}"
    return f"{day}  most delayed {found}{delays}   {evaluations:5,} evaluations equal"
