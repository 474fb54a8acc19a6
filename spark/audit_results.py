"""What was written: the topic `results` as a frame, and each window's results beside what should have been."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from services.runtime.codecs import Codecs
from services.runtime.settings import KafkaSettings
from skyband.model.result import Result
from spark.audit_compare import Found, FoundRow
from spark.kafka_frames import read_topic

__all__ = ["FOUND_SCHEMA", "RESULTS_TOPIC", "found_row", "gathered", "read_found", "result_frame"]

RESULTS_TOPIC = "results"

FOUND_SCHEMA = pa.schema(
    [
        pa.field("uid", pa.string(), nullable=False),
        pa.field("window_end", pa.int64(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("written_us", pa.int64(), nullable=False),
        pa.field("result", pa.string(), nullable=False),
    ]
)


def result_frame(session: SparkSession, kafka: KafkaSettings, uids: Iterable[str]) -> DataFrame:
    """Return the results of some queries, as FOUND_SCHEMA has them."""
    records = read_topic(session, kafka.bootstrap, kafka.topic_prefix + RESULTS_TOPIC, kafka=kafka)
    own = records.where(sql.col("key").cast("string").isin(list(uids)))
    chosen = own.select("partition", "offset", sql.unix_micros("timestamp").alias("written_us"), "value")
    return chosen.mapInArrow(_decode, from_arrow_schema(FOUND_SCHEMA))


def found_row(result: Result, partition: int, offset: int, written_us: int) -> dict[str, Any]:
    """Return a result as a row of the frame."""
    rows = [[row.rank, row.object_id, row.score, row.attributes, row.event_time_us] for row in result.rows]
    return {
        "uid": result.uid,
        "window_end": result.window_end,
        "partition": partition,
        "offset": offset,
        "written_us": written_us,
        "result": json.dumps([result.window_start, rows], separators=(",", ":")),
    }


def read_found(text: str) -> Found:
    """Return the result that a row of the frame holds."""
    window_start, rows = json.loads(text)
    return Found(window_start, tuple(FoundRow(*row) for row in rows))


def gathered(truths: Mapping[str, tuple[DataFrame, int]], found: DataFrame) -> DataFrame:
    """Return all window ends: uid, window_end, `rows` that should be (null: none), `found` in order of offsets, and
    `was_shown`: whether the end one slide before had rows.

    `truths` by uid, each with its slide.
    """
    parts = [
        found.select(
            "uid",
            "window_end",
            sql.lit(None).alias("rows"),
            sql.struct("partition", "offset", "result").alias("one"),
            sql.lit(False).alias("was_shown"),
        )
    ]
    for uid, (frame, slide) in truths.items():
        # One row for the window itself, one for the end behind it.
        both = sql.explode(sql.array(sql.lit(0), sql.lit(slide)).cast("array<long>")).alias("step")
        spread = frame.select("window_end", "rows", both)
        parts.append(
            spread.select(
                sql.lit(uid).alias("uid"),
                (sql.col("window_end") + sql.col("step")).alias("window_end"),
                sql.when(sql.col("step") == 0, sql.col("rows")).alias("rows"),
                sql.lit(None).alias("one"),
                (sql.col("step") > 0).alias("was_shown"),
            )
        )
    together = reduce(DataFrame.union, [*parts[1:], parts[0]])
    return together.groupBy("uid", "window_end").agg(
        sql.first("rows", ignorenulls=True).alias("rows"),
        sql.transform(sql.sort_array(sql.collect_list("one")), lambda one: one["result"]).alias("found"),
        sql.max("was_shown").alias("was_shown"),
    )


def _decode(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    codecs = Codecs()
    for record in records:
        found = []
        for partition, offset, written_us, value in zip(
            *(column.to_pylist() for column in record.columns), strict=True
        ):
            result = codecs.decode(RESULTS_TOPIC, value)
            if isinstance(result, Result):
                found.append(found_row(result, partition, offset, written_us))
        yield pa.RecordBatch.from_pylist(found, FOUND_SCHEMA)
