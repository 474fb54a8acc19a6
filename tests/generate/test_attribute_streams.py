from collections import Counter
from typing import Any

import numpy as np
import pytest

from skyband.generate.attribute_streams import distinct_objects, repeated_objects
from skyband.generate.rhythm import Bursts
from skyband.generate.values import Values
from skyband.model.source_rows import SourceRows


def ids(rows: SourceRows) -> list[bytes]:
    starts = [0, *rows.id_ends.tolist()]
    return [rows.id_bytes[a:b].tobytes() for a, b in zip(starts, rows.id_ends.tolist(), strict=False)]


def same(a: tuple[SourceRows, ...], b: tuple[SourceRows, ...]) -> bool:
    return all(
        ids(x) == ids(y) and np.array_equal(x.event_time_us, y.event_time_us) and np.array_equal(x.values, y.values)
        for x, y in zip(a, b, strict=True)
    )


def test_an_object_comes_at_most_once_on_each_stream() -> None:
    for rows in distinct_objects(3, 4_000, streams=3, alpha=0.7, recent=50):
        assert len(set(ids(rows))) == rows.rows


def test_rows_are_all_there_in_order_of_event_time() -> None:
    made = distinct_objects(3, 2_000, streams=3, start_us=77)
    assert sum(rows.rows for rows in made) == 2_000
    for rows in made:
        assert (np.diff(rows.event_time_us) >= 0).all()
        assert (rows.event_time_us >= 77).all()
        assert rows.values.shape == (rows.rows, 1)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_alpha_is_the_share_of_rows_of_objects_seen_elsewhere(alpha: float) -> None:
    # With two streams, each row that picks an old object completes it: objects seen twice are alpha of the rows.
    first, second = (set(ids(rows)) for rows in distinct_objects(4, 10_000, streams=2, alpha=alpha, recent=200))
    assert len(first & second) / 10_000 == pytest.approx(alpha, abs=0.02)


def test_without_alpha_no_object_comes_twice() -> None:
    first, second = distinct_objects(5, 1_000, streams=2, alpha=0.0)
    assert not set(ids(first)) & set(ids(second))


def test_a_reappearing_object_is_among_the_recent_ones_of_the_other_stream() -> None:
    first, second = distinct_objects(6, 5_000, streams=2, alpha=1.0, recent=8)
    time = dict(zip(ids(first), first.event_time_us.tolist(), strict=True))
    times = first.event_time_us
    for object_id, at in zip(ids(second), second.event_time_us.tolist(), strict=True):
        if object_id in time and time[object_id] < at:
            # The rows of the first stream between the two sightings, itself included, fit into its window of 8.
            assert ((times >= time[object_id]) & (times < at)).sum() <= 8


def test_the_same_seed_gives_the_same_rows_and_another_does_not() -> None:
    assert same(distinct_objects(1, 500, disorder_us=9_000), distinct_objects(1, 500, disorder_us=9_000))
    assert not same(distinct_objects(1, 500), distinct_objects(2, 500))
    assert same(repeated_objects(1, 500), repeated_objects(1, 500))


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8, 1.0])
def test_values_of_an_object_correlate_on_all_streams_as_asked(correlation: float) -> None:
    first, second = distinct_objects(8, 20_000, streams=2, alpha=0.8, values=Values.CORRELATED, correlation=correlation)
    value = dict(zip(ids(first), first.values[:, 0].tolist(), strict=True))
    pairs = [(value[i], v) for i, v in zip(ids(second), second.values[:, 0].tolist(), strict=True) if i in value]
    assert np.corrcoef(np.array(pairs).T)[0, 1] == pytest.approx(correlation, abs=0.03)


def test_alpha_may_move_from_one_to_another() -> None:
    first, second = distinct_objects(4, 20_000, streams=2, alpha=(0.0, 0.4), recent=200)
    time = dict(zip(ids(first), first.event_time_us.tolist(), strict=True))
    complete = [max(time[i], t) for i, t in zip(ids(second), second.event_time_us.tolist(), strict=True) if i in time]
    shares = np.histogram(complete, bins=4, range=(0, 20_000_000))[0] / 5_000
    assert shares == pytest.approx([0.05, 0.15, 0.25, 0.35], abs=0.03)


@pytest.mark.parametrize("make", [distinct_objects, repeated_objects])
def test_values_drift_and_the_rate_moves(make: Any) -> None:
    made = make(9, 20_000, streams=1, drift=0.5, rate_factor=3.0, rows_per_second=1_000.0, disorder_us=0)[0]
    quarters = made.values[:, 0].reshape(4, 5_000)
    assert quarters.mean(axis=1)[[0, 3]] == pytest.approx([0.25 + 0.5 * 0.2, 0.25 + 0.5 * 0.91], abs=0.04)
    assert (quarters.max(axis=1) - quarters.min(axis=1) < 0.75).all()
    # The mean rate is twice that of the beginning: ten seconds, in whose first half three eighths of the rows come.
    assert made.event_time_us[-1] / 1e6 == pytest.approx(10.0, rel=0.03)
    assert (made.event_time_us < 5_000_000).mean() == pytest.approx(0.375, abs=0.02)


def test_rows_come_in_bursts_on_all_streams() -> None:
    bursts = Bursts(5.0, share=0.2, period_us=1_000_000)
    for rows in repeated_objects(1, 20_000, streams=2, rows_per_second=1_000.0, bursts=bursts):
        in_burst = (rows.event_time_us % 1_000_000 < 200_000).mean()
        assert in_burst / 0.2 / ((1 - in_burst) / 0.8) == pytest.approx(5.0, rel=0.1)


def test_repeated_objects_come_again_on_all_streams_with_disorder_below_a_second() -> None:
    made = repeated_objects(1, 20_000, objects=100)
    counts: Counter[bytes] = Counter()
    for rows in made:
        assert rows.rows == pytest.approx(5_000, rel=0.1)
        assert len(set(ids(rows))) == 100
        counts.update(ids(rows))
        behind = np.maximum.accumulate(rows.event_time_us) - rows.event_time_us
        assert 0 < behind.max() <= 1_000_000
        assert ((rows.values >= 0.0) & (rows.values < 1.0)).all()
    assert max(counts.values()) < 2 * min(counts.values())


def test_an_exponent_makes_few_objects_frequent() -> None:
    counts = Counter(i for rows in repeated_objects(1, 20_000, objects=100, exponent=1.0) for i in ids(rows))
    share = counts[b"o0"] / 20_000
    assert share == pytest.approx(1 / sum(1 / n for n in range(1, 101)), rel=0.1)


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        distinct_objects(1, 10, alpha=1.5)
    with pytest.raises(ValueError, match="alpha"):
        distinct_objects(1, 10, alpha=(0.5, -0.1))
    with pytest.raises(ValueError, match="drift"):
        repeated_objects(1, 10, drift=2.0)
    with pytest.raises(ValueError, match="objects"):
        repeated_objects(1, 10, objects=0)


def test_no_rows_give_empty_streams() -> None:
    assert [rows.rows for rows in (*distinct_objects(1, 0), *repeated_objects(1, 0))] == [0] * 6
