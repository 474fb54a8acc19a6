"""Help and completion of all commands."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import typer
from typer.core import TyperGroup

from skyband.cli.main import app
from tests.cli.conftest import Answer

Call = Callable[..., Answer]


def commands(group: object = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        yield (*path, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, (*path, name))


ALL = list(commands())


def test_the_commands_are_those_there_should_be() -> None:
    assert {" ".join(path) for path in ALL if len(path) == 1} == {
        *("demo", "replay", "definitions", "up", "down", "serve", "apply", "produce", "queries", "groups", "streams"),
        *("dead-letters", "doctor", "contexts", "completion"),
    }
    both = "add list get update delete"
    assert {path[1] for path in ALL if path[0] == "queries" and len(path) == 2} == {
        *both.split(),
        *("pause", "resume", "cancel", "describe", "explain", "watch"),
    }
    assert {path[1] for path in ALL if path[0] == "groups" and len(path) == 2} == {*both.split(), "regenerate"}
    assert {path[1] for path in ALL if path[0] == "streams" and len(path) == 2} == {*both.split(), "stats"}


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_shows_examples_to_type(call: Call, path: tuple[str, ...]) -> None:
    answer = call(*path, "--help")
    assert answer.code == 0
    assert f"skyband {path[0]}" in answer.out.split("examples:")[1]


def test_the_help_of_every_command_waits_for_nothing_heavy() -> None:
    code = f"""
import sys
from skyband.cli.main import app
for path in {ALL!r}:
    try:
        app([*path, "--help"], prog_name="skyband")
    except SystemExit as end:
        assert end.code == 0
heavy = {{"numpy", "numba", "pyarrow", "rich", "yaml", "grpc", "google", "stamina", "pydantic"}} & sys.modules.keys()
print("heavy:", *sorted(heavy), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "heavy:"


@pytest.mark.parametrize(
    ("shell", "begins"),
    [("bash", "_skyband_completion() {"), ("zsh", "#compdef skyband"), ("fish", "complete --command")],
)
def test_a_shell_gets_its_script(call: Call, shell: str, begins: str) -> None:
    answer = call("completion", shell)
    assert answer.code == 0
    assert answer.out.startswith(begins)
    assert "_SKYBAND_COMPLETE=complete_" in answer.out


def test_there_is_no_script_for_other_shells(call: Call) -> None:
    answer = call("completion", "cmd")
    assert (answer.code, answer.err) == (2, "cmd: there is no script for this shell; use bash, zsh or fish\n")


@pytest.mark.parametrize(
    ("words", "found"),
    [("skyband que", "queries"), ("skyband queries wat", "watch"), ("skyband apply --dry", "--dry-run")],
)
def test_a_shell_is_told_how_words_go_on(words: str, found: str) -> None:
    settings = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_SKYBAND_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", "from skyband.cli.main import run; run()"]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [found]
