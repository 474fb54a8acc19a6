"""How jobs get their Spark: the session of `spark-submit` as it was set up there, or one on this machine.

Who starts a job by ``spark-submit`` has the last word on all settings; then come those that the job asks for, then
those of here. Started by ``python -m``, a job runs on this machine alone, or where SPARK_MASTER says.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from services.runtime.embedded.java import find_java
from skyband.errors import SkybandError
from spark.jars import ensure_spark_jars
from spark.java import java_home
from spark.quick_start import archive_path

__all__ = ["open_session", "session_for"]

_ROOT = Path(__file__).resolve().parent.parent
_NO_SETTINGS: Mapping[str, str] = {}

_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
    # State is kept on disk, and a checkpoint writes what changed, not all of it.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    # By default the key of a client's certificate would be written with the options of its query.
    "spark.redaction.regex": r"(?i)secret|password|token|access[.]?key|keystore[.]key|jaas",
}

# Java's own warnings go with the archive of classes, which a changed runtime need not fit.
_JVM = ("-Xlog:disable", "-Xlog:all=error:stderr", f"-Dlog4j2.configurationFile={_ROOT}/spark/log4j2.properties")


def open_session(name: str, settings: Mapping[str, str] = _NO_SETTINGS) -> SparkSession:
    """Return the Spark session of this process, opened under `name` if there is none.

    A session that is open already is returned as it is. The first one starts a JVM (4 s) and may fetch jars (10 MB).
    Raises LogError without Java or jars, SkybandError if the JVM does not start.
    """
    if _is_open():
        return SparkSession.builder.getOrCreate()
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _submitted(name, settings)
    master = settings.get("spark.master") or os.environ.get("SPARK_MASTER") or "local[*]"
    chosen = {**_EVERYWHERE, **_environment(), **_place(master), "spark.app.name": name, **settings}
    own = chosen.get("spark.driver.extraJavaOptions", "")
    chosen["spark.driver.extraJavaOptions"] = " ".join([*map(shlex.quote, _jvm_options()), own]).strip()
    with _launching(is_local=master.startswith("local")):
        try:
            return SparkSession.builder.config(map=dict(chosen)).getOrCreate()
        except PySparkRuntimeError as error:
            raise SkybandError(f"Spark does not start ({error}); what its Java said stands above") from error


@contextmanager
def session_for(name: str, settings: Mapping[str, str] = _NO_SETTINGS) -> Iterator[SparkSession]:
    """Open a session for a block, and stop it behind unless it was open before; see `open_session`."""
    was_open = _is_open()
    session = open_session(name, settings)
    try:
        yield session
    finally:
        if not was_open:
            session.stop()


def _is_open() -> bool:
    """Return whether this process has a session; `getActiveSession` would ask for one of this thread."""
    return SparkContext._active_spark_context is not None


def _submitted(name: str, settings: Mapping[str, str]) -> SparkSession:
    """Return the session of a `spark-submit`, whose JVM runs already, with what was said there untouched."""
    SparkContext._ensure_initialized()
    submitted = SparkConf()
    place = _cores() if submitted.get("spark.master", "local").startswith("local") else {}
    for key, value in {**_EVERYWHERE, **_environment(), **place, "spark.app.name": name, **settings}.items():
        submitted.setIfMissing(key, value)
    return SparkSession.builder.config(conf=submitted).getOrCreate()


def _environment() -> dict[str, str]:
    """Return what Python workers find in their environment, so that they import the same and compile nothing anew."""
    paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
    found = {"spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if cache := os.environ.get("NUMBA_CACHE_DIR"):
        found["spark.executorEnv.NUMBA_CACHE_DIR"] = cache
    return found


def _place(master: str) -> dict[str, str]:
    """Return the settings for a master: where jars lie, and how much one machine takes."""
    jars = ensure_spark_jars()
    if not master.startswith("local"):
        return {"spark.master": master, "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar"))))}
    return {
        "spark.master": master,
        # Read where they lie: `spark.jars` would copy them for each session, and keep them out of the archive.
        "spark.driver.extraClassPath": f"{jars}/*",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **_cores(),
    }


def _cores() -> dict[str, str]:
    """Return the settings by which one machine's cores are enough: 200 partitions are for a cluster."""
    return {"spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 1)), "spark.ui.enabled": "false"}


def _jvm_options() -> list[str]:
    archive = archive_path(find_java())
    return [*_JVM, f"-XX:AOTCache={archive}"] if archive.is_file() else [*_JVM]


@contextmanager
def _launching(*, is_local: bool) -> Iterator[None]:
    """Let the JVM be started with the right Java and Python; the environment of this process stays as it was."""
    wanted = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable}
    if is_local:
        # Spark looks for an address of this machine that others can reach, which nobody needs.
        wanted["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
