"""The loop of the engine over a log: what it writes, in what order, when it commits, and what stops it."""

from collections.abc import Sequence

import pytest

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.engine.shard import Shard
from skyband.errors import CapacityError, CoverageGapError, LogError
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryProducer
from skyband.log.record_log import Position
from skyband.model.duration import MIN_TIME_US
from skyband.model.partials import Activated, PartialBatch, Progress
from tests.engine.pure_pipeline import NO_CAP
from tests.engine.stage_over_memory import GROUP, QUERY, JournalLog, Upstream, busy_log, drain, reports, stage_of

Said = tuple[object, ...]


def said(value: object) -> Said:
    """Return a partial in short."""
    if isinstance(value, Activated):
        return "begins", value.uid, value.revision, value.first_us
    if isinstance(value, Progress):
        return "progress", value.frontier_us, value.settled_us
    assert isinstance(value, PartialBatch)
    starts = [0, *value.id_ends.tolist()]
    ids = [value.id_bytes[starts[i] : starts[i + 1]].tobytes().decode() for i in range(len(value.id_ends))]
    ranked = [(ids[i], float(value.score[i])) for i in value.ranking]
    return "shows", *((e.uid, e.window_end, *ranked[e.start : e.stop]) for e in value.evaluations)


def of_shard(values: Sequence[object], shard: int) -> list[Said]:
    return [said(value) for value in values if value.shard == shard]  # type: ignore[attr-defined]


def window_ends(log: JournalLog, shard: int) -> list[int]:
    batches = [value for value in log.values("partials") if isinstance(value, PartialBatch) and value.shard == shard]
    return [evaluation.window_end for batch in batches for evaluation in batch.evaluations]


def test_each_batch_becomes_partials_in_order_of_time_then_its_progress() -> None:
    log = JournalLog()
    stage, upstream = stage_of(log), Upstream(log)
    upstream.change(QUERY)
    upstream.flush()
    upstream.rows(("x", 1, 5.0), ("y", 12, 7.0))
    upstream.flush()
    upstream.rows(("z", 33, 1.0))
    upstream.flush()
    upstream.finish()
    upstream.flush()
    assert stage.step()
    assert not stage.step()
    assert [said(value) for value in log.values("partials")] == [
        ("begins", "q", 1, MIN_TIME_US),
        ("progress", MIN_TIME_US, MIN_TIME_US),
        ("shows", ("q", 10, ("x", 5.0))),
        ("progress", 12, MIN_TIME_US),
        ("shows", ("q", 20, ("y", 7.0), ("x", 5.0))),
        ("shows", ("q", 30, ("y", 7.0))),
        ("progress", 33, MIN_TIME_US),
        ("shows", ("q", 40, ("z", 1.0))),
        ("progress", 40, 33),
    ]


@pytest.mark.parametrize("max_records", [1, 5, 64])
def test_partials_are_those_of_one_batch_after_the_other_however_many_one_read_returns(max_records: int) -> None:
    log = busy_log(2)
    drain(stage_of(log, max_records=max_records))
    for number in range(2):
        shard = Shard(GROUP, 1, number, Sequencer(GROUP, 1, number, {(0, 0): 0}, NO_CAP))
        expected: list[object] = []
        for batch in log.values("aligned", number):
            assert isinstance(batch, AlignedBatch)
            shard.offer(batch)
            expected += shard.advance()
        assert of_shard(log.values("partials"), number) == [said(value) for value in expected]
        assert sum(isinstance(value, PartialBatch) for value in expected) > 8


def test_a_query_begins_at_its_place_in_the_log_also_if_all_is_read_at_once() -> None:
    log = JournalLog()
    upstream = Upstream(log)
    upstream.rows(("x", 1, 5.0), ("y", 42, 7.0))
    upstream.flush()
    upstream.change(QUERY)
    upstream.flush()
    upstream.rows(("z", 63, 1.0))
    upstream.flush()
    assert stage_of(log).step()
    begun = [value for value in log.values("partials") if isinstance(value, Activated)]
    assert [value.first_us for value in begun] == [50]
    assert window_ends(log, 0) == [50, 60]


def test_offsets_are_committed_only_behind_the_flush_of_the_partials() -> None:
    log = busy_log(1)
    stage = stage_of(log, max_records=2)
    assert stage.step()
    assert log.journal == ["send Activated", "send Progress", "send PartialBatch", "send Progress", "flush", "commit"]
    assert log.committed == {Position("aligned", 0): 2}
    drain(stage)
    assert log.committed == {Position("aligned", 0): len(log.values("aligned"))}
    log.journal.clear()
    assert not stage.step()
    assert log.journal == []


def test_what_cannot_be_flushed_is_not_committed() -> None:
    log = busy_log(1)
    stage = stage_of(log)
    log.flush_fails = True
    with pytest.raises(LogError, match="the broker has gone"):
        stage.step()
    assert log.committed == {}


def test_what_finds_no_room_is_not_committed() -> None:
    log = JournalLog(partials_capacity=3)
    upstream = Upstream(log)
    for time in range(5):
        upstream.rows(("x", time, 1.0))
        upstream.flush()
    stage = stage_of(log, max_records=1)
    with pytest.raises(CapacityError, match="'partials' partition 0 is full"):
        drain(stage)
    assert log.committed == {Position("aligned", 0): 3}


@pytest.mark.parametrize("max_records", [1, 64])
def test_a_gap_stops_one_shard_and_the_other_goes_on(max_records: int) -> None:
    log, clock = JournalLog(2), ManualClock()
    stage = stage_of(log, clock, max_records=max_records, report_every_us=10)
    upstream = Upstream(log)
    upstream.change(QUERY)
    for step in range(6):
        upstream.rows(*((f"o{i}", step * 10 + i, float(i)) for i in range(8)))
        upstream.flush(but_shard=1 if step == 2 else None)
    drain(stage)
    (gap,) = stage.stopped.values()
    assert isinstance(gap, CoverageGapError)
    assert (list(stage.stopped), gap.expected, gap.found) == ([1], 16, 24)
    progress = [value for value in log.values("partials") if isinstance(value, Progress)]
    assert [value.frontier_us for value in progress if value.shard == 0] == [7, 17, 27, 37, 47, 57]
    assert [value.frontier_us for value in progress if value.shard == 1] == [7, 17]
    assert window_ends(log, 0) == [10, 20, 30, 40, 50]
    assert window_ends(log, 1) == [10]
    clock.advance(10)
    upstream.rows(("o1", 70, 1.0))
    upstream.flush()
    drain(stage)
    whole, stopped = reports(log)
    assert (whole.shard, whole.frontier_us, whole.stopped) == (0, 70, "")
    assert (stopped.shard, stopped.frontier_us, stopped.stopped) == (1, 17, str(gap))
    assert "offsets [16, 24) are missing" in stopped.stopped


def test_a_stage_may_run_some_shards_and_write_to_its_own_partition() -> None:
    log = busy_log(3)
    stage = stage_of(log, shards=[2], partition=1, report_every_us=0)
    drain(stage)
    assert log.values("partials", 0) == []
    assert {value.shard for value in (*log.values("partials", 1), *reports(log))} == {2}  # type: ignore[attr-defined]
    assert list(log.committed) == [Position("aligned", 2)]


def test_what_is_no_aligned_batch_is_passed_over() -> None:
    log = JournalLog()
    stage, producer = stage_of(log), MemoryProducer(log)
    producer.send("aligned", 0, "hello")
    upstream = Upstream(log)
    upstream.rows(("x", 5, 1.0))
    upstream.flush()
    drain(stage)
    assert [said(value) for value in log.values("partials")] == [("progress", 5, MIN_TIME_US)]
    assert log.committed == {Position("aligned", 0): 2}
