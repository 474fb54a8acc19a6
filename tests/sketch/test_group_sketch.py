"""A group's sketch: one batch through one kernel is what its parts make; bytes, merges, statistics."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.errors import DefinitionError, LogError
from skyband.generate.attribute_streams import distinct_objects, repeated_objects
from skyband.model.statistics import GroupStatistics
from skyband.sketch.group_sketch import GroupSketch
from skyband.sketch.repetition import SecondMoment
from skyband.sketch.sliding_fm import SlidingFM
from skyband.structures.coordinated_sample import CoordinatedSample
from skyband.structures.store_arrays import Rows
from tests.sketch.columns import S, in_order, some_rows, taken


def sketch_of(rows: Rows, *, batch_rows: int = 1_000, low: int = 0, budget_bytes: int = 1 << 20) -> GroupSketch:
    sketch = GroupSketch(3, 2, 20 * S, S, bitmaps=16, columns=16, budget_bytes=budget_bytes)
    for at in range(0, len(rows.stream), batch_rows):
        sketch.add(rows, at, min(at + batch_rows, len(rows.stream)))
    if low:
        sketch.expire(low * S)
    return sketch


@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(-20, 40))
def test_one_kernel_for_all_does_what_one_for_each_does(seed: int, count: int, shift: int) -> None:
    rows = some_rows(seed, count)
    rows = rows._replace(event_time_us=rows.event_time_us + shift * S)
    sketch = sketch_of(rows, budget_bytes=3_000)
    sketch._check()
    bitmaps, moments = SlidingFM(3, 16), SecondMoment(3, 20 * S, S, 16)
    sample = CoordinatedSample(3, 2, 20 * S, budget_bytes=3_000)
    for part in (bitmaps, moments, sample):
        part.add(rows, 0, count)
    assert sketch.bitmaps.newest_us.tobytes() == bitmaps.newest_us.tobytes()
    assert sketch.moments.tallies.tobytes() == moments.tallies.tobytes()
    assert all((a == b).all() for a, b in zip(sketch.sample.arrays, sample.arrays, strict=True))


@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(1, 400), st.integers(0, 21))
def test_the_same_rows_make_the_same_bytes_in_batches_of_any_size(seed: int, count: int, batch: int, low: int) -> None:
    rows = some_rows(seed, count, objects=400)
    whole = sketch_of(rows, low=low, budget_bytes=5_000).to_bytes()
    assert sketch_of(rows, low=low, budget_bytes=5_000, batch_rows=batch).to_bytes() == whole


@given(st.integers(0, 2**32), st.integers(0, 400))
def test_merged_parts_make_the_bytes_of_all_rows(seed: int, count: int) -> None:
    rows = some_rows(seed, count)
    of_part = np.random.default_rng(seed).integers(0, 2, count)
    left, right = (sketch_of(taken(rows, np.flatnonzero(of_part == part))) for part in (0, 1))
    left.merge(right)
    left._check()
    assert left.to_bytes() == sketch_of(rows).to_bytes()


@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 21))
def test_a_sketch_comes_back_from_its_bytes_and_goes_on(seed: int, count: int, low: int) -> None:
    rows, more = some_rows(seed, count), some_rows(seed + 1, 100, seconds=30)
    sketch = sketch_of(rows, low=low, budget_bytes=5_000)
    data = sketch.to_bytes()
    back = GroupSketch.from_bytes(data)
    back._check()
    assert back.to_bytes() == data
    assert back.statistics(20 * S) == sketch.statistics(20 * S)
    for one in (sketch, back):
        one.add(more, 0, 100)
        one.expire(15 * S)
        one._check()
    assert back.to_bytes() == sketch.to_bytes()


def test_bytes_of_another_version_are_refused() -> None:
    data = bytearray(sketch_of(some_rows(1, 50)).to_bytes())
    data[4] = 2
    with pytest.raises(LogError, match=r"version 2, this release reads 1; start .* or delete it"):
        GroupSketch.from_bytes(bytes(data))


@pytest.mark.parametrize("length", [0, 3, 40, 150, 2_000, -1])
def test_bytes_that_were_cut_off_are_refused(length: int) -> None:
    data = sketch_of(some_rows(1, 50)).to_bytes()
    with pytest.raises(LogError, match="damaged"):
        GroupSketch.from_bytes(data[:length])


@given(st.integers(0, 10**9), st.integers(1, 255))
def test_bytes_with_one_wrong_byte_are_refused(place: int, wrong: int) -> None:
    data = bytearray(sketch_of(some_rows(1, 50)).to_bytes())
    data[place % len(data)] ^= wrong
    with pytest.raises(LogError):
        GroupSketch.from_bytes(bytes(data))


@pytest.mark.parametrize(("field", "value"), [(0, 4), (1, 0), (4, 17), (5, 32), (7, 3), (7, -1), (8, 61), (8, 9)])
def test_a_header_that_does_not_fit_the_rest_is_refused_although_its_checksum_does(field: int, value: int) -> None:
    data = bytearray(sketch_of(some_rows(1, 50)).to_bytes())
    struct.pack_into("<q", data, 8 + 8 * field, value)
    header = 8 + 8 * (7 + 7 + 2)
    struct.pack_into("<I", data, header, zlib.crc32(data[header + 4 :], zlib.crc32(data[:header])))
    with pytest.raises(LogError, match="damaged"):
        GroupSketch.from_bytes(bytes(data))


def test_sketches_of_other_settings_are_not_merged() -> None:
    with pytest.raises(DefinitionError, match="bitmaps=64"):
        sketch_of(some_rows(1, 50)).merge(GroupSketch(3, 2, 20 * S, S, columns=16))


def test_statistics_tell_what_is_true_of_repeated_objects() -> None:
    rows = in_order(repeated_objects(5, 40_000, streams=3, objects=3_000, rows_per_second=1_000.0, disorder_us=0))
    sketch = GroupSketch(3, 1, 40 * S, S, budget_bytes=64 << 10)
    sketch.add(rows, 0, 40_000)
    found = sketch.statistics(40 * S)
    assert (found.at_us, found.window_us) == (40 * S, 40 * S)
    for stream, told in enumerate(found.streams):
        own, counts = np.unique(rows.id_hash[rows.stream == stream], return_counts=True)
        assert told.cardinality.value == pytest.approx(len(own), abs=3 * told.cardinality.error)
        assert told.second_moment.value == pytest.approx(int((counts**2).sum()), abs=3 * told.second_moment.error)
        assert told.repetition_bound >= counts.max()
        assert len(told.value_quantiles) == 1
        assert told.value_quantiles[0] == pytest.approx((0.05, 0.25, 0.5, 0.75, 0.95), abs=0.15)
    for pair in found.pairs:
        assert found.pair(pair.given, pair.stream) is pair
        assert pair.appearance is not None
        assert pair.appearance.probability == pytest.approx(0.988, abs=0.05)
        assert pair.lag_us[0] < 0 < pair.lag_us[2]
    with pytest.raises(KeyError):
        found.pair(1, 1)


def test_an_empty_sketch_knows_nothing_and_says_so() -> None:
    found = GroupSketch(2, 1, 20 * S, S).statistics(20 * S)
    assert isinstance(found, GroupStatistics)
    assert [one.cardinality.value for one in found.streams] == [0.0, 0.0]
    assert [one.value_quantiles for one in found.streams] == [(), ()]
    assert [(one.appearance, one.lag_us) for one in found.pairs] == [(None, ()), (None, ())]


def test_an_observation_older_than_the_window_does_not_count() -> None:
    rows = some_rows(6, 2_000, objects=500)
    sketch = sketch_of(rows)
    sketch.expire(20 * S)
    found = sketch.statistics(40 * S)
    assert [one.cardinality.value for one in found.streams] == [0.0] * 3
    assert [one.second_moment.value for one in found.streams] == [0.0] * 3
    assert found.sampled_objects == 0


def together(rows: Rows, given: int, stream: int, from_us: int, to_us: int) -> float:
    """Return the share of the objects seen on `given` within a time that ever come on `stream`."""
    inside = (rows.stream == given) & (rows.event_time_us >= from_us) & (rows.event_time_us < to_us)
    return float(np.isin(rows.id_hash[inside], rows.id_hash[rows.stream == stream]).mean())


@pytest.mark.parametrize(
    ("alpha", "kilobytes", "least", "most"),
    [(0.1, 5, 0.03, 0.06), (0.5, 5, 0.02, 0.04), (0.1, 20, 0.005, 0.025), (0.5, 20, 0.005, 0.025)],
)
def test_appearances_err_as_they_say_and_the_less_the_more_bytes_they_have(
    alpha: float, kilobytes: int, least: float, most: float
) -> None:
    window, errors, told = 10 * S, [], []
    for seed in range(3):
        rows = in_order(distinct_objects(seed, 60_000, streams=2, alpha=alpha, recent=20))
        sketch = GroupSketch(2, 1, window, S, budget_bytes=2 * kilobytes << 10)
        truth = {pair: together(rows, *pair, 10 * S, 50 * S) for pair in ((0, 1), (1, 0))}
        at = 0
        for second in range(1, 51):
            last = int(np.searchsorted(rows.event_time_us, second * S))
            sketch.add(rows, at, last)
            sketch.expire(second * S - window)
            at = last
            if second % 10 == 0 and second > 10:
                for pair in sketch.statistics(second * S).pairs:
                    assert pair.appearance is not None
                    errors.append(pair.appearance.probability - truth[pair.given, pair.stream])
                    told.append(pair.appearance.error)
    found = float(np.sqrt(np.mean(np.square(errors))))
    assert least <= found <= most
    # So few of them, and those not independent, scatter by a fifth and more.
    assert found <= 1.5 * float(np.sqrt(np.mean(np.square(told))))
