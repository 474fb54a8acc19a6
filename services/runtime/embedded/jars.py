"""Kafka's jars: fetched once into a folder of this user, with the Ivy that the installed PySpark ships.

What is fetched is compared with ``jars.sha256``, so that every machine runs the same bytes. SKYBAND_CACHE names the
folder to use instead of ``~/.cache/skyband``. The folder appears whole or not at all, so its being there is enough.
Other sets of jars, with lists of their own, are fetched in the same way.
"""

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from services.runtime.embedded.java import find_java
from services.runtime.embedded.trust import network_options
from skyband.errors import LogError

__all__ = [
    "KAFKA_VERSION",
    "JarSet",
    "cache_folder",
    "ensure_jars",
    "fetch_once",
    "ivy_jar",
    "kept_from_others",
    "reason_of",
    "tell",
]

KAFKA_VERSION = "4.4.0"
_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that belong together.

    `title` is what they are, `folder` the name of their folder in the cache, `wanted` what to ask for (organisation,
    name, version), with what it needs if `is_whole`; `sums` is the file of their digests, `cost` what a fetch takes.
    """

    title: str
    folder: str
    wanted: tuple[tuple[str, str, str], ...]
    sums: Path
    cost: str
    is_whole: bool = True


_KAFKA = JarSet(
    title=f"Apache Kafka {KAFKA_VERSION}",
    folder=f"kafka-{KAFKA_VERSION}",
    # slf4j-simple is Kafka's way to write its log, and no dependency of it.
    wanted=(("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), ("org.slf4j", "slf4j-simple", "1.7.36")),
    sums=Path(__file__).resolve().with_name("jars.sha256"),
    cost="43 MB, once, about a minute",
)


def tell(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where what was fetched is kept; it need not be there yet."""
    if own := environment.get("SKYBAND_CACHE"):
        return Path(own)
    general = environment.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path.home() / ".cache") / "skyband"


@contextmanager
def kept_from_others(path: Path) -> Iterator[None]:
    """Hold a lock on the file `path`; other processes that want it wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def ensure_jars(say: Callable[[str], None] = tell) -> Path:
    """Return the folder of Kafka's jars, which are fetched if they are not there (43 MB, about a minute).

    Raises LogError if they cannot be had.
    """
    return fetch_once(_KAFKA, say)


def fetch_once(jars: JarSet, say: Callable[[str], None] = tell) -> Path:
    """Return the folder of these jars, which are fetched if they are not there.

    Raises LogError if they cannot be had. Two processes that want them at once fetch them once.
    """
    cache = cache_folder()
    folder = cache / jars.folder
    if folder.is_dir():
        return folder
    with kept_from_others(cache / f"{jars.folder}.lock"):
        if not folder.is_dir():
            say(f"fetching {jars.title} into {folder} ({jars.cost})")
            with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as work:
                _retrieve(jars, Path(work), say)
                _verify(jars, Path(work, "jars"))
                Path(work, "jars").rename(folder)
            say(f"fetched {jars.title}")
    return folder


def _retrieve(jars: JarSet, work: Path, say: Callable[[str], None]) -> None:
    module = work / "ivy.xml"
    module.write_text(_module_file(jars), encoding="utf-8")
    command: list[str | Path] = [find_java().launcher, *network_options(work), "-jar", ivy_jar()]
    command += ["-ivy", module, "-cache", work / "ivy", "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{work}/jars/[artifact]-[revision].[ext]"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        lines = []
        for line in ivy.stdout:
            lines.append(line)
            if line.startswith("downloading ") and (done := sum(a.startswith("downloading ") for a in lines)) % 10 == 0:
                say(f"  {done} of {len(_sums(jars))} jars")
    if ivy.returncode != 0:
        raise LogError(
            f"cannot fetch {jars.title}: {reason_of(lines)}; is there a network, and does it reach a "
            f"Maven repository? (SKYBAND_CACHE may name a folder that holds {jars.folder} already)"
        )


def ivy_jar() -> Path:
    """Return the Ivy that PySpark brings. Raises LogError without it."""
    specification = importlib.util.find_spec("pyspark")
    places = (specification.submodule_search_locations or []) if specification else []
    for place in places:
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise LogError(
        "jars are fetched with the Ivy inside the package pyspark, which is not installed here; run `make setup`"
    )


def _module_file(jars: JarSet) -> str:
    depth = "" if jars.is_whole else ' transitive="false"'
    wanted = "".join(
        f'<dependency org="{organisation}" name="{name}" rev="{version}" conf="default->default"{depth}/>'
        for organisation, name, version in jars.wanted
    )
    return (
        '<ivy-module version="2.0"><info organisation="skyband" module="embedded"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )


def reason_of(lines: list[str]) -> str:
    """Return what Ivy ended with, without its decoration."""
    for line in lines:
        if found := re.search(r"Server access error.*\((.*)\)|(\S*(?:UnknownHost|Connect)\w*Exception.*)", line):
            return (found[1] or found[2]).strip()
    said = [line.strip() for line in lines if line.strip() and not line.strip().startswith("::::")]
    return said[-1] if said else "Ivy said nothing"


def _sums(jars: JarSet) -> dict[str, str]:
    pairs = (line.split() for line in jars.sums.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in pairs}


def _verify(jars: JarSet, folder: Path) -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    wanted = _sums(jars)
    wrong = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
    if wrong:
        shutil.rmtree(folder)
        raise LogError(
            f"what was fetched as {jars.title} differs from {jars.sums.relative_to(_ROOT)} "
            f"in {', '.join(wrong[:3])}{' and more' if len(wrong) > 3 else ''}; nothing was kept"
        )
