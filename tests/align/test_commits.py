"""What is committed, and what of it only when the log takes it."""

import pytest

from skyband.align.commits import Commits
from skyband.align.source import SourceStart
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.record_log import Position
from tests.align.fake_log import FakeConsumer, FakeLog

A, B = Position("temperatures", 0), Position("temperatures", 1)


def begun(log: FakeLog) -> Commits:
    """Return commits of two source partitions, A as it was committed and B new."""
    its = Commits(FakeConsumer(log))
    its.begin(A, SourceStart(5, 1, 1), is_committed=True)
    its.begin(B, SourceStart(0), is_committed=False)
    return its


def test_only_what_moved_is_committed_and_a_new_start_at_once() -> None:
    log = FakeLog({})
    its = begun(log)
    assert its.is_due
    its.commit()
    assert (log.committed, its.is_due) == ({B: 0}, False)
    its.state({A: SourceStart(5, 1, 1), B: SourceStart(0)})
    its.commit()
    assert log.journal == ["commit"]
    its.state({A: SourceStart(9, 3, 3), B: SourceStart(0)})
    its.commit()
    assert log.committed == {A: 9, B: 0}


def test_only_the_start_of_a_new_partition_cannot_wait() -> None:
    its = begun(FakeLog({}))
    assert its.is_urgent
    its.commit()
    its.state({A: SourceStart(9, 3, 3), B: SourceStart(4)})
    assert (its.is_due, its.is_urgent) == (True, False)


def test_times_that_move_without_an_offset_are_committed_too() -> None:
    log = FakeLog({})
    its = begun(log)
    its.state({A: SourceStart(5, 8, 1)})
    its.commit()
    assert '"watermark_us":8' in log.stored[A].note


def test_a_refused_commit_is_made_up_for_unless_the_partition_is_forgotten() -> None:
    log = FakeLog({}, refusing=True)
    its = begun(log)
    its.state({A: SourceStart(7, 2, 2)})
    with pytest.raises(CommitRefusedError):
        its.commit()
    assert (its.refused, its.is_due) == (1, False)
    its.forget(A)
    log.refusing = False
    its.retry()
    its.commit()
    assert log.committed == {B: 0}


def test_the_newest_statement_wins_over_one_that_was_refused() -> None:
    log = FakeLog({}, refusing=True)
    its = begun(log)
    its.state({A: SourceStart(7, 2, 2)})
    with pytest.raises(CommitRefusedError):
        its.commit()
    log.refusing = False
    its.state({A: SourceStart(9, 2, 2)})
    its.commit()
    assert log.committed == {A: 9, B: 0}
