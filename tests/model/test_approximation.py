import pytest

from skyband.model.approximation import FEWEST_DUE, Approximation, recall_interval


def test_nothing_is_said_of_few_rows() -> None:
    assert recall_interval(1.0, FEWEST_DUE - 1) is None
    assert Approximation(shown=500, due=500, objects=FEWEST_DUE - 1).interval() is None
    assert Approximation().interval() is None


@pytest.mark.parametrize(
    ("shown", "due", "low", "high"),
    # Wilson intervals as tables have them.
    [(30, 30, 0.8865, 1.0), (0, 30, 0.0, 0.1135), (50, 100, 0.4038, 0.5962), (950, 1000, 0.9347, 0.9619)],
)
def test_the_interval_is_wilsons(shown: int, due: int, low: float, high: float) -> None:
    assert recall_interval(shown / due, due) == pytest.approx((low, high), abs=1e-4)


def test_an_object_due_many_times_is_one_trial_and_shards_add_up() -> None:
    many = Approximation(shown=95 * 40, due=100 * 40, objects=100)
    assert many.interval() == pytest.approx((0.888, 0.978), abs=1e-3)  # not that of 4,000: each is due 40 times
    parts = [Approximation(10, 12, 0.05, False, 1), Approximation(20, 20, 0.2, True, 2), Approximation(0, 0, None)]
    assert Approximation.of(parts) == Approximation(30, 32, 0.2, True, 3)
    assert Approximation.of([]) is None
    assert Approximation.of([Approximation(1, 1)]) == Approximation(1, 1)
