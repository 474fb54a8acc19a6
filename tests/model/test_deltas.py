from hypothesis import given
from hypothesis import strategies as st

from skyband.model.deltas import apply_deltas, deltas
from skyband.model.result import Change, Delta, Result, ResultRow

_row = st.tuples(
    st.sampled_from("abcdefg"),
    st.sampled_from([1.0, 2.0, 3.0]),
    st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([0.0, 1.0])),
)
OBJECTS = st.lists(_row, unique_by=lambda row: row[0]).map(
    lambda rows: tuple(ResultRow(rank, *row) for rank, row in enumerate(rows, 1))
)
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([1.0, 2.0]), st.sampled_from([5, 6]))).map(
    lambda rows: tuple(ResultRow(rank, name, score, {}, time) for rank, (name, score, time) in enumerate(rows, 1))
)
ROWS = st.one_of(st.tuples(OBJECTS, OBJECTS), st.tuples(RECORDS, RECORDS))


def result(rows: tuple[ResultRow, ...]) -> Result:
    return Result("q", "u", 0, 10, rows)


def ranked(*rows: tuple[str, float]) -> Result:
    return result(tuple(ResultRow(rank, name, score) for rank, (name, score) in enumerate(rows, 1)))


@given(ROWS)
def test_deltas_applied_to_the_old_rows_give_the_new_rows(rows: tuple[tuple[ResultRow, ...], ...]) -> None:
    old, new = rows
    assert apply_deltas(old, deltas(result(old), result(new))) == new


@given(ROWS)
def test_deltas_come_removals_first_and_never_tell_what_did_not_change(rows: tuple[tuple[ResultRow, ...], ...]) -> None:
    old, new = rows
    changes = deltas(result(old), result(new))
    order = [Change.LEFT, Change.ENTERED, Change.MOVED, Change.RESCORED]
    keys = [(order.index(delta.change), delta.row.rank) for delta in changes]
    assert keys == sorted(set(keys))
    for delta in changes:
        if delta.change is Change.RESCORED:
            assert delta.row.rank == delta.old_rank
            assert delta.row not in old
        if delta.change is Change.MOVED:
            assert delta.row.rank != delta.old_rank


@given(OBJECTS, OBJECTS)
def test_an_object_has_at_most_one_delta(old: tuple[ResultRow, ...], new: tuple[ResultRow, ...]) -> None:
    names = [delta.row.object_id for delta in deltas(result(old), result(new))]
    assert len(names) == len(set(names))


@given(OBJECTS)
def test_equal_results_differ_by_nothing(rows: tuple[ResultRow, ...]) -> None:
    assert deltas(result(rows), result(tuple(rows))) == []


def test_an_object_that_moved_and_was_rescored_is_moved_with_its_new_row() -> None:
    assert deltas(ranked(("a", 3.0), ("b", 2.0)), ranked(("b", 4.0), ("a", 3.0))) == [
        Delta(Change.MOVED, ResultRow(1, "b", 4.0), 2),
        Delta(Change.MOVED, ResultRow(2, "a", 3.0), 1),
    ]


def test_all_kinds_of_change_in_one_step() -> None:
    old = ranked(("a", 9.0), ("b", 8.0), ("c", 7.0), ("d", 6.0))
    new = ranked(("a", 9.0), ("d", 8.5), ("c", 7.5), ("e", 1.0))
    assert deltas(old, new) == [
        Delta(Change.LEFT, ResultRow(2, "b", 8.0), 2),
        Delta(Change.ENTERED, ResultRow(4, "e", 1.0)),
        Delta(Change.MOVED, ResultRow(2, "d", 8.5), 4),
        Delta(Change.RESCORED, ResultRow(3, "c", 7.5), 3),
    ]


def test_from_nothing_everything_has_entered() -> None:
    assert [delta.change for delta in deltas(None, ranked(("a", 1.0), ("b", 0.5)))] == [Change.ENTERED] * 2


def test_a_row_that_could_reach_something_else_or_is_safe_for_another_time_is_rescored() -> None:
    old = Result("q", "u", 0, 10, (ResultRow(1, "a", 9.0, {}, None, 12.0, 40), ResultRow(2, "b", 8.0, {}, None, 9.0)))
    rows = ResultRow(1, "a", 9.0, {}, None, 12.0, None), ResultRow(2, "b", 8.0, {}, None, None)
    new = Result("q", "u", 5, 15, rows)
    assert deltas(old, new) == [Delta(Change.RESCORED, row, row.rank) for row in rows]
    assert apply_deltas(old.rows, deltas(old, new)) == rows
