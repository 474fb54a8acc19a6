import numpy as np
import pytest

from skyband.generate.points import Shape, point_stream, points, scored_stream
from skyband.generate.values import Trend, Values, drifting_values, moving_values, stream_values, zipf_ranks


def correlation(shape: Shape, dimensions: int) -> np.ndarray:
    made = points(np.random.default_rng(1), 5_000, dimensions, shape)
    assert made.shape == (5_000, dimensions)
    assert ((made >= 0.0) & (made <= 1.0)).all()
    found = np.asarray(np.corrcoef(made.T))
    return found[~np.eye(dimensions, dtype=bool)]


@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_coordinates_depend_on_each_other_as_the_shape_says(dimensions: int) -> None:
    assert (abs(correlation(Shape.INDEPENDENT, dimensions)) < 0.06).all()
    assert (correlation(Shape.CORRELATED, dimensions) > 0.5).all()
    assert correlation(Shape.ANTICORRELATED, dimensions).mean() < -0.2


def test_anticorrelated_points_have_many_that_no_other_beats() -> None:
    def undominated(shape: Shape) -> int:
        made = points(np.random.default_rng(2), 1_000, 3, shape)
        return sum(not ((made >= p).all(axis=1) & (made > p).any(axis=1)).any() for p in made)

    assert undominated(Shape.CORRELATED) < undominated(Shape.INDEPENDENT) < undominated(Shape.ANTICORRELATED)


@pytest.mark.parametrize("shape", list(Shape))
def test_one_dimension_works(shape: Shape) -> None:
    assert points(np.random.default_rng(1), 10, 1, shape).shape == (10, 1)


def test_point_stream_has_distinct_objects_in_event_time_order() -> None:
    rows = point_stream(1, 300, dimensions=3, shape=Shape.ANTICORRELATED)
    assert rows.values.shape == (300, 3)
    assert (np.diff(rows.event_time_us) >= 0).all()
    assert rows.values.flags.c_contiguous
    assert np.array_equal(rows.values, point_stream(1, 300, dimensions=3, shape=Shape.ANTICORRELATED).values)


def test_scores_move_with_time_as_the_trend_says() -> None:
    def half(trend: Trend) -> tuple[float, float]:
        values = scored_stream(1, 2_000, trend=trend).values[:, 0]
        assert ((values >= 0.0) & (values < 1.0)).all()
        return values[:1_000].mean(), values[1_000:].mean()

    first, second = half(Trend.RISING)
    assert second - first == pytest.approx(0.35, abs=0.05)
    first, second = half(Trend.FALLING)
    assert first - second == pytest.approx(0.35, abs=0.05)
    first, second = half(Trend.RANDOM)
    assert first == pytest.approx(second, abs=0.05)


def test_daily_scores_are_high_in_the_middle_of_the_day() -> None:
    hour = 3_600_000_000
    times = np.arange(0, 48) * hour
    values = moving_values(np.random.default_rng(1), times, Trend.DAILY, noise=0.0)
    assert values[0] == values[24] == 0.0
    assert values[:24].argmax() == 12
    assert np.array_equal(values[:24], values[24:])


def test_without_noise_rising_values_never_fall() -> None:
    times = np.array([5, 5, 7, 100, 1_000])
    values = moving_values(np.random.default_rng(1), times, Trend.RISING, noise=0.0)
    assert values[0] == 0.0
    assert (np.diff(values) >= 0).all()
    assert values[-1] < 1.0


def test_zipf_ranks_are_as_frequent_as_they_should_be() -> None:
    ranks = zipf_ranks(np.random.default_rng(1), 50_000, 10)
    weights = 1 / np.arange(1, 11)
    assert np.bincount(ranks, minlength=10) / 50_000 == pytest.approx(weights / weights.sum(), abs=0.01)


def test_zipf_values_are_mostly_small_and_never_one() -> None:
    values = stream_values(np.random.default_rng(1), np.arange(10_000), Values.ZIPF)
    assert np.median(values) < 0.1 < values.max() < 1.0


def test_values_drift_up_or_down_within_their_range() -> None:
    times = np.array([10, 20, 110, 210])
    ends = np.array([0.0, 0.999, 0.5, 0.5])
    assert drifting_values(ends, times, 0.5) == pytest.approx([0.0, 0.4995 + 0.025, 0.5, 0.75])
    assert drifting_values(ends, times, -1.0).tolist() == pytest.approx([1.0, 0.95, 0.5, 0.0])
    assert (drifting_values(np.ones(4), times, 1.0) < 1.0).all()
    assert drifting_values(ends, times, 0.0) is ends


def test_no_rows_give_no_values() -> None:
    empty = np.array([], np.int64)
    assert [len(stream_values(np.random.default_rng(1), empty, kind)) for kind in Values] == [0, 0, 0]
    assert [len(moving_values(np.random.default_rng(1), empty, trend)) for trend in Trend] == [0, 0, 0, 0]
    assert len(drifting_values(np.array([]), empty, 0.5)) == 0


def test_points_without_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="dimensions"):
        points(np.random.default_rng(1), 1, 0, Shape.INDEPENDENT)
