"""``skyband replay``: finished input through the whole pipeline, results as JSON Lines or a table."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyband.cli.failures import wrong_option
from skyband.cli.figures import joined
from skyband.errors import DefinitionError

if TYPE_CHECKING:
    from skyband.local.replay import Replay
    from skyband.model.definitions import Definitions
    from skyband.model.result import Result

__all__ = ["ALGORITHMS", "EXAMPLES", "HELP", "SHORT", "as_format", "replay"]

ALGORITHMS = ("auto", "two-tier", "view", "skyband", "sla", "eaa", "eaa-relaxed", "eaa-expected", "eaa-tail")
FORMATS = ("table", "json")

HELP = """Answer the queries of a definitions file from finished input, to the last bit the same on every run.

Input is JSON Lines, CSV (.gz too) or Parquet with columns stream, object_id, event_time (µs or ISO 8601) and value, or
one column per attribute. Results go to stdout or --output, one JSON object per evaluation; all else to stderr."""

SHORT = "Answer the queries of a definitions file from files of rows."

EXAMPLES = """\b
examples:
  skyband replay --definitions examples/factory.yaml --input examples/factory.jsonl
  skyband replay --definitions flights.yaml --input 2013-*.csv.gz --output delays.jsonl
  skyband replay --definitions flights.yaml --input july.parquet --check -o table"""


def replay(
    definitions: Annotated[Path, typer.Option(help="File of the group and its queries.", metavar="FILE")],
    inputs: Annotated[
        list[Path],
        typer.Option("--input", help="Files of rows, in this order; each is a source partition.", metavar="FILE…"),
    ],
    output: Annotated[
        str | None, typer.Option(help="File for the results; - or none: stdout.", metavar="FILE", show_default=False)
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--format",
            help="json, or table: the last evaluation of each query. On a terminal table, else json.",
            metavar="|".join(FORMATS),
            show_default=False,
        ),
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="How queries are answered, for all of them.", metavar="|".join(ALGORITHMS))
    ] = "auto",
    shards: Annotated[
        int | None, typer.Option(help="Shards, instead of those of the group; the results stay the same.", metavar="N")
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(help="Outsiders to tell that could still come in, for all queries.", metavar="N"),
    ] = None,
    batch_rows: Annotated[int, typer.Option(help="Rows read and flushed at once.", metavar="N")] = 50_000,
    check: Annotated[bool, typer.Option("--check", help="Compare every evaluation with brute force. Slow.")] = False,
) -> None:
    """Run the command."""
    form = as_format(form, is_screen=output is None and sys.stdout.isatty())
    target = _target(output, form, [definitions, *inputs])
    if batch_rows < 1:
        raise DefinitionError("must be at least 1", place=f"--batch-rows {batch_rows}")
    if algorithm not in ALGORITHMS:
        raise DefinitionError(f"no such algorithm; use {joined(list(ALGORITHMS))}", place=f"--algorithm {algorithm}")

    from skyband.cli.replay_screen import ReplayScreen

    # Lines of JSON and a progress bar on one screen would write over each other.
    is_crowded = form == "json" and target is None and sys.stdout.isatty()
    with ReplayScreen(is_shown=sys.stderr.isatty() and not is_crowded) as screen:
        made = _made(definitions, algorithm, shards, candidates)
        running, results, checked = _start(made, inputs, batch_rows, check)
        screen.watch(running)
        _write(results, made, form, target)
    screen.summarize(checked())


def as_format(asked: str | None, *, is_screen: bool) -> str:
    """Return the format of the output: as asked, else a table on a screen and JSON anywhere else."""
    if asked is None:
        return "table" if is_screen else "json"
    if asked not in FORMATS:
        raise DefinitionError(f"no such format; use {joined(list(FORMATS))}", place=f"-o {asked}")
    return asked


def _target(output: str | None, form: str, sources: list[Path]) -> Path | None:
    """Return the file to write, None for stdout; raise DefinitionError if it must not be written."""
    if output is None or output == "-":
        return None
    place, path = f"--output {output}", Path(output)
    if form == "table":
        raise DefinitionError("a table is for the screen; leave -o table away, or --output", place=place)
    if path.is_dir():
        raise DefinitionError("is a folder; name a file in it", place=place)
    if not path.parent.is_dir():
        raise DefinitionError(f"there is no folder {path.parent}; make it first", place=place)
    if path.exists() and any(source.exists() and source.samefile(path) for source in sources):
        raise DefinitionError("is read as well; name another file", place=place)
    return path


def _made(file: Path, algorithm: str, shards: int | None, candidates: int | None) -> "Definitions":
    from skyband.files.definitions import load_definitions
    from skyband.local.replay import prepare
    from skyband.model.query import Algorithm

    loaded = load_definitions(file)
    try:
        return prepare(loaded, algorithm=Algorithm(algorithm), shards=shards, candidates=candidates)
    except DefinitionError as error:
        if error.field == "candidates":
            raise wrong_option(error, f"--candidates {candidates}") from None
        by_shards = shards is not None and not (error.field or "").endswith("algorithm")
        raise wrong_option(error, f"--shards {shards}" if by_shards else f"--algorithm {algorithm}") from None


def _start(
    made: "Definitions", inputs: list[Path], batch_rows: int, check: bool
) -> tuple["Replay", Iterable["Result"], Callable[[], int | None]]:
    """Return the replay, its results, and how many of them have been checked (None: not asked for)."""
    from skyband.files.rows import open_rows
    from skyband.local.replay import Replay

    if check:
        _check_exact(made)
    running = Replay(made, open_rows(made.group, inputs, batch_rows=batch_rows), batch_rows=batch_rows)
    if not check:
        return running, running, lambda: None
    from skyband.cli.comparison import Comparison

    compared = Comparison(made, open_rows(made.group, inputs, batch_rows=batch_rows), running)
    return running, compared, lambda: compared.equal


def _check_exact(made: "Definitions") -> None:
    from skyband.model.planner import plan

    for query in made.queries:
        algorithm = plan(made.group, query).algorithm
        if algorithm.is_approximate:
            raise DefinitionError(
                f"compares exact results, and query {query.name!r} is answered by {algorithm}, which may miss rows; "
                "without --check the replay tells what share of them it shows",
                place="--check",
            )


def _write(results: Iterable["Result"], made: "Definitions", form: str, target: Path | None) -> None:
    from skyband.cli.replay_output import json_line, opened, print_last

    if form == "table":
        print_last(made, {result.query: result for result in results})
        return
    telling = {query.name for query in made.queries if query.candidates}
    with opened(target) as file:
        for result in results:
            file.write(json_line(result, candidates=result.query in telling))
