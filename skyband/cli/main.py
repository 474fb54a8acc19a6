"""The command line ``skyband``.

Nothing heavy is imported before a command runs: help and version must not wait for numpy and numba.
"""

from typing import Annotated

import typer

import skyband
from skyband.cli import definitions, demo, replay
from skyband.cli.commands import Commands, ReplayCommand

__all__ = ["app", "run"]

app = typer.Typer(
    name="skyband",
    cls=Commands,
    help="Standing top-k questions over streams that never line up.",
    epilog="\b\nexamples:\n  skyband demo\n"
    "  skyband definitions check examples/flights.yaml\n"
    "  skyband replay --definitions examples/factory.yaml --input examples/factory.jsonl\n"
    "\b\nskyband COMMAND --help tells more about each.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("replay", cls=ReplayCommand, help=replay.HELP, short_help=replay.SHORT, epilog=replay.EXAMPLES)(
    replay.replay
)
app.command("demo", help=demo.HELP, short_help=demo.SHORT, epilog=demo.EXAMPLES)(demo.demo)

_definitions = typer.Typer(
    cls=Commands, help="Work with files of definitions.", no_args_is_help=True, rich_markup_mode=None
)
_definitions.command("check", help=definitions.HELP, short_help=definitions.SHORT, epilog=definitions.EXAMPLES)(
    definitions.check
)
app.add_typer(_definitions, name="definitions", epilog=definitions.EXAMPLES)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"skyband {skyband.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command that the process was started with."""
    app(prog_name="skyband")
