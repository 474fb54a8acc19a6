"""What is audited against: rows and sections of an aligned log, from an archive or from its topic.

Rows: shard, aligned_offset, stream, partition, source_offset, event_us, release_us, object_id, values. Sections: shard
and the columns of an archive's.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from services.runtime.codecs import Codecs
from services.runtime.settings import KafkaSettings
from skyband.align.topics import aligned_topic
from skyband.coverage.aligned_batch import AlignedBatch
from spark.archive_aligned import row_table, section_table
from spark.archive_layout import ROW_SCHEMA, SECTION_SCHEMA
from spark.archive_store import ArchiveStore
from spark.kafka_frames import read_topic

__all__ = ["AlignedFrames", "archived_frames", "topic_frames"]

_SHARD = pa.field("shard", pa.int32(), nullable=False)


class AlignedFrames:
    """An aligned log as frames: its sections, and rows of a range. Nothing is read before the frames are used.

    `read` returns rows as archives have them, with the shard, at least those of an event time in [low, high) (None:
    no bound); `repeats` says whether some may be there twice.
    """

    def __init__(
        self, read: Callable[[int | None, int | None], DataFrame], sections: DataFrame, *, repeats: bool
    ) -> None:
        self._read, self._repeats = read, repeats
        self.sections = sections

    def rows(self, low_us: int | None = None, high_us: int | None = None) -> DataFrame:
        """Return the rows with event times in [low_us, high_us), each once."""
        event = sql.unix_micros("event_time")
        rows = self._read(low_us, high_us).select(
            "shard",
            "aligned_offset",
            "stream",
            "partition",
            "source_offset",
            event.alias("event_us"),
            sql.unix_micros("release_time").alias("release_us"),
            "object_id",
            "values",
        )
        if low_us is not None:
            rows = rows.where(sql.col("event_us") >= low_us)
        if high_us is not None:
            rows = rows.where(sql.col("event_us") < high_us)
        return _without_repeats(rows) if self._repeats else rows


def archived_frames(session: SparkSession, store: ArchiveStore, group: str, generation: int) -> AlignedFrames:
    """Return an archived generation of a group."""

    def read(low_us: int | None, high_us: int | None) -> DataFrame:
        return _files(session, store.row_files(group, generation, low_us, high_us), ROW_SCHEMA)

    sections = _files(session, store.section_files(group, generation), SECTION_SCHEMA)
    return AlignedFrames(read, sections, repeats=False)


def topic_frames(
    session: SparkSession,
    kafka: KafkaSettings,
    group: str,
    generation: int,
    offsets: Mapping[int, tuple[int, int]],
) -> AlignedFrames:
    """Return what the aligned topic of a group holds in [begin, end) of each partition; read for each frame anew."""
    topic = aligned_topic(group, generation)
    begins = {partition: begin for partition, (begin, _) in offsets.items()}
    ends = {partition: end for partition, (_, end) in offsets.items()}
    records = read_topic(session, kafka.bootstrap, kafka.topic_prefix + topic, begins, ends, kafka=kafka)
    records = records.select("partition", "offset", "value")

    def decoded(schema: pa.Schema, *, of_rows: bool) -> DataFrame:
        return records.mapInArrow(partial(_decode, topic, of_rows), from_arrow_schema(schema.append(_SHARD)))

    rows, sections = decoded(ROW_SCHEMA, of_rows=True), decoded(SECTION_SCHEMA, of_rows=False)
    return AlignedFrames(lambda low_us, high_us: rows, sections, repeats=True)


def _files(session: SparkSession, files: list[str], schema: pa.Schema) -> DataFrame:
    if not files:
        return session.createDataFrame([], from_arrow_schema(schema.append(_SHARD)))
    return session.read.parquet(*files).withColumn("shard", _shard())


def _shard() -> Column:
    return sql.regexp_extract(sql.col("_metadata.file_path"), r"/shard=(\d+)/", 1).cast("int")


def _without_repeats(rows: DataFrame) -> DataFrame:
    """Keep of what aligners wrote twice what stands first."""
    place = ("shard", "stream", "partition", "source_offset")
    others = [name for name in rows.columns if name not in place]
    first = rows.groupBy(*place).agg(sql.min_by(sql.struct(*others), "aligned_offset").alias("first"))
    return first.select(*place, "first.*")


def _decode(topic: str, of_rows: bool, records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take aligned batches apart, one at a time: each may have megabytes."""
    codecs = Codecs()
    for record in records:
        for shard, offset, value in zip(*(column.to_pylist() for column in record.columns), strict=True):
            batch = codecs.decode(topic, value)
            if not isinstance(batch, AlignedBatch) or not (batch.rows if of_rows else batch.sections):
                continue
            # The catalog's records are read from the batch itself.
            table = row_table([(offset, batch)]) if of_rows else section_table([(offset, batch)], _Kept(value))
            column = pa.array([shard] * table.num_rows, pa.int32())
            yield from table.append_column(_SHARD, column).combine_chunks().to_batches()


class _Kept:
    """Gives the bytes of a batch that has records of the catalog."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def __call__(self, batch: AlignedBatch) -> bytes | None:
        return self._value if batch.catalog else None
