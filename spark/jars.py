"""What Spark needs to read Kafka and Avro, and PySpark does not ship: fetched once, as Kafka itself is.

``python -m spark.jars`` writes their paths as ``spark-submit --jars`` takes them.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from services.runtime.embedded.jars import JarSet, cache_folder, fetch_once, tell
from skyband.errors import SkybandError

__all__ = ["SPARK_VERSION", "ensure_spark_jars", "spark_jars_folder"]

SPARK_VERSION = "4.2.0"
_SCALA = "2.13"

# Without what they need in turn: PySpark ships the rest, 59 MB of 69.
_JARS = JarSet(
    title=f"Spark {SPARK_VERSION}'s readers of Kafka and Avro",
    folder=f"spark-{SPARK_VERSION}-jars",
    wanted=(
        ("org.apache.spark", f"spark-sql-kafka-0-10_{_SCALA}", SPARK_VERSION),
        ("org.apache.spark", f"spark-token-provider-kafka-0-10_{_SCALA}", SPARK_VERSION),
        ("org.apache.spark", f"spark-avro_{_SCALA}", SPARK_VERSION),
        ("org.apache.kafka", "kafka-clients", "3.9.2"),
        ("org.apache.commons", "commons-pool2", "2.13.1"),
    ),
    sums=Path(__file__).resolve().with_name("jars.sha256"),
    cost="10 MB, once",
    is_whole=False,
)


def spark_jars_folder() -> Path:
    """Return where these jars lie once they are fetched."""
    return cache_folder() / _JARS.folder


def ensure_spark_jars(say: Callable[[str], None] = tell) -> Path:
    """Return the folder of these jars, which are fetched if they are not there. Raises LogError if they cannot be."""
    return fetch_once(_JARS, say)


if __name__ == "__main__":
    try:
        sys.stdout.write(",".join(map(str, sorted(ensure_spark_jars().glob("*.jar")))) + "\n")
    except SkybandError as error:
        sys.exit(str(error))
