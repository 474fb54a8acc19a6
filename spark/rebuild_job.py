"""Rebuilds the next generation of a group: plans it, has tasks write its log and snapshots, and says what was made."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.runtime.kafka_log import KafkaLog
from services.runtime.registry_settings import RegistrySettings
from skyband.align.source import SourceKey
from skyband.align.topics import aligned_topic
from skyband.errors import ConflictError, LogError
from skyband.log.record_log import Position
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import QueryState
from skyband.model.rebuild import Rebuild, RebuiltShard
from spark.failures import stopped
from spark.rebuild_catalog import CatalogView, read_catalog, written_to
from spark.rebuild_plan import LiveTopic, Wish, check_same_rows, live_topics, new_group, since_of
from spark.rebuild_snapshots import REPLAY_ROWS_PER_S, SnapshotPlan, write_snapshot_of
from spark.rebuild_target import ends_of, prepare_topic, read_document, write_document
from spark.rebuild_tasks import Done, shards_of

__all__ = ["RebuildJob", "RebuildSettings", "Writing"]

_T = TypeVar("_T")
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildSettings:
    """What one run rebuilds, and how; see the options of the command."""

    wish: Wish
    output: Path
    history: str = "aligned"
    archive: str | None = None
    since_us: int | None = None
    recovery_target_us: int = 60_000_000
    resume: bool = False
    discard: bool = False
    registry: RegistrySettings = field(default_factory=RegistrySettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What both kinds of history are rebuilt with: the group before and after, its topics, and how far results go."""

    view: CatalogView
    group: Group
    rebuild: Rebuild
    topics: Mapping[str, LiveTopic]
    written_us: int

    @property
    def topic(self) -> str:
        """The aligned topic that is written."""
        return aligned_topic(self.group.name, self.rebuild.generation)

    @property
    def writer(self) -> str:
        """As whom batches are written."""
        return f"rebuild-{self.rebuild.rebuild_id}"


class RebuildJob:
    """One run; `rows`, `batches` and `share` tell how far it is, `part` what it does."""

    def __init__(
        self,
        session: SparkSession,
        log: KafkaLog,
        settings: RebuildSettings,
        *,
        told: Callable[["RebuildJob"], None] = lambda job: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.session, self.log, self.settings = session, log, settings
        self._told, self._clock = told, clock
        self.rows = self.batches = 0
        self.share: float | None = None
        self.part = "reading the catalog"
        self.notes: list[str] = []

    def run(self) -> Rebuild:
        """Rebuild, and return what was made, which the document says too.

        Raises ConflictError if the generation has begun, or its topic holds other data, LogError for what is not there.
        """
        # Here, since both kinds use this job.
        from spark.rebuild_aligned import write_from_aligned
        from spark.rebuild_from_sources import write_from_sources

        its = self._plan()
        settings = self.settings
        if settings.history == "aligned":
            check_same_rows(its.view.resource.group, its.group)
        prepare_topic(
            self.log, its.rebuild, read_document(settings.output), resume=settings.resume, discard=settings.discard
        )
        write_document(settings.output, its.rebuild)
        write = write_from_aligned if settings.history == "aligned" else write_from_sources
        rebuild = write(self, its)
        rebuild = replace(rebuild, shards=self._snapshots(its, rebuild), is_complete=True)
        now = read_catalog(self.log, its.group.name).resource.generation
        if now >= rebuild.generation:
            raise ConflictError(
                f"generation {rebuild.generation} of group {its.group.name!r} has begun meanwhile; rebuild the next one"
            )
        write_document(settings.output, rebuild)
        return rebuild

    def run_tasks(self, part: str, run: Callable[[], list[_T]], topic: str = "", expected: int = 0) -> list[_T]:
        """Return what tasks return, while telling how far `topic` has grown, out of `expected` batches."""
        self.part = part
        before = sum(ends_of(self.log, topic).values()) if topic else 0
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(run)
            while True:
                if topic:
                    self.batches = sum(ends_of(self.log, topic).values()) - before
                    self.share = min(1.0, self.batches / expected) if expected else None
                self._told(self)
                try:
                    found = running.result(_LOOK_EVERY_S)
                    break
                except TimeoutError:
                    if running.done():
                        raise
                except (Py4JError, PySparkException) as error:
                    raise stopped(error, "go on with --resume") from error
        for done in found:
            if isinstance(done, Done):
                if done.error:
                    raise LogError(done.error)
                self.rows += sum(shard.rows for shard in done.shards)
        self._told(self)
        return found

    def each(self, items: Sequence[Any], task: Callable[[Any], _T]) -> Callable[[], list[_T]]:
        """Return what runs a task of Spark for each item, and returns what they return."""

        def run() -> list[_T]:
            count = max(1, len(items))
            return list(self.session.sparkContext.parallelize(list(items), count).map(task).collect())

        return run

    def _plan(self) -> Writing:
        settings = self.settings
        view = read_catalog(self.log, settings.wish.group)
        group = new_group(view, settings.wish)
        written_us = written_to(self.log, group.name, view.resource.generation)
        if written_us == MIN_TIME_US:
            self.notes.append("no merge tells how far results are written (is fanout running?), so no snapshots")
        since_us = since_of(settings.since_us, settings.archive is not None, written_us, group)
        before = read_document(settings.output) if settings.resume else None
        if before is not None and settings.since_us is None:
            since_us = before.since_us
        rebuild = Rebuild(
            rebuild_id=before.rebuild_id if before is not None else uuid.uuid4().hex[:12],
            group=group,
            generation=view.resource.generation + 1,
            history=settings.history,
            made_us=int(self._clock() * 1e6),
            since_us=since_us,
        )
        topics = live_topics(view.resource, {s.name: self._live(s.topic or s.name) for s in group.streams})
        return Writing(view=view, group=group, rebuild=rebuild, topics=topics, written_us=written_us)

    def _live(self, topic: str) -> LiveTopic:
        with closing(self.log.consumer()) as consumer:
            places = [Position(topic, partition) for partition in range(self.log.partitions(topic))]
            begins = consumer.begin_offsets(places)
        return LiveTopic(self.log.topic_id(topic), {at.partition: begin for at, begin in begins.items()})

    def _snapshots(self, its: Writing, rebuild: Rebuild) -> tuple[RebuiltShard, ...]:
        """Write the snapshots of shards that would be too long in reading their log; return all shards."""
        most = self.settings.recovery_target_us / 1e6 * REPLAY_ROWS_PER_S
        long = [shard for shard in rebuild.shards if shard.rows > most]
        queries = [its.change for its in its.view.changes if its.change and its.change.state is QueryState.ACTIVE]
        if any(change.query.window.in_rows for change in queries) and long:
            self.notes.append(
                "no snapshots: the group has count windows, of which nobody tells how far they are written"
            )
        elif long and its.written_us > MIN_TIME_US:
            starts: dict[SourceKey, int] = {(-1, 0): 0}
            for source in rebuild.sources:
                if not (source.joins or source.is_history):
                    starts[its.group.stream_index(source.stream), source.partition] = source.from_offset
            plan = SnapshotPlan(
                kafka=self.log.settings,
                group=its.group,
                generation=rebuild.generation,
                starts=starts,
                written_us=its.written_us,
                longest_slide_us=max((change.query.window.slide for change in queries), default=0),
                rebuild_id=rebuild.rebuild_id,
                ends=ends_of(self.log, its.topic),
            )
            task = partial(write_snapshot_of, plan, attempt=uuid.uuid4().hex[:8])
            rows = self.rows
            found = self.run_tasks("snapshots", self.each(long, task))
            self.rows = rows
            made = {shard.shard: shard for shard in shards_of(found)}
            return tuple(made.get(shard.shard, shard) for shard in rebuild.shards)
        return rebuild.shards
