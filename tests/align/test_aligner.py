"""The pure core of align by example: coverage, catalog, idle leases, ends, drift."""

import math

import pytest

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.errors import CoverageGapError, DefinitionError, LogError, NotFoundError
from skyband.model.duration import MAX_TIME_US
from skyband.model.source_rows import Reason
from skyband.model.stream import IdleThen
from skyband.structures.hashing import hash_ids
from tests.align.factory import KEY, S, add, aligner, group, stream
from tests.align.reference import Row, source_rows


def test_every_row_carries_the_hash_of_its_id() -> None:
    its = aligner(shards=3)
    add(its, [Row(i, i, b"object %d" % i) for i in range(50)])
    batches = its.flush(0)
    assert sum(batch.rows for batch in batches) == 50
    for batch in batches:
        assert batch.id_hash.tolist() == hash_ids(batch.id_bytes, batch.id_ends).tolist()


def test_a_gap_is_refused_with_stream_partition_and_offsets() -> None:
    its = aligner()
    add(its, [Row(0, 1)])
    with pytest.raises(CoverageGapError, match=r"'temperature', partition 0: offsets 1 to 4 are missing; .*regenerate"):
        its.add(0, 0, 5, 6, source_rows([Row(5, 1)]))
    assert its.cursor(KEY) == 1


def test_repeats_are_dropped_and_counted_nowhere() -> None:
    its = aligner()
    rows = [Row(i, i) for i in range(4)]
    add(its, rows)
    its.add(0, 0, 0, 4, source_rows(rows))
    its.add(0, 0, 2, 6, source_rows([Row(i, i) for i in range(2, 6)]))
    assert its.flush(0)[0].offset.tolist() == list(range(6))
    assert its.counts()[0].accepted == 6


def test_rows_outside_their_offsets_are_refused() -> None:
    its = aligner()
    with pytest.raises(LogError, match="rows of offsets 7 to 7 came as offsets 0 to 5"):
        its.add(0, 0, 0, 5, source_rows([Row(7, 1)]))


def test_an_unknown_source_partition_is_refused() -> None:
    with pytest.raises(NotFoundError, match=r"no source partition \(3, 1\)"):
        aligner().add(3, 1, 0, 1, source_rows([Row(0, 1)]))


def test_a_batch_without_room_is_refused() -> None:
    with pytest.raises(DefinitionError, match="max_rows"):
        aligner(max_rows=0)


def test_every_shard_covers_offsets_without_rows_and_nothing_new_makes_no_batch() -> None:
    its = aligner(shards=3)
    had_pending = its.has_pending
    assert its.flush(0) == []
    its.add(0, 0, 0, 9, source_rows([]))
    assert (had_pending, its.has_pending) == (False, True)
    batches = its.flush(0)
    assert [(b.shard, b.rows, b.sections[0].from_offset, b.sections[0].to_offset) for b in batches] == [
        (shard, 0, 0, 9) for shard in range(3)
    ]
    assert its.flush(0) == []


def test_a_big_flush_is_split_by_offset_and_each_part_covers_its_own() -> None:
    its = aligner(max_rows=4)
    its.add(0, 0, 0, 12, source_rows([Row(i, i) for i in range(10)]))
    batches = its.flush(0)
    assert [b.offset.tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    covers = [(s.from_offset, s.to_offset, s.watermark_us) for b in batches for s in b.sections]
    assert covers == [(0, 4, 3), (4, 8, 7), (8, 12, 9)]


def test_the_catalog_goes_to_every_shard_once_and_is_covered() -> None:
    its = aligner(shards=2)
    its.add_catalog(0, 3, [CatalogRecord(0, None), CatalogRecord(2, None)])
    its.add_catalog(1, 5, [CatalogRecord(2, None), CatalogRecord(4, None)])
    add(its, [Row(0, 1)])
    for batch in its.flush(0):
        assert [record.offset for record in batch.catalog] == [0, 2, 4]
        first, second = batch.sections
        assert (first.stream, first.partition, first.from_offset, first.to_offset, first.rows) == (-1, 0, 0, 5, 0)
        assert (second.stream, second.to_offset) == (0, 1)
    with pytest.raises(CoverageGapError, match="'catalog', partition 0: offsets 5 to 8"):
        its.add_catalog(9, 10, [])


def test_an_aligner_that_takes_over_goes_on_with_the_watermark_it_is_given() -> None:
    its = Aligner(group(), 1, 1, {KEY: SourceStart(10, 50, 60)})
    its.add(0, 0, 10, 11, source_rows([Row(10, 40)]))
    (batch,) = its.flush(0)
    assert batch.release_time_us.tolist() == [50]
    assert (batch.sections[0].watermark_us, batch.sections[0].newest_us) == (50, 60)


def leases(its: Aligner, now_us: int) -> list[int]:
    """Return the leases that the sections of a flush state, in order of source partition."""
    return [s.idle_until_us for batch in its.flush(now_us) for s in batch.sections]


def test_a_partition_at_its_end_that_is_quiet_for_idle_after_gets_a_lease_and_renews_it_at_half() -> None:
    its = aligner(stream(idle_after_us=10 * S))
    its.tick(0, {KEY})
    its.tick(9 * S, {KEY})
    assert its.flush(0) == []
    its.tick(10 * S, {KEY})
    assert leases(its, 10 * S) == [20 * S]
    its.tick(14 * S, {KEY})
    assert its.flush(0) == []
    its.tick(15 * S, {KEY})
    (batch,) = its.flush(15 * S)
    (section,) = batch.sections
    assert (section.from_offset, section.to_offset, section.rows, section.idle_until_us) == (0, 0, 0, 25 * S)


def test_a_partition_that_is_not_at_its_end_is_not_idle() -> None:
    its = aligner(stream(idle_after_us=10 * S))
    for second in range(100):
        its.tick(second * S, set())
    assert its.flush(0) == []


def test_a_usable_row_ends_idleness_and_poison_does_not() -> None:
    its = aligner(stream(idle_after_us=10 * S))
    its.tick(0, {KEY})
    its.tick(10 * S, {KEY})
    add(its, [Row(0, 1, given=Reason.UNDECODABLE)])
    assert leases(its, 10 * S) == [20 * S]
    add(its, [Row(1, 1, values=(math.nan,))])
    assert leases(its, 11 * S) == [0]
    its.tick(12 * S, {KEY})
    its.tick(21 * S, {KEY})
    assert its.flush(0) == []
    its.tick(22 * S, {KEY})
    assert leases(its, 22 * S) == [32 * S]


def test_a_partition_that_brings_only_poison_becomes_idle() -> None:
    its = aligner(stream(idle_after_us=10 * S))
    for second in range(11):
        add(its, [Row(second, 1, given=Reason.UNDECODABLE)])
        its.tick(second * S, {KEY})
    assert leases(its, 10 * S) == [20 * S]


def test_a_stream_that_holds_when_idle_never_gets_a_lease() -> None:
    its = aligner(stream(idle_after_us=0, idle_then=IdleThen.HOLD))
    its.tick(0, {KEY})
    its.tick(100 * S, {KEY})
    assert its.flush(0) == []
    assert not its.can_idle(KEY)


def test_a_finished_partition_says_so_once_and_takes_no_more() -> None:
    its = aligner(partitions=2)
    add(its, [Row(0, 7)])
    its.finish(0, 0)
    its.finish(0, 1)
    said = [(s.partition, s.from_offset, s.to_offset, s.watermark_us) for s in its.flush(0)[0].sections]
    assert said == [(0, 0, 1, MAX_TIME_US), (1, 0, 0, MAX_TIME_US)]
    its.tick(100 * S, {KEY, (0, 1)})
    its.tick(200 * S, {KEY, (0, 1)})
    assert its.flush(0) == []
    with pytest.raises(LogError, match="partition 0 had ended at offset 1, but offset 1 came"):
        add(its, [Row(1, 8)])


def test_partitions_more_than_max_drift_past_the_frontier_are_paused() -> None:
    its = aligner(partitions=3, max_drift_us=10)
    add(its, [Row(0, 30)], (0, 0))
    add(its, [Row(0, 31)], (0, 1))
    assert its.paused(20) == {(0, 1)}
    assert its.paused(21) == set()
    its.finish(0, 1)
    assert its.paused(19) == {(0, 0)}


# --- source partitions that come and go


def test_one_that_is_added_goes_on_from_its_start_and_lies_in_its_place() -> None:
    its = aligner(partitions=1)
    its.add_source((0, 2), SourceStart(10, 50, 60))
    its.add_source((0, 1), SourceStart(3))
    assert its.keys == (CATALOG_KEY, (0, 0), (0, 1), (0, 2))
    assert not its.has_pending
    add(its, [Row(10, 40)], (0, 2))
    add(its, [Row(3, 7)], (0, 1))
    (batch,) = its.flush(0)
    assert [(s.partition, s.from_offset, s.to_offset) for s in batch.sections] == [(1, 3, 4), (2, 10, 11)]
    assert batch.release_time_us.tolist() == [7, 50]
    assert its.reached((0, 2)) == SourceStart(11, 50, 60)
    its._check()


def test_one_that_is_here_already_or_of_no_stream_is_refused() -> None:
    its = aligner()
    with pytest.raises(DefinitionError, match=r"'factory': source partition \(0, 0\) is read already"):
        its.add_source(KEY, SourceStart())
    for key in ((1, 0), (-1, 1), (-2, 0)):
        with pytest.raises(DefinitionError, match="belongs to none of its 1 streams"):
            its.add_source(key, SourceStart())
    assert its.keys == (CATALOG_KEY, KEY)


def test_one_of_which_something_waits_cannot_be_given_up_before_a_flush() -> None:
    its = aligner(stream(idle_after_us=10 * S), partitions=2)
    add(its, [Row(0, 1)])
    with pytest.raises(LogError, match="'temperature', partition 0 cannot be given up while offsets below 1 of it"):
        its.remove_source(KEY)
    its.tick(0, {(0, 1)})
    its.tick(10 * S, {(0, 1)})
    with pytest.raises(LogError, match="partition 1 cannot be given up"):
        its.remove_source((0, 1))
    its.flush(0)
    its.remove_source(KEY)
    its.remove_source((0, 1))
    assert its.keys == (CATALOG_KEY,)
    its._check()


def test_one_that_is_discarded_leaves_no_trace_and_may_come_again() -> None:
    its = aligner(partitions=2, max_rows=3)
    for offset in range(0, 8, 2):
        add(its, [Row(offset, 10 + offset), Row(offset + 1, 1, b"")], (0, 0))
        add(its, [Row(offset, 20 + offset), Row(offset + 1, 1, b"")], (0, 1))
    its.discard_source((0, 1))
    its._check()
    assert its.pending_rows == 4
    its.add_source((0, 1), SourceStart(2, 20, 20))
    add(its, [Row(2, 30)], (0, 1))
    its._check()
    batches = its.flush(0)
    assert [r for b in batches for r in b.event_time_us.tolist()] == [10, 12, 14, 16, 30]
    assert [(x.partition, x.offset) for x in its.drain_dead_letters()] == [(0, 1), (0, 3), (0, 5), (0, 7)]


def test_one_that_went_is_unknown() -> None:
    its = aligner()
    its.remove_source(KEY)
    with pytest.raises(NotFoundError, match=r"no source partition \(0, 0\)"):
        add(its, [Row(0, 1)])
