"""Flink's jars: fetched once into the project's ignored ``.run/peers/flink/``, and compared with known sums.

The distribution lies in a package without dependencies, which pip puts into a folder of its own; the connectors come
with the Ivy that fetches Kafka. The folder appears whole or not at all.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.peer import PeerError
from services.runtime.embedded.jars import ivy_jar, kept_from_others, reason_of, tell
from services.runtime.embedded.java import find_java
from services.runtime.embedded.trust import network_options

__all__ = ["VERSION", "ensure_distribution"]

VERSION = "2.3.0"
_HERE = Path(__file__).parent
_FOLDER = Path(__file__).resolve().parents[3] / ".run" / "peers" / "flink" / VERSION
# Without dependencies: the connector and the format bring theirs. The package lacks the gateway that its client needs.
_JARS = (("flink-sql-connector-kafka", "5.0.0-2.2"), ("flink-sql-avro", VERSION), ("flink-sql-gateway", VERSION))


def ensure_distribution() -> Path:
    """Return the folder with Flink in ``pyflink/`` and more in ``jars/``; raises PeerError."""
    if _FOLDER.is_dir():
        return _FOLDER
    with kept_from_others(_FOLDER.with_name(f"{VERSION}.lock")):
        if not _FOLDER.is_dir():
            tell(f"fetching Apache Flink {VERSION} into {_FOLDER} (340 MB, once, about a minute)")
            with tempfile.TemporaryDirectory(dir=_FOLDER.parent, prefix="fetching-") as work:
                whole = Path(work, "whole")
                _fetch_flink(whole)
                _fetch_jars(whole / "jars", Path(work))
                whole.rename(_FOLDER)
    return _FOLDER


def _fetch_flink(folder: Path) -> None:
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    words += ["--require-hashes", "--target", str(folder), "--requirement", str(_HERE / "distribution.txt")]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise PeerError(f"cannot fetch Apache Flink {VERSION}: {said[-1].strip()}; is there a network?")


def _fetch_jars(folder: Path, work: Path) -> None:
    wanted = "".join(
        f'<dependency org="org.apache.flink" name="{name}" rev="{version}" transitive="false" conf="default->master"/>'
        for name, version in _JARS
    )
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="skyband" module="peers"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>',
        encoding="utf-8",
    )
    command: list[str | Path] = [find_java().launcher, *network_options(work), "-jar", ivy_jar()]
    command += ["-ivy", work / "ivy.xml", "-cache", work / "ivy", "-confs", "default", "-types", "jar"]
    command += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        reason = reason_of(done.stdout.splitlines())
        raise PeerError(f"cannot fetch the connector of Apache Flink {VERSION}: {reason}; is there a network?")
    wanted_sums = dict(line.split()[::-1] for line in (_HERE / "jars.sha256").read_text("utf-8").splitlines())
    sums = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.iterdir()}
    if sums != wanted_sums:
        raise PeerError("the jars of Apache Flink that were fetched differ from jars.sha256; none were kept")
