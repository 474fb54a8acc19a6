"""``skyband up`` and ``skyband down`` start what lies beside the package, or say that nothing does."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import skyband
from skyband.cli import up as commands
from skyband.cli.commands import Commands

app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
app.command("up")(commands.up)
app.command("down")(commands.down)

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call() -> Call:
    def called(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, words)
        return result.exit_code, result.stderr

    return called


@pytest.fixture
def run_as(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have replaced this process, or run in it."""
    ran: list[list[str]] = []
    monkeypatch.setattr(commands.os, "execve", lambda path, command, environment: ran.append(command))
    monkeypatch.setattr(subprocess, "call", lambda command, env: ran.append(command) or 0)
    return ran


@pytest.fixture
def package_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skyband, "__file__", str(tmp_path / "skyband" / "__init__.py"))


def test_up_becomes_the_supervisor_with_the_options_that_were_given(call: Call, run_as: list[list[str]]) -> None:
    assert call("up", "--folder", "F", "--port", "50061", "--empty", "--fresh", "--speed", "0") == (0, "")
    assert run_as[0][1:] == [
        *("-P", "-m", "services.up", "--folder", "F", "--port", "50061", "--speed", "0.0", "--empty", "--fresh")
    ]


def test_up_leaves_defaults_to_the_supervisor(call: Call, run_as: list[list[str]]) -> None:
    call("up")
    assert run_as[0][-2:] == ["-m", "services.up"]


def test_down_stops_what_runs_on_the_folder(call: Call, run_as: list[list[str]]) -> None:
    assert call("down", "--folder", "F") == (0, "")
    assert run_as[0][-3:] == ["--stop", "--folder", "F"]


def test_down_hands_on_the_exit_code(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "call", lambda command, env: 1)
    assert call("down")[0] == 1


@pytest.mark.usefixtures("package_alone")
@pytest.mark.parametrize("command", ["up", "down"])
def test_the_package_alone_says_what_it_lacks(call: Call, run_as: list[list[str]], command: str) -> None:
    code, said = call(command)
    assert code == 1
    assert "needs a checkout of Skyband or its image" in said
    assert not run_as


def test_the_supervisor_understands_what_the_command_hands_on(tmp_path: Path) -> None:
    command, environment = commands._command(["--stop", "--folder", str(tmp_path)])
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"nothing is up on {tmp_path}\n")
