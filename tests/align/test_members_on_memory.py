"""Aligners that share a group's sources on the memory log: joining, leaving, dying, and partitions that come later."""

import random
from collections.abc import Sequence
from contextlib import suppress

import pytest

from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.align.stage import AlignSettings, AlignStage, consumer_group
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import LogError
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.record_log import Position
from tests.align.members import GROUP, KEYS, PARTITIONS, SHARDS, TOPIC, change, position, read, settle
from tests.align.reference import Row, source_rows

S = 1_000_000
GROWN = (0, PARTITIONS["temperatures"])


class Sources:
    """A memory log whose sources are filled from a seed; two of one seed hold the same, whoever reads them and when."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.clock = ManualClock(S)
        self.log = MemoryLog(self.clock)
        for name, partitions in {**PARTITIONS, "dead-letters": 2, "progress": 1, TOPIC: SHARDS}.items():
            self.log.create_topic(name, partitions)
        self.keys = list(KEYS)
        self._producer = self.log.producer()
        self._ends: dict[SourceKey, int] = {}
        self._times: dict[SourceKey, int] = {}

    def join(self, **settings: int) -> AlignStage:
        """Return a new aligner."""
        its = AlignSettings(flush_interval_us=0, **settings)  # type: ignore[arg-type]
        return AlignStage(self.log, self.clock, GROUP, 1, SHARDS, settings=its)

    def grow(self) -> None:
        """Give a source topic one more partition."""
        self.log.grow_topic("temperatures", GROWN[1] + 1)
        self.keys.append(GROWN)

    def fill(self) -> None:
        """Append rows to a source, or a query to the catalog."""
        key = self.draw.choice(self.keys)
        if key == CATALOG_KEY:
            self._producer.send("catalog", 0, change(f"q{self.draw.randrange(10**6)}"))
            return
        begin, time_us, rows = self._ends.get(key, 0), self._times.get(key, 0), []
        for offset in range(begin, begin + self.draw.randint(1, 6)):
            time_us += self.draw.randrange(4)
            late_us = self.draw.choice([0, 0, 1, 2, 7])
            who = b"%d" % self.draw.randrange(9)
            rows.append(Row(offset, time_us - late_us, who, (self.draw.uniform(0, 101),)))
        self._ends[key], self._times[key] = begin + len(rows), time_us
        at = Position("temperatures", key[1]) if key == GROWN else position(key)
        self._producer.send(at.topic, at.partition, source_rows(rows), span=len(rows))

    def read(self) -> list[tuple[object, ...]]:
        """Return, for each shard, all that a reader takes from it."""
        consumer = self.log.consumer()
        found = []
        for shard in range(SHARDS):
            consumer.assign({Position(TOPIC, shard): 0})
            values = [record.value for record in consumer.poll(1_000_000, 0.0)]
            batches = [value for value in values if isinstance(value, AlignedBatch)]
            assert len(batches) == len(values)
            found.append(read(batches, shard, dict.fromkeys(self.keys, 0)))
        return found

    def committed(self) -> dict[Position, tuple[int, str]]:
        """Return what the aligners have committed."""
        consumer = self.log.consumer(consumer_group("factory", 1))
        positions = [Position(name, p) for name in PARTITIONS for p in range(self.log.partitions(name))]
        return {at: (its.offset, its.note) for at, its in consumer.committed(positions).items()}


def kill(stage: AlignStage) -> None:
    """Take a stage out of its group without a word to it."""
    stage._consumer.close()


def owned(stages: Sequence[AlignStage]) -> list[SourceKey]:
    """Return what stages read, together."""
    return sorted(key for stage in stages for key in stage.statistics().sources)


@pytest.mark.parametrize("seed", range(30))
def test_members_that_come_go_and_die_write_what_one_alone_would(seed: int) -> None:
    life, alone = Sources(seed), Sources(seed)
    draw = random.Random(seed)
    stages = [life.join(poll_records=2, max_rows=7)]
    for turn in range(draw.randint(30, 120)):
        if turn == 20:
            life.grow()
            alone.grow()
        if draw.random() < 0.4:
            life.fill()
            alone.fill()
        act(life, stages, draw)
    settle(stages)
    settle([alone.join()])
    assert owned(stages) == sorted(life.keys)
    assert life.read() == alone.read()
    assert life.committed() == alone.committed()


def act(life: Sources, stages: list[AlignStage], draw: random.Random) -> None:
    """Let a member work, come, go or die; the dead may still write what they had in hand."""
    what, stage = draw.random(), draw.choice(stages)
    if what < 0.7:
        stage.step()
        stage._aligner._check()
    elif what < 0.8 and len(stages) < 4:
        stages.append(life.join(poll_records=draw.choice([1, 50]), max_rows=7))
    elif what < 0.9 and len(stages) > 1:
        stages.remove(stage)
        if draw.random() < 0.4:
            stage.close()
            return
        kill(stage)
        if draw.random() < 0.5:
            stage._make_batches()
            with suppress(LogError):
                stage.flush()


def test_a_partition_that_comes_later_is_shared_like_the_others_and_read_from_its_lowest_offset() -> None:
    life = Sources(0)
    stages = [life.join(), life.join()]
    settle(stages)
    life.grow()
    life.keys = [GROWN]
    life.fill()
    settle(stages)
    assert owned(stages) == sorted([*KEYS, GROWN])
    end = life.log.statistics()[Position("temperatures", GROWN[1])].end_offset
    assert life.committed()[Position("temperatures", GROWN[1])][0] == end > 0


def test_a_generation_begins_where_its_starts_were_committed() -> None:
    life = Sources(0)
    for _ in range(20):
        life.fill()
    begin = position((1, 0))
    end = life.log.statistics()[begin].end_offset
    life.log.commit_starts(consumer_group("factory", 1), {begin: end})
    stage = life.join()
    settle([stage])
    assert life.committed()[begin] == (end, "")
    assert stage._aligner.cursor((1, 0)) == end
