"""``skyband demo``: a month of flights in half a minute, every answer compared with brute force."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyband.errors import DefinitionError, SkybandError

if TYPE_CHECKING:
    from rich.console import Console

    from skyband.local.demo import Demo

__all__ = ["EXAMPLES", "HELP", "SHORT", "demo"]

HELP = """Watch a month of flights in half a minute: a ranking that moves, each answer compared with brute force.

Departures and arrivals are two streams that never line up; the question is which ten flights of the last six hours are
the most delayed. Without a terminal: one line per simulated day. Needs nothing but this package; with --kafka a
Kafka and a checkout of Skyband."""

SHORT = "Watch a month of flights in half a minute."

EXAMPLES = """\b
examples:
  skyband demo
  skyband demo --seconds 50
  skyband demo --fast | tail -1
  skyband demo --kafka localhost:9092"""

FEWEST_SECONDS, MOST_SECONDS = 5, 50
_FRAMES_PER_S = 8.0
# However long a first run compiles, the show is long enough to be seen.
_LEAST_SHOW_S = 10.0


def demo(
    seconds: Annotated[
        int, typer.Option(help=f"How long it takes, {FEWEST_SECONDS} to {MOST_SECONDS}.", metavar="N")
    ] = 30,
    fast: Annotated[bool, typer.Option("--fast", help="As fast as this machine can.")] = False,
    kafka: Annotated[
        str | None,
        typer.Option(
            help="Through a real Kafka instead, in topics of its own, removed at the end.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    svg: Annotated[Path | None, typer.Option(hidden=True)] = None,
    at: Annotated[str, typer.Option(hidden=True)] = "2013-07-10 11:40",
) -> None:
    """Run the command."""
    if not FEWEST_SECONDS <= seconds <= MOST_SECONDS:
        limits = f"must be {FEWEST_SECONDS} to {MOST_SECONDS}"
        raise DefinitionError(limits, place=f"--seconds {seconds}")
    if kafka is not None:
        from skyband.cli.demo_kafka import demo_on_kafka
        from skyband.cli.kafka import kafka_settings

        demo_on_kafka(kafka_settings(kafka))
        return
    started_s = time.monotonic()
    is_screen = sys.stdout.isatty() and svg is None
    shown, console = _ready(is_screen)
    try:
        if svg is not None:
            from skyband.cli.demo_picture import record

            record(shown, svg, at, float(seconds))
        elif is_screen:
            rest_s = max(min(seconds, _LEAST_SHOW_S), seconds - (time.monotonic() - started_s))
            _on_screen(shown, console, None if fast else rest_s)
        else:
            _as_lines(shown)
    except KeyboardInterrupt:
        print(f"stopped after {shown.checked:,} evaluations, all equal to brute force", file=sys.stderr)
        raise
    if shown.difference is not None:
        raise SkybandError(f"{shown.difference}; {shown.checked:,} evaluations before it were equal")
    print(f"next:  {_next()}")
    print(f"{shown.checked:,} evaluations checked against brute force: all equal.")


def _ready(is_screen: bool) -> tuple["Demo", "Console"]:
    """Import, read and compile, saying so on a screen: on a machine's first run this takes a while."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(highlight=False)
    waiting = Progress(
        *(SpinnerColumn(), TextColumn("getting ready (a machine's first run compiles for half a minute)")),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not is_screen,
    )
    with waiting:
        waiting.add_task("ready", total=None)
        from skyband.local.demo import Demo

        made = Demo(time.perf_counter)
        made.warm_up()
    return made, console


def _on_screen(shown: "Demo", console: "Console", seconds: float | None) -> None:
    """Show frames in place, in `seconds` altogether or as they come."""
    from rich.live import Live

    from skyband.cli.demo_screen import Gauges, frame_view, title
    from skyband.local.demo import SLIDE_US, Pace, evaluation_count, frame

    count = evaluation_count(shown.rows)
    pace = None if seconds is None else Pace(count, seconds)
    console.print(title(console.width))
    began_s = next_s = time.monotonic()
    ranks: dict[str, int] = {}
    with Live(console=console, auto_refresh=False) as live:
        for number, truth, result in shown:
            due_s = began_s if pace is None else began_s + pace.shown_after_s(number)
            now_s = time.monotonic()
            if max(due_s, now_s) < next_s and number < count:
                continue
            time.sleep(max(0.0, due_s - now_s))
            now = frame(number, truth, result, ranks)
            speed = pace.evaluations_per_s(number) * SLIDE_US / 1e6 if pace else None
            remaining_s = pace.seconds - pace.shown_after_s(number) if pace else None
            gauges = Gauges(number, count, shown.late_rows, shown.rows_per_s, speed, remaining_s)
            live.update(frame_view(now, gauges, console.width), refresh=True)
            ranks, next_s = now.ranks, time.monotonic() + 1 / _FRAMES_PER_S


def _as_lines(shown: "Demo") -> None:
    """Print one line for each day of the data."""
    from skyband.cli.demo_screen import day_line, local_time
    from skyband.local.demo import Flight

    day, worst, checked = "", None, 0
    for number, truth, _ in shown:
        # An evaluation at midnight is about the day before.
        today = f"{local_time(truth.window_end - 1):%Y-%m-%d}"
        if day and today != day:
            print(day_line(day, worst, checked), flush=True)
            worst = None
        best: Flight | None = truth.best[0] if truth.best else None
        if best and (worst is None or best.score > worst.score):
            worst = best
        day, checked = today, number
    if day and shown.difference is None:
        print(day_line(day, worst, checked), flush=True)


def _next() -> str:
    """Return the command to go on with, with paths that are there."""
    from skyband.local.demo import DEFINITIONS, FLIGHTS

    definitions = Path("examples", DEFINITIONS.name)
    if not definitions.is_file():
        definitions = DEFINITIONS
    paths = [_short(path) for path in (definitions, FLIGHTS)]
    return f"skyband replay --definitions {paths[0]} --input {paths[1]}"


def _short(path: Path) -> str:
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
