"""Which Java runs Spark: the one that runs Kafka, behind a launcher that mends what Spark asks of it.

The runtime from PyPI is trimmed: it has no ``jdk.incubator.vector``, which Spark asks for by name and does without;
asked for it, Java does not start. ``python -m spark.java`` writes the JAVA_HOME for a ``spark-submit`` of one's own.
"""

import os
import re
import shlex
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from services.runtime.embedded.jars import cache_folder
from services.runtime.embedded.java import find_java
from skyband.errors import SkybandError

__all__ = ["java_home"]

_MISSED = "jdk.incubator.vector"
# The second names a package that went with Java 24: Java starts without, and says so each time.
_LAUNCHER = """\
#!/bin/sh
# Starts a Java that lacks what Spark asks for and does without.
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector | --add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {launcher} "$@"
"""


def java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the JAVA_HOME with which Spark starts; writes a launcher of a few lines into the cache if one is needed.

    Raises LogError if there is no Java.
    """
    java = find_java(environment)
    home = java.launcher.resolve().parent.parent
    if _has_all_modules(home):
        return home
    # Environments have a runtime each, and the cache is the user's.
    shim = cache_folder(environment) / f"java-{java.version}-{zlib.crc32(str(home).encode()):08x}"
    _write(shim / "bin" / "java", _LAUNCHER.format(launcher=shlex.quote(str(home / "bin" / "java"))))
    return shim


def _has_all_modules(home: Path) -> bool:
    """Return whether the runtime has the module; one that does not list its modules is taken to be whole."""
    try:
        content = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    listed = re.search(r'^MODULES="(.*)"', content, re.MULTILINE)
    return listed is None or _MISSED in listed[1].split()


def _write(path: Path, content: str) -> None:
    """Write a program, at once and only if it differs: another process may be starting it."""
    if path.is_file() and path.read_text(encoding="utf-8") == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(content)
    made = Path(file.name)
    made.chmod(0o755)
    made.replace(path)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{java_home()}\n")
    except SkybandError as error:
        sys.exit(str(error))
