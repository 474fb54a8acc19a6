"""The engine's loop over a memory log that keeps a journal, and what writes the aligned log before it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.engine.stage import EngineStage, EngineTopics, EngineTuning
from skyband.errors import LogError
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryConsumer, MemoryLog, MemoryProducer
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.query import Query, QueryState, Window
from skyband.model.status import ShardReport
from skyband.model.stream import Attribute, Stream
from tests.engine.pure_pipeline import planned
from tests.oracle import Row
from tests.workloads import source_rows

# Windows [T - 20, T) every 10; time is as far as the newest row of the slowest source partition.
GROUP = Group(
    name="g",
    streams=(Stream(name="a", attributes=(Attribute(name="a", lo=-100.0, hi=100.0),)),),
    retention_us=40,
    pane_us=10,
)
QUERY = Query(name="q", k=2, score="a", window=Window(20, 10))
ONE = ((0, 0),)
TWO = ((0, 0), (0, 1))


class JournalLog(MemoryLog):
    """A memory log that notes what producers and consumers do to it; `flush_fails` makes flushes raise."""

    def __init__(self, shards: int = 1, partials_capacity: int = 1_000) -> None:
        super().__init__(ManualClock())
        self.journal: list[str] = []
        self.committed: dict[Position, int] = {}
        self.flush_fails = False
        self.create_topic("aligned", shards)
        self.create_topic("partials", 2, capacity=partials_capacity)
        self.create_topic("progress", 1)
        self.create_topic("checkpoints", 2)

    def producer(self, transactional_id: str | None = None) -> "JournalProducer":
        return JournalProducer(self)

    def consumer(self, group: str | None = None) -> "JournalConsumer":
        return JournalConsumer(self, group)

    def values(self, topic: str, partition: int = 0) -> list[object]:
        consumer = MemoryConsumer(self, None)
        consumer.assign({Position(topic, partition): 0})
        return [record.value for record in consumer.poll(1_000, 0.0)]


class JournalProducer(MemoryProducer):
    _log: JournalLog

    def send(self, topic: str, partition: int, value: object, **more: object) -> None:
        super().send(topic, partition, value, **more)  # type: ignore[arg-type]
        self._log.journal.append(f"send {type(value).__name__}")

    def flush(self) -> None:
        if self._log.flush_fails:
            raise LogError("the broker has gone; start again")
        super().flush()
        self._log.journal.append("flush")


class JournalConsumer(MemoryConsumer):
    _log: JournalLog

    def commit(self, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None) -> None:
        super().commit(offsets, notes)
        self._log.journal.append("commit")
        self._log.committed.update(offsets)


class Upstream:
    """Writes the aligned log: queries and rows as they are told, one batch a shard with each `flush`."""

    def __init__(self, log: JournalLog, places: Sequence[tuple[int, int]] = ONE) -> None:
        shards = log.partitions("aligned")
        self._aligner = Aligner(GROUP, 1, shards, {place: SourceStart() for place in (CATALOG_KEY, *places)})
        self._producer = MemoryProducer(log)
        self._changes = 0

    def change(self, query: Query, revision: int = 1, state: QueryState = QueryState.ACTIVE) -> None:
        at = self._changes
        change = QueryChange(uid=query.name, revision=revision, group="g", query=planned(GROUP, query), state=state)
        self._aligner.add_catalog(at, at + 1, [CatalogRecord(at, change)])
        self._changes += 1

    def rows(self, *rows: tuple[str, int, float], partition: int = 0) -> None:
        first = self._aligner.cursor((0, partition))
        columns = source_rows([Row(name, time, (value,)) for name, time, value in rows], 1, first)
        self._aligner.add(0, partition, first, first + len(rows), columns)

    def finish(self, partition: int = 0) -> None:
        self._aligner.finish(0, partition)

    def flush(self, but_shard: int | None = None) -> None:
        """Write what came since the last flush; `but_shard` does not get its batch."""
        for batch in self._aligner.flush(0):
            if batch.shard != but_shard:
                self._producer.send("aligned", batch.shard, batch)


def stage_of(
    log: JournalLog,
    clock: ManualClock | None = None,
    places: Sequence[tuple[int, int]] = ONE,
    *,
    shards: Sequence[int] | None = None,
    shared: bool = False,
    partition: int = 0,
    progress: str = "progress",
    **tuning: int,
) -> EngineStage:
    count = log.partitions("aligned")
    topics = EngineTopics(
        aligned="aligned",
        partials_partition=partition,
        progress=progress,
        checkpoints="checkpoints" if shared else "",
    )
    return EngineStage(
        log,
        replace(GROUP, shards=count),
        1,
        dict.fromkeys(places, 0),
        topics,
        clock=clock or ManualClock(),
        tuning=EngineTuning(**tuning),
        shards=None if shared else range(count) if shards is None else shards,
    )


def drain(stage: EngineStage) -> None:
    while stage.step():
        pass


def reports(log: JournalLog) -> list[ShardReport]:
    values = log.values("progress")
    assert all(isinstance(value, ShardReport) for value in values)
    return values  # type: ignore[return-value]


def busy_log(shards: int) -> JournalLog:
    """Return a log in which queries come, change and go while time goes on."""
    log = JournalLog(shards)
    upstream = Upstream(log)
    upstream.change(QUERY)
    for step in range(12):
        upstream.rows(*((f"o{(step * 3 + i) % 8}", step * 7 + i, float(step * 5 % 9 - i)) for i in range(4)))
        if step == 4:
            upstream.change(Query(name="r", k=1, score="-a", window=Window(30, 10)))
        if step == 6:
            upstream.change(Query(name="q", k=3, score="a", window=Window(20, 10)), 2)
        if step == 9:
            upstream.change(QUERY, 3, QueryState.DELETED)
        upstream.flush()
    upstream.finish()
    upstream.flush()
    return log
