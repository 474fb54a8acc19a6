"""Aligners of one group that come and go: who reads what, what is committed, what is shown."""

import json
import random

import pytest

from skyband.align.source import CATALOG_KEY
from skyband.align.stage import AlignStage
from skyband.errors import DefinitionError, LogError
from skyband.log.record_log import Committed, Position
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.source_rows import Reason
from skyband.model.status import ShardReport, SourceReport
from skyband.model.stream import Attribute, Stream
from tests.align.fake_log import FakeLog
from tests.align.members import KEYS, SHARDS, TOPIC, Shop, change, filled, letters, position, settle, sources
from tests.align.reference import Row, sections

S = 1_000_000


# --- joining and leaving


def test_members_share_all_source_partitions_and_the_catalog() -> None:
    shop = filled(random.Random(1))
    first = shop.join()
    settle([first])
    assert sources(first) == KEYS
    second = shop.join()
    settle([first, second])
    assert sources(first, second) == KEYS
    assert len(sources(first)) == len(sources(second)) == 3
    first.close()
    settle([second])
    assert sources(second) == KEYS


def test_who_gives_partitions_up_writes_and_commits_what_they_brought_before() -> None:
    shop = Shop()
    first = shop.join(flush_interval_us=S, batch_rows=100)
    first.step()
    shop.put((0, 0), Row(0, 5), Row(0, 9, b""))
    shop.put((0, 1), Row(0, 7))
    first.step()
    assert shop.batches(0) == []
    shop.join()
    first.step()
    assert [letter.offset for letter in letters(shop)] == [1]
    assert shop.log.committed[position((0, 0))] == 2
    assert shop.log.committed[position((0, 1))] == 1
    assert len(sources(first)) == 3


def test_a_commit_says_which_times_the_rows_below_it_have_made() -> None:
    shop = Shop()
    shop.put((0, 0), Row(0, 50), Row(0, 40), Row(0, 60, b""))
    settle([shop.join()])
    its = shop.log.stored[position((0, 0))]
    assert its.offset == 3
    assert json.loads(its.note) == {"watermark_us": 57, "newest_us": 50}


def test_a_successor_releases_rows_at_the_times_of_an_unbroken_run() -> None:
    shop = Shop()
    for key in KEYS[1:]:
        shop.put(key, Row(0, 50))
    settle([first := shop.join()])
    shop.die(first)
    shop.put((0, 0), Row(0, 10))
    settle([shop.join()])
    released = [row[0] for rows, *_ in shop.read() for row in rows if row[4] == 10]
    assert released == [47]
    assert shop.read() == shop.alone().read()


def test_a_partition_found_later_is_read_from_its_lowest_offset() -> None:
    shop = filled(random.Random(2))
    stages = [shop.join(), shop.join()]
    settle(stages)
    shop.log.create_topic("temperatures", 4)
    shop.log.begins[Position("temperatures", 3)] = 0
    shop.put((0, 3), Row(0, 1_000), Row(0, 900))
    settle(stages)
    assert (0, 3) in sources(*stages)
    assert shop.log.committed[Position("temperatures", 3)] == 2
    assert shop.read() == shop.alone().read()


def test_the_start_of_a_new_partition_is_committed_before_it_brings_anything() -> None:
    shop = Shop()
    shop.log.begins[position((1, 0))] = 7
    shop.log.put(position((1, 0)), None, offset=6)
    settle([shop.join()])
    assert shop.log.stored[position((1, 0))].offset == 7
    assert set(shop.log.committed) == {position(key) for key in KEYS}


def test_a_member_without_partitions_is_not_finished_and_goes_in_peace() -> None:
    shop = filled(random.Random(3))
    stages = [shop.join() for _ in range(len(KEYS) + 1)]
    settle(stages)
    idle = stages[-1]
    assert (sources(idle), idle.is_finished) == ([], False)
    idle.close()


# --- the catalog


def test_who_gets_the_catalog_reads_it_to_its_end_before_any_row() -> None:
    shop = Shop()
    for number in range(5):
        shop.log.put(position(CATALOG_KEY), change(f"query-{number}"))
    shop.put((0, 0), Row(0, 1))
    shop.put((0, 1), Row(0, 2))
    stage = shop.join(poll_records=4)
    stage.step()
    assert [record.topic for record in stage._held] == ["temperatures", "temperatures"]
    settle([stage])
    for shard in range(SHARDS):
        first, *others = shop.batches(shard)
        assert (len(first.catalog), first.rows) == (2, 0)
        assert sum(len(batch.catalog) for batch in others) == 3
        assert not any(batch.catalog for batch in others[1:])
    assert shop.read() == shop.alone().read()


# --- gaps


def test_a_partition_whose_next_offsets_are_gone_is_shown_and_not_read_while_the_others_go_on() -> None:
    shop = Shop()
    gone = position((0, 1))
    shop.put((0, 1), Row(0, 1), Row(0, 2), Row(0, 3))
    shop.put((1, 0), Row(0, 4))
    shop.log.stored[gone] = Committed(1)
    shop.log.begins[gone] = 3
    shop.put((0, 1), Row(0, 5))
    stage = shop.join(progress_topic="progress", report_interval_us=0)
    settle([stage])
    gap = stage.statistics().gaps[0, 1]
    assert (gap.stream, gap.partition, gap.expected, gap.found) == ("temperature", 1, 1, 3)
    assert "'temperature', partition 1: offsets 1 to 2 are missing; restore them" in str(gap)
    assert shop.consumer_of(stage).paused == {gone}
    assert shop.log.committed[gone] == 1
    assert shop.log.committed[position((1, 0))] == 1
    assert sections(shop.batches(0), 0, (0, 1)) == []
    reports = [r for r in shop.log.values("progress", 0) if isinstance(r, SourceReport)]
    of_gone = [r for r in reports if (r.stream, r.partition) == ("temperature", 1)]
    assert any("offsets 1 to 2 are missing" in r.stopped for r in of_gone)
    assert {r.unread_rows for r in of_gone} == {3}
    shop.join()
    settle([stage])
    stage.close()


def test_a_note_that_says_no_times_is_refused() -> None:
    shop = Shop()
    shop.log.stored[position((0, 0))] = Committed(0, "hello")
    with pytest.raises(LogError, match="'temperatures', partition 0: the note 'hello', committed with offset 0"):
        shop.join().step()


# --- drift


def test_a_member_pauses_by_what_the_shards_report_and_forgets_a_pause_with_the_partition() -> None:
    shop = Shop()
    stage = shop.join(progress_topic="progress")
    settle([stage])
    shop.put((1, 1), Row(0, 100))
    report(shop, 50, 60)
    settle([stage])
    assert stage.statistics().paused == {(1, 1)}
    other = shop.join(progress_topic="progress")
    settle([stage, other])
    assert (1, 1) in sources(other)
    assert stage.statistics().paused == set()
    report(shop, 50, 60)
    settle([stage, other])
    assert other.statistics().paused == {(1, 1)}
    other.close()
    settle([stage])
    assert stage.statistics().paused == {(1, 1)}
    shop.put((1, 1), Row(0, 101))
    settle([stage])
    assert shop.log.committed[position((1, 1))] == 1
    report(shop, 95, 96)
    settle([stage])
    assert stage.statistics().paused == set()
    assert shop.log.committed[position((1, 1))] == 2


def test_a_partition_that_was_lost_while_it_was_paused_is_read_when_it_comes_back_and_need_not_wait() -> None:
    shop = Shop()
    stage = shop.join(progress_topic="progress")
    settle([stage])
    shop.put((1, 1), Row(0, 100))
    report(shop, 50, 60)
    settle([stage])
    shop.put((1, 1), Row(0, 101))
    assert shop.consumer_of(stage).paused == {position((1, 1))}
    shop.die(stage)
    report(shop, 95, 96)
    settle([stage])
    assert shop.log.committed[position((1, 1))] == 2


def test_what_was_to_finish_at_its_end_and_went_is_forgotten() -> None:
    shop = Shop()
    stage = shop.join()
    settle([stage])
    shop.put((0, 0), Row(0, 1))
    shop.put((0, 1), Row(0, 1))
    stage.finish_at_end([(0, 0), (0, 1)])
    shop.die(stage)
    other = shop.join()
    settle([stage, other])
    assert all(stage._aligner.reached(key).watermark_us < MAX_TIME_US for key in sources(stage))
    assert sources(stage, other) == KEYS


def report(shop: Shop, *frontiers_us: int) -> None:
    """Let the shards say how far they are."""
    for shard, frontier_us in enumerate(frontiers_us):
        its = ShardReport(group="factory", generation=1, shard=shard, frontier_us=frontier_us)
        shop.log.put(Position("progress", 0), its)


def test_reports_name_what_a_member_reads_how_fast_and_each_reject_once() -> None:
    shop = Shop()
    stage = shop.join(progress_topic="progress", report_interval_us=2 * S)
    stage.step()
    shop.put((0, 0), Row(0, 1, b""), Row(0, 2))
    shop.clock.advance(2 * S)
    settle([stage])
    shop.put((0, 0), Row(0, 3), Row(0, 4), Row(0, 5))
    shop.clock.advance(2 * S)
    settle([stage])
    reports = [r for r in shop.log.values("progress", 0) if isinstance(r, SourceReport)]
    assert [(r.stream, r.partition) for r in reports[:5]] == [
        ("temperature", 0),
        ("temperature", 1),
        ("temperature", 2),
        ("vibration", 0),
        ("vibration", 1),
    ]
    assert reports[0].rejected == ((Reason.MISSING_ID.label, 1),)
    assert [r.rejected for r in reports[1:5]] == [()] * 4
    assert [r.rows_per_second for r in (reports[0], reports[5], reports[6])] == [None, 1.5, 0.0]


# --- definitions


def test_two_streams_that_read_one_partition_are_refused_by_name() -> None:
    streams = tuple(Stream(name=name, attributes=(Attribute(name=name),)) for name in ("load", "heat"))
    group = Group(name="factory", streams=streams, retention_us=S)
    log = FakeLog({TOPIC: 1})
    same = {(0, 0): Position("metrics", 0), (1, 0): Position("metrics", 0)}
    with pytest.raises(DefinitionError, match="streams 'load' and 'heat' of group 'factory' both read topic 'metrics'"):
        AlignStage(log, Shop().clock, group, 1, 1, same)


def test_a_stream_that_reads_the_catalogs_topic_is_refused() -> None:
    stream = Stream(name="load", attributes=(Attribute(name="load"),), topic="catalog")
    group = Group(name="factory", streams=(stream,), retention_us=S)
    with pytest.raises(DefinitionError, match="reads topic 'catalog', which is the catalog's"):
        AlignStage(FakeLog({TOPIC: 1}), Shop().clock, group, 1, 1)


def test_a_catalog_of_several_partitions_is_refused() -> None:
    shop = Shop(catalog=2)
    with pytest.raises(LogError, match="'catalog' has more than one partition"):
        shop.join().step()
