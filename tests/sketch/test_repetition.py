"""Counts of counts are exact, the second moment is within its error, and no object comes oftener than either bound."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.sketch.repetition import CountsOfCounts, SecondMoment
from skyband.structures.store_arrays import Rows
from tests.sketch.columns import S, rows_of, some_rows

TRIALS = 1_000
SLACK = 1.0 + 3.0 / math.sqrt(2.0 * TRIALS)


def counts_of(rows: Rows, stream: int, from_us: int, to_us: int) -> Counter[int]:
    """Return how often each object came on a stream, the slow way."""
    columns = zip(rows.stream.tolist(), rows.event_time_us.tolist(), rows.id_hash.tolist(), strict=True)
    return Counter(object_id for of, time, object_id in columns if of == stream and from_us <= time < to_us)


@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(1, 40), st.integers(0, 21))
def test_counts_of_counts_are_those_of_the_rows_that_are_left(seed: int, count: int, objects: int, low: int) -> None:
    rows = some_rows(seed, count, objects=objects)
    counts = CountsOfCounts(3, S)
    for at in range(0, count, 57):
        counts.add(rows, at, min(at + 57, count))
    counts.expire(low * S)
    counts._check()
    for stream in range(3):
        expected = Counter(counts_of(rows, stream, low * S, 99 * S).values())
        assert counts.bound(stream) == max(expected, default=0)
        assert {n: c for n, c in enumerate(counts.objects_by_count(stream).tolist()) if c} == expected
        assert counts.second_moment(stream) == sum(n * n * c for n, c in expected.items())


def test_counts_stay_exact_while_their_table_grows_and_forgets() -> None:
    counts, rows = CountsOfCounts(2, S), some_rows(5, 20_000, streams=2, objects=9_000, seconds=40)
    for second in range(40):
        first, last = np.searchsorted(np.maximum.accumulate(rows.event_time_us), [second * S, (second + 1) * S])
        counts.add(rows, int(first), int(last))
        counts.expire((second - 3) * S)
    counts._check()
    assert counts.bound(0) == max(counts_of(rows, 0, 36 * S, 99 * S).values())
    assert len(counts._table) <= 16_384


def test_rows_in_panes_that_have_expired_are_not_counted() -> None:
    counts = CountsOfCounts(1, S)
    counts.expire(5 * S)
    counts.add(rows_of([0, 0], [5 * S - 1, 5 * S], [1, 2]), 0, 2)
    assert counts.objects_by_count(0).tolist() == [0, 1]


@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 15), st.integers(0, 15))
def test_merged_counts_are_the_counts_of_all_rows(seed: int, count: int, low: int, other_low: int) -> None:
    rows, cut = some_rows(seed, count, objects=30), count // 3
    whole, left, right = CountsOfCounts(3, S), CountsOfCounts(3, S), CountsOfCounts(3, S)
    whole.add(rows, 0, count)
    whole.expire(max(low, other_low) * S)
    left.add(rows, 0, cut)
    left.expire(low * S)
    right.add(rows, cut, count)
    right.expire(other_low * S)
    left.merge(right)
    left._check()
    for stream in range(3):
        assert left.objects_by_count(stream).tobytes() == whole.objects_by_count(stream).tobytes()


def test_the_second_moment_errs_no_more_than_it_says_over_a_thousand_trials() -> None:
    random = np.random.default_rng(11)
    repeats = np.concatenate([np.ones(300, np.int64), np.full(40, 5), [30]])
    objects = np.repeat(np.arange(len(repeats)), repeats)
    numbers = (np.arange(TRIALS)[:, np.newaxis] * 1_000 + objects).ravel()
    times = random.integers(0, 10 * S, len(numbers))
    moments = SecondMoment(TRIALS, 10 * S, S)
    moments.add(rows_of(np.repeat(np.arange(TRIALS), len(objects)), times, numbers), 0, len(numbers))
    moments._check()
    truth = int((repeats**2).sum())
    found = [moments.second_moment(i, 10 * S, 10 * S).value / truth - 1 for i in range(TRIALS)]
    error = math.sqrt(sum(one * one for one in found) / TRIALS)
    assert 0.5 * moments.relative_error < error <= moments.relative_error * SLACK
    assert abs(float(np.mean(found))) < 4 * moments.relative_error / math.sqrt(TRIALS)
    assert moments.second_moment(0, 10 * S, 10 * S).error == pytest.approx(
        moments.second_moment(0, 10 * S, 10 * S).value * math.sqrt(2 / 256)
    )


@given(st.integers(0, 2**32))
def test_no_object_comes_oftener_than_the_bounds(seed: int) -> None:
    rows = some_rows(seed, 600, streams=2, objects=20)
    moments, counts = SecondMoment(2, 20 * S, S), CountsOfCounts(2, S)
    moments.add(rows, 0, 600)
    counts.add(rows, 0, 600)
    for stream in range(2):
        most = max(counts_of(rows, stream, 0, 99 * S).values())
        assert counts.bound(stream) == most <= moments.bound(stream, 20 * S, 20 * S)


def test_panes_outside_the_window_do_not_count() -> None:
    moments = SecondMoment(1, 10 * S, S)
    moments.add(rows_of([0] * 4, [S, 2 * S, 2 * S, 7 * S], [1, 1, 1, 1]), 0, 4)
    assert [moments.second_moment(0, 8 * S, window * S).value for window in (1, 5, 6, 7)] == [1.0, 1.0, 9.0, 16.0]
    assert moments.second_moment(0, 7 * S, 5 * S).value == 4.0
    assert moments.second_moment(0, 30 * S, 10 * S).value == 0.0
    moments.expire(3 * S)
    assert moments.second_moment(0, 8 * S, 10 * S).value == 1.0
    moments._check()


def test_a_ring_forgets_what_newer_panes_push_out() -> None:
    moments = SecondMoment(1, 3 * S, S)
    for second in (0, 1, 2, 3, 9, 2):
        moments.add(rows_of([0], [second * S], [1]), 0, 1)
        moments._check()
    assert moments.second_moment(0, 10 * S, 3 * S).value == 1.0
    assert int(np.abs(moments.tallies).sum()) == 1


@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 25), st.integers(1, 22))
def test_merged_tallies_are_the_tallies_of_all_rows(seed: int, count: int, low: int, window: int) -> None:
    rows = some_rows(seed, count)
    cut = count // 2
    whole, left, right = (SecondMoment(3, window * S, S, 16) for _ in range(3))
    whole.add(rows, 0, count)
    whole.expire(low * S)
    left.add(rows, 0, cut)
    right.add(rows, cut, count)
    right.expire(low * S)
    left.merge(right)
    left._check()
    assert left.tallies.tobytes() == whole.tallies.tobytes()
    assert left.ring.tolist() == whole.ring.tolist()


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(DefinitionError, match="cannot be merged"):
        SecondMoment(1, 10 * S, S).merge(SecondMoment(1, 10 * S, 2 * S))
    with pytest.raises(DefinitionError, match="cannot be merged"):
        CountsOfCounts(1, S).merge(CountsOfCounts(2, S))
    with pytest.raises(DefinitionError, match="power of two"):
        SecondMoment(1, 10 * S, S, 100)
