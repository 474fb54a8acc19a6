"""Which Java runtime is chosen."""

from pathlib import Path

import pytest

from services.runtime.embedded import java
from services.runtime.embedded.java import find_java
from skyband.errors import LogError


def runtime(home: Path, version: str, *, written: bool = True) -> Path:
    """Make a runtime that can do one thing: tell its version, in the file `release` or when asked."""
    (home / "bin").mkdir(parents=True)
    launcher = home / "bin" / "java"
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    launcher.chmod(0o755)
    if written:
        (home / "release").write_text(f'IMPLEMENTOR="somebody"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = runtime(tmp_path / "packaged", "25.0.2")
    monkeypatch.setattr(java, "_packaged_home", lambda: home)
    return home


@pytest.mark.parametrize("written", [True, False])
def test_java_home_is_used_if_it_is_new_enough(tmp_path: Path, packaged: Path, written: bool) -> None:
    own = runtime(tmp_path / "own", "17.0.15", written=written)
    found = find_java({"JAVA_HOME": str(own)})
    assert found == java.Java(own / "bin" / "java", 17, "17.0.15")


@pytest.mark.parametrize("version", ["1.8.0", "11.0.2", "16"])
def test_an_old_java_home_gives_way_to_the_packaged_one(tmp_path: Path, packaged: Path, version: str) -> None:
    own = runtime(tmp_path / "own", version)
    assert find_java({"JAVA_HOME": str(own)}).launcher == packaged / "bin" / "java"


def test_without_java_home_the_packaged_one_is_used(packaged: Path) -> None:
    assert find_java({}).feature == 25


@pytest.mark.parametrize(
    ("home", "said"),
    [
        (None, "JAVA_HOME is not set"),
        ("missing", "JAVA_HOME=.* holds none that runs"),
        ("old", "JAVA_HOME=.* is Java 8"),
    ],
)
def test_a_machine_without_a_usable_java_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None, said: str
) -> None:
    monkeypatch.setattr(java, "_packaged_home", lambda: None)
    runtime(tmp_path / "old", "1.8.0")
    environment = {} if home is None else {"JAVA_HOME": str(tmp_path / home)}
    with pytest.raises(LogError, match=rf"Java 17 or newer is needed: {said}, .*make setup"):
        find_java(environment)
