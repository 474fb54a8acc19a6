"""How far long work is, as one line on stderr: renewed on a terminal, a new one now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from skyband.cli.figures import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WorkProgress", "tasks_watched"]

# A log of an hour's work stays readable, and nobody takes the job for dead.
_PLAIN_EVERY_S = 10.0
_RATE_OVER_S = 1.0
_LOOK_S = 0.5


class WorkProgress:
    """The progress of one piece of work, shown while the context lasts; `clock` gives seconds.

    `rows` so far (initially 0; not shown without `has_rows`), `share` of all work (0 to 1, None while it is not known).
    Its last line stays only where lines are plain. May be told from any thread.
    """

    def __init__(
        self,
        work: str,
        *,
        has_rows: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.work = work
        self._has_rows = has_rows
        self.rows = 0
        self.share: float | None = None
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._since = self._told = clock()
        self._rows_since = 0
        self._rate = 0.0
        console = Console(file=self._stream, highlight=False)
        self._live = (
            Live(get_renderable=self._text, console=console, refresh_per_second=4, transient=True)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
        elif kind is None:
            self._tell()

    def update(self, rows: int, share: float | None = None) -> None:
        """Take in how many rows are done in all, and which share of the work, if known."""
        self.rows, self.share = rows, share
        if self._live is None and self._clock() - self._told >= _PLAIN_EVERY_S:
            self._tell()

    def line(self) -> str:
        """Return how far it is: ``archive: 1,204,000 rows · 85,000 rows/s · 43 %``."""
        passed_s = self._clock() - self._since
        if passed_s >= _RATE_OVER_S:
            self._rate = (self.rows - self._rows_since) / passed_s
            self._since, self._rows_since = self._clock(), self.rows
        parts = [count(self.rows, "row"), f"{self._rate:,.0f} rows/s"] if self._has_rows else []
        if self.share is not None:
            parts.append(f"{100 * self.share:.0f} %")
        return f"{self.work}: {' · '.join(parts)}" if parts else self.work

    def _text(self) -> Text:
        return Text(self.line(), no_wrap=True)

    def _tell(self) -> None:
        self._told = self._clock()
        self._stream.write(self.line() + "\n")
        self._stream.flush()


@contextmanager
def tasks_watched(session: SparkSession, told: Callable[[int, int], None]) -> Iterator[None]:
    """Tell, while the context lasts, how many tasks of the stage that runs are done, and of how many."""
    stop = threading.Event()
    tracker = session.sparkContext.statusTracker()

    def look() -> None:
        while not stop.wait(_LOOK_S):
            stages = [info for one in tracker.getActiveStageIds() if (info := tracker.getStageInfo(one)) is not None]
            if stages:
                told(stages[-1].numCompletedTasks, stages[-1].numTasks)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
