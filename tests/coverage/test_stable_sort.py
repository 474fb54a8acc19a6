"""Slots in total order: release time, then rank of the source, then as they stood."""

import numpy as np
import pytest

from skyband.coverage.stable_sort import sort_slots

SPREADS = {"ties": 3, "one pass": 2_000, "two passes": 1_000_000, "decades": 10**15}


def check(release: np.ndarray, source: np.ndarray, rank: np.ndarray, slots: np.ndarray) -> None:
    expected = sorted(slots.tolist(), key=lambda slot: (release[slot], rank[source[slot]]))
    sort_slots(slots, release, source, rank)
    assert slots.tolist() == expected


@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS.keys())
@pytest.mark.parametrize("n", [0, 1, 2, 47, 48, 49, 500, 2047, 2048, 5000])
def test_slots_are_sorted_by_time_then_rank_then_place(n: int, spread: int) -> None:
    rng = np.random.default_rng(n + spread)
    release = rng.integers(-spread, spread, n)
    source = rng.integers(0, 5, n).astype(np.int32)
    check(release, source, np.array([3, 0, 4, 1, 2]), rng.permutation(n))


def test_times_at_the_ends_of_the_time_line_are_sorted_by_rank_too() -> None:
    rng = np.random.default_rng(1)
    release = rng.choice([-(2**62) + 1, -1, 0, 1, 2**62 - 1], 300)
    source = rng.integers(0, 3000, 300).astype(np.int32)
    check(release, source, rng.permutation(3000), rng.permutation(300))


def test_what_is_sorted_by_time_alone_is_sorted_by_rank_where_times_are_equal() -> None:
    release = np.repeat(np.arange(40), 3)
    source = np.tile(np.array([2, 0, 1], np.int32), 40)
    check(release, source, np.arange(3), np.arange(120))
