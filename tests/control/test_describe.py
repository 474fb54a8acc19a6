"""States of a query in words, as golden texts: each says why, and what to do."""
# ruff: noqa: E501 - sentences as they are shown

import textwrap
from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from skyband.control.describe import describe
from skyband.control.planner import plan
from skyband.control.wording import count, instant, size, span
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Algorithm, Query, QueryState, Window
from skyband.model.resources import QueryResource, Stamp
from skyband.model.status import Holder, QueryStatus, ShardStatus
from skyband.model.stream import Aggregate, Attribute, IdleThen, Late, Stream

SECOND = 1_000_000
NOW = 1_373_480_530_000_000  # 2013-07-10 18:22:10 UTC

GROUP = Group(
    name="factory",
    streams=(
        Stream(
            name="temperature", attributes=(Attribute(name="temperature"),), max_delay_us=2 * SECOND, topic="t.temp"
        ),
        Stream(name="vibration", attributes=(Attribute(name="vibration"),), aggregate=Aggregate.LATEST),
    ),
    retention_us=600 * SECOND,
    shards=2,
)
QUERY = Query(name="hottest", k=10, score="temperature + vibration", window=Window(60 * SECOND, 10 * SECOND))
HOLDER = Holder(stream="vibration", partition=2, watermark_us=NOW - SECOND)
SHARD = ShardStatus(shard=0, frontier_us=NOW - SECOND, newest_us=NOW, holder=HOLDER)
WELL = QueryStatus(
    shards=(SHARD, replace(SHARD, shard=1)),
    rows_in=4_100_000,
    rows_late=12,
    rejected=(("out_of_range", 2), ("undecodable", 1)),
    evaluations=7,
    last_result_us=NOW - 1_200_000,
    last_window_end=NOW - 10 * SECOND,
    hot=118,
    objects=41_022,
    state_bytes=9_100_000,
)
BEHIND = replace(SHARD, shard=1, frontier_us=NOW - 49 * SECOND, holder=replace(HOLDER, watermark_us=NOW - 49 * SECOND))
DEAD = "3 to dead letters (2 out_of_range, 1 undecodable: skyband dead-letters tail)"


def shards(*found: ShardStatus, **changes: object) -> QueryStatus:
    return replace(WELL, shards=found, **changes)  # type: ignore[arg-type]


def slow(**changes: object) -> ShardStatus:
    assert BEHIND.holder is not None
    return replace(BEHIND, holder=replace(BEHIND.holder, **changes))  # type: ignore[arg-type]


CASES = [
    (
        "up to date",
        WELL,
        f"""\
        hottest  ACTIVE, up to date: last result 18:22:08Z (1.2 s ago)
          shows    the last 1m, every 10s, up to 18:22:00Z
          plan     view · hot 118 of 41,022 objects · state 9.1 MB · promises: none
          rows     4,100,000 in, 12 late (applied), {DEAD}""",
    ),
    (
        "held by unread rows",
        shards(
            SHARD,
            slow(unread_rows=18_220, reader="align-1", rows_per_second=300.0),
            last_result_us=NOW - 48 * SECOND,
            paused=(("temperature", 3),),
        ),
        f"""\
        hottest  ACTIVE, but no result since 18:21:22Z (48 s ago)
          why     stream vibration, partition 2 holds the frontier at 18:21:21Z: it has 18,220 unread rows; reader align-1 reads 300 rows/s
          then    3 partitions of temperature are paused 1m ahead (max_drift)
          do      see `skyband doctor align`; or give vibration idle.then: flush if that source may be dead
          plan    view · hot 118 of 41,022 objects · state 9.1 MB · promises: none
          rows    4,100,000 in, 12 late (applied), {DEAD}""",
    ),
    (
        "held by a quiet source",
        shards(SHARD, slow(unread_rows=0), last_result_us=None, rejected=(), rows_late=0),
        """\
        hottest  ACTIVE, waiting for the first result
          why     stream vibration, partition 2 holds the frontier at 18:21:21Z: it has been read to its end
          do      nothing: vibration stops holding after 10s of silence (idle.after); if this stays, see `skyband doctor align`
          plan    view · hot 118 of 41,022 objects · state 9.1 MB · promises: none
          rows    4,100,000 in""",
    ),
    (
        "held by a source that never came",
        QueryStatus(shards=(replace(slow(watermark_us=MIN_TIME_US), frontier_us=MIN_TIME_US),), rows_in=5),
        """\
        hottest  ACTIVE, waiting for the first result
          why     stream vibration, partition 2 has brought no row yet, while others are at 18:22:10Z
          do      nothing: vibration stops holding after 10s of silence (idle.after); if this stays, see `skyband doctor align`
          plan    view · promises: none
          rows    5 in""",
    ),
    (
        "stopped by a gap",
        shards(
            SHARD, replace(SHARD, shard=1, stopped="offsets 120 to 139 of stream vibration, partition 2 are missing")
        ),
        f"""\
        hottest  STOPPED since 18:22:08Z (1.2 s ago)
          why     shard 1 (of 2) stopped: offsets 120 to 139 of stream vibration, partition 2 are missing
          do      bring back what is missing and restart the engine, or accept the loss in a new generation: skyband groups regenerate factory
          plan    view · hot 118 of 41,022 objects · state 9.1 MB · promises: none
          rows    4,100,000 in, 12 late (applied), {DEAD}""",
    ),
    (
        "no report of one shard",
        shards(SHARD, silent_shards=(1,), last_result_us=None, rows_in=None),
        """\
        hottest  STARTING
          why     shard 1 (of 2) has not reported yet, and a result needs every shard
          do      wait a moment; else see `skyband doctor engine`
          plan    view · hot 118 of 41,022 objects · state 9.1 MB · promises: none""",
    ),
    (
        "nothing known",
        QueryStatus(),
        """\
        hottest  STARTING
          why     no shard has reported yet, and a result needs every shard
          do      wait a moment; else see `skyband doctor engine`
          plan    view · promises: none""",
    ),
    (
        "no data",
        QueryStatus(shards=(ShardStatus(shard=0),), rows_in=0),
        """\
        hottest  ACTIVE, no data yet
          why     no record has come yet on any of the streams temperature (topic t.temp), vibration
          do      check that the producers run, and write to these topics
          plan    view · promises: none
          rows    0 in""",
    ),
    (
        "all rejected",
        QueryStatus(shards=(ShardStatus(shard=0),), rows_in=0, rejected=(("out_of_range", 1200), ("undecodable", 34))),
        """\
        hottest  ACTIVE, but every record is rejected
          why     all 1,234 records so far went to dead letters: 1,200 out_of_range, 34 undecodable
          do      see what they hold: skyband dead-letters tail; then mend the producer, or the stream's fields and bounds
          plan    view · promises: none
          rows    0 in, 1,234 to dead letters (1,200 out_of_range, 34 undecodable: skyband dead-letters tail)""",
    ),
    (
        "all late",
        replace(WELL, rows_in=500, rows_late=500, rejected=()),
        """\
        hottest  ACTIVE, but every row is late
          why     all 500 rows came later than their stream's max_delay (temperature 2s, vibration 0s) and counted only in windows that ended after they came (late: apply)
          do      raise max_delay on the stream to what its rows need, then skyband groups regenerate factory
          plan    view · hot 118 of 41,022 objects · state 9.1 MB · promises: none
          rows    500 in, 500 late (applied)""",
    ),
    (
        "first window open",
        QueryStatus(shards=(SHARD,), rows_in=5),
        """\
        hottest  ACTIVE, waiting for the first result
          why     its first window ends at 18:22:10Z; the streams have come to 18:22:09Z
          do      nothing; it comes by itself
          plan    view · promises: none
          rows    5 in""",
    ),
    (
        "nothing qualifies",
        QueryStatus(shards=(SHARD,), rows_in=5, evaluations=1),
        """\
        hottest  ACTIVE, but nothing qualifies
          why     1 window had no object that qualifies: it needs an attribute of 'temperature + vibration', and a score that is a finite number
          do      check require and score: skyband queries explain factory/hottest
          plan    view · promises: none
          rows    5 in""",
    ),
    (
        "idle",
        shards(replace(SHARD, holder=None), rejected=(), rows_late=0),
        """\
        hottest  IDLE, last result 18:22:08Z (1.2 s ago)
          why     no stream brings anything; the newest row is of 18:22:10Z, and all that is known has been shown
          do      nothing; it goes on with the next row
          plan    view · hot 118 of 41,022 objects · state 9.1 MB · promises: none
          rows    4,100,000 in""",
    ),
    (
        "only a frontier is known",
        QueryStatus(shards=(ShardStatus(shard=0, frontier_us=NOW),)),
        """\
        hottest  ACTIVE, waiting for the first result
          do      nothing; it comes by itself
          plan    view · promises: none""",
    ),
]


def resource(query: Query = QUERY, group: Group = GROUP, state: QueryState = QueryState.ACTIVE) -> QueryResource:
    stamp = Stamp("uid", 2, NOW - 1000 * SECOND, NOW - 500 * SECOND)
    return QueryResource(group="factory", query=query, plan=plan(group, query), state=state, stamp=stamp)


@pytest.mark.parametrize(("status", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_state_says_why_and_what_to_do(status: QueryStatus, expected: str) -> None:
    assert describe(resource(), GROUP, status, NOW).text() == textwrap.dedent(expected)


def test_a_paused_query_says_since_when_and_how_to_resume() -> None:
    lines = describe(resource(state=QueryState.PAUSED), GROUP, WELL, NOW).text().split("\n")
    assert lines[:3] == [
        "hottest  PAUSED since 18:13:50Z (8 min ago)",
        "  why     somebody paused it; its group goes on reading, so it answers at once when it is resumed",
        "  do      skyband queries resume factory/hottest",
    ]


def test_a_stopped_shard_is_said_of_a_paused_query_too() -> None:
    status = shards(replace(SHARD, stopped="a gap"))
    assert describe(resource(state=QueryState.PAUSED), GROUP, status, NOW).headline.startswith("hottest  STOPPED")


def test_a_source_that_holds_by_definition_is_not_waited_for() -> None:
    streams = (GROUP.streams[0], replace(GROUP.streams[1], idle_then=IdleThen.HOLD))
    status = shards(slow(unread_rows=0), last_result_us=NOW - 48 * SECOND)
    described = dict(describe(resource(), replace(GROUP, streams=streams), status, NOW).lines)
    assert described["do"] == (
        "stream vibration has idle.then: hold, so all wait for its next row; check its producer, or give it idle.then: flush"
    )


def test_rows_dropped_as_late_are_told_from_bad_ones() -> None:
    streams = (GROUP.streams[0], replace(GROUP.streams[1], late=Late.DROP))
    status = QueryStatus(shards=(SHARD,), rows_in=0, rejected=(("late", 7),))
    described = describe(resource(), replace(GROUP, streams=streams), status, NOW)
    assert described.headline == "hottest  ACTIVE, but every row is late"
    assert dict(described.lines)["why"] == (
        "all 7 rows came later than their stream's max_delay (temperature 2s, vibration 0s) and went to dead letters (late: drop)"
    )


def test_a_frontier_behind_by_lateness_and_one_slide_is_no_reason_to_worry() -> None:
    for behind, headline in ((12, "up to date"), (13, "no result since")):
        shard = replace(SHARD, frontier_us=NOW - behind * SECOND)
        status = shards(shard, last_result_us=NOW - 48 * SECOND)
        assert headline in describe(resource(), GROUP, status, NOW).headline


def test_streams_that_wait_for_each_other_while_results_come_are_no_reason_to_worry() -> None:
    for ago, headline in ((9, "up to date: last result"), (10, "no result since")):
        status = shards(slow(unread_rows=3), last_result_us=NOW - ago * SECOND)
        assert headline in describe(resource(), GROUP, status, NOW).headline


def test_a_count_window_tells_rows_and_not_times() -> None:
    group = replace(GROUP, shards=1, retention_rows=100)
    query = replace(QUERY, window=Window(100, 20, in_rows=True))
    status = QueryStatus(shards=(SHARD,), rows_in=1)
    described = describe(resource(query, group), group, status, NOW)
    assert dict(described.lines)["why"] == "the first result comes after 20 rows; 1 row came so far"


def test_broken_promises_are_counted_where_one_is_relied_on() -> None:
    attributes = (Attribute(name="x"),)
    stream = Stream(name="points", attributes=attributes, is_object_stream=True, repeat_after_us=60 * SECOND)
    group = Group(name="factory", streams=(stream,), retention_us=600 * SECOND)
    query = replace(QUERY, score="x", algorithm=Algorithm.SKYBAND)
    for broken, text in (
        (0, "promises: 1, broken 0 times"),
        (2, "promises: 1, broken 2 times (the result may be inexact)"),
    ):
        described = describe(resource(query, group), group, replace(WELL, broken_promises=broken), NOW)
        assert dict(described.lines)["plan"].endswith(text)


def test_times_are_shown_in_the_zone_asked_for() -> None:
    zone = timezone(timedelta(hours=-5, minutes=-30))
    assert describe(resource(), GROUP, WELL, NOW, zone).headline == (
        "hottest  ACTIVE, up to date: last result 12:52:08-05:30 (1.2 s ago)"
    )


def test_numbers_are_written_for_people() -> None:
    assert [span(us) for us in (-5, 800_000, 48 * SECOND, 300 * SECOND, 3 * 3600 * SECOND, 2 * 86_400 * SECOND)] == [
        "0.0 s",
        "0.8 s",
        "48 s",
        "5 min",
        "3 h",
        "2 d",
    ]
    assert [size(n) for n in (0, 999, 1_000, 9_100_000, 999_960_000, 5 * 10**12, 5 * 10**15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "9.1 MB",
        "1.0 GB",
        "5.0 TB",
        "5,000.0 TB",
    ]
    assert [count(n) for n in (0, 1_204, 9_999_999, 41_300_000)] == ["0", "1,204", "9,999,999", "41.3 M"]
    assert [instant(us, NOW) for us in (MIN_TIME_US, MAX_TIME_US, 0, NOW, 10**18)] == [
        "the beginning",
        "the end",
        "1970-01-01 00:00:00Z",
        "18:22:10Z",
        "1,000,000,000,000,000,000 us",
    ]


def test_a_source_that_cannot_be_read_says_why() -> None:
    status = shards(slow(unread_rows=3, stopped="offsets 1 to 2 are missing; restore them"))
    described = dict(describe(resource(), GROUP, status, NOW).lines)
    assert described["why"].endswith("it cannot be read, for offsets 1 to 2 are missing; restore them")
    assert described["do"].endswith("skyband groups regenerate factory")
