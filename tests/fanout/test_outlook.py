"""What could still happen, merged from what shards tell; scores by hand."""

from dataclasses import replace

import numpy as np
import pytest

from skyband.fanout.merger import Merger
from skyband.model.partials import Contender, PartialBatch, Progress
from skyband.model.result import Candidate, Result
from tests.fanout.partials import Row, batch, query_change

UNTIL = 90


def contender(object_id: str, score: float | None, best: float | None, *lacks: int) -> Contender:
    return Contender(object_id, score, best, lacks, UNTIL)


def told(made: PartialBatch, *contenders: Contender) -> PartialBatch:
    (evaluation,) = made.evaluations
    return replace(made, evaluations=(replace(evaluation, contenders=contenders),))


def merged(*parts: PartialBatch, k: int = 2, candidates: int = 2) -> Result:
    """Return the result of parts, one of each shard."""
    merger = Merger("g", 1, len(parts))
    merger.change_query(asking(k, candidates))
    for offset, part in enumerate(parts):
        merger.accept(part, 0, 2 * offset)
        merger.accept(Progress("g", 1, part.shard, 100, 100), 0, 2 * offset + 1)
    merger._check()
    (result,) = merger.take()
    merger._check()
    return result


def asking(k: int, candidates: int):  # type: ignore[no-untyped-def]
    change = query_change("u", k=k)
    return replace(change, query=replace(change.query, candidates=candidates))


def part(shard: int, rows: list[Row], *contenders: Contender, k: int = 2, **options: bool) -> PartialBatch:
    return told(batch(shard, [(asking(k, 2), 50, rows)], **options), *contenders)  # type: ignore[arg-type]


def test_candidates_are_outside_and_beat_the_last_row_what_could_reach_most_first() -> None:
    left = part(
        0,
        [Row("a", 9.0), Row("b", 7.0)],
        contender("x", None, None, 0, 1),
        contender("a", 9.0, 9.0),
        contender("b", 7.0, 7.5),
    )
    right = part(
        1,
        [Row("c", 8.0), Row("d", 3.0)],
        contender("c", 8.0, 11.0),
        contender("d", 3.0, 8.5, 1),
        contender("e", 2.0, 8.0, 1),
    )
    result = merged(left, right)
    assert [row.object_id for row in result.rows] == ["a", "c"]
    # e could only reach the 8.0 that c has, and c wins the tie; b could not reach it.
    assert result.candidates == (
        Candidate("x", None, None, ("a", "b"), UNTIL),
        Candidate("d", 3.0, 8.5, ("b",), UNTIL),
    )


def test_a_row_is_safe_while_fewer_than_k_others_could_beat_it() -> None:
    rows = [Row("a", 9.0), Row("c", 8.0)]
    result = merged(part(0, rows, contender("x", None, None), contender("c", 8.0, 8.5), contender("a", 9.0, 9.0)))
    # Of a, x alone is ahead; of c, x and a.
    assert [row.safe_until for row in result.rows] == [UNTIL, None]


def test_a_row_that_is_no_contender_of_its_shard_is_not_safe() -> None:
    others = [contender(name, 1.0, 20.0) for name in "wxyz"]
    assert [row.safe_until for row in merged(part(0, [Row("a", 9.0)], *others)).rows] == [None]


def test_equal_best_scores_are_ordered_by_id_and_the_lowest_is_first_where_it_is_best() -> None:
    rows = [Row("m", 5.0), Row("n", 6.0)]
    contenders = [contender(name, 9.0, best) for name, best in (("z", 6.0), ("b", 6.0), ("c", 2.0), ("a", 2.0))]
    result = merged(part(0, rows, *contenders, descending=False), candidates=10)
    assert [candidate.object_id for candidate in result.candidates] == ["a", "c", "b"]


def test_with_fewer_than_k_rows_anything_could_come_in() -> None:
    result = merged(part(0, [Row("a", 9.0)], contender("a", 9.0, 9.0), contender("b", None, 1.0)))
    assert [candidate.object_id for candidate in result.candidates] == ["b"]
    assert result.rows[0].safe_until == UNTIL


def test_a_shard_without_rows_tells_its_contenders() -> None:
    result = merged(part(0, [Row("a", 9.0)], contender("a", 9.0, 9.0)), part(1, [], contender("b", None, 12.0)))
    assert [candidate.object_id for candidate in result.candidates] == ["b"]
    assert [row.safe_until for row in result.rows] == [UNTIL]


def test_contenders_without_any_row_make_no_result() -> None:
    merger = Merger("g", 1, 1)
    merger.change_query(asking(2, 2))
    merger.accept(part(0, [], contender("b", None, 12.0)), 0, 0)
    merger.accept(Progress("g", 1, 0, 100, 100), 0, 1)
    assert merger.take() == []
    merger._check()


def test_records_that_are_objects_of_their_own_are_safe_until_they_expire() -> None:
    rows = [Row("a", 9.0, {}, 41, 7), Row("a", 8.0, {}, 39, 3)]
    result = merged(part(0, rows))
    assert [row.safe_until for row in result.rows] == [70, 60]
    assert result.candidates == ()


def test_what_rows_could_reach_comes_with_them() -> None:
    made = part(0, [Row("a", 9.0), Row("b", 7.0)])
    result = merged(replace(made, best=made.score + np.array([1.0, np.nan])))
    assert [row.best_score for row in result.rows] == [10.0, None]


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_candidates_are_told_than_asked_for(most: int) -> None:
    contenders = [contender(name, 1.0, 20.0) for name in "xyz"]
    result = merged(part(0, [Row("a", 9.0), Row("b", 8.0)], *contenders), candidates=most)
    assert [candidate.object_id for candidate in result.candidates] == ["x", "y"][:most]
