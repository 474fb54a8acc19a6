"""What is committed beside an offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.align.notes import note_of, start_of
from skyband.align.source import SourceStart
from skyband.errors import LogError
from skyband.log.record_log import Committed, Position
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US

HERE = Position("temperatures", 3)
TIMES = st.integers(MIN_TIME_US, MAX_TIME_US)


@given(start=st.builds(SourceStart, st.integers(0, 2**63 - 1), TIMES, TIMES))
def test_a_start_comes_back_from_its_note_which_is_short(start: SourceStart) -> None:
    note = note_of(start)
    assert start_of(HERE, Committed(start.offset, note)) == start
    assert len(note) <= 1_000


def test_without_a_note_no_time_is_known() -> None:
    assert start_of(HERE, Committed(7)) == SourceStart(7, MIN_TIME_US, MIN_TIME_US)


@pytest.mark.parametrize(
    "note",
    [
        "x",
        "[]",
        "{}",
        '{"watermark_us":1e999,"newest_us":1}',
        '{"watermark_us":1}',
        '{"watermark_us":null,"newest_us":1}',
        "7",
    ],
)
def test_a_note_of_somebody_else_is_refused(note: str) -> None:
    with pytest.raises(LogError, match=r"topic 'temperatures', partition 3: the note .* does not say its times"):
        start_of(HERE, Committed(7, note))
