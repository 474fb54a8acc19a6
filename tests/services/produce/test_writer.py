"""Rows in order of time, at their pace, under their keys; what cannot be used is counted."""

import json
import threading
from collections.abc import Iterator

import pytest

from services.produce.interleave import Row, interleaved
from services.produce.pace import Pace
from services.produce.writer import Written, write_rows
from skyband.errors import LogError
from skyband.files.definitions import load_definitions
from skyband.files.rows import open_rows

GROUP = load_definitions("""\
group:
  name: factory
  retention: 1m
  streams:
    - {name: heat, format: json, topic: factory.heat}
    - {name: shake, format: json}
""").group
S = 1_000_000


def rows_of(*rows: tuple[str, str, object, object]) -> Iterator[Row]:
    return interleaved(open_rows(GROUP, [rows_as_dicts(row) for row in rows]))


def rows_as_dicts(row: tuple[str, str, object, object]) -> dict[str, object]:
    return dict(zip(("stream", "object_id", "event_time", "value"), row, strict=True))


class Sent:
    """Takes what is sent; fails with `error` if there is one."""

    def __init__(self, error: LogError | None = None) -> None:
        self.records: list[tuple[str, bytes, dict[str, object]]] = []
        self.error = error

    def write(self, topic: str, key: bytes, value: bytes) -> None:
        self.records.append((topic, key, json.loads(value)))

    def serve(self, timeout_s: float) -> None:
        if self.error is not None:
            raise self.error


class Hand:
    """A clock, and an event that is waited for, which moves it."""

    def __init__(self) -> None:
        self.now, self.waits, self.is_over = 0.0, [], False

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        return self.is_over

    def is_set(self) -> bool:
        return self.is_over


def write(rows: Iterator[Row], sent: Sent, pace: Pace | None = None, stop: object = None) -> Written:
    written = Written()
    write_rows(sent, GROUP, rows, pace or Pace(), stop or threading.Event(), written)  # type: ignore[arg-type]
    return written


def test_streams_advance_together_whatever_the_order_of_the_file() -> None:
    sent = Sent()
    written = write(
        rows_of(
            ("heat", "a", 1 * S, 1.0),
            ("heat", "b", 5 * S, 2.0),
            ("heat", "late", 2 * S, 3.0),
            ("heat", "c", 9 * S, 4.0),
            ("shake", "a", 3 * S, 5.0),
            ("shake", "b", 6 * S, 6.0),
        ),
        sent,
    )
    # What comes late in its stream goes where it came.
    assert [key.decode() for _, key, _ in sent.records] == ["a", "a", "b", "late", "b", "c"]
    assert sent.records[0] == ("factory.heat", b"a", {"object_id": "a", "event_time": S, "value": 1.0})
    assert sent.records[1][0] == "shake"
    assert (written.rows, written.skipped, written.event_us) == (6, 0, 9 * S)
    assert written.by_stream == {"heat": 4, "shake": 2}


def test_rows_that_cannot_be_used_are_counted_and_not_sent() -> None:
    sent = Sent()
    written = write(
        rows_of(
            ("heat", "a", 1 * S, 1.0),
            ("heat", "", 2 * S, 2.0),
            ("heat", "b", "yesterday", 3.0),
            ("heat", "c", 3 * S, float("nan")),
            ("heat", "d", 4 * S, float("inf")),
            ("heat", "e", 5 * S, "much"),
            ("heat", "größe", 6 * S, 7.0),
        ),
        sent,
    )
    assert [key.decode() for _, key, _ in sent.records] == ["a", "größe"]
    assert (written.rows, written.skipped) == (2, 5)


def test_event_time_passes_at_the_speed_that_is_asked() -> None:
    hand = Hand()
    rows = rows_of(*(("heat", "a", second * S, 1.0) for second in (10, 11, 11, 14)))
    write(rows, Sent(), Pace(speed=10.0, now=lambda: hand.now), hand)
    assert hand.now == pytest.approx(0.4)


def test_rows_are_not_sent_faster_than_the_rate() -> None:
    hand = Hand()
    rows = rows_of(*(("heat", "a", S, 1.0) for _ in range(21)))
    write(rows, Sent(), Pace(rate=10.0, now=lambda: hand.now), hand)
    assert hand.now == pytest.approx(2.0)


def test_while_it_waits_it_hears_of_failures() -> None:
    hand = Hand()
    rows = rows_of(("heat", "a", S, 1.0), ("heat", "a", 100 * S, 1.0))
    with pytest.raises(LogError, match="the broker"):
        write(rows, Sent(LogError("the broker is gone")), Pace(speed=1.0, now=lambda: hand.now), hand)
    assert hand.now <= 0.5


def test_it_ends_when_it_is_told_to() -> None:
    hand, sent = Hand(), Sent()
    rows = rows_of(("heat", "a", S, 1.0), ("heat", "a", 100 * S, 1.0))

    def stop_first(seconds: float) -> bool:
        hand.is_over = True
        return True

    hand.wait = stop_first  # type: ignore[method-assign]
    assert write(rows, sent, Pace(speed=1.0, now=lambda: hand.now), hand).rows == 1
