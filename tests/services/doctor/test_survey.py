"""Reports are read from the newest back, the newest of each sender counts."""

from services.doctor.survey import _reports, newest_report_us, read_progress
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.model.partials import MergeProgress
from skyband.model.status import ShardReport, SourceReport

S = 1_000_000


def test_the_newest_report_of_each_sender_counts_by_generation() -> None:
    log = MemoryLog(ManualClock(0))
    log.create_topic("progress", 1)
    writer = log.producer()
    values = [
        ShardReport(group="a", generation=1, shard=0, rows_in=1),
        ShardReport(group="a", generation=2, shard=0, rows_in=2),
        ShardReport(group="a", generation=2, shard=0, rows_in=3),
        SourceReport(group="a", generation=2, stream="heat", partition=1, unread_rows=5),
        MergeProgress("a", 2, 7, {}),
        MergeProgress("b", 1, 8, {}),
    ]
    for number, value in enumerate(values):
        writer.send("progress", 0, value, timestamp_us=number * S)
    progress = read_progress(log)
    assert newest_report_us(progress) == 5 * S
    reports = _reports(progress)
    assert set(reports) == {("a", 1), ("a", 2), ("b", 1)}
    assert (reports["a", 2].shards[0].value.rows_in, reports["a", 2].shards[0].time_us) == (3, 2 * S)
    assert reports["a", 2].sources["heat", 1].value.unread_rows == 5
    assert reports["a", 2].merge is not None
    assert reports["a", 1].merge is None
    assert reports["b", 1].shards == {}


def test_without_reports_there_is_no_newest() -> None:
    log = MemoryLog(ManualClock(0))
    log.create_topic("progress", 1)
    assert newest_report_us(read_progress(log)) is None
