"""How far the slowest shard is, by what shards report."""

from skyband.align.frontier_reader import FrontierReader
from skyband.log.record_log import Position
from skyband.model.duration import MIN_TIME_US
from skyband.model.status import ShardReport, SourceReport
from tests.align.fake_log import FakeLog


def reports(log: FakeLog, *frontiers: tuple[int, int], group: str = "factory", generation: int = 2) -> None:
    """Let shards report: (shard, frontier)."""
    for shard, frontier_us in frontiers:
        its = ShardReport(group=group, generation=generation, shard=shard, frontier_us=frontier_us)
        log.put(Position("progress", shard % 2), its)


def reader(log: FakeLog, shards: int = 3) -> FrontierReader:
    """Return a reader of generation 2."""
    return FrontierReader(log, "progress", "factory", 2, shards)


def test_nothing_is_known_before_every_shard_has_reported_and_then_the_least_frontier() -> None:
    log = FakeLog({"progress": 2})
    its = reader(log)
    reports(log, (0, 50), (1, 40))
    assert its.poll() is None
    reports(log, (2, 60), (0, 55))
    assert its.poll() == 40
    assert its.poll() is None
    reports(log, (1, 70))
    assert its.poll() == 55


def test_what_was_reported_before_it_began_does_not_count() -> None:
    log = FakeLog({"progress": 2})
    reports(log, (0, 50), (1, 40), (2, 60))
    its = reader(log)
    reports(log, (0, 51), (1, 41))
    assert its.poll() is None


def test_other_groups_generations_and_kinds_of_reports_do_not_count() -> None:
    log = FakeLog({"progress": 2})
    its = reader(log, shards=1)
    reports(log, (0, 50), generation=1)
    reports(log, (0, 50), group="other")
    reports(log, (1, 50))
    log.put(Position("progress", 0), SourceReport(group="factory", generation=2, stream="a", partition=0))
    log.put(Position("progress", 0), None)
    assert its.poll() is None


def test_a_shard_that_knows_no_time_yet_says_nothing() -> None:
    log = FakeLog({"progress": 2})
    its = reader(log, shards=2)
    reports(log, (0, 50), (1, MIN_TIME_US))
    assert its.poll() is None
    reports(log, (1, 9))
    assert its.poll() == 9
    its.close()
