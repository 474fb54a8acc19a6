"""One Spark for all tests of this folder: a JVM takes its time to start, and a process has one at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests run each query once: what the second compiler gains it never earns back (10 CPU seconds a start instead of 15).
_JVM = "-XX:TieredStopAtLevel=1"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of this process, as jobs open it, of two cores; a job that opens one gets this. Do not stop it."""
    # Here, since the fast tests of this folder need no Spark.
    from spark.session import session_for

    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": _JVM,
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    with session_for("tests", settings) as session:
        yield session
