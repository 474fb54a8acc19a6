"""The command line as a whole: help, version, exit codes."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from skyband import __version__
from skyband.cli.replay import ALGORITHMS
from skyband.model.query import Algorithm
from tests.cli.conftest import Answer

Call = Callable[..., Answer]
HELPS = [
    ["--help"],
    ["replay", "--help"],
    ["demo", "--help"],
    ["definitions", "--help"],
    ["definitions", "check", "--help"],
]


@pytest.mark.parametrize("arguments", HELPS, ids=" ".join)
def test_help_shows_examples_to_type(call: Call, arguments: list[str]) -> None:
    answer = call(*arguments)
    assert answer.code == 0
    assert "examples:" in answer.out
    assert "  skyband " in answer.out.split("examples:")[1]


@pytest.mark.parametrize("arguments", [*HELPS, ["--version"]], ids=" ".join)
def test_help_and_version_wait_for_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["skyband", *{arguments!r}]
from skyband.cli.main import run
try:
    run()
finally:
    heavy = {{"numpy", "numba", "pyarrow", "rich", "yaml", "pandas", "polars", "pydantic"}} & sys.modules.keys()
    print("heavy:", *sorted(heavy), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.strip() == "heavy:"


def test_version_is_the_package_s(call: Call) -> None:
    answer = call("--version")
    assert (answer.code, answer.out) == (0, f"skyband {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Usage: skyband"),
        (["replya"], "replya"),
        (["replay"], "--definitions"),
        (["replay", "--definitions", "a.yaml"], "--input"),
        (["replay", "--batch-rows", "many"], "--batch-rows"),
        (["replay", "--nonsense"], "--nonsense"),
        (["definitions", "check"], "FILE"),
        (["demo", "--seconds", "90"], "--seconds 90: must be 5 to 50"),
    ],
)
def test_what_is_asked_wrongly_exits_with_2(start: Call, arguments: list[str], said: str) -> None:
    answer = start(*arguments)
    assert answer.code == 2
    assert said in answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err


def test_the_algorithms_of_the_help_are_those_there_are() -> None:
    assert set(ALGORITHMS) == {algorithm.value for algorithm in Algorithm}
