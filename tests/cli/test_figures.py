"""Numbers and times as people read them."""

import re

import pytest

from skyband.cli.figures import as_time, bytes_of, count, end_of, joined, score


def test_numbers_have_separators_and_a_noun_that_fits() -> None:
    assert count(0, "row") == "0 rows"
    assert count(1, "row") == "1 row"
    assert count(1_204, "row") == "1,204 rows"
    assert count(2, "query", "queries") == "2 queries"


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (12_345_678, "12.3 MB"), (5e9, "5.0 GB"), (5e15, "5000.0 TB")],
)
def test_sizes_have_units(size: float, shown: str) -> None:
    assert bytes_of(size) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(56.0, "56"), (0.5, "0.5"), (1 / 3, "0.333333"), (-2.0, "-2"), (1e300, "1e+300")]
)
def test_scores_show_what_orders_them(value: float, shown: str) -> None:
    assert score(value) == shown


def test_times_are_local_and_have_their_offset() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", as_time(1_372_669_140_000_000))
    assert as_time(2**62) == f"{2**62:,} us"


def test_a_count_window_ends_at_a_row() -> None:
    assert end_of(1_204, in_rows=True) == "row 1,204"


def test_words_are_joined_as_in_a_sentence() -> None:
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b or c"
