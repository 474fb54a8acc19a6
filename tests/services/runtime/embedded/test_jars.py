"""Kafka's jars are fetched once, whole, and are the ones that were meant."""

import hashlib
from pathlib import Path

import pytest

from services.runtime.embedded import jars
from services.runtime.embedded.jars import cache_folder, ensure_jars
from skyband.errors import LogError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKYBAND_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What a fetch brings; the sums are those of one jar named kafka.jar."""
    content = {"kafka.jar": b"classes"}

    def retrieve(wanted: object, work: Path, say: object) -> None:
        (work / "jars").mkdir()
        for name, data in content.items():
            (work / "jars" / name).write_bytes(data)

    monkeypatch.setattr(jars, "_retrieve", retrieve)
    monkeypatch.setattr(jars, "_sums", lambda wanted: {"kafka.jar": hashlib.sha256(b"classes").hexdigest()})
    return content


def test_what_was_fetched_is_not_fetched_again(cache: Path, repository: dict[str, bytes]) -> None:
    said: list[str] = []
    folder = ensure_jars(said.append)
    assert [path.name for path in folder.iterdir()] == ["kafka.jar"]
    assert len(said) == 2
    repository.clear()
    assert ensure_jars(said.append) == folder
    assert len(said) == 2


@pytest.mark.parametrize("other", [{"kafka.jar": b"changed"}, {}, {"kafka.jar": b"classes", "more.jar": b"unexpected"}])
def test_other_bytes_than_meant_are_refused_and_nothing_is_kept(
    cache: Path, repository: dict[str, bytes], other: dict[str, bytes]
) -> None:
    repository.clear()
    repository.update(other)
    with pytest.raises(LogError, match=r"differs from .*jars\.sha256 in (kafka|more)\.jar"):
        ensure_jars(lambda _: None)
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_the_list_of_jars_names_kafka_of_this_version() -> None:
    assert f"kafka_2.13-{jars.KAFKA_VERSION}.jar" in jars._sums(jars._KAFKA)


def test_a_repository_that_cannot_be_reached_is_named_as_the_cause() -> None:
    lines = [
        ":: problems summary ::\n",
        ":::: ERRORS\n",
        "\tServer access error at url https://example.org/a.pom (java.net.UnknownHostException: example.org)\n",
    ]
    assert jars.reason_of(lines) == "java.net.UnknownHostException: example.org"


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"SKYBAND_CACHE": "/cache/of/skyband", "XDG_CACHE_HOME": "/cache"}, Path("/cache/of/skyband")),
        ({"XDG_CACHE_HOME": "/cache"}, Path("/cache/skyband")),
        ({}, Path.home() / ".cache" / "skyband"),
    ],
)
def test_the_folder_is_the_users_unless_it_is_named(environment: dict[str, str], folder: Path) -> None:
    assert cache_folder(environment) == folder
