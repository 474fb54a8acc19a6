"""What a stage tells of its shards, and when."""

from collections.abc import Sequence

from skyband.log.clock import ManualClock
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import QueryState
from skyband.model.status import Holder, QueryReport, ShardReport
from tests.engine.stage_over_memory import QUERY, TWO, JournalLog, Upstream, busy_log, drain, reports, stage_of


def test_reports_come_by_the_clock_and_no_more_often() -> None:
    log, clock = JournalLog(2), ManualClock(1_000)
    stage, upstream = stage_of(log, clock, report_every_us=50), Upstream(log)
    found: list[list[int]] = []
    for advance in (0, 49, 1, 0, 20, 29, 1, 500, 49, 1):
        clock.advance(advance)
        upstream.rows(("x", clock.now_us(), 1.0))
        upstream.flush()
        stage.step()
        stage.step()
        found.append([report.shard for report in reports(log)[sum(len(each) for each in found) :]])
    assert found == [[], [], [0, 1], [], [], [], [0, 1], [0, 1], [], [0, 1]]


def test_a_stage_reports_also_if_nothing_comes() -> None:
    log, clock = JournalLog(), ManualClock()
    stage = stage_of(log, clock, report_every_us=50)
    clock.advance(50)
    assert not stage.step()
    assert log.journal == ["send ShardReport"]
    (report,) = reports(log)
    assert (report.group, report.generation, report.shard) == ("g", 1, 0)
    assert (report.frontier_us, report.newest_us, report.rows_in, report.queries) == (MIN_TIME_US, MIN_TIME_US, 0, ())


def test_without_a_topic_for_them_there_are_no_reports() -> None:
    log, clock = busy_log(1), ManualClock()
    stage = stage_of(log, clock, progress="", report_every_us=1)
    clock.advance(10)
    drain(stage)
    assert "send ShardReport" not in log.journal
    assert log.values("progress") == []


def test_a_report_tells_frontier_holder_rows_and_queries() -> None:
    log, clock = JournalLog(), ManualClock(1_000)
    stage = stage_of(log, clock, TWO, report_every_us=50)
    upstream = Upstream(log, TWO)
    upstream.change(QUERY)
    upstream.rows(("x", 1, 5.0), ("y", 12, 7.0), ("x", 3, 9.0), ("z", 33, 1.0))

    def next_report() -> ShardReport:
        upstream.flush()
        drain(stage)
        clock.advance(50)
        stage.step()
        return reports(log)[-1]

    waits = next_report()
    assert (waits.frontier_us, waits.newest_us, waits.rows_in, waits.rows_late) == (MIN_TIME_US, 33, 4, 0)
    assert waits.holder == Holder(stream="a", partition=1)
    assert [(q.uid, q.evaluations, q.last_window_end, q.last_result_us) for q in waits.queries] == [
        ("q", 0, None, None)
    ]

    upstream.rows(("v", 25, 2.0), partition=1)
    runs = next_report()
    assert (runs.group, runs.generation, runs.shard, runs.stopped) == ("g", 1, 0, "")
    assert (runs.frontier_us, runs.newest_us, runs.rows_in, runs.rows_late, runs.objects) == (25, 33, 5, 1, 2)
    assert runs.holder == Holder(stream="a", partition=1, watermark_us=25)
    assert runs.state_bytes > 0
    assert [(q.uid, q.evaluations, q.last_window_end, q.last_result_us) for q in runs.queries] == [("q", 2, 20, 1_100)]
    assert runs.queries[0].hot > 0
    assert runs.queries[0].state_bytes > 0
    assert runs.queries[0].broken_promises == 0

    upstream.finish(0)
    upstream.finish(1)
    ended = next_report()
    assert (ended.frontier_us, ended.holder, ended.rows_in, ended.rows_late) == (40, None, 5, 1)
    assert [(q.evaluations, q.last_window_end, q.last_result_us) for q in ended.queries] == [(4, 40, 1_150)]


def test_when_a_query_last_had_rows_is_the_time_of_the_first_report_that_saw_them() -> None:
    log, clock = JournalLog(), ManualClock()
    stage, upstream = stage_of(log, clock, report_every_us=100), Upstream(log)
    upstream.change(QUERY)
    found: list[tuple[int | None, int | None, int]] = []
    # Of the windows that end at 20, 30, 40, 50, 80 and 90, only that to 50 shows nothing; the two between are skipped.
    for time, value in ((12, 1.0), (13, 1.0), (29, 1.0), (29, 1.0), (79, 1.0), (95, 1.0)):
        upstream.rows(("x", time, value))
        upstream.flush()
        drain(stage)
        clock.advance(100)
        stage.step()
        (query,) = reports(log)[-1].queries
        found.append((query.last_window_end, query.last_result_us, query.evaluations))
    assert found == [(None, None, 0), (None, None, 0), (20, 300, 1), (20, 300, 1), (40, 500, 4), (90, 600, 6)]


def test_a_query_that_is_paused_is_in_no_report() -> None:
    log, clock = JournalLog(), ManualClock()
    stage, upstream = stage_of(log, clock, report_every_us=1), Upstream(log)
    found: list[Sequence[QueryReport]] = []
    for revision, state in ((1, QueryState.ACTIVE), (2, QueryState.PAUSED), (3, QueryState.ACTIVE)):
        upstream.change(QUERY, revision, state)
        upstream.flush()
        clock.advance(1)
        stage.step()
        found.append(reports(log)[-1].queries)
    assert [[query.uid for query in queries] for queries in found] == [["q"], [], ["q"]]
