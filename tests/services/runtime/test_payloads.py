"""Values in columns are the values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.payloads import Payloads

VALUES = st.lists(st.none() | st.binary(max_size=5), max_size=12)


@given(VALUES)
def test_values_come_back_one_by_one_and_all_at_once(values: list[bytes | None]) -> None:
    its = Payloads.of(values)
    assert list(its) == values
    assert [its[place] for place in range(len(its))] == values
    assert [its[place - len(its)] for place in range(len(its))] == values


@given(VALUES, st.data())
def test_a_slice_and_a_choice_hold_what_a_list_of_the_same_would(
    values: list[bytes | None], data: st.DataObject
) -> None:
    its = Payloads.of(values)
    bounds = st.none() | st.integers(-15, 15)
    cut = slice(data.draw(bounds), data.draw(bounds), data.draw(st.sampled_from((None, 1, 2, -1))))
    assert list(its[cut]) == values[cut]
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=9)) if values else []
    assert list(its.at(np.array(places, np.int64))) == [values[place] for place in places]


def test_there_is_nothing_beyond_the_end() -> None:
    with pytest.raises(IndexError):
        Payloads.of([b"a"])[1]
