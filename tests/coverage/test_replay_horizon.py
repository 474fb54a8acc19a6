"""A restart from a mark misses no row that still counts."""

from collections import deque

import numpy as np

from skyband.coverage.replay_horizon import ReplayHorizon
from skyband.coverage.sequencer import Sequencer
from skyband.model.duration import MAX_TIME_US
from tests.coverage.batches import Partition, group, listed, make_batch


def test_a_mark_is_safe_once_everything_before_it_is_older_than_the_retention() -> None:
    horizon = ReplayHorizon(retention_us=100)
    horizon.mark(0, newest_us=50, newest_release_us=60, state=dict)
    horizon.mark(1, newest_us=90, newest_release_us=90, state=dict)
    assert horizon.advance(150, 10, evaluated_us=150) is None
    first = horizon.advance(160, 10, evaluated_us=160)
    assert first is not None
    assert first.aligned_offset == 0
    second = horizon.advance(200, 10, evaluated_us=191)
    assert second is not None
    assert second.aligned_offset == 1


def test_a_mark_is_not_safe_while_a_row_before_it_waits() -> None:
    horizon = ReplayHorizon(retention_us=10)
    horizon.mark(0, newest_us=5, newest_release_us=400, state=dict)
    assert horizon.advance(400, 10, evaluated_us=390) is None
    assert horizon.advance(401, 10, evaluated_us=400) is not None


def test_a_mark_is_not_safe_until_as_many_rows_as_are_retained_were_taken_behind_it() -> None:
    horizon = ReplayHorizon(retention_us=10, retention_rows=5)
    horizon.mark(0, newest_us=5, newest_release_us=5, state=dict)
    assert horizon.advance(100, 3, evaluated_us=100) is None
    assert horizon.advance(110, 7, evaluated_us=110) is None
    assert horizon.advance(120, 8, evaluated_us=120) is not None


def test_marks_stay_few_and_apart_by_a_part_of_the_retention() -> None:
    horizon = ReplayHorizon(retention_us=1_000, limit=40)
    for step in range(5_000):
        horizon.mark(step, newest_us=step, newest_release_us=step, state=dict)
        mark = horizon.advance(step + 1, step, evaluated_us=step)
        horizon._check()
        if step > 1_100:
            assert mark is not None
            assert step - 1_060 < mark.aligned_offset < step - 1_000


def test_marks_stay_few_while_none_is_safe() -> None:
    horizon = ReplayHorizon(retention_us=1_000, limit=8)
    for step in range(100_000):
        horizon.mark(step, newest_us=step, newest_release_us=step, state=dict)
        horizon._check()
    mark = horizon.advance(100_000, 0, evaluated_us=61_001)
    assert mark is not None
    assert 20_000 < mark.aligned_offset <= 60_000


def test_a_restart_from_the_safe_mark_has_all_rows_of_the_windows_to_come() -> None:
    rng = np.random.default_rng(1)
    factory = group(30, 5)
    partitions = [Partition(0, 0, 30), Partition(1, 0, 5)]
    starts = {(0, 0): 0, (1, 0): 0}
    sequencer = Sequencer(factory, 1, 0, starts, 10**9)
    horizon = ReplayHorizon(retention_us=200)
    batches, known, taken, checked = [], deque(), 0, 0
    for step in range(150):
        parts = []
        for partition in partitions:
            low = partition.cursor
            for _ in range(5):
                partition.read(step * 10 + int(rng.integers(-60, 10)))
            parts.append(partition.section(low, partition.cursor))
        horizon.mark(step, sequencer.newest_us, sequencer.newest_release_us, sequencer.state)
        batches.append(make_batch(parts, step))
        sequencer.offer(batches[-1])
        until = sequencer.frontier_us
        rows = listed(sequencer.take(until))
        known.extend(rows)
        taken += len(rows)
        mark = horizon.advance(until, taken, evaluated_us=until)
        if mark is None or step % 10:
            continue
        checked += 1
        restarted = Sequencer(factory, 1, 0, starts, 10**9)
        restarted.restore(mark.state)
        for batch in batches[mark.aligned_offset :]:
            restarted.offer(batch)
        assert restarted.frontier_us == until
        replayed = listed(restarted.take(until))
        assert [r for r in known if r.event_us >= until - 200] == [r for r in replayed if r.event_us >= until - 200]
        assert len(replayed) < len(known) or step < 40
        assert restarted.pending_rows == sequencer.pending_rows
    assert checked > 10
    assert sequencer.take(MAX_TIME_US).rows
