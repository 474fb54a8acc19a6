"""What the commands for a server share: where it is, how to reach it, and in which form answers are written."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyband.cli.contexts import Context, chosen_context
from skyband.cli.replay import FORMATS, as_format

if TYPE_CHECKING:
    from skyband.client import Client

__all__ = [
    "ContextOption",
    "FormOption",
    "ServerOption",
    "connect",
    "form_of",
    "on_retry",
    "print_json",
    "print_next",
    "print_record",
    "print_table",
    "reason_of",
    "time_zone",
]

ContextOption = Annotated[
    str | None,
    typer.Option("--context", help="Which of `skyband contexts list` [$SKYBAND_CONTEXT].", metavar="NAME"),
]
ServerOption = Annotated[
    str | None,
    typer.Option("--server", help="Address of control, instead of the context's [$SKYBAND_SERVER].", metavar="ADDRESS"),
]
FormOption = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        help="table, or json: one object a line. On a terminal table, else json.",
        metavar="|".join(FORMATS),
        show_default=False,
    ),
]

# A table that nobody's screen bounds: wide enough for any line.
_UNBOUNDED = 100_000
# How long a command tries to reach a server that does not answer.
_RETRY_S = 5.0


def connect(context: str | None, server: str | None) -> "Client":
    """Return a client of the server that is meant; on a terminal it says so when it has to wait for one.

    Raises NotFoundError for a context that is not known, DefinitionError for an address that is none.
    """
    from skyband.client import Client, Tls

    chosen = chosen_context(context, server)
    if sys.stderr.isatty():
        on_retry(_say_waiting(chosen))
    else:
        on_retry(lambda error, attempt: None)
    tls = Tls() if chosen.tls else None
    return Client(chosen.control, results=chosen.results or None, tls=tls, retry_s=_RETRY_S)


def on_retry(listen: Callable[[Exception, int], None]) -> None:
    """Call `listen`, with the failure and the number of the attempt, before the client tries something again."""
    from stamina.instrumentation import RetryDetails, set_on_retry_hooks

    def hook(details: RetryDetails) -> None:
        listen(details.caused_by, details.retry_num)

    set_on_retry_hooks([hook])


def reason_of(failure: Exception) -> str:
    """Return why a call failed, shortly: the end of what gRPC says."""
    details = getattr(failure, "details", None)
    text = (details() if details is not None else str(failure)) or "no reason was given"
    return str(text).rsplit("; last error: ", 1)[-1].rsplit(": ", 1)[-1].rstrip(".").lower()


def _say_waiting(context: Context) -> Callable[[Exception, int], None]:
    said = False

    def listen(error: Exception, attempt: int) -> None:
        nonlocal said
        if not said:
            print(f"{context.control} does not answer; trying for {_RETRY_S:g} s …", file=sys.stderr)
        said = True

    return listen


def form_of(asked: str | None) -> str:
    """Return the form of the answer: as asked, else a table on a terminal and JSON anywhere else."""
    return as_format(asked, is_screen=sys.stdout.isatty())


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document to stdout, on one line."""
    print(json.dumps(document, ensure_ascii=False, allow_nan=False), flush=True)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table to stdout; nothing in it is cut. Columns named in `right` are flush right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold", justify="right" if title in right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def print_record(record: Iterable[tuple[str, str]]) -> None:
    """Print what belongs to one thing, a line each."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in record:
        table.add_row(Text(name), Text(text))
    console.print(table)


def print_next(command: str, form: str) -> None:
    """Print to stderr what to do next, for a person."""
    if form == "table":
        print(f"next:  {command}", file=sys.stderr)


def time_zone() -> str:
    """Return the name of this machine's time zone, UTC if it does not tell."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        with suppress(OSError):
            _, _, name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name).key if name else "UTC"
    except (KeyError, ValueError, OSError):
        return "UTC"
