"""One window's result against the truth: what is said, and that nothing else is."""

from collections.abc import Sequence

import pytest

from spark.audit_compare import Found, FoundRow, Kind, TrueRow, differences, recall

TRUE = [
    TrueRow(name, score, {"a": score}) for name, score in zip("abcdef", (9.0, 8.0, 7.0, 6.0, 5.0, 4.0), strict=True)
]


def rows(names: str, true: Sequence[TrueRow] = TRUE) -> list[FoundRow]:
    scores = {row.object_id: row.score for row in true}
    return [FoundRow(n, name, scores.get(name, 0.5), {"a": scores.get(name, 0.5)}) for n, name in enumerate(names, 1)]


def told(
    found: Sequence[FoundRow], true: Sequence[TrueRow] = TRUE, ks: Sequence[int] = (4,)
) -> list[tuple[Kind, str | None]]:
    its = differences(Found(0, tuple(found)), true, frozenset(ks), 0)
    return [(difference.kind, difference.object_id) for difference in its]


def test_a_result_that_is_right_has_no_differences() -> None:
    assert told(rows("abcd")) == []
    assert told(rows("abcdef"), ks=(10,)) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("abc", [(Kind.MISSING_ROW, "d")]),
        ("acd", [(Kind.MISSING_ROW, "b")]),
        ("", [(Kind.MISSING_ROW, name) for name in "abcd"]),
        ("abcde", [(Kind.EXTRA_ROW, "e")]),
        ("abxcd", [(Kind.EXTRA_ROW, "x")]),
        ("abcx", [(Kind.MISSING_ROW, "d"), (Kind.EXTRA_ROW, "x")]),
        ("bacd", [(Kind.WRONG_RANK, "b"), (Kind.WRONG_RANK, "a")]),
        ("abdc", [(Kind.WRONG_RANK, "d"), (Kind.WRONG_RANK, "c")]),
    ],
)
def test_rows_that_are_missing_too_many_or_out_of_order_are_told_each(
    names: str, expected: list[tuple[Kind, str]]
) -> None:
    assert told(rows(names)) == expected


def test_a_row_may_be_missing_with_its_rank_or_without() -> None:
    assert told([row for row in rows("abcd") if row.object_id != "b"]) == [(Kind.MISSING_ROW, "b")]


def test_ranks_count_from_one() -> None:
    its = [FoundRow(row.rank + 1, row.object_id, row.score, row.attributes) for row in rows("abcd")]
    assert told(its) == [(Kind.WRONG_RANK, name) for name in "abcd"]


def test_another_score_is_told_as_that_alone() -> None:
    its = rows("abcd")
    its[1] = FoundRow(2, "b", 100.0, {"a": 8.0})
    assert told(its) == [(Kind.WRONG_SCORE, "b")]


@pytest.mark.parametrize("attributes", [{}, {"a": 8.1}, {"a": 8.0, "b": 1.0}])
def test_attributes_must_be_those_that_are_present(attributes: dict[str, float]) -> None:
    its = rows("abcd")
    its[1] = FoundRow(2, "b", 8.0, attributes)
    assert told(its) == [(Kind.WRONG_ATTRIBUTE, "b")]


def test_scores_that_differ_by_rounding_are_equal_and_may_stand_in_either_order() -> None:
    close = [TrueRow("a", 1.0, {"a": 1.0}), TrueRow("b", 1.0 - 1e-12, {"a": 1.0}), TrueRow("c", 0.5, {"a": 0.5})]
    assert told(rows("ba", close), close, ks=(2,)) == []
    assert told(rows("b", close), close, ks=(1,)) == []
    assert told(rows("c", close), close, ks=(1,)) == [(Kind.MISSING_ROW, "a"), (Kind.EXTRA_ROW, "c")]


def test_a_sum_may_differ_by_the_rounding_of_its_parts() -> None:
    true = [TrueRow("a", 0.0, {"a": 0.0}, slack=1e-9)]
    assert told([FoundRow(1, "a", 3e-10, {"a": 3e-10})], true) == []
    assert told([FoundRow(1, "a", 3e-9, {"a": 0.0})], true) == [(Kind.WRONG_SCORE, "a")]


def test_while_a_new_k_takes_hold_either_may_be() -> None:
    assert told(rows("ab"), ks=(2, 4)) == []
    assert told(rows("abcd"), ks=(2, 4)) == []
    assert told(rows("abc"), ks=(2, 4)) != []


def test_where_each_record_is_an_object_ids_may_repeat() -> None:
    true = [TrueRow("a", 2.0, {}, event_us=5), TrueRow("a", 1.0, {}, event_us=5), TrueRow("a", 1.0, {}, event_us=6)]
    found = [FoundRow(rank, "a", row.score, {}, row.event_us) for rank, row in enumerate(true, 1)]
    assert told(found, true) == []
    assert told(found[:2], true) == [(Kind.MISSING_ROW, "a")]


def test_a_window_that_begins_elsewhere_is_told() -> None:
    its = differences(Found(5, tuple(rows("abcd"))), TRUE, frozenset({4}), 0)
    assert [(its.kind, its.expected, its.found) for its in its] == [(Kind.WRONG_WINDOW, "0", "5")]


def test_recall_counts_the_best_that_are_shown() -> None:
    assert recall(rows("acxe"), TRUE, 4) == (2, 4)
    assert recall((), TRUE[:2], 4) == (0, 2)
