"""Reports folded into statuses."""

from skyband.control.planner import plan
from skyband.control.statuses import StatusBoard
from skyband.model.group import Group
from skyband.model.partials import Progress
from skyband.model.query import Query, QueryState, Window
from skyband.model.resources import GroupResource, QueryResource, Stamp
from skyband.model.status import Holder, QueryReport, QueryStatus, ShardReport, ShardStatus, SourceReport
from skyband.model.stream import Attribute, Stream

STAMP = Stamp("uid", 1, 0, 0)
GROUP = GroupResource(
    group=Group(name="g", streams=(Stream(name="a", attributes=(Attribute(name="a"),)),), retention_us=10**9, shards=2),
    generation=3,
    sources=(),
    stamp=STAMP,
)
_QUERY = Query(name="q", k=1, score="a", window=Window(10**6, 10**6))
QUERY = QueryResource(group="g", query=_QUERY, plan=plan(GROUP.group, _QUERY), state=QueryState.ACTIVE, stamp=STAMP)


def report(shard: int, generation: int = 3, **changes: object) -> ShardReport:
    return ShardReport(group="g", generation=generation, shard=shard, **changes)  # type: ignore[arg-type]


def status(*values: object) -> QueryStatus:
    board = StatusBoard()
    for value in values:
        board.fold(value)
    return board.status(QUERY, GROUP)


def test_without_reports_all_shards_are_silent() -> None:
    assert status() == QueryStatus(silent_shards=(0, 1))


def test_the_newest_report_of_each_shard_counts_and_shards_add_up() -> None:
    mine = QueryReport(uid="uid", evaluations=4, last_result_us=50, last_window_end=8, hot=3, state_bytes=100)
    other = QueryReport(uid="other", evaluations=9, last_result_us=99, hot=9, state_bytes=9)
    found = status(
        report(0, frontier_us=1, rows_in=1),
        report(
            0, frontier_us=7, newest_us=9, rows_in=10, rows_late=1, objects=5, state_bytes=1000, queries=(other, mine)
        ),
        report(
            1,
            frontier_us=6,
            newest_us=8,
            rows_in=20,
            objects=6,
            queries=(QueryReport(uid="uid", last_result_us=60, hot=4),),
        ),
    )
    assert found == QueryStatus(
        shards=(ShardStatus(shard=0, frontier_us=7, newest_us=9), ShardStatus(shard=1, frontier_us=6, newest_us=8)),
        rows_in=30,
        rows_late=1,
        evaluations=4,
        last_result_us=60,
        last_window_end=8,
        hot=7,
        objects=11,
        state_bytes=1100,
    )


def test_progress_alone_tells_the_frontier_and_nothing_else() -> None:
    found = status(Progress("g", 3, 1, 42, 0))
    assert found == QueryStatus(shards=(ShardStatus(shard=1, frontier_us=42),), silent_shards=(0,))
    assert status(report(1, frontier_us=50), Progress("g", 3, 1, 60, 0)).shards[0].frontier_us == 60


def test_the_reader_says_what_a_shard_cannot_see_of_its_holder() -> None:
    holder = Holder(stream="a", partition=1, watermark_us=5)
    source = SourceReport(
        group="g",
        generation=3,
        stream="a",
        partition=1,
        unread_rows=7,
        reader="align-1",
        rows_per_second=2.0,
        paused=True,
    )
    found = status(report(0, holder=holder), source)
    assert found.shards[0].holder == Holder(
        stream="a", partition=1, watermark_us=5, unread_rows=7, reader="align-1", rows_per_second=2.0
    )
    assert found.paused == (("a", 1),)


def test_rejected_records_add_up_over_sources_largest_first() -> None:
    sources = [
        SourceReport(group="g", generation=3, stream="a", partition=partition, rejected=rejected)
        for partition, rejected in enumerate([(("late", 1), ("future", 0)), (("late", 1), ("undecodable", 3))])
    ]
    assert status(*sources).rejected == (("undecodable", 3), ("late", 2))


def test_reports_of_another_generation_group_or_kind_say_nothing() -> None:
    other = ShardReport(group="h", generation=3, shard=0, rows_in=5)
    assert status(report(0, generation=2), other, "text", None) == QueryStatus(silent_shards=(0, 1))
    # A newer generation may report before control hears of it; the old one is gone then.
    assert status(report(0), report(1), report(0, generation=4), report(1)) == QueryStatus(silent_shards=(0, 1))


def test_a_deleted_group_is_forgotten() -> None:
    board = StatusBoard()
    board.fold(report(0))
    board.forget("g")
    assert board.status(QUERY, GROUP) == QueryStatus(silent_shards=(0, 1))
    board.fold(report(0))
    assert board.status(QUERY, GROUP).silent_shards == (1,)
