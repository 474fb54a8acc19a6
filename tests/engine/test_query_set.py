"""Queries of one slide: when they are due, and what of an evaluation is worth telling."""

import numpy as np
import pytest

from skyband.engine.query_set import QuerySet, first_multiple_after
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import Query, QueryState, Window


def change(uid: str, k: int = 1, size: int = 10, revision: int = 1) -> QueryChange:
    query = Query(name=uid, k=k, score="a", window=Window(size, 10))
    return QueryChange(uid=uid, revision=revision, group="g", query=query, state=QueryState.ACTIVE)


@pytest.mark.parametrize(
    ("step", "point", "expected"), [(10, 20, 30), (10, 19, 20), (10, -1, 0), (10, -10, 0), (10, -11, -10), (1, 5, 6)]
)
def test_the_first_multiple_after_a_point_is_above_it(step: int, point: int, expected: int) -> None:
    assert first_multiple_after(step, point) == expected


def test_window_ends_follow_what_has_passed_and_never_go_back() -> None:
    queries = QuerySet(10, MIN_TIME_US)
    assert queries.next_end == MIN_TIME_US
    queries.passed(-5)
    assert queries.next_end == 0
    queries.passed(20)
    queries.passed(3)
    assert queries.next_end == 30


def test_members_keep_their_columns_as_they_come_change_and_go() -> None:
    queries = QuerySet(10, 0)
    for uid, k, size in (("a", 1, 10), ("b", 5, 30), ("c", 3, 20)):
        queries.put(change(uid, k, size))
    assert (queries.ks.tolist(), queries.sizes.tolist(), queries.largest_size) == ([1, 5, 3], [10, 30, 20], 30)
    queries.put(change("b", 7, 30, revision=2))
    assert (queries.ks.tolist(), [m.revision for m in queries.members]) == ([1, 7, 3], [1, 2, 1])
    queries.remove("b")
    queries.remove("unknown")
    assert (queries.ks.tolist(), queries.largest_size) == ([1, 3], 20)
    assert [member.uid for member in queries.members] == ["a", "c"]


def told(queries: QuerySet, end: int, *counts: int) -> list[tuple[str, int, int, int]]:
    starts = np.concatenate(([0], np.cumsum(counts)))
    return [(e.uid, e.window_start, e.start, e.stop) for e in queries.evaluated(end, starts)]


def test_emptiness_is_told_once_after_rows() -> None:
    queries = QuerySet(10, 0)
    for uid in "abc":
        queries.put(change(uid))
    assert queries.is_quiet
    assert told(queries, 10, 2, 0, 1) == [("a", 0, 0, 2), ("c", 0, 2, 3)]
    assert not queries.is_quiet
    assert told(queries, 20, 0, 0, 3) == [("a", 10, 0, 0), ("c", 10, 0, 3)]
    assert told(queries, 30, 0, 0, 0) == [("c", 20, 0, 0)]
    assert queries.is_quiet
    assert told(queries, 40, 0, 0, 0) == []
    assert queries.next_end == 50


def test_a_new_revision_remembers_what_it_showed_and_a_new_query_does_not() -> None:
    queries = QuerySet(10, 0)
    for uid in "ab":
        queries.put(change(uid))
    told(queries, 10, 1, 1)
    queries.put(change("a", revision=2))
    queries.remove("b")
    queries.put(change("b"))
    assert told(queries, 20, 0, 0) == [("a", 10, 0, 0)]


def test_evaluations_are_a_sequence() -> None:
    queries = QuerySet(10, 0)
    for i, uid in enumerate("abcd"):
        queries.put(change(uid, k=i + 1, size=10 * (i + 1)))
    found = queries.evaluated(50, np.array([0, 1, 1, 3, 3]))
    assert len(found) == 2
    assert [(e.uid, e.revision, e.k, e.window_start, e.window_end) for e in found] == [
        ("a", 1, 1, 40, 50),
        ("c", 1, 3, 20, 50),
    ]
    assert found[-1] == found[1] == list(found)[1]
    assert found[:1] == (found[0],)
    with pytest.raises(IndexError):
        found[2]
