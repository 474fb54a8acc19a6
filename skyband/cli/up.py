"""``skyband up`` and ``skyband down``: everything on this machine, each service a process, on a real Kafka.

The processes are no part of the package: `services` lies beside it in a checkout or an image, and is started, not
imported.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from skyband.cli.services import given, service_command

__all__ = ["DOWN_HELP", "DOWN_SHORT", "EXAMPLES", "UP_HELP", "UP_SHORT", "down", "up"]

UP_HELP = """Run everything on this machine: an Apache Kafka, and one process per service, with the demo's flights.

Shows what happens, one event a line, until Ctrl-C or `skyband down`. State is kept between runs. Needs a checkout (or
an image) of Skyband; the first run fetches Kafka."""

UP_SHORT = "Run everything on this machine, on a real Kafka."

DOWN_HELP = """Stop what `skyband up` runs, in order. State is kept."""

DOWN_SHORT = "Stop what `skyband up` runs."

EXAMPLES = """\b
examples:
  skyband up
  skyband up --empty --port 50061
  skyband up --fresh --speed 3600
  skyband down"""

_Folder = Annotated[
    Path | None,
    typer.Option(help="Where state is kept; default: skyband/up in $XDG_STATE_HOME or ~/.local/state.", metavar="DIR"),
]


def up(
    folder: _Folder = None,
    port: Annotated[
        int | None, typer.Option(help="Port of control; default: 50051 if free, else any.", metavar="N")
    ] = None,
    kafka_port: Annotated[
        int | None, typer.Option(help="Port of Kafka; default: 9092 if free, else any.", metavar="N")
    ] = None,
    empty: Annotated[bool, typer.Option("--empty", help="Without the demo's definitions and rows.")] = False,
    speed: Annotated[
        float | None,
        typer.Option(help="How much faster than time the demo's event time passes; default 600, 0: no limit."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what an earlier run left in the folder.")] = False,
) -> None:
    """Run the command."""
    options = {"--folder": folder, "--port": port, "--kafka-port": kafka_port, "--speed": speed}
    command, environment = _command(given({**options, "--empty": empty, "--fresh": fresh}))
    sys.stdout.flush()
    # Not a child: signals and the terminal then reach it directly.
    os.execve(command[0], command, environment)


def down(folder: _Folder = None) -> None:
    """Run the command."""
    command, environment = _command(["--stop", *given({"--folder": folder})])
    code = subprocess.call(command, env=environment)
    if code:
        raise typer.Exit(code)


def _command(options: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and its environment. Raises SkybandError if this is the package alone."""
    return service_command("up", options)
