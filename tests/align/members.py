"""Aligners that share the sources of a group, and what a reader makes of all that they write."""

import random
from collections.abc import Iterable

import numpy as np

from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.align.stage import AlignSettings, AlignStage, aligned_topic
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.log.clock import ManualClock
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, QueryState, Window
from skyband.model.source_rows import DeadLetter, Reason
from skyband.model.stream import Attribute, IdleThen, Stream
from tests.align.fake_log import FakeConsumer, FakeLog
from tests.align.reference import Row, source_rows

S = 1_000_000
SHARDS = 2
GROUP = Group(
    name="factory",
    streams=tuple(
        Stream(
            name=name,
            attributes=(Attribute(name=name, hi=100),),
            max_delay_us=delay,
            topic=topic,
            idle_then=IdleThen.HOLD,
        )
        for name, delay, topic in (("temperature", 3, "temperatures"), ("vibration", 0, "vibrations"))
    ),
    retention_us=60 * S,
    shards=SHARDS,
    max_drift_us=10,
)
TOPIC = aligned_topic("factory", 1)
PARTITIONS = {"catalog": 1, "temperatures": 3, "vibrations": 2}
_STREAMS = {"catalog": CATALOG_KEY[0], "temperatures": 0, "vibrations": 1}
KEYS = [(stream, p) for topic, stream in _STREAMS.items() for p in range(PARTITIONS[topic])]


def position(key: SourceKey) -> Position:
    """Return where a source partition is read."""
    return Position(next(topic for topic, stream in _STREAMS.items() if stream == key[0]), key[1])


def change(uid: str, group: str = "factory") -> QueryChange:
    """Return a new query."""
    query = Query(name=uid, k=1, score="temperature", window=Window(S, S))
    return QueryChange(uid=uid, revision=1, group=group, query=query, state=QueryState.ACTIVE)


class Shop:
    """A log with sources, and the aligners that read them; every step of an aligner is taken by hand."""

    def __init__(self, **partitions: int) -> None:
        more = {"dead-letters": 2, "progress": 1, TOPIC: SHARDS}
        self.log = FakeLog({**PARTITIONS, **partitions, **more})
        self.clock = ManualClock(S)
        self.times: dict[SourceKey, int] = {}

    def join(self, **settings: int | str) -> AlignStage:
        """Return a new aligner."""
        its = AlignSettings(**{"flush_interval_us": 0, **settings})  # type: ignore[arg-type]
        return AlignStage(self.log, self.clock, GROUP, 1, SHARDS, settings=its)

    def put(self, key: SourceKey, *rows: Row) -> None:
        """Append rows, with offsets that follow, as one record."""
        begin = self.log.end(position(key))
        moved = [Row(begin + i, row.time_us, row.object_id, row.values, row.given) for i, row in enumerate(rows)]
        self.log.put(position(key), source_rows(moved), span=len(rows))

    def put_some(self, key: SourceKey, draw: random.Random) -> None:
        """Append up to six rows that move time on, some late, some bad; or a change of a query."""
        if key == CATALOG_KEY:
            self.log.put(position(key), change(f"q{draw.randrange(10**6)}", draw.choice(["factory", "other"])))
            return
        rows = []
        for _ in range(draw.randint(1, 6)):
            self.times[key] = self.times.get(key, 0) + draw.randrange(4)
            time_us = self.times[key] - draw.choice([0, 0, 1, 2, 7])
            given = draw.choice([Reason.ACCEPTED] * 9 + [Reason.UNDECODABLE])
            rows.append(Row(0, time_us, b"%d" % draw.randrange(9), (draw.uniform(0, 101),), given))
        self.put(key, *rows)

    def die(self, stage: AlignStage) -> None:
        """Let the others take a stage for dead; it can still be stepped, as one that was only stopped."""
        self.log.expel(self.consumer_of(stage))

    def is_alive(self, stage: AlignStage) -> bool:
        """Return whether a stage is a member."""
        return self.consumer_of(stage) in self.log.members

    def consumer_of(self, stage: AlignStage) -> FakeConsumer:
        """Return the consumer of a stage."""
        consumer = stage._consumer
        assert isinstance(consumer, FakeConsumer)
        return consumer

    def batches(self, shard: int) -> list[AlignedBatch]:
        """Return what is in one partition of the aligned topic."""
        values = self.log.values(TOPIC, shard)
        assert all(isinstance(value, AlignedBatch) for value in values)
        return values  # type: ignore[return-value]

    def alone(self) -> "Shop":
        """Return what becomes of the same sources if one aligner reads them from beginning to end."""
        other = Shop()
        other.log.topics.update(self.log.topics)
        for its, records in self.log.records.items():
            if its.topic in _STREAMS:
                other.log.records[its] = list(records)
        settle([other.join()])
        return other

    def read(self) -> list[tuple[object, ...]]:
        """Return, for each shard, all that a reader takes from it: rows, frontier, changes, next offsets."""
        return [read(self.batches(shard), shard, self.starts()) for shard in range(SHARDS)]

    def starts(self) -> dict[SourceKey, int]:
        """Return the generation's start offsets."""
        return {
            (stream, partition): 0 for topic, stream in _STREAMS.items() for partition in range(self.log.topics[topic])
        }


def read(batches: Iterable[AlignedBatch], shard: int, starts: dict[SourceKey, int]) -> tuple[object, ...]:
    """Return what the sequencer makes of one shard's log; fail at a gap, or if any row came too late."""
    sequencer = Sequencer(GROUP, 1, shard, starts, 1 << 30)
    rows: list[tuple[object, ...]] = []
    for batch in batches:
        sequencer.offer(batch)
        rows += _rows(sequencer, sequencer.frontier_us)
    frontier_us = sequencer.frontier_us
    rows += _rows(sequencer, MAX_TIME_US)
    its = sequencer.statistics()
    assert its.overtaken == 0
    changes = [change.uid for change in sequencer.drain_catalog()]
    return rows, frontier_us, sequencer.newest_us, changes, its.next_offsets


def _rows(sequencer: Sequencer, until_us: int) -> list[tuple[object, ...]]:
    its = sequencer.take(until_us)
    begins = [0, *its.id_ends.tolist()]
    columns = (its.release_time_us, its.stream, its.partition, its.offset, its.event_time_us, its.id_hash)
    return [
        (
            *(int(column[i]) for column in columns),
            its.id_bytes[begins[i] : begins[i + 1]].tobytes(),
            np.ascontiguousarray(its.values[i]).tobytes(),
        )
        for i in range(its.rows)
    ]


def settle(stages: list[AlignStage]) -> None:
    """Step all in turn until none has anything to do."""
    quiet = 0
    while quiet < 3:
        worked = [stage.step() for stage in stages]
        quiet = 0 if any(worked) else quiet + 1


def filled(draw: random.Random, chunks: int = 12) -> Shop:
    """Return a shop whose sources hold something."""
    shop = Shop()
    for _ in range(chunks):
        shop.put_some(draw.choice(KEYS), draw)
    return shop


def sources(*stages: AlignStage) -> list[tuple[int, int]]:
    """Return what stages read, together."""
    return sorted(key for stage in stages for key in stage.statistics().sources)


def letters(shop: Shop) -> list[DeadLetter]:
    """Return all dead letters."""
    values = [value for partition in range(2) for value in shop.log.values("dead-letters", partition)]
    return [value for value in values if isinstance(value, DeadLetter)]
