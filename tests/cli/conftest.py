"""Ways to call the command line: in this process, and as a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skyband.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
START = "from skyband.cli.main import run; run()"


class Answer:
    """What a command wrote, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call() -> Callable[..., Answer]:
    """Call a command in this process."""

    def called(*arguments: object) -> Answer:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return called


@pytest.fixture
def start() -> Callable[..., Answer]:
    """Run a command as a process, in the project's root."""

    def started(*arguments: object, timeout_s: float = 300.0) -> Answer:
        command = [sys.executable, "-c", START, *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    return started


@pytest.fixture
def examples() -> Path:
    """The folder of examples."""
    return ROOT / "examples"
