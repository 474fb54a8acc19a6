"""Commands against servers of this process; import the fixtures from here."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Answer
from tests.client.conftest import Deployment

__all__ = ["Ask", "Deployment", "ask", "deployment", "documents"]

Ask = Callable[..., Answer]


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """Servers with the group factory, its stream heat, and the queries hottest and coolest."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SKYBAND_CONTEXT", raising=False)
    made = Deployment()
    monkeypatch.setenv("SKYBAND_SERVER", made.address)
    yield made
    made.close()


@pytest.fixture
def ask(deployment: Deployment, call: Ask) -> Ask:
    """Call a command that talks to the deployment."""
    return call


def documents(answer: Answer) -> list[dict[str, Any]]:
    """Return the JSON Lines of an answer that went well."""
    assert (answer.code, answer.err) == (0, ""), answer.err
    return [json.loads(line) for line in answer.out.splitlines()]
