"""The session that jobs get: its settings, its workers, and what one that is open already keeps."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from skyband.structures.hashing import shard_of
from spark.session import open_session, session_for

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]


def test_times_are_utc_and_frames_travel_by_arrow(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.sparkContext.uiWebUrl is None
    row = spark.sql("SELECT unix_micros(timestamp '2026-01-01 00:00:00') AS time_us").first()
    assert row is not None
    assert row.time_us == 1_767_225_600_000_000


def test_workers_run_this_python_and_import_the_package_of_this_checkout(spark: SparkSession) -> None:
    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import services.runtime.topics
        import skyband.model
        import spark.jars

        for _ in batches:
            places = [sys.executable, skyband.model.__file__, services.runtime.topics.__file__, spark.jars.__file__]
            yield pa.RecordBatch.from_arrays([pa.array(places)], names=["place"])

    places = {row.place for row in spark.range(1, numPartitions=1).mapInArrow(tell, "place string").collect()}
    assert {place for place in places if not place.startswith(str(ROOT))} <= {sys.executable}
    assert len(places) == 4


def test_kernels_give_the_same_in_a_worker(spark: SparkSession) -> None:
    arena = np.frombuffer(b"machine-17", np.uint8)

    def shard(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from skyband.structures.hashing import shard_of

        for batch in batches:
            shards = [int(shard_of(arena, 0, len(arena), shards.as_py() + 1)) for shards in batch.column(0)]
            yield pa.RecordBatch.from_arrays([pa.array(shards)], names=["shard"])

    found = [row.shard for row in spark.range(8, numPartitions=1).mapInArrow(shard, "shard long").collect()]
    assert found == [shard_of(arena, 0, len(arena), shards) for shards in range(1, 9)]


def test_a_session_that_is_open_is_given_as_it_is_and_stays_open(spark: SparkSession) -> None:
    assert open_session("other", {"spark.sql.shuffle.partitions": "77"}) is spark
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(open_session, "other", {"spark.sql.shuffle.partitions": "78"}).result() is spark
    with session_for("other") as session:
        assert session is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.range(3).count() == 3


def test_state_of_streams_is_kept_by_rocksdb_as_changes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "numbers.json").write_text('{"n": 1}\n{"n": 1}\n{"n": 2}\n')
    numbers = spark.readStream.schema("n long").json(str(tmp_path / "in"))
    counted = numbers.groupBy("n").agg(functions.count("*").alias("times")).writeStream.outputMode("complete")
    query = counted.format("memory").queryName("counted").trigger(availableNow=True)
    running = query.option("checkpointLocation", str(tmp_path / "state")).start()
    running.awaitTermination(60)
    assert {(row.n, row.times) for row in spark.table("counted").collect()} == {(1, 2), (2, 1)}
    assert list((tmp_path / "state" / "state").rglob("*.changelog"))


@pytest.mark.slow
def test_what_spark_submit_says_is_not_overridden(tmp_path: Path) -> None:
    from spark.java import java_home

    job = tmp_path / "told.py"
    job.write_text(
        "from spark.session import session_for\n"
        "with session_for('job', {'spark.sql.shuffle.partitions': '5'}) as session:\n"
        "    names = ('shuffle.partitions', 'session.timeZone')\n"
        "    told = [session.conf.get(f'spark.sql.{name}') for name in names]\n"
        "    print('told', session.sparkContext.appName, session.sparkContext.master, *told)\n"
    )
    submit = [Path(sys.executable).with_name("spark-submit"), "--name", "mine", "--master", "local[1]"]
    submit += ["--driver-java-options", "-XX:TieredStopAtLevel=1", "--conf", "spark.sql.shuffle.partitions=3", job]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "JAVA_HOME": str(java_home())}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(submit, env=environment, capture_output=True, text=True, check=True, timeout=240).stdout
    assert "told mine local[1] 3 UTC" in said
