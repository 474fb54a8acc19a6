"""A log with one query under way, a replica on it, and short names for what shards send."""

from skyband.fanout.merge_stage import ServedGroup
from skyband.fanout.stage import FanoutStage
from skyband.fanout.subscription import Subscription, Update
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.record_log import Position, Record
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.result import Result
from tests.fanout.partials import Row, batch, query_change
from tests.fanout.watched_log import WatchedLog

LONG_AGO = -(2**62)
SECOND = 1_000_000
GROUP = ServedGroup("g", 1, 1)
Q = query_change("u1", name="q")


def activated(first_us: int, query: QueryChange = Q, shard: int = 0, generation: int = 1) -> Activated:
    return Activated(query.group, generation, shard, query.uid, query.revision, first_us)


def progress(frontier_us: int, shard: int = 0, group: str = "g", generation: int = 1) -> Progress:
    return Progress(group, generation, shard, frontier_us, LONG_AGO)


def part(window_end: int, names: str, query: QueryChange = Q, shard: int = 0, generation: int = 1) -> PartialBatch:
    rows = [Row(name, 10.0 - rank) for rank, name in enumerate(names)]
    return batch(shard, [(query, window_end, rows)], generation=generation, group=query.group)


def new_log(partials: int = 1, results: int = 1, *, truncate: bool = False) -> MemoryLog:
    log = MemoryLog(ManualClock())
    for name, partitions in {"partials": partials, "marks": partials, "catalog": 1, "progress": 1}.items():
        log.create_topic(name, partitions)
    log.create_topic("results", results, truncate=truncate)
    return log


def send(log: MemoryLog, topic: str, *values: object, partition: int = 0) -> None:
    producer = log.producer()
    for value in values:
        producer.send(topic, partition, value)


def records(log: MemoryLog, topic: str, partition: int = 0) -> list[Record]:
    consumer, at = log.consumer(), Position(topic, partition)
    consumer.assign(dict[Position, int | None](consumer.begin_offsets([at])))
    return list(consumer.poll(1_000_000, 0.0))


def results(log: MemoryLog) -> list[Result]:
    found = [record.value for number in range(log.partitions("results")) for record in records(log, "results", number)]
    return [value for value in found if isinstance(value, Result)]


def trim(log: MemoryLog, topic: str, partition: int, offset: int) -> None:
    """Drop what lies below an offset, as retention does; the topic must be one that truncates."""
    log.consumer("trim").commit({Position(topic, partition): offset})


def drain(stage: FanoutStage) -> None:
    while stage.step(0.0):
        pass


class Place:
    """A replica with one query under way."""

    def __init__(self, results: int = 1, *, truncate: bool = False) -> None:
        self.memory = new_log(results=results, truncate=truncate)
        self.log = WatchedLog(self.memory)
        self.clock = ManualClock(1000)
        self.send("catalog", Q)
        self.send("partials", activated(10))
        self.stage = self.start()
        drain(self.stage)

    def start(self, **options: int) -> FanoutStage:
        return FanoutStage(self.log, self.clock, [GROUP], **options)

    def restart(self) -> None:
        self.stage.close()
        self.stage = self.start()

    def send(self, topic: str, *values: object) -> None:
        send(self.memory, topic, *values)

    def show(self, window_end: int, names: str) -> None:
        self.send("partials", part(window_end, names), progress(window_end))
        drain(self.stage)

    def after_a_second(self) -> None:
        self.clock.advance(SECOND)
        drain(self.stage)


def taken(subscription: Subscription) -> Update:
    update = subscription.take()
    assert update is not None
    return update


def names(result: object) -> str:
    assert isinstance(result, Result)
    return "".join(row.object_id for row in result.rows)


def shown(found: list[Result]) -> list[tuple[int, str]]:
    return [(result.window_end, names(result)) for result in found]
