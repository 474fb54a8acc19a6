"""Commands that need Kafka become a process of `services`, told where things are."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import skyband
from skyband.cli.services import given
from tests.cli.conftest import Answer

Call = Callable[..., Answer]


class Ran:
    """The command that would have replaced this process."""

    words: list[str]
    environment: dict[str, str]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ran:
    for name in ("SKYBAND_KAFKA_BOOTSTRAP", "SKYBAND_CONTEXT", "SKYBAND_SERVER", "SKYBAND_LISTEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = Ran()

    def become(path: str, words: list[str], environment: dict[str, str]) -> None:
        found.words, found.environment = words[words.index("-m") + 1 :], environment

    monkeypatch.setattr(os, "execve", become)
    return found


def test_serve_is_told_of_kafka_and_where_to_listen(call: Call, ran: Ran) -> None:
    assert call("serve", "--kafka", "a:1,b:2", "--listen", "0.0.0.0:50061", "--create-topics", 6).code == 0
    assert ran.words == ["services.serve"]
    assert ran.environment["SKYBAND_KAFKA_BOOTSTRAP"] == "a:1,b:2"
    assert ran.environment["SKYBAND_LISTEN"] == "0.0.0.0:50061"
    assert ran.environment["SKYBAND_CONTROL_CREATE_TOPICS"] == "6"


def test_serve_has_defaults(call: Call, ran: Ran) -> None:
    call("serve")
    assert ran.environment["SKYBAND_KAFKA_BOOTSTRAP"] == "localhost:9092"
    assert ran.environment["SKYBAND_LISTEN"] == "127.0.0.1:50051"
    assert "SKYBAND_CONTROL_CREATE_TOPICS" not in ran.environment


def test_kafka_is_that_of_the_option_then_the_environment_then_the_context(
    call: Call, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("contexts", "add", "far", "--control", "far:1", "--kafka", "far:2")
    call("doctor")
    assert ran.environment["SKYBAND_KAFKA_BOOTSTRAP"] == "far:2"
    monkeypatch.setenv("SKYBAND_KAFKA_BOOTSTRAP", "near:3")
    call("doctor")
    assert ran.environment["SKYBAND_KAFKA_BOOTSTRAP"] == "near:3"
    call("doctor", "--kafka", "here:4", "--server", "there:5", "--context", "far")
    assert ran.environment["SKYBAND_KAFKA_BOOTSTRAP"] == "here:4"
    assert (ran.environment["SKYBAND_SERVER"], ran.environment["SKYBAND_CONTEXT"]) == ("there:5", "far")


def test_produce_hands_on_what_was_given(call: Call, ran: Ran) -> None:
    assert (
        call("produce", "--definitions", "d.yaml", "--input", "a.csv", "b.csv", "--speed", 600, "-o", "json").code == 0
    )
    assert ran.words == [
        *("services.produce", "--definitions", "d.yaml", "--input", "a.csv", "--input", "b.csv"),
        *("--speed", "600.0", "--output", "json"),
    ]
    call(
        "produce",
        "--group",
        "g",
        "--generate",
        "--rate",
        0,
        "--rows",
        5,
        "--objects",
        2,
        "--seed",
        0,
        "--begin",
        "2026-07-01",
    )
    assert ran.words[1:] == [
        *("--group", "g", "--generate", "--rate", "0.0", "--rows", "5", "--objects", "2", "--seed", "0"),
        *("--begin", "2026-07-01"),
    ]
    manner = ["--skew", "1.0", "--values", "zipf", "--correlation", "0.5", "--bursts", "10.0"]
    manner += ["--drift", "1h", "--cycle", "1d"]
    call("produce", "--group", "g", "--generate", *manner)
    assert ran.words[1:] == ["--group", "g", "--generate", *manner]


def test_dead_letters_and_doctor_hand_on_what_was_given(call: Call, ran: Ran) -> None:
    call("dead-letters", "tail", "--stream", "s", "-n", 3, "--follow", "--from-beginning")
    assert ran.words == ["services.dead_letters", "--number", "3", "--stream", "s", "--from-beginning", "--follow"]
    call("doctor", "align", "fanout", "-o", "table")
    assert ran.words == ["services.doctor", "align", "fanout", "--output", "table"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serve --kafka there", "--kafka there: must be HOST:PORT, or several with commas between"),
        ("serve --kafka a:1,b", "--kafka a:1,b: must be HOST:PORT"),
        ("produce --generate", "say of which group: with --definitions FILE, or with --group NAME; one of both"),
        ("produce --group g --definitions d --generate", "say of which group"),
        ("produce --group g", "say which rows: those of --input FILE…, or made up with --generate; one of both"),
        ("produce --group g --generate --input a.csv", "say which rows"),
        ("produce --group g --input a.csv --rows 5", "--rows 5: is for --generate; leave it away"),
        ("produce --group g --input a.csv --bursts 5", "--bursts 5.0: is for --generate; leave it away"),
        ("doctor kafka", "kafka: is no part of Skyband; parts are align, engine, fanout, control"),
        ("doctor -o xml", "-o xml: no such format; use table or json"),
        ("dead-letters tail -n -1", "--number"),
    ],
)
def test_what_is_asked_wrongly_starts_nothing(call: Call, ran: Ran, command: str, said: str) -> None:
    answer = call(*command.split())
    assert answer.code == 2
    assert said in answer.err
    assert not hasattr(ran, "words")


@pytest.mark.parametrize(
    "command", ["serve", "produce --group g --generate", "dead-letters tail", "doctor", "up", "down"]
)
def test_the_package_alone_says_what_it_lacks(
    call: Call, ran: Ran, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skyband, "__file__", str(tmp_path / "skyband" / "__init__.py"))
    answer = call(*command.split())
    assert answer.code == 1
    assert "needs a checkout of Skyband or its image" in answer.err
    assert not hasattr(ran, "words")


def test_options_become_words() -> None:
    assert given({"--a": 1, "--b": None, "--c": False, "--d": True, "--e": ["x", "y"], "--f": 0}) == [
        *("--a", "1", "--d", "--e", "x", "--e", "y", "--f", "0")
    ]
