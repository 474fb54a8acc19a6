"""Results as replay writes them: JSON Lines for programs, the last evaluation of each query for people."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skyband.cli.figures import end_of, score
from skyband.cli.watch_candidates import candidates_table, could_rise, reach
from skyband.local.replay import as_document
from skyband.model.binding import bind
from skyband.model.definitions import Definitions
from skyband.model.query import Query
from skyband.model.result import Result

__all__ = ["json_line", "opened", "print_last"]


def json_line(result: Result, *, candidates: bool = False) -> bytes:
    """Return a result as one line of JSON: UTF-8, floats in their shortest form that reads back the same."""
    document = as_document(result, candidates=candidates)
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n"


@contextmanager
def opened(path: Path | None) -> Iterator[BinaryIO]:
    """Open `path`, or stdout, for writing; a file takes its name only when all has been written."""
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.exists() and not path.is_file():
        # A device or a pipe: to put a file in its place would take it away from everybody.
        with path.open("wb") as device:
            yield device
        return
    target = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _mode(path: Path) -> int:
    """Return the permissions of a file, or those that a new one gets."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def print_last(definitions: Definitions, last: Mapping[str, Result]) -> None:
    """Print to stdout a table of the last result of each query, in the order of the definitions."""
    console = Console(soft_wrap=not sys.stdout.isatty(), highlight=False)
    for query in definitions.queries:
        result = last.get(query.name)
        console.print(Text.assemble((query.name, "bold"), f" · the {query.k:,} {query.order} by {query.score}"))
        if result is None:
            console.print("no evaluation had rows", style="dim")
        else:
            console.print(_window(query, result), style="dim")
            if result.rows:
                console.print(_table(definitions, query, result))
            if result.candidates:
                console.print(_coming(query, result))
        console.print()


def _coming(query: Query, result: Result) -> Table:
    in_rows = query.window.in_rows
    return candidates_table(result.candidates, lambda end: end_of(end, in_rows), pad_edge=False)


def _window(query: Query, result: Result) -> str:
    in_rows = query.window.in_rows
    span = f"{end_of(result.window_start, in_rows)} – {end_of(result.window_end, in_rows)}"
    return f"window {span} ({query.window.describe()})" + ("" if result.rows else ": no rows")


def _table(definitions: Definitions, query: Query, result: Result) -> Table:
    names = [column.name for column in bind(definitions.group, query).columns]
    is_rising = query.candidates > 0 and could_rise(result.rows)
    has_time = any(row.event_time_us is not None for row in result.rows)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("#", justify="right")
    table.add_column("object", no_wrap=True, overflow="fold")
    for name in ["score", *(["could reach"] if is_rising else []), *names]:
        table.add_column(name, justify="right")
    if has_time:
        table.add_column("event time")
    for row in result.rows:
        cells = [score(row.attributes[name]) if name in row.attributes else "–" for name in names]
        time = [end_of(row.event_time_us, in_rows=False)] if has_time and row.event_time_us is not None else []
        rising = [reach(row)] if is_rising else []
        table.add_row(str(row.rank), Text(row.object_id), score(row.score), *rising, *cells, *time)
    return table
