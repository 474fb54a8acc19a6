"""Starts what is no part of the package: `services`, which lies beside it in a checkout or an image."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

import skyband
from skyband.errors import SkybandError

__all__ = ["become", "call", "given", "service_command"]


def service_command(
    name: str, options: Sequence[str], settings: Mapping[str, str] | None = None, *, command: str = ""
) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs the service `name`, and its environment with `settings`.

    Raises SkybandError, naming `command` (default: the service's name), if this is the package alone.
    """
    root = Path(skyband.__file__).resolve().parents[1]
    if not (root / "services" / name / "__main__.py").is_file():
        raise SkybandError(
            f"this is the package alone, without the services: `skyband {command or name.replace('_', '-')}` needs a "
            "checkout of Skyband or its image (here there are skyband replay, skyband demo, and the commands for a "
            "server that runs elsewhere)"
        )
    paths = [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), **(settings or {})}
    # -P: what lies in the current folder shadows nothing.
    return [sys.executable, "-P", "-m", f"services.{name}", *options], environment


def become(name: str, options: Sequence[str], settings: Mapping[str, str] | None = None) -> None:
    """Become the service `name`: not a child, so that signals and the terminal reach it directly."""
    command, environment = service_command(name, options, settings)
    sys.stdout.flush()
    os.execve(command[0], command, environment)


def call(name: str, options: Sequence[str], settings: Mapping[str, str] | None = None, *, command: str = "") -> None:
    """Run the service `name` to its end; exit with its code if that is not 0."""
    words, environment = service_command(name, options, settings, command=command)
    code = subprocess.call(words, env=environment)
    if code:
        raise typer.Exit(code)


def given(options: Mapping[str, object]) -> list[str]:
    """Return options as words of a command line: without what is None or False, flags without a value.

    >>> given({"--folder": "F", "--port": None, "--fresh": True})
    ['--folder', 'F', '--fresh']
    """
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [name] if one is True else [name, str(one)]
    return words
