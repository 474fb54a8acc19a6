"""A watched query on a terminal: one frame as rich renderables."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skyband.cli.figures import count, moment, moment_of, score, span
from skyband.cli.watch_board import WatchView
from skyband.cli.watch_candidates import candidates_table, could_rise, reach
from skyband.client import Update
from skyband.model.query import QueryState
from skyband.model.result import Candidate, ResultRow

__all__ = ["coming_table", "watch_view", "whole_table", "window_line"]

# What stands around the rows: title, two lines of figures, titles of columns, two lines below.
_AROUND = 8
_SHOWN_RATE = 0.05


def watch_view(view: WatchView, width: int, height: int, now_us: int) -> RenderableType:
    """Return the frame of a view."""
    parts: list[RenderableType] = [_title(view, width)]
    if view.update is None:
        parts += [Text(), Text(" waiting for the first result …", "dim")]
    else:
        parts.append(_figures(view, view.update, width, now_us))
        # Of a screen, a third at most is for what is not in the ranking.
        coming = view.update.candidates[: min(view.candidates, max(1, height // 3 - 2))]
        fitting = max(1, height - _AROUND - (len(coming) + 2 if coming else 0))
        parts.append(_ranking(view, view.update, fitting))
        hidden = len(view.update.rows) - fitting
        if hidden > 0:
            parts.append(Text(f"      … and {count(hidden, 'row')} below (-o json shows all)", "dim"))
        if not view.update.rows:
            parts.append(Text(" no object qualifies in this window", "dim"))
        if coming:
            parts += [Text(), coming_table(coming, view.in_rows, now_us, pad_edge=True)]
    parts += [Text(), _news(view)]
    return Group(*parts)


def window_line(path: str, update: Update, in_rows: bool, now_us: int) -> Text:
    """Return which result this is, in one line."""
    return Text.assemble((path, "bold"), "  ", _window(update, in_rows, now_us))


def whole_table(update: Update) -> Table:
    """Return a result as a table, whole."""
    names, is_rising = sorted({name for row in update.rows for name in row.attributes}), could_rise(update.rows)
    table = _table(names, is_moving=False, is_rising=is_rising)
    for row in update.rows:
        table.add_row(str(row.rank), Text(row.object_id), *_figures_of(row, names, is_rising))
    return table


def coming_table(candidates: Sequence[Candidate], in_rows: bool, now_us: int, *, pad_edge: bool = False) -> Table:
    """Return a table of objects that could still come in."""
    return candidates_table(candidates, lambda end: moment_of(end, in_rows, now_us, offset=False), pad_edge=pad_edge)


def _title(view: WatchView, width: int) -> Text:
    state = view.update.state if view.update is not None else QueryState.ACTIVE
    text = Text.assemble(
        (view.path, "bold"), "  ", (state.upper(), "green" if state is QueryState.ACTIVE else "yellow")
    )
    return _fitted(text, [view.question, view.window], width)


def _figures(view: WatchView, update: Update, width: int, now_us: int) -> Text:
    text = Text.assemble(" ", (_window(update, view.in_rows, now_us), "bold cyan"))
    parts = []
    if update.frontier_us is not None:
        read = f"read up to {moment(update.frontier_us, now_us, offset=False)}"
        parts.append(read if view.age_s is None else f"{read}, {span(view.age_s)} ago")
    if view.rate >= _SHOWN_RATE:
        parts.append(f"{view.rate:,.1f} results/s")
    parts.append(count(view.results, "result"))
    return _fitted(text, parts, width)


def _window(update: Update, in_rows: bool, now_us: int) -> str:
    end = moment_of(update.window_end, in_rows, now_us)
    times = update.window_start, update.window_end
    start, stop = (moment_of(time, in_rows, now_us, offset=False) for time in times)
    return f"{end} ▸ window {start} – {stop}"


def _fitted(text: Text, parts: Sequence[str], width: int) -> Text:
    """Return `text` with parts behind dots, on as many lines as `width` needs."""
    text.no_wrap = True
    length = len(text)
    for part in parts:
        if length + len(part) + 3 <= width:
            text.append(f" · {part}")
            length += len(part) + 3
        else:
            text.append(f"\n {part}")
            length = len(part) + 1
    return text


def _ranking(view: WatchView, update: Update, most: int) -> Table:
    names, is_rising = list(view.names), could_rise(update.rows)
    table = _table(names, is_moving=True, is_rising=is_rising)
    for place, row in enumerate(update.rows[:most]):
        move = _move(view.moves[place]) if view.moves else Text()
        table.add_row(str(row.rank), move, Text(row.object_id), *_figures_of(row, names, is_rising))
    return table


def _table(names: Sequence[str], *, is_moving: bool, is_rising: bool) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=True)
    table.add_column("#", justify="right", min_width=3)
    if is_moving:
        table.add_column("move", min_width=4)
    table.add_column("object", min_width=12, overflow="fold")
    for name in ["score", *(["could reach"] if is_rising else []), *names]:
        table.add_column(name, justify="right", min_width=6)
    return table


def _figures_of(row: ResultRow, names: Sequence[str], is_rising: bool) -> list[str]:
    attributes = [score(row.attributes[name]) if name in row.attributes else "–" for name in names]
    return [score(row.score), *([reach(row)] if is_rising else []), *attributes]


def _move(places: int | None) -> Text:
    if places is None:
        return Text("new", "yellow")
    if places == 0:
        return Text("=", "dim")
    return Text(f"▲ {places}", "green") if places > 0 else Text(f"▼ {-places}", "red")


def _news(view: WatchView) -> Text:
    """Return the last line: a connection that is lost or back, or how to go on."""
    if view.lost_s is not None:
        return Text(f" connection lost {span(view.lost_s)} ago ({view.why}); trying again …", "yellow")
    if view.back_s is not None:
        missed = f"{count(view.skipped, 'result')} passed over" if view.skipped else "nothing was missed"
        return Text(f" connected again after {span(view.back_s)}; {missed}", "green")
    if view.update is not None and view.update.state is QueryState.PAUSED:
        return Text(f" paused; go on with: skyband queries resume {view.path}", "yellow")
    return Text(f" Ctrl-C ends · how it is doing: skyband queries describe {view.path}", "dim")
