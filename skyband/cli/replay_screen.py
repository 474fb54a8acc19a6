"""What a replay says on stderr: how far it is while it runs, and what it read and found at the end."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from skyband.cli.figures import bytes_of, count
from skyband.local.replay import Replay, ReplaySummary
from skyband.model.source_rows import DeadLetter, Reason

__all__ = ["ReplayScreen", "summary_lines"]

_NEXT_CHECK = "the same with --check compares every evaluation with brute force"
_NEXT_WRONG = "mend the rejected rows, or widen lo and hi (out_of_range: clamp) in the definitions"


class ReplayScreen:
    """The progress of one replay, shown while the context lasts if `is_shown`, and its summary."""

    def __init__(self, *, is_shown: bool) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True, highlight=False),
            transient=True,
            disable=not is_shown,
        )
        self._task = self._bar.add_task("preparing", total=None, figures="(a first run compiles for a while)")
        self._started_s = self._first_chunk_s = time.perf_counter()
        self._stopped_s = self._started_s
        self._replay: Replay | None = None

    def __enter__(self) -> "ReplayScreen":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopped_s = time.perf_counter()
        self._bar.stop()

    def watch(self, replay: Replay) -> None:
        """Show the progress of `replay` from now on."""
        self._replay = replay
        replay.on_chunk = self._update
        self._started_s = time.perf_counter()

    def _update(self) -> None:
        if self._replay is None or self._bar.disable:
            return
        source, rows = self._replay.source, self._replay.summary.rows
        read, total = source.read_bytes, source.total_bytes
        rate = rows / max(1e-9, time.perf_counter() - self._started_s)
        figures = f"{bytes_of(read)} of {bytes_of(total)} · {rate:,.0f} rows/s" if total else f"{rate:,.0f} rows/s"
        self._bar.update(self._task, description="replaying", total=total, completed=read, figures=figures)

    def summarize(self, checked: int | None) -> None:
        """Print what the replay read and found; `checked` evaluations were equal to brute force, if compared."""
        if self._replay is None:
            return
        for name, text in summary_lines(self._replay.summary, self._stopped_s - self._started_s, checked):
            self._console.print(Text.assemble((f"{name:<10}", "dim" if name != "rejected" else "yellow"), text))


def summary_lines(summary: ReplaySummary, seconds: float, checked: int | None) -> list[tuple[str, str]]:
    """Return the summary as (name, text) lines."""
    rate = f"{summary.rows / seconds:,.0f} rows/s" if checked is None and seconds > 0 else "comparison included"
    lines = [
        ("read", f"{count(summary.rows, 'row')} in {seconds:.1f} s ({rate})"),
        ("accepted", f"{count(summary.accepted, 'row')}, {summary.late:,} of them late"),
    ]
    rejected = sum(summary.rejected.values())
    if rejected:
        reasons = [f"{number:,} {reason}" for reason, number in summary.rejected.most_common()]
        lines.append(("rejected", f"{count(rejected, 'row')}: {', '.join(reasons)}"))
        lines += [("", text) for text in _examples(summary)]
    lines.append(("results", _results(summary)))
    lines += [("recall", f"{name}: {found.describe()}") for name, found in summary.approximations.items()]
    if checked is not None:
        lines.append(("checked", f"{count(checked, 'evaluation')} against brute force: all equal"))
    can_check = checked is None and not summary.approximations
    lines.append(("next", _NEXT_WRONG if rejected else _NEXT_CHECK if can_check else "skyband replay --help"))
    return lines


def _examples(summary: ReplaySummary) -> list[str]:
    """Return in words the first rejected row of each reason."""
    firsts: dict[Reason, DeadLetter] = {}
    for letter in summary.examples:
        firsts.setdefault(letter.reason, letter)
    return [
        f"{letter.reason.label}: {letter.error} (stream {letter.stream}, input {letter.partition + 1}, "
        f"its row {letter.offset + 1:,})"
        for letter in firsts.values()
    ]


def _results(summary: ReplaySummary) -> str:
    if not summary.accepted:
        return "none, because no row was accepted"
    return f"{count(summary.results, 'evaluation')} written"
