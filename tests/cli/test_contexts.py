"""Contexts: kept in a file, chosen by name, environment and option."""

from pathlib import Path

import pytest

from skyband.cli.contexts import Context, Contexts, chosen_context
from skyband.errors import DefinitionError, InputError, NotFoundError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SKYBAND_CONTEXT", "SKYBAND_SERVER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_without_any_the_default_addresses_are_used() -> None:
    assert chosen_context() == Context()


def test_the_first_context_becomes_the_current_one_and_is_read_back() -> None:
    contexts = Contexts()
    contexts.put(Context("up", "localhost:1", "localhost:2", "localhost:3"))
    contexts.put(Context("far", "far:1", tls=True))
    assert chosen_context() == Context("up", "localhost:1", "localhost:2", "localhost:3")
    assert chosen_context("far") == Context("far", "far:1", tls=True)
    Contexts().use("far")
    assert chosen_context().name == "far"


def test_the_environment_and_the_option_go_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = Contexts()
    contexts.put(Context("one", "one:1", "one:2"))
    contexts.put(Context("two", "two:1", "two:2", "two:3"))
    monkeypatch.setenv("SKYBAND_CONTEXT", "two")
    assert chosen_context().control == "two:1"
    monkeypatch.setenv("SKYBAND_SERVER", "there:7")
    assert chosen_context() == Context("two", "there:7", "", "two:3")
    assert chosen_context("one", "here:8") == Context("one", "here:8")


def test_a_removed_context_is_gone_and_another_takes_its_place() -> None:
    contexts = Contexts()
    contexts.put(Context("a"))
    contexts.put(Context("b"))
    contexts.remove("a")
    assert Contexts().current == "b"
    with pytest.raises(NotFoundError, match="no context 'a'; there are: b"):
        chosen_context("a")


@pytest.mark.parametrize("server", ["localhost", "localhost:x", ":50051"])
def test_a_server_without_host_or_port_is_refused(server: str) -> None:
    with pytest.raises(DefinitionError, match="must be host:port"):
        chosen_context(None, server)


def test_a_damaged_file_is_named(home: Path) -> None:
    path = home / "skyband" / "contexts.json"
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(InputError, match=r"contexts\.json: holds no contexts"):
        chosen_context()
