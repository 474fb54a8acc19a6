"""The merge by example; all mixtures of these cases are in test_merger_machine.py."""

from collections.abc import Sequence

import pytest

from skyband.errors import CapacityError
from skyband.fanout.merger import Merger
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import QueryState
from skyband.model.result import Result, ResultRow
from tests.fanout.partials import Row, batch, query_change

LONG_AGO = -(2**62)
Q = query_change("q")


class Reader:
    """Feeds a merger, numbering offsets."""

    def __init__(self, shards: int = 2, *queries: QueryChange, max_pending_rows: int = 1000) -> None:
        self.merger = Merger("g", 1, shards, max_pending_rows=max_pending_rows)
        self.offset = 0
        for query in queries or (Q,):
            self.merger.change_query(query)

    def read(self, *values: PartialBatch | Progress | Activated) -> list[Result]:
        for value in values:
            self.merger.accept(value, 0, self.offset)
            self.offset += 1
        results = self.merger.take()
        self.merger._check()
        return results

    def begin(self, *firsts: int, query: QueryChange = Q) -> None:
        for shard, first in enumerate(firsts):
            self.read(activated(shard, first, query), progress(shard, LONG_AGO))


def activated(shard: int, first_us: int, query: QueryChange = Q) -> Activated:
    return Activated("g", 1, shard, query.uid, query.revision, first_us)


def progress(shard: int, frontier_us: int, settled_us: int = LONG_AGO) -> Progress:
    return Progress("g", 1, shard, frontier_us, settled_us)


def part(shard: int, window_end: int, *rows: tuple[str, float], query: QueryChange = Q) -> PartialBatch:
    return batch(shard, [(query, window_end, [Row(name, score) for name, score in rows])])


def shown(results: Sequence[Result]) -> list[tuple[int, str]]:
    return [(result.window_end, "".join(row.object_id for row in result.rows)) for result in results]


def test_the_rows_of_all_shards_are_one_ranking_and_ties_go_by_the_bytes_of_the_id() -> None:
    reader = Reader()
    reader.begin(10, 10)
    results = reader.read(
        part(1, 10, ("z", 9.0), ("b", 5.0), ("\U0001f600", 1.0)),
        progress(1, 10),
        part(0, 10, ("a", 5.0), ("\uffee", 5.0), ("d", 1.0)),
        progress(0, 10),
    )
    assert shown(results) == [(10, "zab")]
    assert results[0].rows == (ResultRow(1, "z", 9.0), ResultRow(2, "a", 5.0), ResultRow(3, "b", 5.0))
    assert (results[0].window_start, results[0].frontier_us, results[0].revision) == (-20, 10, 1)


def test_astral_characters_sort_after_others_by_bytes_not_by_utf_16_units() -> None:
    reader = Reader()
    reader.begin(10, 10)
    results = reader.read(
        part(0, 10, ("\U0001f600", 5.0)), part(1, 10, ("\uffee", 5.0)), progress(0, 10), progress(1, 10)
    )
    assert shown(results) == [(10, "\uffee\U0001f600")]


def test_lowest_first_keeps_the_users_scores() -> None:
    reader = Reader()
    reader.begin(10, 10)
    results = reader.read(
        batch(0, [(Q, 10, [Row("a", 1.0), Row("c", 3.0)])], descending=False),
        batch(1, [(Q, 10, [Row("b", 2.0)])], descending=False),
        progress(0, 10),
        progress(1, 10),
    )
    assert [(row.object_id, row.score) for row in results[0].rows] == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


def test_only_present_attributes_are_shown_and_event_time_where_each_record_is_an_object() -> None:
    reader = Reader(1)
    reader.begin(10)
    rows = [Row("a", 2.0, {"b": 0.0}, 7, 1), Row("a", 2.0, {"a": 1.0, "b": 2.0}, 7, 2), Row("c", 1.0, {}, 9, 3)]
    (result,) = reader.read(batch(0, [(Q, 10, rows)]), progress(0, 10))
    assert result.rows == (
        ResultRow(1, "a", 2.0, {"b": 0.0}, 7),
        ResultRow(2, "a", 2.0, {"a": 1.0, "b": 2.0}, 7),
        ResultRow(3, "c", 1.0, {}, 9),
    )


def test_a_result_waits_for_the_progress_of_every_shard() -> None:
    reader = Reader()
    reader.begin(10, 10)
    assert reader.read(part(0, 10, ("a", 1.0)), progress(0, 50)) == []
    assert reader.read(progress(1, 9)) == []
    assert shown(reader.read(progress(1, 10))) == [(10, "a")]


def test_settled_time_covers_the_first_window_end_past_it() -> None:
    reader = Reader()
    reader.begin(10, 10)
    reader.read(part(0, 10, ("a", 1.0)), part(0, 20, ("b", 1.0)), part(0, 30, ("c", 1.0)))
    assert reader.read(progress(0, 5, 10)) == []
    assert shown(reader.read(progress(1, 7, 12))) == [(10, "a"), (20, "b")]


def test_results_come_by_window_end_then_name_however_parts_arrive() -> None:
    one, two, slow = (
        query_change("u1", name="b"),
        query_change("u2", name="a"),
        query_change("u3", name="c", slide=20),
    )
    reader = Reader(1, one, two, slow)
    for query in (one, two, slow):
        reader.begin(10, query=query)
    results = reader.read(
        part(0, 20, ("x", 1.0), query=slow),
        part(0, 10, ("x", 1.0), query=one),
        part(0, 20, ("x", 1.0), query=one),
        part(0, 10, ("x", 1.0), query=two),
        part(0, 20, ("x", 1.0), query=two),
        progress(0, 20),
    )
    assert [(r.window_end, r.query) for r in results] == [(10, "a"), (10, "b"), (20, "a"), (20, "b"), (20, "c")]


def test_a_query_starts_where_the_last_shard_starts_it() -> None:
    reader = Reader()
    reader.begin(10)
    assert reader.read(part(0, 10, ("a", 1.0)), part(0, 20, ("b", 1.0)), progress(0, 20), progress(1, 20)) == []
    assert shown(reader.read(activated(1, 20), progress(1, 20))) == [(20, "b")]
    assert reader.merger.statistics()["dropped_window_ends"] == 1


def test_progress_told_before_a_shard_began_the_query_says_nothing_of_what_it_evaluates_at_once() -> None:
    reader = Reader()
    reader.read(progress(0, 5, 100), progress(1, 5, 100))
    reader.read(activated(0, 10), part(0, 10, ("a", 1.0)), progress(0, 5, 100))
    assert reader.read(activated(1, 10)) == []
    assert shown(reader.read(part(1, 10, ("b", 2.0)), progress(1, 5, 100))) == [(10, "ba")]


def test_a_later_window_end_does_not_overtake_one_that_waits_though_all_its_parts_are_there() -> None:
    reader = Reader()
    reader.read(progress(0, 5, 100), progress(1, 5, 100), activated(0, 10))
    reader.read(part(0, 10, ("a", 1.0)), part(0, 20, ("a", 1.0)), progress(0, 5, 100))
    assert reader.read(activated(1, 10), part(1, 20, ("b", 2.0))) == []
    assert shown(reader.read(progress(1, 5, 100))) == [(10, "a"), (20, "ba")]


def test_what_a_shard_evaluated_past_its_frontier_stands_when_a_pause_names_an_earlier_end() -> None:
    paused = [query_change("q", revision=revision, state=QueryState.PAUSED) for revision in (2, 3)]
    reader = Reader()
    reader.read(activated(0, 10), progress(0, 0, 10))
    for change, first in zip(paused, (30, 1), strict=True):
        reader.merger.change_query(change)
        reader.read(activated(0, first, change))
    reader.read(progress(0, 100))
    results = reader.read(activated(1, 10), part(1, 10, ("b", 1.0)), part(1, 30, ("b", 1.0)), progress(1, 30))
    assert shown(results) == [(10, "b")]


def test_the_first_empty_result_after_rows_is_written_and_no_other() -> None:
    reader = Reader()
    reader.begin(10, 10)
    assert reader.read(part(1, 10), progress(0, 10), progress(1, 10)) == []
    assert shown(reader.read(part(0, 20, ("a", 1.0)), progress(0, 20), progress(1, 20))) == [(20, "a")]
    assert shown(reader.read(part(0, 30), progress(0, 30), progress(1, 30))) == [(30, "")]
    assert reader.read(part(1, 40), progress(0, 40), progress(1, 40)) == []


def test_a_shard_that_becomes_empty_while_another_has_rows_ends_nothing() -> None:
    reader = Reader()
    reader.begin(10, 10)
    reader.read(part(0, 10, ("a", 1.0)), part(1, 10, ("b", 1.0)), progress(0, 10), progress(1, 10))
    assert shown(reader.read(part(0, 20), part(1, 20, ("b", 1.0)), progress(0, 20), progress(1, 20))) == [(20, "b")]


def test_while_shards_differ_in_k_the_smaller_is_shown() -> None:
    more = query_change("q", revision=2, k=4)
    reader = Reader()
    reader.begin(10, 10)
    reader.merger.change_query(more)
    five = [(name, 9.0 - n) for n, name in enumerate("acegi")]
    reader.read(activated(0, 10, more), part(0, 10, *five[:4], query=more), progress(0, 10))
    (result,) = reader.read(part(1, 10, ("b", 8.5), ("d", 7.5), ("f", 6.5)), activated(1, 20, more), progress(1, 10))
    assert shown([result]) == [(10, "abc")]
    assert result.revision == 1
    (result,) = reader.read(
        part(0, 20, *five[:4], query=more), part(1, 20, ("b", 8.5), query=more), progress(0, 20), progress(1, 20)
    )
    assert shown([result]) == [(20, "abce")]
    assert result.revision == 2


def test_repeats_change_nothing_before_or_after_the_result() -> None:
    reader = Reader()
    reader.begin(10, 10)
    reader.read(part(0, 10, ("a", 1.0)), part(0, 10, ("a", 1.0)), progress(0, 10))
    assert shown(reader.read(part(1, 10, ("b", 1.0)), progress(1, 10))) == [(10, "ab")]
    assert reader.read(activated(0, 10), part(0, 10, ("a", 1.0)), progress(0, 10), progress(1, 10)) == []
    assert reader.merger.statistics()["repeated_parts"] == 2


def test_a_shard_whose_progress_falls_back_takes_nothing_back() -> None:
    reader = Reader()
    reader.begin(10, 10)
    assert shown(reader.read(part(0, 10, ("a", 1.0)), progress(0, 10), progress(0, 0), progress(1, 10))) == [(10, "a")]


def test_what_a_shard_sent_beyond_anothers_pause_is_dropped_and_the_query_resumes_with_the_last() -> None:
    paused, again = query_change("q", revision=2, state=QueryState.PAUSED), query_change("q", revision=3)
    reader = Reader()
    reader.begin(10, 10)
    reader.merger.change_query(paused)
    reader.read(part(0, 10, ("a", 1.0)), part(0, 20, ("a", 1.0)), activated(0, 30, paused), progress(0, 60))
    results = reader.read(part(1, 10, ("b", 1.0)), activated(1, 20, paused), progress(1, 60))
    assert shown(results) == [(10, "ab")]
    reader.merger.change_query(again)
    reader.read(activated(0, 70, again), part(0, 70, ("c", 1.0), query=again), progress(0, 80))
    assert shown(reader.read(activated(1, 80, again), progress(1, 80))) == [(80, "")]


def test_subscribers_see_that_nothing_is_left_after_a_pause_though_no_shard_says_so() -> None:
    paused, again = query_change("q", revision=2, state=QueryState.PAUSED), query_change("q", revision=3)
    reader = Reader(1)
    reader.begin(10)
    reader.read(part(0, 10, ("a", 1.0)), progress(0, 10))
    for change, first in ((paused, 20), (again, 50)):
        reader.merger.change_query(change)
        assert reader.read(activated(0, first, change), progress(0, first - 1)) == []
    (result,) = reader.read(progress(0, 100))
    assert (result.window_start, result.window_end, result.rows) == (20, 50, ())


def test_a_deleted_query_is_written_to_its_end_and_then_forgotten() -> None:
    deleted = query_change("q", revision=2, state=QueryState.DELETED)
    reader = Reader()
    reader.begin(10, 10)
    reader.merger.take_changed_marks()
    reader.read(part(0, 10, ("a", 1.0)), part(0, 20, ("a", 1.0)))
    reader.merger.change_query(deleted)
    assert reader.read(activated(0, 30, deleted), progress(0, 30)) == []
    assert shown(reader.read(part(1, 10, ("b", 1.0)), activated(1, 20, deleted), progress(1, 10))) == [(10, "ab")]
    assert reader.merger.statistics()["queries"] == 0
    assert reader.merger.statistics()["pending_rows"] == 0
    assert reader.merger.take_changed_marks() == {"q": None}
    assert reader.read(activated(0, 10), part(0, 20, ("a", 1.0)), progress(0, 40), progress(1, 40)) == []
    assert reader.merger.needed() == {0: reader.offset}


def test_a_deleted_query_is_not_forgotten_before_its_last_window_ends_are_covered() -> None:
    deleted = query_change("q", revision=2, state=QueryState.DELETED)
    reader = Reader()
    reader.begin(10, 10)
    reader.merger.change_query(deleted)
    values: list[PartialBatch | Activated] = [
        part(0, 10, ("a", 1.0)),
        activated(0, 20, deleted),
        part(1, 10, ("b", 1.0)),
        activated(1, 20, deleted),
    ]
    assert reader.read(*values) == []
    assert shown(reader.read(progress(0, 10), progress(1, 10))) == [(10, "ab")]
    assert reader.merger.statistics()["queries"] == 0


def test_a_count_window_is_complete_when_it_arrives() -> None:
    counted = query_change("c", in_rows=True)
    reader = Reader(1, counted)
    reader.begin(10, query=counted)
    assert shown(reader.read(part(0, 10, ("a", 1.0), query=counted), part(0, 20, query=counted))) == [
        (10, "a"),
        (20, ""),
    ]
    assert reader.read(part(0, 20, ("a", 1.0), query=counted)) == []


def test_parts_of_an_unknown_query_and_values_of_another_generation_are_ignored() -> None:
    reader = Reader(1)
    stranger = query_change("stranger")
    reader.read(part(0, 10, ("a", 1.0), query=stranger), activated(0, 10, stranger))
    reader.read(batch(0, [(Q, 10, [Row("a", 1.0)])], generation=2), activated(0, 10), progress(0, 99))
    assert reader.merger.statistics()["ignored_parts"] == 2
    assert reader.merger.statistics()["results"] == 0


def test_with_several_partitions_progress_counts_once_it_came_in_all_of_them() -> None:
    merger = Merger("g", 1, 1, partitions=(0, 1))
    merger.change_query(Q)
    merger.accept(progress(0, 10), 1, 0)
    merger.accept(activated(0, 10), 0, 0)
    assert merger.take() == []
    merger.accept(part(0, 10, ("a", 1.0)), 0, 1)
    merger.accept(progress(0, 10), 0, 2)
    assert shown(merger.take()) == [(10, "a")]
    assert merger.needed() == {0: 3, 1: 1}


def test_the_offset_needed_is_that_of_the_oldest_batch_with_something_undecided() -> None:
    reader = Reader()
    reader.begin(10, 10)
    start = reader.offset
    reader.read(part(0, 10, ("a", 1.0)), progress(0, 10), part(0, 20, ("a", 1.0)))
    assert reader.merger.needed() == {0: start}
    reader.read(progress(1, 10))
    assert reader.merger.needed() == {0: start + 2}
    reader.read(progress(1, 20), progress(0, 20))
    assert reader.merger.needed() == {0: reader.offset}


def test_a_restart_decides_nothing_until_it_has_read_again_what_was_read() -> None:
    reader = Reader()
    reader.begin(10, 10)
    values: list[PartialBatch | Progress] = [part(0, 10, ("a", 1.0)), progress(0, 10), part(1, 10, ("b", 1.0))]
    first = reader.offset
    reader.read(*values)
    merger = reader.merger
    restarted = Reader()
    restarted.merger = Merger("g", 1, 2)
    restarted.merger.restore(merger.checkpoint(), merger.marks())
    assert merger.needed() == {0: first}
    restarted.offset = first
    for value in values:
        assert restarted.read(value) == []
    assert shown(restarted.read(progress(1, 10))) == [(10, "ab")]


def test_after_a_restart_one_partition_that_runs_ahead_decides_nothing_for_another_that_is_read_again() -> None:
    merger = Merger("g", 1, 1, partitions=(0, 1))
    merger.change_query(Q)
    values: list[PartialBatch | Activated | Progress] = [activated(0, 10), part(0, 10, ("a", 1.0)), progress(0, 10)]
    for offset, value in enumerate(values):
        merger.accept(value, 0, offset)
    assert merger.take() == []
    restarted = Merger("g", 1, 1, partitions=(0, 1))
    restarted.restore(merger.checkpoint(), merger.marks())
    restarted.accept(progress(0, 10), 1, 0)
    assert restarted.take() == []
    for offset, value in enumerate(values[1:], merger.needed()[0]):
        restarted.accept(value, 0, offset)
    assert shown(restarted.take()) == [(10, "a")]


def test_rows_that_wait_past_the_cap_fail_and_name_the_shard_they_wait_for() -> None:
    reader = Reader(2, max_pending_rows=3)
    reader.begin(10, 10)
    reader.read(part(0, 10, ("a", 1.0), ("b", 1.0)), progress(0, 10))
    with pytest.raises(CapacityError, match="holds 4 rows that wait for shard 1, above the cap of 3"):
        reader.read(part(0, 20, ("a", 1.0), ("b", 1.0)))


def test_rows_at_the_same_rank_are_one_object_for_all_queries_of_a_batch() -> None:
    wide, narrow = query_change("wide", k=3), query_change("narrow", k=2)
    reader = Reader(1, wide, narrow)
    for query in (wide, narrow):
        reader.begin(10, query=query)
    rows = [Row("a", 3.0), Row("b", 2.0), Row("c", 1.0)]
    first, second = reader.read(batch(0, [(wide, 10, rows), (narrow, 10, rows[:2])]), progress(0, 10))
    assert [len(first.rows), len(second.rows)] == [2, 3]
    assert all(one is other for one, other in zip(first.rows, second.rows[:2], strict=True))
