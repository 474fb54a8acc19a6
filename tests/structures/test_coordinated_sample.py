"""A coordinated sample holds the same few objects everywhere, and tells chances within their errors."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.structures.coordinated_sample import (
    LEAST_OBJECTS,
    CoordinatedSample,
    appearance_among,
    lags_among,
    quantiles_of,
)
from skyband.structures.store_arrays import Rows
from tests.sketch.columns import S, rows_of, some_rows, taken

WINDOW = 60 * S
AMPLE = 1 << 20


def content(sample: CoordinatedSample) -> bytes:
    """Return all that a sample holds, in the order of its hashes, without what tells of its past."""
    arrays, size = sample.arrays, sample.size
    order = np.argsort(arrays.id_hash[:size])
    columns = (arrays.id_hash, arrays.first_us, arrays.times_us, arrays.values)
    return b"".join(column[:size][order].tobytes() for column in columns)


def slots(sample: CoordinatedSample) -> dict[tuple[int, int], Any]:
    """Return time and values of each (hash, stream) that has any, and when the object was born."""
    arrays = sample.arrays
    return {
        (int(arrays.id_hash[i].view(np.int64)), stream): (
            int(arrays.times_us[i, stream]),
            arrays.values[i, stream].tolist(),
            int(arrays.first_us[i]),
        )
        for i in range(sample.size)
        for stream in range(arrays.times_us.shape[1])
        if arrays.times_us[i, stream] > -(2**62)
    }


def expected_slots(rows: Rows, low: int) -> dict[tuple[int, int], Any]:
    newest: dict[tuple[int, int], Any] = {}
    columns = (rows.id_hash, rows.stream, rows.event_time_us, rows.values)
    for key, stream, time, values in zip(*(column.tolist() for column in columns), strict=True):
        newest[key, stream] = max(newest.get((key, stream), (time, values)), (time, values))
    born: dict[int, int] = {}
    for key, time in zip(rows.id_hash.tolist(), rows.event_time_us.tolist(), strict=True):
        born[key] = min(born.get(key, time), time)
    return {at: (time, values, born[at[0]]) for at, (time, values) in newest.items() if time >= low}


@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 21))
def test_a_slot_is_what_its_object_showed_last(seed: int, count: int, low: int) -> None:
    rows = some_rows(seed, count, objects=40)
    sample = CoordinatedSample(3, 2, WINDOW, budget_bytes=AMPLE)
    sample.add(rows, 0, count)
    sample._check()
    sample.expire(low * S)
    sample._check()
    assert slots(sample) == expected_slots(rows, low * S)


@given(st.integers(0, 2**32), st.integers(0, 300))
def test_repeats_and_order_change_nothing(seed: int, count: int) -> None:
    rows = some_rows(seed, count)
    once = CoordinatedSample(3, 2, WINDOW, budget_bytes=AMPLE, level=2)
    again = CoordinatedSample(3, 2, WINDOW, budget_bytes=AMPLE, level=2)
    once.add(rows, 0, count)
    places = np.random.default_rng(seed).permutation(np.repeat(np.arange(count), 2))
    again.add(taken(rows, places), 0, 2 * count)
    assert content(once) == content(again)


@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(0, 21))
def test_merged_parts_are_the_sample_of_all_rows(seed: int, count: int, low: int) -> None:
    rows = some_rows(seed, count, objects=500)
    of_part = np.random.default_rng(seed).integers(0, 2, count) == 0
    whole, left, right = (CoordinatedSample(3, 2, WINDOW, budget_bytes=AMPLE, level=1) for _ in range(3))
    whole.add(rows, 0, count)
    left.add(taken(rows, np.flatnonzero(of_part)), 0, int(of_part.sum()))
    right.add(taken(rows, np.flatnonzero(~of_part)), 0, int((~of_part).sum()))
    right.expire(low * S)
    whole.expire(low * S)
    left.merge(right)
    left._check()
    assert slots(left).keys() == slots(whole).keys()
    assert {at: slot[:2] for at, slot in slots(left).items()} == {at: slot[:2] for at, slot in slots(whole).items()}
    if not low:
        assert content(left) == content(whole)


def test_a_conflict_is_won_by_the_later_time_and_then_by_the_larger_value() -> None:
    samples = [CoordinatedSample(1, 2, WINDOW) for _ in range(3)]
    for sample, time, values in zip(samples, (5, 7, 7), ([9.0, 9.0], [2.0, 1.0], [2.0, 3.0]), strict=True):
        sample.add(rows_of([0], [time], [1], [values]), 0, 1)
    samples[0].merge(samples[2])
    samples[0].merge(samples[1])
    found = samples[0].objects(10, 10)
    assert (found.times.tolist(), found.values.tolist(), found.first_us.tolist()) == ([[7]], [[[2.0, 3.0]]], [5])


def test_over_budget_the_threshold_halves_and_what_is_left_is_what_it_would_have_held_from_the_start() -> None:
    rows = rows_of(np.tile([0, 1], 5_000), np.arange(10_000), np.arange(10_000) // 2, np.arange(10_000) / 7)
    sample = CoordinatedSample(2, 1, WINDOW)
    for at in range(0, 10_000, 500):
        sample.add(rows, at, at + 500)
        sample._check()
        assert sample.size <= sample.capacity == 5 * 1024 * 2 // (16 + 2 * 16)
    assert sample.level >= 4
    fixed = CoordinatedSample(2, 1, WINDOW, budget_bytes=AMPLE, level=sample.level)
    fixed.add(rows, 0, 10_000)
    assert content(fixed) == content(sample)


def test_the_smaller_threshold_wins_a_merge_and_the_budget_holds() -> None:
    rows = some_rows(3, 9_000, streams=2, objects=8_000, width=1)
    small, large = CoordinatedSample(2, 1, WINDOW, level=6), CoordinatedSample(2, 1, WINDOW, budget_bytes=AMPLE)
    small.add(rows, 0, 4_000)
    large.add(rows, 4_000, 9_000)
    small.merge(large)
    small._check()
    fixed = CoordinatedSample(2, 1, WINDOW, budget_bytes=AMPLE, level=small.level)
    fixed.add(rows, 0, 9_000)
    assert small.level == 6
    assert content(fixed) == content(small)
    tight = CoordinatedSample(2, 1, WINDOW)
    tight.merge(large)
    tight._check()
    assert tight.level > 0
    assert tight.size <= tight.capacity


def test_the_threshold_doubles_after_a_quiet_window_and_shows_more_after_another() -> None:
    sample = CoordinatedSample(1, 1, 10 * S, level=3)
    quiet = rows_of(np.zeros(3_600), np.repeat(np.arange(60), 60) * S, np.tile(np.arange(60), 60))
    levels, rates = [], []
    for second in range(60):
        sample.add(quiet, 60 * second, 60 * (second + 1))
        sample.expire((second + 1 - 10) * S)
        sample._check()
        levels.append(sample.level)
        rates.append(sample.objects((second + 1) * S, 10 * S).rate)
    assert levels == sorted(levels, reverse=True)
    assert [levels.count(level) for level in (2, 1)] == [10, 10]
    first = levels.index(2)
    assert rates[first] == 1 / 8
    assert rates[first + 9] == 1 / 8
    assert rates[first + 10] == 1 / 4
    assert levels[-1] == 0
    assert rates[-1] == 1.0
    assert len(sample.objects(60 * S, 10 * S).present) == 60


def test_what_is_older_than_the_window_or_not_before_its_end_is_not_present() -> None:
    sample = CoordinatedSample(2, 1, WINDOW)
    sample.add(rows_of([0, 1, 0, 1], [5, 10, 20, 9], [1, 1, 2, 3]), 0, 4)
    assert sorted(sample.objects(20, 10).present.tolist()) == [2]
    assert sorted(sample.objects(20, 11).present.tolist()) == [2, 2]
    assert sorted(sample.objects(20, 15).present.tolist()) == [2, 3]
    assert sorted(sample.objects(21, 16).present.tolist()) == [1, 2, 3]


def pairs(random: np.random.Generator, objects: int, p: float, lag_us: int) -> Rows:
    """Return rows of new objects over two minutes, each on one of two streams, with chance `p` on the other after."""
    born = random.integers(0, 120 * S, objects)
    first = random.integers(0, 2, objects)
    follows = random.random(objects) < p
    later = born + random.integers(0, lag_us, objects)
    names = random.integers(0, 2**62, objects)
    return rows_of(
        np.concatenate([first, 1 - first[follows]]),
        np.concatenate([born, later[follows]]),
        np.concatenate([names, names[follows]]),
    )


def before(rows: Rows, at_us: int) -> Rows:
    return taken(rows, np.flatnonzero(rows.event_time_us < at_us))


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_an_appearance_errs_no_more_than_it_says_over_a_thousand_trials(p: float) -> None:
    random, trials, squares, errors = np.random.default_rng(1), 1_000, 0.0, 0.0
    # Of objects that come on both streams, each is seen on stream 0; of the others, every second one.
    truth = p / (p + (1 - p) / 2)
    for _ in range(trials):
        rows = before(pairs(random, 1_200, p, S), 100 * S)
        sample = CoordinatedSample(2, 1, WINDOW, budget_bytes=AMPLE, level=2)
        sample.add(rows, 0, len(rows.stream))
        found = sample.appearance(0b01, 1, 100 * S, WINDOW)
        assert found is not None
        assert found.error == pytest.approx(math.sqrt(found.probability * (1 - found.probability) / found.objects))
        squares += (found.probability - truth) ** 2
        errors += found.error**2
    assert math.sqrt(squares) <= math.sqrt(errors) * (1 + 3 / math.sqrt(2 * trials))
    assert math.sqrt(squares) > 0.8 * math.sqrt(errors)


def test_objects_whose_time_has_not_come_do_not_make_a_chance_look_small() -> None:
    rows = before(pairs(np.random.default_rng(2), 60_000, 0.5, 15 * S), 100 * S)
    sample = CoordinatedSample(2, 1, WINDOW, budget_bytes=1 << 23)
    sample.add(rows, 0, len(rows.stream))
    found, objects = sample.appearance(0b01, 1, 100 * S, WINDOW), sample.objects(100 * S, WINDOW)
    assert found is not None
    on_first = objects.present & 1 == 1
    plain = float((objects.present[on_first] == 3).mean())
    assert found.probability == pytest.approx(2 / 3, abs=4 * found.error)
    assert plain < 2 / 3 - 10 * found.error


def test_objects_that_come_again_and_again_all_tell() -> None:
    random = np.random.default_rng(4)
    rows = rows_of(random.integers(0, 2, 60_000), np.sort(random.integers(0, 200 * S, 60_000)), np.arange(60_000) % 500)
    sample = CoordinatedSample(2, 1, WINDOW, budget_bytes=AMPLE)
    sample.add(rows, 0, 60_000)
    found = sample.appearance(0b01, 1, 200 * S, WINDOW)
    assert found is not None
    assert (found.objects, found.probability, found.error) == (500, 1.0, 0.0)


def test_a_chance_given_several_streams_is_that_of_objects_on_all_of_them() -> None:
    # Objects below 80 come on 0 and 1; of these every fourth on 2; others only on 0 and 2.
    numbers = np.concatenate([np.arange(160), np.arange(80), np.arange(0, 80, 4), np.arange(80, 160)])
    streams = np.concatenate([np.zeros(160), np.ones(80), np.full(20, 2), np.full(80, 2)])
    sample = CoordinatedSample(3, 1, WINDOW, budget_bytes=AMPLE)
    sample.add(rows_of(streams, np.full(len(numbers), 30 * S), numbers), 0, len(numbers))
    both, one = sample.appearance(0b011, 2, 60 * S, WINDOW), sample.appearance(0b001, 2, 60 * S, WINDOW)
    assert both is not None
    assert one is not None
    assert (both.probability, both.objects) == (0.25, 80)
    assert (one.probability, one.objects) == (100 / 160, 160)


@pytest.mark.parametrize("count", [0, LEAST_OBJECTS - 1, LEAST_OBJECTS])
def test_fewer_than_thirty_objects_tell_nothing(count: int) -> None:
    sample = CoordinatedSample(2, 1, WINDOW)
    sample.add(rows_of(np.zeros(count), np.full(count, 30 * S), np.arange(count)), 0, count)
    assert (sample.appearance(0b01, 1, 60 * S, WINDOW) is None) == (count < LEAST_OBJECTS)
    assert len(sample.value_quantiles(0, 0, (0.1, 0.5), 60 * S, WINDOW)) == (2 if count >= LEAST_OBJECTS else 0)


def test_lags_and_values_are_those_of_the_slots() -> None:
    numbers = np.tile(np.arange(100), 2)
    times = np.concatenate([np.full(100, 20 * S), 20 * S + (np.arange(100) - 10) * S // 10])
    sample = CoordinatedSample(2, 2, WINDOW, budget_bytes=AMPLE)
    sample.add(rows_of(np.repeat([0, 1], 100), times, numbers, np.stack([numbers, -numbers], 1)), 0, 200)
    assert sample.lag_quantiles(0, 1, (0.05, 0.5, 1.0), 60 * S, WINDOW) == (-6 * S // 10, 39 * S // 10, 89 * S // 10)
    assert sample.lag_quantiles(1, 0, (1.0,), 60 * S, WINDOW) == (S,)
    assert sample.value_quantiles(0, 1, (0.0, 0.25, 1.0), 60 * S, WINDOW) == (-99.0, -75.0, 0.0)
    assert len(lags_among(sample.objects(60 * S, WINDOW), 0, 1)) == 100
    assert quantiles_of(np.arange(30), (0.5,)) == [14]


def test_a_typical_lag_leaves_half_the_window_at_least() -> None:
    numbers = np.tile(np.arange(200), 2)
    times = np.concatenate([np.full(200, 41 * S), np.full(200, 99 * S)])
    sample = CoordinatedSample(2, 1, WINDOW, budget_bytes=AMPLE)
    sample.add(rows_of(np.repeat([0, 1], 200), times, numbers), 0, 400)
    found = appearance_among(sample.objects(100 * S, WINDOW), 0b01, 1, 100 * S, WINDOW)
    assert found is not None
    assert found.objects == 200


def test_samples_of_other_groups_are_not_merged() -> None:
    for other in (CoordinatedSample(2, 1, WINDOW), CoordinatedSample(1, 2, WINDOW), CoordinatedSample(1, 1, 5)):
        with pytest.raises(DefinitionError, match="cannot be merged"):
            CoordinatedSample(1, 1, WINDOW).merge(other)


def test_more_streams_than_bits_are_refused() -> None:
    with pytest.raises(DefinitionError, match="1 to 62 streams"):
        CoordinatedSample(63, 1, WINDOW)
