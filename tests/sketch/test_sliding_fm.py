"""Bitmaps count the distinct objects of a window within the published errors, in whatever order they come."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.sketch.sliding_fm import ESTIMATE_ERROR, LIKELY_ERROR, SlidingFM
from tests.sketch.columns import S, rows_of, some_rows, taken

TRIALS = 1_000
# The root mean square of so many errors is itself known to 1/sqrt(2 n) only: three of these are no surprise.
SLACK = 1.0 + 3.0 / math.sqrt(2.0 * TRIALS)


def rms(errors: list[float]) -> float:
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def trials(objects: int, bitmaps: int) -> SlidingFM:
    """Return sketches of as many streams as there are trials, each with objects of its own."""
    sketch = SlidingFM(TRIALS, bitmaps)
    count = TRIALS * objects
    rows = rows_of(np.repeat(np.arange(TRIALS), objects), np.full(count, 5 * S), np.arange(count) + 7 * count)
    sketch.add(rows, 0, count)
    return sketch


@pytest.mark.parametrize(("objects", "bitmaps"), [(300, 64), (2_500, 64), (2_500, 256)])
def test_both_estimates_err_no_more_than_they_say_over_a_thousand_trials(objects: int, bitmaps: int) -> None:
    sketch = trials(objects, bitmaps)
    by_mean = [sketch.estimate(i, 10 * S, 10 * S).value / objects - 1 for i in range(TRIALS)]
    by_likelihood = [sketch.likely(i, 10 * S, 10 * S).value / objects - 1 for i in range(TRIALS)]
    assert rms(by_mean) <= ESTIMATE_ERROR / math.sqrt(bitmaps) * SLACK
    assert rms(by_likelihood) <= LIKELY_ERROR / math.sqrt(bitmaps) * SLACK
    assert rms(by_likelihood) < rms(by_mean)
    # Were the published errors far too large, they would say nothing.
    assert rms(by_likelihood) > (0.5 if objects > bitmaps * 8 else 0.2) * LIKELY_ERROR / math.sqrt(bitmaps)
    # What few bitmaps err on one side is well below what they err at all.
    assert abs(float(np.mean(by_likelihood))) < 0.25 * LIKELY_ERROR / math.sqrt(bitmaps)


def test_the_error_told_is_the_value_times_the_relative_error() -> None:
    sketch = SlidingFM(1, 64)
    sketch.add(rows_of(np.zeros(500), np.zeros(500), np.arange(500)), 0, 500)
    assert sketch.estimate(0, S, S).error == pytest.approx(sketch.estimate(0, S, S).value * 0.78 / 8)
    assert sketch.likely(0, S, S).error == pytest.approx(sketch.likely(0, S, S).value * 0.68 / 8)


def test_few_objects_are_counted_almost_exactly() -> None:
    for count in (0, 1, 2, 5):
        sketch = SlidingFM(1, 1024)
        sketch.add(rows_of(np.zeros(count), np.zeros(count), np.arange(count)), 0, count)
        assert sketch.likely(0, S, S).value == pytest.approx(count, abs=0.05)


@pytest.mark.parametrize("shared", [100, 700])
def test_an_intersection_errs_no_more_than_its_union(shared: int) -> None:
    own, pairs = 1_000, TRIALS // 2
    sketch = SlidingFM(2 * pairs, 64)
    numbers = np.arange(pairs)[:, np.newaxis] * 10_000 + np.arange(own)
    for stream in (0, 1):
        streams = np.repeat(2 * np.arange(pairs) + stream, own)
        objects = (numbers + stream * (own - shared)).ravel()
        sketch.add(rows_of(streams, np.zeros(len(objects)), objects), 0, len(objects))
    both = [sketch.intersection(2 * i, 2 * i + 1, S, S) for i in range(pairs)]
    assert rms([one.value - shared for one in both]) <= rms([one.error for one in both]) * SLACK
    assert both[0].error == pytest.approx(sketch.union((0, 1), S, S).value * LIKELY_ERROR / 8)
    assert all(0.0 <= one.value <= sketch.likely(2 * i, S, S).value for i, one in enumerate(both))


def test_what_is_older_than_the_window_does_not_count() -> None:
    sketch = SlidingFM(1, 64)
    old, new = rows_of(np.zeros(900), np.full(900, 3 * S), np.arange(900)), rows_of([0], [10 * S], [5_000])
    sketch.add(old, 0, 900)
    sketch.add(new, 0, 1)
    assert sketch.likely(0, 11 * S, 8 * S).value > 700
    assert sketch.likely(0, 11 * S, 8 * S - 1).value == pytest.approx(1.0, abs=0.05)
    assert sketch.estimate(0, 30 * S, 8 * S).value == 0.0


@given(st.integers(0, 2**32), st.integers(0, 300))
def test_repeats_and_order_change_nothing(seed: int, count: int) -> None:
    rows = some_rows(seed, count)
    once, again = SlidingFM(3, 16), SlidingFM(3, 16)
    once.add(rows, 0, count)
    places = np.random.default_rng(seed).permutation(np.repeat(np.arange(count), 2))
    again.add(taken(rows, places), 0, 2 * count)
    assert once.newest_us.tobytes() == again.newest_us.tobytes()


def test_an_object_that_comes_again_later_counts_from_then_on_as_one() -> None:
    rows = rows_of(np.zeros(400), np.repeat([S, 9 * S], 200), np.tile(np.arange(200), 2))
    shifted, fresh = SlidingFM(1, 64), SlidingFM(1, 64)
    shifted.add(rows, 0, 400)
    fresh.add(rows, 200, 400)
    for window in (S, 5 * S, 20 * S):
        assert shifted.likely(0, 10 * S, window) == fresh.likely(0, 10 * S, window)


@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 300))
def test_merged_parts_are_the_sketch_of_all_rows(seed: int, count: int, cut: int) -> None:
    rows, cut = some_rows(seed, count), min(cut, count)
    whole, left, right = SlidingFM(3, 16), SlidingFM(3, 16), SlidingFM(3, 16)
    whole.add(rows, 0, count)
    left.add(rows, 0, cut)
    right.add(rows, cut, count)
    left.merge(right)
    assert left.newest_us.tobytes() == whole.newest_us.tobytes()


def test_bitmaps_that_are_no_power_of_two_are_refused() -> None:
    with pytest.raises(DefinitionError, match="power of two"):
        SlidingFM(1, 48)


def test_sketches_of_other_shapes_are_not_merged() -> None:
    with pytest.raises(DefinitionError, match="cannot be merged"):
        SlidingFM(1, 64).merge(SlidingFM(2, 64))
