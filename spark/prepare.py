"""``python -m spark.prepare``: what a first session would fetch, and its classes made ready, beforehand."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession, functions

from services.runtime.embedded.jars import kept_from_others, tell
from services.runtime.embedded.java import find_java
from skyband.errors import SkybandError
from spark.jars import ensure_spark_jars
from spark.quick_start import archive_path, can_archive
from spark.session import session_for

__all__ = ["prepare"]

_ROOT = Path(__file__).resolve().parent.parent
# Nobody is asked before records are, and the reader's classes are loaded.
_NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "none"}


def prepare(say: Callable[[str], None] = tell) -> None:
    """Fetch Spark's jars and make the archive of its classes, each unless it is there (then 0.4 s and no JVM).

    Raises SkybandError if something cannot be had.
    """
    java = find_java()
    ensure_spark_jars(say)
    path = archive_path(java)
    if path.is_file() or not can_archive(java):
        return
    with kept_from_others(path.with_suffix(".lock")):
        if not path.is_file():
            say("preparing Spark for quick starts (once, about 40 s)")
            began_s = time.monotonic()
            _make(path)
            say(f"prepared Spark in {time.monotonic() - began_s:.0f} s")


def _make(path: Path) -> None:
    """Let another process make the archive: what Java says of the classes that it leaves out is for nobody."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="preparing-") as work:
        made = Path(work, "made.aot")
        command = [sys.executable, "-m", "spark.prepare", str(made)]
        ran = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, errors="replace", check=False)
        if not made.is_file():
            said = (ran.stderr.strip() or "nothing was said").splitlines()[-1]
            raise SkybandError(f"Spark's classes cannot be made ready: {said}; sessions start without, only slower")
        made.rename(path)


def _use_for(made: Path) -> None:
    """Run a session whose JVM writes the archive as it ends."""
    settings = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": f"-XX:AOTCacheOutput={made}"}
    with session_for("prepare", settings) as session:
        gateway = session.sparkContext._gateway
        _use(session, made.parent)
    # The JVM ends when nobody holds its input any more.
    assert gateway is not None
    gateway.proc.communicate()


def _use(session: SparkSession, work: Path) -> None:
    """Do once what jobs do, so that the classes for it are in the archive too."""

    def same(batches: Iterator[object]) -> Iterator[object]:
        yield from batches

    numbers = session.range(1_000)
    numbers.mapInArrow(same, "id long").groupBy((functions.col("id") % 3).alias("rest")).count().toPandas()
    numbers.write.parquet(str(work / "numbers"))
    session.read.parquet(str(work / "numbers")).orderBy("id").limit(3).collect()
    session.read.format("kafka").options(**_NOBODY).load()


def main(arguments: list[str]) -> int:
    """Run the command, which has no arguments but for itself, and return the exit code."""
    try:
        if arguments:
            _use_for(Path(arguments[0]))
        else:
            prepare()
    except SkybandError as error:
        tell(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
