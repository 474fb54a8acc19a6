"""Which rows are used and when they count: by example, reason after reason."""

import math

import numpy as np
import pytest

from skyband.model.duration import FIRST_EVENT_US, LAST_EVENT_US, MAX_TIME_US, MIN_TIME_US
from skyband.model.source_rows import Reason
from skyband.model.stream import Late
from tests.align.factory import OBJECTS, S, add, aligner, stream
from tests.align.reference import Row


def test_the_worked_example_gets_its_release_times_and_late_rows() -> None:
    temperature, vibration = stream(max_delay_us=2 * S), stream("vibration")
    its = aligner(temperature, vibration)
    table = [(1, b"m1", 80), (2, b"m2", 60), (9, b"m3", 20), (6, b"m4", 95), (12, b"m5", 50)]
    add(its, [Row(i, t * S, who, (float(value),)) for i, (t, who, value) in enumerate(table)])
    table = [(3, b"m2", 9), (4, b"m1", 2), (10, b"m3", 4), (8, b"m4", 1)]
    add(its, [Row(i, t * S, who, (float(value),)) for i, (t, who, value) in enumerate(table)], (1, 0))
    (batch,) = its.flush(5)
    assert (batch.release_time_us // S).tolist() == [1, 2, 9, 7, 12, 3, 4, 10, 10]
    assert batch.event_time_us.tolist() == [t * S for t in (1, 2, 9, 6, 12, 3, 4, 10, 8)]
    assert [(s.stream, s.rows, s.watermark_us // S, s.newest_us // S) for s in batch.sections] == [
        (0, 5, 10, 12),
        (1, 4, 10, 10),
    ]
    assert [(c.accepted, c.late) for c in its.counts()] == [(5, 1), (4, 1)]
    assert batch.written_us == 5


def test_a_stream_that_drops_late_rows_sends_them_to_dead_letters() -> None:
    its = aligner(stream(late=Late.DROP))
    add(its, [Row(0, 5), Row(1, 4), Row(2, 5)])
    (batch,) = its.flush(0)
    assert batch.offset.tolist() == [0, 2]
    (letter,) = its.drain_dead_letters()
    assert (letter.offset, letter.reason, letter.raw) == (1, Reason.LATE, b"raw 1")
    assert "watermark" in letter.error
    assert its.drain_dead_letters() == []


@pytest.mark.parametrize(
    ("row", "reason", "words"),
    [
        (Row(0, 1, values=(1.0, 1.0), given=Reason.UNDECODABLE), Reason.UNDECODABLE, "row 0 cannot be decoded"),
        (Row(0, 1, values=(1.0, 1.0), given=Reason.UNKNOWN_SCHEMA), Reason.UNKNOWN_SCHEMA, "row 0 cannot"),
        (Row(0, MAX_TIME_US, values=(1.0, 1.0)), Reason.BAD_TIME, "beyond the time line"),
        (Row(0, -(2**63), values=(1.0, 1.0)), Reason.BAD_TIME, "beyond the time line"),
        (Row(0, FIRST_EVENT_US, values=(1.0, 1.0)), Reason.BAD_TIME, "beyond the time line"),
        (Row(0, LAST_EVENT_US, values=(1.0, 1.0)), Reason.BAD_TIME, "beyond the time line"),
        (Row(0, 1, b"", (1.0, 1.0)), Reason.MISSING_ID, "object_id is missing or empty"),
        (Row(0, 1, values=(6.0, math.nan)), Reason.NOT_FINITE, "y is nan: not a finite number"),
        (Row(0, 1, values=(1.0, -math.inf)), Reason.NOT_FINITE, "y is -inf: not a finite number"),
        (Row(0, 1, values=(5.5, 99.0)), Reason.OUT_OF_RANGE, "x is 5.5, outside [-5, 5]"),
        (
            Row(0, 6, values=(1.0, 1.0), timestamp_us=1),
            Reason.FUTURE,
            "5us past the record's own time; max_ahead is 4us",
        ),
        (Row(0, 6, b"", (9.0, math.nan), timestamp_us=1), Reason.MISSING_ID, "object_id"),
    ],
)
def test_a_row_is_rejected_with_the_least_reason_and_an_error_in_words(row: Row, reason: Reason, words: str) -> None:
    its = aligner(OBJECTS)
    add(its, [row])
    (batch,) = its.flush(0)
    (letter,) = its.drain_dead_letters()
    assert (letter.stream, letter.topic, letter.partition, letter.offset) == ("points", "points", 0, 0)
    assert (letter.reason, letter.raw) == (reason, b"raw 0")
    assert words in letter.error
    assert batch.rows == 0
    assert batch.sections[0].to_offset == 1
    assert its.counts()[0].rejected == {reason: 1}
    assert its.counts()[0].records == 1


def test_a_value_out_of_range_is_clamped_where_the_attribute_says_so_and_minus_zero_is_zero() -> None:
    its = aligner(OBJECTS)
    values = [(-0.0, 8.0), (-5.0, -3.0), (5.0, -0.0)]
    add(its, [Row(i, 1, values=pair) for i, pair in enumerate(values)])
    (batch,) = its.flush(0)
    assert batch.values.tolist() == [[0.0, 7.0], [-5.0, 0.0], [5.0, 0.0]]
    assert not np.signbit(batch.values[batch.values == 0.0]).any()


def test_a_row_rejected_for_its_content_moves_the_watermark_but_a_future_one_does_not() -> None:
    its = aligner(OBJECTS)
    add(its, [Row(0, 50, b"", (1.0, 1.0), timestamp_us=50), Row(1, 1000, values=(1.0, 1.0), timestamp_us=50)])
    (section,) = its.flush(0)[0].sections
    assert section.watermark_us == 47
    assert section.newest_us == MIN_TIME_US


def test_a_record_without_a_time_of_its_own_is_never_too_far_ahead() -> None:
    its = aligner(OBJECTS)
    add(its, [Row(0, 1, values=(1.0, 1.0), timestamp_us=1), Row(1, 10**9, values=(1.0, 1.0))])
    assert its.flush(0)[0].rows == 2


def test_unused_cells_of_a_wider_group_are_zero() -> None:
    its = aligner(stream(), OBJECTS)
    add(its, [Row(0, 1, values=(2.0,))])
    assert its.flush(0)[0].values.tolist() == [[2.0, 0.0]]
