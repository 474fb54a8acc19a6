import numpy as np
import pytest

from skyband.generate.arrivals import arrival_order, event_times, object_ids, source_rows


def ids_of(arena: np.ndarray, ends: np.ndarray) -> list[str]:
    starts = [0, *ends.tolist()]
    return [arena[a:b].tobytes().decode() for a, b in zip(starts, ends.tolist(), strict=False)]


def test_event_times_ascend_at_the_asked_rate() -> None:
    times = event_times(np.random.default_rng(1), 20_000, 1_000.0, start_us=5_000_000)
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 5_000_000
    assert (times[-1] - 5_000_000) / 1e6 == pytest.approx(20.0, rel=0.05)


def test_event_times_refuse_a_rate_of_zero() -> None:
    with pytest.raises(ValueError, match="rows_per_second"):
        event_times(np.random.default_rng(1), 1, 0.0)


def test_disorder_is_there_and_stays_within_its_bound() -> None:
    random = np.random.default_rng(2)
    times = event_times(random, 5_000, 1_000.0)
    arrived = times[arrival_order(random, times, 50_000)]
    behind = np.maximum.accumulate(arrived) - arrived
    assert 10_000 < behind.max() <= 50_000
    assert sorted(arrived.tolist()) == times.tolist()


def test_without_disorder_rows_arrive_in_order_of_event_time() -> None:
    times = np.array([3, 1, 1, 2])
    assert arrival_order(np.random.default_rng(0), times, 0).tolist() == [1, 2, 3, 0]


def test_ids_are_the_prefix_and_the_number_in_digits() -> None:
    numbers = np.array([0, 7, 10, 100_000, 9_007_199_254_740_993, 205])
    assert ids_of(*object_ids(numbers, "größe-")) == [f"größe-{n}" for n in numbers.tolist()]


def test_no_rows_have_no_ids() -> None:
    arena, ends = object_ids(np.array([], np.int64))
    assert (len(arena), len(ends)) == (0, 0)


def test_rows_stand_in_the_order_given_with_offsets_from_zero() -> None:
    rows = source_rows(np.array([1, 2, 3]), np.array([4, 5, 6]), np.array([0.1, 0.2, 0.3]), np.array([2, 0]))
    assert rows.offset.tolist() == [0, 1]
    assert rows.event_time_us.tolist() == [3, 1]
    assert rows.values.tolist() == [[0.3], [0.1]]
    assert ids_of(rows.id_bytes, rows.id_ends) == ["o6", "o4"]
    assert rows.reason.tolist() == [0, 0]
