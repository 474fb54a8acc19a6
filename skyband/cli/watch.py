"""``skyband queries watch``: results of one query as they come, on a terminal, as tables or as JSON Lines."""

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from skyband.cli.documents import result_document, row_document
from skyband.cli.figures import span
from skyband.cli.following import follow
from skyband.cli.remote import on_retry, print_json, reason_of
from skyband.cli.watch_board import WatchBoard
from skyband.client import Client, Update
from skyband.errors import DefinitionError
from skyband.model.resources import QueryResource
from skyband.model.result import ResultRow

__all__ = ["changes_document", "watch_query"]

_FRAMES_PER_S = 4


def watch_query(
    client: Client, path: str, form: str, *, snapshots: bool, limit: int | None, candidates: int | None = None
) -> None:
    """Show the results of a query until `limit` of them have come, it is deleted, or nobody wants them any more.

    `candidates`: how many objects to show that could still come in (None: as many as the query tells). Raises
    NotFoundError if there is no such query, or once it is deleted; DefinitionError if it tells of no candidates.
    """
    resource = client.query(path).resource
    most = _most_candidates(resource, candidates)
    is_live = form == "table" and not snapshots and sys.stdout.isatty()
    updates = follow(client, path, progress=is_live)
    if is_live:
        from skyband.model.binding import bind

        group = client.get_group(resource.group).group
        names = [column.name for column in bind(group, resource.query).columns]
        _show_live(WatchBoard(resource, names, time.monotonic, candidates=most), _limited(updates, limit))
        return
    for update in _told(_limited(updates, limit)):
        if form == "table":
            _print_whole(resource.query.window.in_rows, path, update, most)
        elif snapshots:
            print_json(_whole_document(resource.query.name, update, most))
        else:
            print_json(changes_document(resource.query.name, update, candidates=most))


def _most_candidates(resource: QueryResource, asked: int | None) -> int:
    told = resource.query.candidates
    if asked and not told:
        path = f"{resource.group}/{resource.query.name}"
        raise DefinitionError(
            f"query {path} tells of no candidates; add a query with candidates above 0", place=f"--candidates {asked}"
        )
    return told if asked is None else min(asked, told)


def _whole_document(query: str, update: Update, candidates: int) -> dict[str, Any]:
    document = result_document(query, update.window_start, update.window_end, update.rows)
    if candidates:
        document["rows"] = [_row_document(row, candidates) for row in update.rows]
        document["candidates"] = [asdict(candidate) for candidate in update.candidates[:candidates]]
    return document


def _row_document(row: ResultRow, candidates: int) -> dict[str, Any]:
    document = row_document(row)
    if candidates:
        document["best_score"], document["safe_until"] = row.best_score, row.safe_until
    return document


def changes_document(query: str, update: Update, *, candidates: int = 0) -> dict[str, Any]:
    """Return what an update changes, as plain data; a snapshot has all rows instead.

    With candidates, also what rows could reach and up to so many objects that could still come in: all there are now.
    """
    document: dict[str, Any] = {
        "kind": "snapshot" if update.is_snapshot else "changes",
        "query": query,
        "window_start": update.window_start,
        "window_end": update.window_end,
    }
    if update.is_snapshot:
        document["rows"] = [_row_document(row, candidates) for row in update.rows]
    else:
        document["entered"] = [_row_document(row, candidates) for row in update.entered]
        document["left"] = [_row_document(row, candidates) for row in update.left]
        document["moved"] = [
            {**_row_document(delta.row, candidates), "old_rank": delta.old_rank} for delta in update.moved
        ]
        document["rescored"] = [_row_document(row, candidates) for row in update.rescored]
    if candidates:
        document["candidates"] = [asdict(candidate) for candidate in update.candidates[:candidates]]
    document["skipped"] = update.skipped
    document["frontier"] = update.frontier_us
    return document


def _limited(updates: Iterable[Update], limit: int | None) -> Iterator[Update]:
    """Yield updates up to and including result number `limit`; progress is none."""
    results = itertools.count(1)
    for update in updates:
        yield update
        if not update.is_progress and next(results) == limit:
            return


class _Breaks:
    """Says on stderr when a connection is lost, and that it is back. Initially it is there."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None

    def lost(self, error: Exception, attempt: int) -> None:
        """Take in that the client is about to try again."""
        if self._since is None:
            self._since = self._clock()
            print(f"connection lost ({reason_of(error)}); trying again", file=sys.stderr)

    def well(self) -> None:
        """Take in that something has come."""
        if self._since is not None:
            print(f"connected again after {span(self._clock() - self._since)}", file=sys.stderr)
        self._since = None


def _told(updates: Iterable[Update]) -> Iterator[Update]:
    breaks = _Breaks(time.monotonic)
    on_retry(breaks.lost)
    for update in updates:
        breaks.well()
        if update.skipped:
            passed = "1 result was" if update.skipped == 1 else f"{update.skipped:,} results were"
            print(f"{passed} passed over", file=sys.stderr)
        yield update


def _print_whole(in_rows: bool, path: str, update: Update, candidates: int) -> None:
    from rich.console import Console

    from skyband.cli.watch_screen import coming_table, whole_table, window_line

    console = Console(width=None if sys.stdout.isatty() else 100_000, highlight=False)
    now_us = time.time_ns() // 1_000
    console.print(window_line(path, update, in_rows, now_us))
    console.print(whole_table(update))
    if update.candidates[:candidates]:
        console.print(coming_table(update.candidates[:candidates], in_rows, now_us))
    console.print()


def _show_live(board: WatchBoard, updates: Iterable[Update]) -> None:
    from rich.console import Console
    from rich.live import Live

    from skyband.cli.watch_screen import watch_view

    console = Console(highlight=False)
    on_retry(board.lost)

    def frame() -> Any:
        return watch_view(board.view(), console.width, console.height, time.time_ns() // 1_000)

    with Live(get_renderable=frame, console=console, refresh_per_second=_FRAMES_PER_S):
        for update in updates:
            board.take(update)
