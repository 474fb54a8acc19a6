"""The sketch's loop over a memory log: what it publishes, and that deaths and repeats change none of it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import LogError
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.record_log import Position
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.stream import Attribute, Stream
from skyband.sketch.group_sketch import GroupSketch
from skyband.sketch.publication import Publication, newest_publications
from skyband.sketch.stage import SketchStage, SketchTopics, SketchTuning
from tests.oracle import Row
from tests.workloads import source_rows

S = 1_000_000
GROUP = Group(
    name="g",
    streams=tuple(Stream(name=name, attributes=(Attribute(name=name, lo=-9.0, hi=9.0),)) for name in "ab"),
    retention_us=20 * S,
)
PLACES = ((0, 0), (0, 1), (1, 0))
STARTS = dict.fromkeys((CATALOG_KEY, *PLACES), 0)
TUNING = SketchTuning(publish_every_us=0, bitmaps=16, sample_bytes=2_000, max_records=1)


class Upstream:
    """Writes the aligned log of a seeded workload: objects that come on one stream or both, some of them late."""

    def __init__(self, shards: int = 1, seed: int = 1, batches: int = 12, rows: int = 30) -> None:
        self.log = MemoryLog(ManualClock())
        self.log.create_topic("aligned", shards)
        self.log.create_topic("statistics", 3)
        self.group = replace(GROUP, shards=shards)
        self._aligner = Aligner(self.group, 1, shards, {place: SourceStart() for place in STARTS})
        self.producer = self.log.producer()
        random = np.random.default_rng(seed)
        for step in range(batches):
            for place in PLACES:
                self.add(place, random, step, rows)
            self.flush()

    def add(self, place: tuple[int, int], random: np.random.Generator, step: int, rows: int) -> None:
        times = np.sort((step * 3 + random.random(rows) * 4) * S).astype(np.int64) - S * (random.random(rows) < 0.1)
        found = [Row(f"o{random.integers(300)}", int(time), (float(random.integers(9)),)) for time in times]
        first = self._aligner.cursor(place)
        self._aligner.add(*place, first, first + rows, source_rows(found, 1, first))

    def flush(self, times: int = 1, but_shard: int | None = None) -> list[AlignedBatch]:
        batches = [batch for batch in self._aligner.flush(0) if batch.shard != but_shard]
        for batch in batches * times:
            self.producer.send("aligned", batch.shard, batch)
        self.producer.flush()
        return batches

    def stage(
        self,
        clock: ManualClock | None = None,
        shards: Sequence[int] | None = (0,),
        tuning: SketchTuning = TUNING,
        group: Group | None = None,
    ) -> SketchStage:
        topics = SketchTopics(aligned="aligned")
        its = group or self.group
        return SketchStage(self.log, its, 1, STARTS, topics, clock=clock or ManualClock(), tuning=tuning, shards=shards)

    def published(self) -> dict[int, Publication]:
        return newest_publications(self.log, "statistics", "g", 1, range(self.group.shards))


def drain(stage: SketchStage) -> None:
    while stage.step():
        pass


def all_rows(upstream: Upstream) -> list[AlignedBatch]:
    consumer = upstream.log.consumer()
    consumer.assign({Position("aligned", 0): 0})
    return [record.value for record in consumer.poll(1_000, 0.0) if isinstance(record.value, AlignedBatch)]


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


def test_what_is_published_is_the_sketch_of_the_rows_of_the_window(upstream: Upstream) -> None:
    drain(upstream.stage())
    found = upstream.published()[0]
    batches = all_rows(upstream)
    newest = max(int(batch.event_time_us.max()) for batch in batches)
    assert found.to_us == (newest // S + 1) * S
    assert (found.newest_us, found.from_us) == (newest, found.to_us - 20 * S)
    assert found.aligned_offset == len(batches)
    assert found.next_offsets == ((-1, 0, 0), (0, 0, 360), (0, 1, 360), (1, 0, 360))
    assert (found.key, found.source) == ("g/1/0", "service")
    told = GroupSketch.from_bytes(found.sketch).statistics(found.to_us)
    for stream in (0, 1):
        seen: set[int] = set()
        for batch in batches:
            of = np.repeat([section.stream for section in batch.sections], [s.rows for s in batch.sections])
            chosen = (of == stream) & (batch.event_time_us >= found.from_us)
            seen |= set(batch.id_hash[chosen].tolist())
        assert told.streams[stream].cardinality.value == pytest.approx(len(seen), rel=0.5)


@pytest.mark.parametrize("publishes", [True, False], ids=["after publishing", "before publishing"])
@pytest.mark.parametrize("seed", range(3))
def test_a_stage_killed_after_any_step_goes_on_as_if_it_had_not_been(seed: int, publishes: bool) -> None:
    throughout = Upstream(seed=seed)
    drain(throughout.stage())
    expected = throughout.published()
    upstream = Upstream(seed=seed)
    for step in range(12):
        stage = upstream.stage()
        stage.step()
        if step % 3 and not publishes:
            # One more batch is read, and forgotten: the clock stands still, so that nothing is published.
            stage._tuning = replace(TUNING, publish_every_us=1)
            stage.step()
        stage.abandon()
        assert upstream.published()[0].aligned_offset == step + 1
    drain(upstream.stage())
    assert upstream.published() == expected


def test_at_every_offset_a_restored_stage_publishes_what_one_that_ran_throughout_does(upstream: Upstream) -> None:
    def every_publication(log: MemoryLog) -> dict[int, Publication]:
        consumer = log.consumer()
        consumer.assign({Position("statistics", number): 0 for number in range(3)})
        values = [record.value for record in consumer.poll(1_000, 0.0)]
        return {value.aligned_offset: value for value in values if isinstance(value, Publication)}

    drain(upstream.stage())
    expected = every_publication(upstream.log)
    assert len(expected) == 12
    again = Upstream()
    for _ in range(12):
        stage = again.stage()
        stage.step()
        stage.abandon()
    assert every_publication(again.log) == expected


def test_batches_that_come_twice_change_nothing(upstream: Upstream) -> None:
    drain(upstream.stage())
    twice = Upstream(batches=0)
    random = np.random.default_rng(1)
    for step in range(12):
        for place in PLACES:
            twice.add(place, random, step, 30)
        twice.flush(times=2)
    stage = twice.stage()
    drain(stage)
    once, found = upstream.published()[0], twice.published()[0]
    assert replace(found, aligned_offset=once.aligned_offset) == once
    assert (stage.shards[0].rows, stage.shards[0].repeats) == (1_080, 1_080)


def test_a_gap_stops_the_shard_and_the_others_go_on() -> None:
    upstream = Upstream(shards=2)
    stage = upstream.stage(shards=(0, 1))
    drain(stage)
    before = upstream.published()
    random = np.random.default_rng(5)
    upstream.add((0, 0), random, 13, 30)
    upstream.flush(but_shard=0)
    for step in (14, 15):
        upstream.add((0, 0), random, step, 30)
        upstream.flush()
    drain(stage)
    assert list(stage.stopped) == [0]
    assert "are missing from the aligned log" in str(stage.stopped[0])
    after = upstream.published()
    assert after[0] == before[0]
    assert after[1].aligned_offset == before[1].aligned_offset + 3


def test_it_publishes_when_it_is_time_and_only_what_is_new(upstream: Upstream) -> None:
    clock = ManualClock()
    stage = upstream.stage(clock, tuning=replace(TUNING, publish_every_us=5 * S, max_records=100))
    stage.step()
    assert upstream.published() == {}
    clock.advance(5 * S)
    stage.step()
    first = upstream.published()[0]
    assert first.published_us == clock.now_us()
    clock.advance(5 * S)
    stage.step()
    assert upstream.published()[0] == first
    upstream.add((0, 0), np.random.default_rng(1), 20, 5)
    upstream.flush()
    stage.step()
    assert upstream.published()[0] == first
    stage.close()
    assert upstream.published()[0].aligned_offset == 13


def test_members_share_the_shards_and_hand_them_over_whole() -> None:
    alone = Upstream(shards=4)
    drain(alone.stage(shards=range(4)))
    upstream = Upstream(shards=4)
    first = upstream.stage(shards=None)
    for _ in range(10):
        first.step()
    second = upstream.stage(shards=None)
    for _ in range(60):
        first.step()
        second.step()
    assert len(first.shards) == len(second.shards) == 2
    first.close()
    for _ in range(60):
        second.step()
    assert sorted(second.shards) == [0, 1, 2, 3]
    assert upstream.published() == alone.published()


def test_a_shard_without_rows_publishes_how_far_the_group_is() -> None:
    upstream = Upstream(shards=8, batches=1, rows=1)
    drain(upstream.stage(shards=range(8)))
    found = upstream.published()
    assert len(found) == 8
    assert len({publication.to_us for publication in found.values()}) == 1
    assert MAX_TIME_US in {publication.from_us for publication in found.values()}


def test_nothing_is_published_before_the_first_row() -> None:
    upstream = Upstream(batches=1, rows=0)
    drain(upstream.stage())
    assert upstream.published() == {}


def test_a_shard_whose_log_is_gone_is_stopped_with_what_to_do(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = upstream.stage()
    for _ in range(4):
        stage.step()
    stage.abandon()
    begin_at(upstream, 6, monkeypatch)
    stopped = upstream.stage().stopped[0]
    assert "offsets 4 to 5 of aligned are gone" in str(stopped)
    assert "send the key 'g/1/0' without a value to topic 'statistics'" in str(stopped)


def test_a_shard_never_published_begins_where_the_log_does(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_at(upstream, 6, monkeypatch)
    stage = upstream.stage()
    drain(stage)
    assert stage.stopped == {}
    assert stage.shards[0].rows == 6 * 90
    drain_all = Upstream()
    drain(drain_all.stage())
    assert upstream.published()[0].next_offsets == drain_all.published()[0].next_offsets


def begin_at(upstream: Upstream, offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the aligned log begin at an offset, as after its retention."""
    kind = type(upstream.log.consumer())
    known = kind.begin_offsets

    def begins(self: object, positions: Sequence[Position]) -> dict[Position, int]:
        found = known(self, positions)  # type: ignore[arg-type]
        return {at: offset if at.topic == "aligned" else begin for at, begin in found.items()}

    monkeypatch.setattr(kind, "begin_offsets", begins)


def test_a_source_partition_that_joins_is_taken_in(upstream: Upstream) -> None:
    stage = SketchStage(
        upstream.log,
        GROUP,
        1,
        {CATALOG_KEY: 0, (0, 0): 0},
        SketchTopics(aligned="aligned"),
        clock=ManualClock(),
        tuning=TUNING,
        shards=(0,),
    )
    drain(stage)
    assert stage.shards[0].rows == 1_080


def test_what_was_published_keeps_its_settings(upstream: Upstream) -> None:
    stage = upstream.stage()
    stage.step()
    stage.abandon()
    stage = upstream.stage(tuning=replace(TUNING, bitmaps=64))
    drain(stage)
    assert stage.shards[0].sketch.shape.bitmaps == 16


def test_a_publication_of_another_shape_or_damaged_stops_the_shard(upstream: Upstream) -> None:
    drain(upstream.stage())
    found = upstream.published()[0]
    three = replace(GROUP, streams=(*GROUP.streams, Stream(name="c", attributes=(Attribute(name="c"),))))
    assert "are of 2 streams with 1 values, but the group has 3" in str(upstream.stage(group=three).stopped[0])
    broken = replace(found, sketch=found.sketch[:-1])
    for partition in range(3):
        upstream.producer.send("statistics", partition, broken, key=found.key.encode())
    stage = upstream.stage()
    drain(stage)
    assert isinstance(stage.stopped[0], LogError)
    assert "damaged" in str(stage.stopped[0])


def test_a_group_of_too_many_streams_is_not_sketched() -> None:
    upstream = Upstream(batches=0)
    many = replace(GROUP, streams=tuple(Stream(name=f"s{i}", attributes=(Attribute(name=f"s{i}"),)) for i in range(63)))
    stage = upstream.stage(group=many)
    stage.step()
    assert "1 to 62 streams" in str(stage.stopped[0])
    assert stage.shards == {}
