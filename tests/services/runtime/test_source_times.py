"""Times of source records mean what they mean in files, in every unit."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.source_times import (
    LOGICAL_SCALES,
    MAX_REAL_US,
    real_time,
    real_times,
    text_times,
    whole_time,
    whole_times,
)
from skyband.files.times import event_times

SCALES = [-1_000, 1, 1_000, 1_000_000, 86_400_000_000]
INT64 = st.integers(-(2**63), 2**63 - 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.lists(INT64, max_size=20), st.sampled_from([0, *SCALES]))
def test_whole_numbers_are_exact_one_by_one_and_in_bulk(counts: list[int], scale: int) -> None:
    times, bad = whole_times(np.array(counts, np.int64), scale)
    for count, time_us, is_bad in zip(counts, times.tolist(), bad.tolist(), strict=True):
        right = count // -scale if scale < 0 else count * scale
        fits = scale < 0 or (scale > 0 and abs(right) < 2**63)
        assert is_bad is not fits
        assert whole_time(count, scale) == (right if fits else None)
        assert is_bad or time_us == right


@given(
    st.lists(st.one_of(st.floats(), st.floats(-1e7, 1e7), INT64.map(float)), max_size=20), st.sampled_from([0, *SCALES])
)
def test_fractional_numbers_are_whole_microseconds_or_the_nearest_of_longer_units(
    counts: list[float], scale: int
) -> None:
    times, bad = real_times(np.array(counts, np.float64), scale)
    for count, time_us, is_bad in zip(counts, times.tolist(), bad.tolist(), strict=True):
        assert (None if is_bad else time_us) == real_time(count, scale)
        if is_bad:
            continue
        exact = Fraction(count) * scale
        # The product of two floats is off by half a place at most.
        assert abs(time_us - exact) <= (0 if scale == 1 else Fraction(1, 2) + abs(exact) * Fraction(1, 2**53))


@given(st.integers(-(2**50), 2**50), st.sampled_from([1_000, 1_000_000]))
def test_a_microsecond_written_as_a_fraction_of_a_longer_unit_is_found_again(time_us: int, scale: int) -> None:
    assert real_time(time_us / scale, scale) == time_us


@pytest.mark.parametrize(
    ("count", "scale", "time_us"),
    [
        (1690000000.1, 1_000_000, 1_690_000_000_100_000),
        (-0.0000005, 1_000_000, 0),
        (-0.0000015, 1_000_000, -2),
        (0.5, 1, None),
        (float(MAX_REAL_US), 1, MAX_REAL_US),
        (float(MAX_REAL_US + 2), 1, None),
        (1e300, 1_000_000, None),
        (float("inf"), 1_000, None),
        (float("nan"), 1_000, None),
        (1.0, -1_000, None),
    ],
)
def test_fractional_times_by_example(count: float, scale: int, time_us: int | None) -> None:
    assert real_time(count, scale) == time_us


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001


@st.composite
def iso_texts(draw: st.DrawFn) -> tuple[str, int]:
    """A moment in some spelling of ISO 8601, and the microsecond that it is."""
    moment = draw(MOMENTS)
    minutes = draw(st.sampled_from([None, 0, 90, -330, 839]))
    digits = draw(st.sampled_from([0, 3, 6]))
    moment = moment.replace(microsecond=moment.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits) if digits else 0)
    shown = moment if minutes is None else moment + timedelta(minutes=minutes)
    text = shown.strftime("%H:%M:%S") + (f".{shown.microsecond:06d}"[: digits + 1] if digits else "")
    text = f"{shown.year:04d}-{shown.month:02d}-{shown.day:02d}{draw(st.sampled_from('T '))}{text}"
    if minutes is not None:
        sign, size = "-" if minutes < 0 else "+", abs(minutes)
        text += draw(
            st.sampled_from([f"{sign}{size // 60:02d}:{size % 60:02d}", f"{sign}{size // 60:02d}{size % 60:02d}"])
        )
    else:
        text += draw(st.sampled_from(["", "Z"]))
    return text, (moment - EPOCH) // timedelta(microseconds=1)


@given(st.lists(iso_texts(), max_size=6), st.sampled_from([0, 1, 1_000, 1_000_000]))
def test_iso_text_is_the_same_moment_in_every_unit(cases: list[tuple[str, int]], scale: int) -> None:
    times, bad = text_times([text for text, _ in cases], scale)
    assert not bad.any()
    assert times.tolist() == [time_us for _, time_us in cases]


@given(st.lists(st.one_of(iso_texts().map(lambda case: case[0]), INT64.map(str), st.text(max_size=8)), max_size=8))
def test_text_is_in_microseconds_what_it_is_in_a_file(texts: list[str]) -> None:
    sayable = [text for text in texts if not any("\ud800" <= letter <= "\udfff" for letter in text)]
    times, bad = text_times(sayable, 1)
    right, unfit = event_times(pa.array(sayable, pa.string()))
    assert bad.tolist() == (np.zeros(len(sayable), bool) if unfit is None else unfit).tolist()
    assert times[~bad].tolist() == right[~bad].tolist()


@pytest.mark.parametrize(
    ("text", "scale", "time_us"),
    [
        ("15", 1_000, 15_000),
        (" -15 ", 1_000_000, -15_000_000),
        ("+2.5", 1_000_000, 2_500_000),
        ("1e3", 1_000, 1_000_000),
        ("20240101", 1_000, 20_240_101_000),
        ("20240101", 0, None),
        ("2024-01-01", 0, 1_704_067_200_000_000),
        ("9" * 18, 1_000_000, None),
        ("9" * 50, 1_000, None),
        ("0x10", 1_000, None),
        ("inf", 1_000, None),
        ("", 1_000, None),
        ("12:00", 0, None),
        ("2024-02-30", 0, None),
        ("\ud800", 0, None),
        ("２", 1_000, None),
    ],
)
def test_text_by_example(text: str, scale: int, time_us: int | None) -> None:
    times, bad = text_times([text], scale)
    assert (None if bad[0] else int(times[0])) == time_us


def test_logical_types_of_times_have_scales_that_times_know() -> None:
    assert set(LOGICAL_SCALES.values()) <= set(SCALES)
