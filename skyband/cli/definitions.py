"""``skyband definitions check``: whether files of definitions load, and how their queries would be answered."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyband.cli.failures import WRONGLY_ASKED, sentence
from skyband.cli.replay import FORMATS, as_format
from skyband.errors import DefinitionError

if TYPE_CHECKING:
    from skyband.model.definitions import Definitions
    from skyband.model.stream import Stream

__all__ = ["EXAMPLES", "HELP", "SHORT", "check"]

HELP = """Check files of definitions (.yaml or .json), and show how each query would be answered.

Says what is wrong first in each file, with its line; exits with 2 if there is anything."""
SHORT = "Check files of definitions; show how queries are answered."

EXAMPLES = """\b
examples:
  skyband definitions check factory.yaml
  skyband definitions check *.yaml -o json"""

_Line = tuple[str, str, str]


def check(
    files: Annotated[list[Path], typer.Argument(hidden=True, metavar="FILE")],
    form: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--format",
            help="table, or json: one object per file. On a terminal table, else json.",
            metavar="|".join(FORMATS),
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the command."""
    from skyband.files.definitions import load_definitions

    form = as_format(form, is_screen=sys.stdout.isatty())
    wrong = 0
    for file in files:
        try:
            definitions = load_definitions(file)
        except DefinitionError as error:
            wrong += 1
            print(sentence(error), file=sys.stderr)
            continue
        if form == "json":
            print(json.dumps(as_object(file, definitions), ensure_ascii=False))
        else:
            _print_table(file if len(files) > 1 else None, lines(definitions))
    if not wrong and form == "table":
        print(f"next:  skyband replay --definitions {files[0]} --input FILE…", file=sys.stderr)
    if wrong:
        raise typer.Exit(WRONGLY_ASKED)


def as_object(file: Path, definitions: "Definitions") -> dict[str, Any]:
    """Return what a file holds and how its queries would be answered, as plain data."""
    from skyband.files.definitions import dump_definitions
    from skyband.model.planner import plan

    plans = []
    for query in definitions.queries:
        made = plan(definitions.group, query)
        plans.append(
            {
                "query": query.name,
                "algorithm": made.algorithm.value,
                "reason": made.reason,
                "relies_on": list(made.relies_on),
                "cost": made.cost,
            }
        )
    return {"file": str(file), **dump_definitions(definitions), "plans": plans}


def lines(definitions: "Definitions") -> list[_Line]:
    """Return a line for each stream, for the group and each query: kind, name, and what it is."""
    from skyband.cli.figures import count
    from skyband.model.duration import format_duration
    from skyband.model.planner import plan

    group = definitions.group
    found = [("stream", stream.name, f"{_values(stream)} · {_time(stream)}") for stream in group.streams]
    keeps = f"keeps {format_duration(group.retention_us)}"
    if group.retention_rows:
        keeps += f" and {count(group.retention_rows, 'row')}"
    parts = f"{count(len(group.streams), 'stream')}, {count(group.shards, 'shard')}"
    found.append(("group", group.name, f"{parts}, {keeps}, pane {format_duration(group.pane_us)}"))
    for query in definitions.queries:
        made = plan(group, query)
        best = f"{query.k:,} {query.order}, {query.window.describe()}"
        relies = "".join(f"; relies on: {promise}" for promise in made.relies_on)
        found.append(("query", query.name, f"{best} · plan {made.algorithm}: {made.reason}{relies}"))
    return found


def _values(stream: "Stream") -> str:
    if stream.is_object_stream:
        return "; ".join(f"{a.name} {a.lo:g} to {a.hi:g}" for a in stream.attributes)
    return f"{stream.attributes[0].lo:g} to {stream.attributes[0].hi:g}"


def _time(stream: "Stream") -> str:
    from skyband.model.duration import format_duration
    from skyband.model.stream import Identity, Late

    combined = "each row an object" if stream.identity is Identity.ROW else f"combined by {stream.aggregate}"
    delay = f"up to {format_duration(stream.max_delay_us)} out of order" if stream.max_delay_us else "in order"
    return f"{combined} · {delay}" + (", late rows are dropped" if stream.late is Late.DROP else "")


def _print_table(file: Path | None, found: list[_Line]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    if file is not None:
        console.print(Text(str(file), "bold"))
    for line in found:
        table.add_row(*map(Text, line))
    console.print(table)
