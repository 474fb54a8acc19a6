"""Archives topics with Structured Streaming: batch by batch, each one commit of the archive.

Where to go on is in the archive's commits alone, with the coverage that drops repeats: a query begins where the last
commit ended, whatever notes Spark keeps, so that an archive and a checkpoint can never contradict each other::

    query      offsets of a batch → tasks write files → reports → commit n → offsets of the next
    killed                        ↑ nobody's files   ↑ the same  ↑ done, and read as such by the next query
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from services.runtime.kafka_log import KafkaLog
from services.runtime.registry_settings import RegistrySettings
from skyband.errors import SkybandError
from spark.archive_commits import CommitLog, archived
from spark.archive_files import ArchiveFiles
from spark.archive_tasks import REPORT_SCHEMA, AlignedRole, Plan, SourceRole, archive_records, read_report
from spark.archive_topics import ArchivedTopics, Subscription
from spark.failures import stopped
from spark.kafka_frames import follow_topics

__all__ = ["SESSION", "ArchiveJob", "ArchiveSettings"]

# What tasks need: an aligned record may have megabytes, a record of a source some bytes.
SESSION: Mapping[str, str] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")
# An aligned record has the rows of many records of sources.
_ROWS_PER_BATCH = 100
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """What one run archives, and how.

    `groups`: none means all of the catalog. `available_now`: end when all is archived that was there at the beginning.
    `trigger_us`: how often a batch begins. `max_records`: of each topic in one batch. `checkpoint`: a folder for what
    Spark notes while it runs.
    """

    archive: str
    checkpoint: str
    groups: tuple[str, ...] = ()
    with_sources: bool = True
    available_now: bool = False
    trigger_us: int = 30_000_000
    max_records: int = 2_000_000
    registry: RegistrySettings | None = None


class ArchiveJob:
    """One run over a Kafka cluster; `run` returns when all is done, or `stop` is set.

    `rows` counts the rows and source records of this run, `left` the offsets that were not archived when last looked.
    """

    def __init__(
        self,
        session: SparkSession,
        log: KafkaLog,
        settings: ArchiveSettings,
        *,
        told: Callable[["ArchiveJob"], None] = lambda job: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.rows = self.repeats = self.batches = 0
        self.left: int | None = None
        self._session, self._log, self._settings = session, log, settings
        self._told, self._clock = told, clock
        self._commits = CommitLog(ArchiveFiles(settings.archive))
        self._state = self._commits.load()
        self._failure: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Archive. Raises SkybandError for what cannot be archived; what was committed before stays."""
        topics = ArchivedTopics(self._log, self._settings.groups, with_sources=self._settings.with_sources)
        try:
            goes_on = True
            while goes_on and not stop.is_set():
                goes_on = self._run_query(topics, stop)
        finally:
            topics.close()

    def _run_query(self, topics: ArchivedTopics, stop: threading.Event) -> bool:
        """Run one query until it is done or the catalog changes; return whether another one is needed."""
        # What another process has committed, as compaction, is taken along.
        self._state = self._commits.load()
        subscription = topics.find(self._state)
        topics.check(subscription, self._state)
        query = self._start(topics, subscription)
        try:
            while query.isActive and not stop.is_set():
                if not self._settings.available_now and topics.has_changed():
                    return True
                self.left = topics.left(subscription, self._state)
                self._told(self)
                self._wait(query)
            self._check(query)
            if self._settings.available_now and not query.isActive:
                self._note_ends(query, subscription)
        finally:
            query.stop()
        self.left = topics.left(subscription, self._state)
        self._told(self)
        return False

    def _start(self, topics: ArchivedTopics, subscription: Subscription) -> StreamingQuery:
        starts = topics.starts(subscription, self._state)
        frames = []
        for topic, roles in subscription.roles.items():
            most = self._settings.max_records
            if isinstance(roles[0], AlignedRole):
                most = max(1, most // _ROWS_PER_BATCH)
            kafka = self._log.settings
            name = topics.name(topic)
            frame = follow_topics(self._session, kafka.bootstrap, [name], {name: starts[topic]}, most, kafka=kafka)
            frames.append(frame.select(*_COLUMNS))
        every = {"availableNow": True} if self._settings.available_now else {"processingTime": self._trigger()}
        names = {topics.name(topic): roles for topic, roles in subscription.roles.items()}
        return (
            reduce(DataFrame.union, frames)
            .writeStream.queryName(f"archive-{uuid.uuid4().hex[:8]}")
            .option("checkpointLocation", f"{self._settings.checkpoint}/{uuid.uuid4().hex}")
            .trigger(**every)
            .foreachBatch(partial(self._archive, subscription, names))
            .start()
        )

    def _archive(self, subscription: Subscription, roles: Mapping[str, object], frame: DataFrame, _: int) -> None:
        """Archive one batch. A failure is kept: Spark would tell it as text."""
        try:
            state = self._state
            plan = Plan(self._settings.archive, roles, state.shards, state.sources, self._settings.registry)  # type: ignore[arg-type]
            # Every partition of a topic is a task, in order of offsets.
            told = frame.mapInArrow(partial(archive_records, plan), REPORT_SCHEMA).collect()
            reports = [read_report(row.report) for row in told]
            change = archived(state, reports, topics=subscription.ids, definitions=subscription.definitions)
            if change is not None:
                self._state = self._commits.append(state, change, int(self._clock() * 1e6))
            self.rows += sum(report["rows"] for report in reports)
            self.repeats += sum(report["repeats"] for report in reports)
            self.batches += 1
        except BaseException as error:
            self._failure = error
            raise

    def _note_ends(self, query: StreamingQuery, subscription: Subscription) -> None:
        """Remember where a query that has done all ended: behind the last record there may be marks of transactions."""
        progress = query.lastProgress
        ends: dict[str, dict[str, int]] = {}
        for source in progress["sources"] if progress is not None else ():
            ends |= json.loads(source["endOffset"] or "{}")
        state = self._state
        reports = [
            {"kind": "sources", "key": key, "state": {"next": end}, "files": []}
            for topic, roles in subscription.roles.items()
            for role in roles
            if isinstance(role, SourceRole)
            for partition, end in ends.get(topic, {}).items()
            if end > state.sources.get(key := f"{role.group}/{role.stream.name}/{partition}", {"next": 0})["next"]
        ]
        if (change := archived(state, reports)) is not None:
            self._state = self._commits.append(state, change, int(self._clock() * 1e6))

    def _wait(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination(_LOOK_EVERY_S)  # type: ignore[arg-type]
        except StreamingQueryException:
            self._check(query)

    def _check(self, query: StreamingQuery) -> None:
        """Raise what ended a query, if anything did."""
        if isinstance(self._failure, SkybandError):
            raise self._failure
        error = query.exception()
        if error is not None:
            raise stopped(self._failure or error, "nothing is lost, start it again")

    def _trigger(self) -> str:
        return f"{self._settings.trigger_us // 1_000} milliseconds"
