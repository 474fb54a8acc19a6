"""The pipeline as one query of Structured Streaming, and its life on the driver."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from services.runtime.groups import GroupWatch
from services.runtime.kafka_log import KafkaLog
from services.runtime.kafka_names import KafkaNames
from skyband.align.source import CATALOG_KEY
from skyband.control.stage import CATALOG_TOPIC
from spark.failures import stopped
from spark.kafka_frames import follow_topics
from spark.pipeline_group import check_queries, find_begins, topic_of
from spark.pipeline_messages import MESSAGE_SCHEMA, Message
from spark.pipeline_operators import AlignOperator, MergeOperator, ShardOperator
from spark.pipeline_plan import PipelinePlan
from spark.pipeline_records import PACKED_SCHEMA, pack_records
from spark.pipeline_results import ResultWriter, check_no_fanout

__all__ = ["SESSION", "Pipeline", "PipelineSettings"]

SESSION = {
    # So many micro-batches can be gone back to; each keeps the changes of all state.
    "spark.sql.streaming.minBatchesToRetain": "10",
}
# On a local disk Spark's first choice runs programs of the shell, several for each file.
_LOCAL_FILES = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
_LOOK_S = 0.2
# So often is the catalog asked for a new generation, and Kafka for a fanout that should not be there.
_CHECK_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """How a pipeline runs: `checkpoint` is the folder of Spark's state; a micro-batch begins each `trigger_us`.

    `max_offsets`: most source records in one micro-batch, None for all that are there.
    """

    checkpoint: str
    trigger_us: int = 1_000_000
    available_now: bool = False
    max_offsets: int | None = None
    follows_catalog: bool = True


class Pipeline:
    """One generation of a group from sources to results, for as long as it lasts.

    `rows` were read so far; `results` written; `ended` says why it has ended by itself.
    """

    def __init__(
        self,
        session: SparkSession,
        log: KafkaLog,
        plan: PipelinePlan,
        settings: PipelineSettings,
        told: Callable[["Pipeline"], None] = lambda pipeline: None,
    ) -> None:
        check_no_fanout(log, plan.group.name)
        self._session, self._log, self._settings, self._told = session, log, settings, told
        self._writer = ResultWriter(log, plan.group.name, plan.generation)
        self.plan = replace(plan, carried=self._writer.carried())
        self.rows = 0
        self.ended = ""
        self._batch = -1
        self._is_read = False
        self._watch = GroupWatch(log)
        self._checked = time.monotonic()

    @property
    def results(self) -> int:
        """How many results were written."""
        return self._writer.results

    @property
    def age_s(self) -> float | None:
        """How long ago, in seconds, what the newest results are of happened; None while there are none."""
        frontier_us = self._writer.frontier_us
        return None if frontier_us is None else time.time() - frontier_us / 1e6

    def run(self, stop: threading.Event) -> None:
        """Run until `stop`, or, if it takes only what is there, to its end.

        Raises LogError if it fails, in the words of the part that did.
        """
        query = self._start()
        try:
            while query.isActive and not (stop.wait(_LOOK_S) or self._is_read or self._has_ended()):
                self._count(query)
            self._count(query)
            if error := query.exception():
                raise stopped(error, "nothing is lost, start it again") from error
        finally:
            query.stop()
            self._writer.close()
            self._watch.close()

    def frame(self) -> DataFrame:
        """Return what comes out of the merge, as it comes."""
        records = self._records()
        known = [(f"{stream}/{partition}", True) for stream, partition in sorted(self.plan.starts)]
        kept = self._session.createDataFrame(known, "key string, is_known boolean").groupBy("key")
        return (
            records.groupBy("key")
            .transformWithStateInPandas(AlignOperator(self.plan), MESSAGE_SCHEMA, "append", "processingTime", kept)
            .groupBy("key")
            .transformWithStateInPandas(ShardOperator(self.plan), MESSAGE_SCHEMA, "append", "none")
            .groupBy("key")
            .transformWithStateInPandas(MergeOperator(self.plan), MESSAGE_SCHEMA, "append", "none")
        )

    def _start(self) -> StreamingQuery:
        settings = self._settings
        writer = self.frame().writeStream.foreachBatch(self._write).outputMode("append")
        writer = writer.option("checkpointLocation", settings.checkpoint).queryName(f"skyband {self.plan.name}")
        if settings.checkpoint.startswith("file:"):
            self._session.conf.set(*_LOCAL_FILES)
        if settings.available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{settings.trigger_us // 1_000} milliseconds").start()

    def _write(self, frame: DataFrame, batch: int) -> None:
        self._writer.write([Message(*(_plain(row[name]) for name in Message._fields)) for row in frame.collect()])

    def _records(self) -> DataFrame:
        """Return the records of all source topics, and of the catalog, packed under the keys of their partitions."""
        settings, names = self._settings, KafkaNames(self._log.settings.topic_prefix)
        # A query that goes on knows better where, and what lies before that may be gone.
        has_begun = self._has_begun()
        if has_begun:
            check_queries(self.plan)
        begins = {} if has_begun else find_begins(self._log, self.plan)
        streams: dict[str, list[int]] = {}
        for index, stream in enumerate(self.plan.group.streams):
            streams.setdefault(topic_of(self.plan.group, stream.name), []).append(index)
        together = self._follow(list(streams), begins or "earliest", settings.max_offsets)
        if settings.follows_catalog:
            # Never cut: what it holds at the beginning comes before all rows.
            catalog = names.topic(CATALOG_TOPIC)
            streams[catalog] = [CATALOG_KEY[0]]
            together = together.unionByName(self._follow([catalog], "earliest", None))
        return together.mapInArrow(partial(pack_records, streams), PACKED_SCHEMA)

    def _has_begun(self) -> bool:
        """Return whether the checkpoint folder holds a query already."""
        java: Any = self._session._jvm
        path = java.org.apache.hadoop.fs.Path(f"{self._settings.checkpoint}/offsets/0")
        return bool(path.getFileSystem(self._session._jsparkSession.sessionState().newHadoopConf()).exists(path))

    def _follow(self, topics: Sequence[str], begins: Any, most: int | None) -> DataFrame:
        kafka = self._log.settings
        frame = follow_topics(self._session, kafka.bootstrap, topics, begins, most, kafka=kafka)
        return frame.select("topic", "partition", "offset", f.unix_micros("timestamp").alias("time_us"), "value")

    def _count(self, query: StreamingQuery) -> None:
        for progress in query.recentProgress:
            if progress.batchId > self._batch:
                self._batch = progress.batchId
                self.rows += progress.numInputRows
                # Spark itself would wait for timers for ever.
                self._is_read = self._settings.available_now and not progress.numInputRows
        self._told(self)

    def _has_ended(self) -> bool:
        """Return whether the group has gone on to another generation; raise LogError if a fanout has come up."""
        if time.monotonic() - self._checked < _CHECK_EVERY_S:
            return False
        self._checked = time.monotonic()
        check_no_fanout(self._log, self.plan.group.name)
        self._watch.poll(0.0)
        found = self._watch.groups.get(self.plan.group.name)
        if found is not None and found.generation > self.plan.generation:
            self.ended = f"generation {found.generation} of group {found.group.name!r} has begun; start again for it"
        return bool(self.ended)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
