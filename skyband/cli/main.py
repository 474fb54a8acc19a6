"""The command line ``skyband``.

Nothing heavy is imported before a command runs: help and version must not wait for numpy and numba.
"""

import os
from typing import Annotated

import typer

import skyband
from skyband.cli import (
    apply,
    completion,
    context_commands,
    definitions,
    demo,
    groups,
    kafka,
    queries,
    replay,
    streams,
    up,
)
from skyband.cli.commands import ApplyCommand, Commands, ReplayCommand, family

__all__ = ["app", "run"]

app = typer.Typer(
    name="skyband",
    cls=Commands,
    help="Standing top-k questions over streams that never line up.",
    epilog="\b\nexamples:\n  skyband demo\n"
    "  skyband replay --definitions examples/factory.yaml --input examples/factory.jsonl\n"
    "  skyband up\n"
    "  skyband apply -f examples/factory.yaml\n"
    "  skyband queries watch flights/most-delayed\n"
    "\b\nskyband COMMAND --help tells more about each.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# In the order in which one comes to need them.
app.command("demo", help=demo.HELP, short_help=demo.SHORT, epilog=demo.EXAMPLES)(demo.demo)
app.command("replay", cls=ReplayCommand, help=replay.HELP, short_help=replay.SHORT, epilog=replay.EXAMPLES)(
    replay.replay
)
_definitions = family("Work with files of definitions.")
_definitions.command("check", help=definitions.HELP, short_help=definitions.SHORT, epilog=definitions.EXAMPLES)(
    definitions.check
)
app.add_typer(_definitions, name="definitions", epilog=definitions.EXAMPLES)
app.command("up", help=up.UP_HELP, short_help=up.UP_SHORT, epilog=up.EXAMPLES)(up.up)
app.command("down", help=up.DOWN_HELP, short_help=up.DOWN_SHORT, epilog=up.EXAMPLES)(up.down)
app.command("serve", help=kafka.SERVE_HELP, short_help=kafka.SERVE_SHORT, epilog=kafka.SERVE_EXAMPLES)(kafka.serve)
app.command("apply", cls=ApplyCommand, help=apply.HELP, short_help=apply.SHORT, epilog=apply.EXAMPLES)(apply.apply)
app.command(
    "produce",
    cls=ReplayCommand,
    help=kafka.PRODUCE_HELP,
    short_help=kafka.PRODUCE_SHORT,
    epilog=kafka.PRODUCE_EXAMPLES,
)(kafka.produce)
app.add_typer(queries.app, name="queries", epilog=queries.EXAMPLES)
app.add_typer(groups.app, name="groups", epilog=groups.EXAMPLES)
app.add_typer(streams.app, name="streams", epilog=streams.EXAMPLES)
app.add_typer(kafka.dead_letters_app, name="dead-letters", epilog=kafka.LETTERS_EXAMPLES)
app.command("doctor", help=kafka.DOCTOR_HELP, short_help=kafka.DOCTOR_SHORT, epilog=kafka.DOCTOR_EXAMPLES)(kafka.doctor)
app.add_typer(context_commands.app, name="contexts", epilog=context_commands.EXAMPLES)
app.command("completion", help=completion.HELP, short_help=completion.SHORT, epilog=completion.EXAMPLES)(
    completion.completion
)


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
    """Run the command that the process was started with, or tell a shell how it goes on."""
    if completion.COMPLETE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    app(prog_name="skyband")
