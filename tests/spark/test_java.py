"""Which Java Spark starts with, and what its launcher leaves out."""

import os
import subprocess
from pathlib import Path

import pytest

from spark.java import java_home

ASKED = ["--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"]


def runtime(home: Path, modules: str | None) -> Path:
    """Make a runtime that answers with its arguments, one a line."""
    (home / "bin").mkdir(parents=True)
    launcher = home / "bin" / "java"
    launcher.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    launcher.chmod(0o755)
    listed = "" if modules is None else f'MODULES="{modules}"\n'
    (home / "release").write_text(f'JAVA_VERSION="21.0.1"\n{listed}')
    return home


def environment(tmp_path: Path, home: Path) -> dict[str, str]:
    return {"JAVA_HOME": str(home), "SKYBAND_CACHE": str(tmp_path / "cache")}


@pytest.mark.parametrize("modules", ["java.base jdk.incubator.vector", None])
def test_a_whole_runtime_is_used_as_it_is(tmp_path: Path, modules: str | None) -> None:
    home = runtime(tmp_path / "whole", modules)
    assert java_home(environment(tmp_path, home)) == home
    assert not (tmp_path / "cache").exists()


def test_a_trimmed_runtime_is_not_asked_for_what_it_lacks(tmp_path: Path) -> None:
    home = java_home(environment(tmp_path, runtime(tmp_path / "trimmed 'here'", "java.base")))
    given = ["-Xmx1g", *ASKED, "-cp", "a b:*", "", "$HOME", "Main"]
    said = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[:-1] == [argument for argument in given if argument not in ASKED]


def test_the_launcher_is_written_once_for_each_runtime(tmp_path: Path) -> None:
    first, second = (runtime(tmp_path / name, "java.base") for name in ("first", "second"))
    home = java_home(environment(tmp_path, first))
    written = os.stat(home / "bin" / "java")
    assert java_home(environment(tmp_path, first)) == home
    assert os.stat(home / "bin" / "java").st_ino == written.st_ino
    assert java_home(environment(tmp_path, second)) != home
    assert sorted(path.name for path in (home / "bin").iterdir()) == ["java"]


def test_the_launcher_of_a_trimmed_runtime_may_be_java_home_itself(tmp_path: Path) -> None:
    trimmed = environment(tmp_path, runtime(tmp_path / "trimmed", "java.base"))
    home = java_home(trimmed)
    (home / "release").write_text('JAVA_VERSION="21.0.1"\n')
    assert java_home({**trimmed, "JAVA_HOME": str(home)}) == home
