"""What `produce` shows: how far it is, on a terminal, and a summary at the end."""

import json
import sys
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from services.produce.events import ROWS_SENT
from services.produce.writer import Written
from skyband.cli.figures import as_time, count

__all__ = ["ProduceScreen"]


class ProduceScreen:
    """Shows what has been written on stderr while the context lasts, if that is a terminal; `clock` gives seconds."""

    def __init__(self, written: Written, output: str, clock: Callable[[], float]) -> None:
        self._written = written
        self._is_json = output == "json" or (output == "auto" and not sys.stdout.isatty())
        self._clock = clock
        self._began = self._ended = clock()
        self._before = (self._began, 0)
        self._rate = 0.0
        console = Console(stderr=True, highlight=False)
        self._live = (
            Live(get_renderable=self.line, console=console, refresh_per_second=4, transient=True)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> "ProduceScreen":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def line(self) -> Text:
        """Return how far it is."""
        now, rows = self._clock(), self._written.rows
        since, before = self._before
        if now - since >= 1.0:
            self._rate = (rows - before) / (now - since)
            self._before = (now, rows)
        parts = [count(rows, "row"), f"{self._rate:,.0f} rows/s"]
        if self._written.event_us is not None:
            parts.append(f"event time {as_time(self._written.event_us)}")
        if self._written.skipped:
            parts.append(f"{self._written.skipped:,} skipped")
        return Text(" · ".join(parts), no_wrap=True)

    def summarize(self, *, not_stored: int) -> None:
        """Write what has been written: for a program to stdout, for a person to stderr."""
        seconds = self._clock() - self._began
        written = self._written
        if self._is_json:
            document = {
                "event": ROWS_SENT,
                "rows": written.rows,
                "skipped": written.skipped,
                "not_stored": not_stored,
                "seconds": round(seconds, 3),
                "streams": written.by_stream,
                "event_time": written.event_us,
            }
            sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
            sys.stdout.flush()
            return
        rate = f" ({written.rows / seconds:,.0f} rows/s)" if seconds > 0 else ""
        lines = [f"sent     {count(written.rows, 'row')} in {seconds:.1f} s{rate}"]
        lines += [f"         {name} {rows:,}" for name, rows in written.by_stream.items()]
        if written.event_us is not None:
            lines.append(f"up to    {as_time(written.event_us)} (event time of the last row)")
        if written.skipped:
            lines.append(f"skipped  {count(written.skipped, 'row')} without id, time or a finite value")
        if not_stored:
            lines.append(f"lost     at least {count(not_stored, 'record')}: see below")
        sys.stderr.write("\n".join(lines) + "\n")
