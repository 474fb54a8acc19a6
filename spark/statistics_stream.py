"""Sketches an aligned topic as it grows: one query of Structured Streaming, which publishes with each micro-batch.

The state of a shard is what it publishes, for a sketch goes on from its publication as if it had never stopped::

    records ── by shard ── SketchOperator ── driver ── statistics
                               │   ▲
                           the shard's standing, in Spark's state store
"""

import pickle
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from services.runtime.groups import GroupWatch
from services.runtime.kafka_log import KafkaLog
from services.runtime.kafka_names import KafkaNames
from skyband.align.topics import aligned_topic
from skyband.errors import SkybandError
from skyband.sketch.publication import Publication
from spark.failures import stopped
from spark.kafka_frames import follow_topics
from spark.statistics_job import dated, log_edges, publish
from spark.statistics_operator import SKETCHED_SCHEMA, SketchOperator
from spark.statistics_plan import StatisticsPlan
from spark.statistics_shards import STATISTICS_TOPIC, codecs

__all__ = ["StatisticsStream", "StreamSettings"]

_LOOK_S = 0.2
_CHECK_EVERY_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """How a stream of statistics runs.

    `checkpoint`: folder of Spark's state, for this plan alone; a micro-batch begins each `trigger_us`; `available_now`:
    end when all is sketched that was there at the beginning. `max_records`: most batches of the aligned log at once.
    """

    checkpoint: str
    trigger_us: int = 5_000_000
    available_now: bool = False
    max_records: int = 20_000
    publishes: bool = True


class StatisticsStream:
    """One run over the aligned topic of a plan.

    `rows` and `repeats` were sketched in this run, `batches` published; `ended` says why it has ended by itself.
    """

    def __init__(
        self,
        session: SparkSession,
        log: KafkaLog,
        plan: StatisticsPlan,
        settings: StreamSettings,
        told: Callable[["StatisticsStream"], None] = lambda stream: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.rows = self.repeats = self.batches = 0
        self.ended = ""
        self.publications: dict[int, Publication] = {}
        self._session, self._log, self._plan, self._settings = session, log, plan, settings
        self._told, self._clock = told, clock
        self._failure: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Run until `stop`, until another generation begins, or to the end of what is there.

        Raises CoverageGapError's words as LogError, and LogError for what Spark could not do.
        """
        with closing(GroupWatch(self._log)) as watch:
            query = self._start()
            checked = time.monotonic()
            try:
                while query.isActive and not stop.wait(_LOOK_S) and not self.ended:
                    self._told(self)
                    if time.monotonic() - checked >= _CHECK_EVERY_S:
                        checked = time.monotonic()
                        watch.poll(0.0)
                        self._look(watch)
                self._check(query)
            finally:
                query.stop()
        self._told(self)

    def frame(self, begins: Mapping[int, int]) -> DataFrame:
        """Return what shards publish, as it comes."""
        kafka = self._log.settings
        topic = KafkaNames(kafka.topic_prefix).topic(aligned_topic(self._plan.group.name, self._plan.generation))
        records = follow_topics(
            self._session, kafka.bootstrap, [topic], {topic: begins}, self._settings.max_records, kafka=kafka
        ).selectExpr("partition AS shard", "offset", "value")
        operator = SketchOperator(pickle.dumps(self._plan), begins)
        return records.groupBy("shard").transformWithStateInPandas(operator, SKETCHED_SCHEMA, "append", "none")

    def _start(self) -> StreamingQuery:
        begins, _ = log_edges(self._log, self._plan)
        settings = self._settings
        every = {"availableNow": True} if settings.available_now else {"processingTime": self._trigger()}
        return (
            self.frame(begins)
            .writeStream.queryName(f"statistics of {self._plan.group.name} {self._plan.source}")
            .option("checkpointLocation", settings.checkpoint)
            .outputMode("append")
            .trigger(**every)
            .foreachBatch(self._publish)
            .start()
        )

    def _publish(self, frame: DataFrame, _: int) -> None:
        """Publish what a micro-batch has made. A failure is kept: Spark would tell it as text."""
        rows = frame.collect()
        try:
            values = [bytes(row.publication) for row in rows if row.publication is not None]
            decoded = (codecs().decode(STATISTICS_TOPIC, value) for value in values)
            fresh = dated((its for its in decoded if isinstance(its, Publication)), int(self._clock() * 1e6))
            self.publications |= {its.shard: its for its in fresh}
            if self._settings.publishes and fresh:
                publish(self._log, fresh)
            self.rows += sum(row.rows for row in rows)
            self.repeats += sum(row.repeats for row in rows)
            self.batches += 1
        except BaseException as error:
            self._failure = error
            raise

    def _check(self, query: StreamingQuery) -> None:
        """Raise what ended a query, if anything did."""
        if isinstance(self._failure, SkybandError):
            raise self._failure
        if error := query.exception():
            raise stopped(error, "nothing is lost, start it again")

    def _look(self, watch: GroupWatch) -> None:
        group, generation = self._plan.group.name, self._plan.generation
        found = watch.groups.get(group)
        if found is None:
            self.ended = f"group {group!r} is gone"
        elif found.generation != generation:
            self.ended = f"generation {found.generation} of group {group!r} has begun; start again for it"

    def _trigger(self) -> str:
        return f"{self._settings.trigger_us // 1_000} milliseconds"
