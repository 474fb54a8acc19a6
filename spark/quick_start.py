"""Spark's classes, loaded and linked beforehand: a session and two jobs cost 15 CPU seconds instead of 32.

Java 25 writes such an archive (180 MB) at the end of a run in which it watched what was loaded. It fits one runtime
and one set of jars; a runtime that it does not fit ignores it.
"""

import importlib.util
import zlib
from pathlib import Path

from services.runtime.embedded.archive import LEAST_VERSION
from services.runtime.embedded.jars import cache_folder
from services.runtime.embedded.java import Java
from spark.jars import SPARK_VERSION

__all__ = ["archive_path", "can_archive"]


def can_archive(java: Java) -> bool:
    """Return whether a Java can make such an archive, and use it."""
    return java.feature >= LEAST_VERSION


def archive_path(java: Java) -> Path:
    """Return where the archive for this Java and the PySpark of this environment lies once it is made."""
    specification = importlib.util.find_spec("pyspark")
    # An archive knows the paths of its jars, and each environment has its own.
    jars = Path(specification.origin or "") if specification else Path()
    place = zlib.crc32(f"{jars.resolve()} {java.launcher.resolve()}".encode())
    return cache_folder() / f"spark-{SPARK_VERSION}-java-{java.version}-{place:08x}.aot"
