"""Contexts from the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Answer

Call = Callable[..., Answer]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SKYBAND_CONTEXT", "SKYBAND_SERVER"):
        monkeypatch.delenv(name, raising=False)


def listed(call: Call) -> list[dict[str, object]]:
    return [json.loads(line) for line in call("contexts", "list").out.splitlines()]


def test_contexts_are_added_changed_chosen_and_forgotten(call: Call) -> None:
    assert "there is no context; commands talk to localhost:50051" in call("contexts", "list", "-o", "table").out
    said = call("contexts", "add", "near", "--control", "near:1", "--kafka", "near:2")
    assert said.out == "context near: control near:1, Kafka near:2 (the current one)\n"
    said = call("contexts", "add", "far", "--control", "far:1", "--results", "far:2", "--tls")
    assert said.out.endswith("(choose it with: skyband contexts use far)\n")
    call("contexts", "add", "far", "--kafka", "far:3")
    assert listed(call) == [
        {"name": "far", "control": "far:1", "results": "far:2", "kafka": "far:3", "tls": True, "current": False},
        {"name": "near", "control": "near:1", "results": None, "kafka": "near:2", "tls": False, "current": True},
    ]
    assert call("contexts", "use", "far").out == "commands now talk to far: control far:1, Kafka far:3\n"
    rows = call("contexts", "list", "-o", "table").out.splitlines()
    assert rows[1].split() == ["*", "far", "far:1", "far:2", "far:3", "yes"]
    assert call("contexts", "remove", "far").out == "context far is forgotten; the current one is near\n"
    assert [one["name"] for one in listed(call)] == ["near"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("use lost", "there is no context 'lost'; there are: none"),
        ("remove lost", "there is no context 'lost'"),
        ("add x --control there", "--control there: must be host:port, such as localhost:50051"),
        ("add x --results there:", "--results there:: must be host:port"),
    ],
)
def test_what_is_wrong_is_said(call: Call, words: str, said: str) -> None:
    answer = call("contexts", *words.split())
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
