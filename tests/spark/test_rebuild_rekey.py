"""A re-keyed log is the one that align would have written with so many shards, and engines make the same of it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.coverage.aligned_batch import CatalogRecord, Section
from skyband.errors import CoverageGapError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.result import Result
from spark import rebuild_batches
from spark.rebuild_rekey import Moved
from spark.rebuild_survey import Span, spans_of, survey
from tests.services.runtime.values import assert_same
from tests.spark.rebuild_logs import Log, by_several, fresh, rebuilt, results, written
from tests.workloads import seeded

Row = tuple[int, int, int, bytes, tuple[float, ...]]


def rows_by_place(log: Log) -> dict[SourceKey, list[Row]]:
    """Return the rows of a log by source partition, in the order in which they stand."""
    found: dict[SourceKey, list[Row]] = {}
    for batch in log:
        ids = batch.id_bytes.tobytes()
        starts, stop = [0, *batch.id_ends.tolist()], 0
        for section in batch.sections:
            low, stop = stop, stop + section.rows
            for i in range(low, stop):
                row = (
                    int(batch.offset[i]),
                    int(batch.event_time_us[i]),
                    int(batch.release_time_us[i]),
                    ids[starts[i] : starts[i + 1]],
                    tuple(batch.values[i].tolist()),
                )
                found.setdefault((section.stream, section.partition), []).append(row)
    return found


def merged(logs: Mapping[int, Log]) -> dict[SourceKey, list[Row]]:
    found: dict[SourceKey, list[Row]] = {}
    for log in logs.values():
        for key, rows in rows_by_place(log).items():
            found.setdefault(key, []).extend(rows)
    return {key: sorted(rows) for key, rows in found.items()}


def covered(log: Log) -> dict[SourceKey, int]:
    """Return how far a log covers each source partition; its sections must tile the offsets."""
    reached: dict[SourceKey, int] = {}
    for batch in log:
        assert batch.rows == sum(section.rows for section in batch.sections)
        for section in batch.sections:
            key = (section.stream, section.partition)
            assert section.from_offset == reached.get(key, section.from_offset) <= section.to_offset
            reached[key] = section.to_offset
    return reached


def told(found: list[Result]) -> list[object]:
    return [(r.query, r.window_start, r.window_end, r.revision, r.rows) for r in found]


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), old=st.integers(1, 6), new=st.integers(1, 6), tasks=st.integers(1, 7))
def test_it_is_the_log_of_an_aligner_with_so_many_shards_to_the_last_byte(
    seed: int, old: int, new: int, tasks: int
) -> None:
    group, queries, rows = seeded(seed, 40, counts=False)
    ours = rebuilt(group, written(group, queries, rows, old, seed), new, tasks=tasks)
    theirs = written(group, queries, rows, new, seed, generation=2)
    for shard in range(new):
        expected = [replace(batch, writer="rebuild-1") for batch in theirs[shard]]
        assert_same(ours[shard], expected)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), old=st.integers(1, 6), new=st.integers(1, 6))
def test_of_logs_with_repeats_that_differ_it_has_each_row_once_in_order_and_tiles_all_offsets(
    seed: int, old: int, new: int
) -> None:
    group, _, rows = seeded(seed, 40, counts=False)
    logs = by_several(group, rows, old, seed)
    ours = rebuilt(group, logs, new)
    first = {shard: list(fresh(group, log)) for shard, log in logs.items()}
    assert merged(ours) == merged(first)
    for log in ours.values():
        assert covered(log) == covered(first[0])
        for its in rows_by_place(log).values():
            assert its == sorted(its)
    watermarks = [{(s.stream, s.partition): s.watermark_us for b in log for s in b.sections} for log in ours.values()]
    assert all(its == watermarks[0] for its in watermarks)


def test_engines_over_it_give_the_results_of_those_over_the_old_log() -> None:
    count = 0
    for seed in range(12):
        group, queries, rows = seeded(seed, 120, counts=False)
        logs = written(group, queries, rows, 1 + seed % 4, seed)
        before = results(replace(group, shards=len(logs)), logs, rows, 1)
        for shards in (1, 3):
            ours = rebuilt(group, logs, shards)
            assert told(results(replace(group, shards=shards), ours, rows, 2)) == told(before)
        count += len(before)
    assert count > 100


def test_what_is_written_again_from_the_beginning_and_further_changes_nothing() -> None:
    for seed in (1, 4, 9):
        group, queries, rows = seeded(seed, 120, counts=False)
        logs = written(group, queries, rows, 2, seed)
        once = rebuilt(group, logs, 3)
        short = {shard: log[: len(log) // 2] for shard, log in logs.items()}
        begun = rebuilt(group, short, 3)
        twice = {shard: [*begun[shard][:-2], *begun[shard][:3], *log] for shard, log in once.items()}
        its = replace(group, shards=3)
        assert told(results(its, twice, rows, 2)) == told(results(its, once, rows, 2))


def test_what_is_too_large_for_one_batch_is_cut_by_source_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    group, queries, rows = seeded(3, 60, counts=False)
    logs = written(group, queries, rows, 4, 3)
    whole = rebuilt(group, logs, 1)
    monkeypatch.setattr(rebuild_batches, "MAX_ROWS", 3)
    cut = rebuilt(group, logs, 1)
    assert max(batch.rows for batch in whole[0]) > 3
    assert max(batch.rows for batch in cut[0]) == 3
    assert merged(cut) == merged(whole)
    assert covered(cut[0]) == covered(whole[0])
    assert told(results(replace(group, shards=1), cut, rows, 2)) == told(
        results(replace(group, shards=1), whole, rows, 2)
    )


def test_it_ends_where_all_shards_have_come_with_the_times_of_that_offset() -> None:
    group, _, rows = seeded(5, 60, counts=False)
    logs = by_several(group, rows, 3, 5)
    logs[1] = logs[1][: len(logs[1]) // 2]
    spans = spans_of([survey(shard, fresh(group, log)) for shard, log in logs.items()], {})
    short = covered(list(fresh(group, logs[1])))
    assert {key: span.to_offset for key, span in spans.items() if key in short} == short
    for log in rebuilt(group, logs, 2).values():
        assert covered(log) == short
        last = {(s.stream, s.partition): (s.watermark_us, s.newest_us) for b in log for s in b.sections}
        assert last == {key: (span.watermark_us, span.newest_us) for key, span in spans.items() if key in short}


def test_a_log_that_ends_too_soon_is_an_error_and_no_shorter_rebuild() -> None:
    group, _, rows = seeded(5, 60, counts=False)
    logs = by_several(group, rows, 3, 5)
    spans = spans_of([survey(shard, fresh(group, log)) for shard, log in logs.items()], {})
    logs[2] = logs[2][: len(logs[2]) // 2]
    with pytest.raises(CoverageGapError, match="a shard's log ends at offset"):
        rebuilt(group, logs, 1, spans=spans)


def test_without_its_head_a_log_is_taken_from_where_all_shards_have_it_with_the_queries_of_before() -> None:
    group, queries, rows = seeded(2, 120, counts=False)
    logs = {shard: log[3 + shard :] for shard, log in written(group, queries, rows, 2, 2).items()}
    spans = spans_of([survey(shard, fresh(group, log)) for shard, log in logs.items()], {})
    assert spans[CATALOG_KEY].from_offset > 0
    before = (CatalogRecord(0, None),)
    for log in rebuilt(group, logs, 3, spans=spans, catalog=before).values():
        assert log[0].sections[0] == Section(
            stream=-1, partition=0, from_offset=0, to_offset=spans[CATALOG_KEY].from_offset, rows=0
        )
        assert log[0].catalog == before
        first: dict[SourceKey, int] = {}
        for section in (section for batch in log for section in batch.sections):
            first.setdefault((section.stream, section.partition), section.from_offset)
        assert all(first[key] == span.from_offset for key, span in spans.items() if key != CATALOG_KEY)


def test_rows_of_before_the_time_asked_for_are_left_out_and_their_offsets_covered_at_once() -> None:
    group, queries, rows = seeded(2, 60, counts=False)
    logs = written(group, queries, rows, 2, 2)
    times = sorted(row[1] for its in merged(logs).values() for row in its)
    since_us = times[len(times) // 2]
    for log in rebuilt(group, logs, 3, since_us=since_us).values():
        assert covered(log) == covered(logs[0])
        assert all(batch.event_time_us.min(initial=MAX_TIME_US) >= since_us for batch in log)
        assert log[1].rows
    kept = {key: [row for row in its if row[1] >= since_us] for key, its in merged(logs).items()}
    assert merged(rebuilt(group, logs, 3, since_us=since_us)) == {key: its for key, its in kept.items() if its}


def test_the_rows_of_a_topic_made_anew_go_to_a_partition_of_their_own_that_ends() -> None:
    group, queries, rows = seeded(1, 60, counts=False)
    logs = written(group, queries, rows, 2, 1)
    key = next(iter(rows))
    spans = spans_of([survey(shard, fresh(group, log)) for shard, log in logs.items()], {})
    gone = (key[0], 1_000_000 + key[1])
    for log in rebuilt(group, logs, 2, spans=spans, moved={key: Moved(gone, key, 9)}).values():
        sections = [section for batch in log for section in batch.sections]
        its = [section for section in sections if (section.stream, section.partition) == gone]
        live = [section for section in sections if (section.stream, section.partition) == key]
        assert [section.watermark_us for section in its[:1]] == [MIN_TIME_US]
        assert its[-1].watermark_us == MAX_TIME_US
        assert {(section.from_offset, section.to_offset) for section in live} == {(9, 9)}
        assert {section.watermark_us for section in live} == {spans[key].watermark_us}
        assert covered(log)[gone] == spans[key].to_offset
    assert merged(rebuilt(group, logs, 2, spans=spans, moved={key: Moved(gone, key, 9)}))[gone] == merged(logs)[key]


def test_what_logs_do_not_speak_of_begins_where_it_is_committed() -> None:
    span = Span(7, 7, 40, 41)
    assert spans_of([], {}) == {CATALOG_KEY: Span(0, 0)}
    group, _, rows = seeded(4, 30, counts=False)
    logs = by_several(group, rows, 2, 4)
    ours = rebuilt(group, logs, 2, spans={**_spans(group, logs), (0, 9): span}, silent={(0, 9)})
    for log in ours.values():
        (section,) = log[0].sections
        assert (section.partition, section.from_offset, section.to_offset) == (9, 7, 7)
        assert (section.watermark_us, section.newest_us) == (40, 41)


def _spans(group: object, logs: Mapping[int, Log]) -> Mapping[SourceKey, Span]:
    return spans_of([survey(shard, fresh(group, log)) for shard, log in logs.items()], {})  # type: ignore[arg-type]
