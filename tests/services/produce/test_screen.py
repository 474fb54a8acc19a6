"""What a person and a program are told of a run."""

import json

import pytest

from services.produce.screen import ProduceScreen
from services.produce.writer import Written


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def written() -> Written:
    return Written(41_300, 3, 1_782_907_200_000_000, {"heat": 41_000, "shake": 300})


def test_a_program_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    screen = ProduceScreen(written(), "auto", clock)
    clock.now = 12.5
    screen.summarize(not_stored=0)
    assert json.loads(capsys.readouterr().out) == {
        "event": "rows sent",
        "rows": 41_300,
        "skipped": 3,
        "not_stored": 0,
        "seconds": 12.5,
        "streams": {"heat": 41_000, "shake": 300},
        "event_time": 1_782_907_200_000_000,
    }


def test_a_person_gets_sentences_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    screen = ProduceScreen(written(), "table", clock)
    clock.now = 10.0
    screen.summarize(not_stored=2)
    found = capsys.readouterr()
    lines = found.err.splitlines()
    assert found.out == ""
    assert lines[0] == "sent     41,300 rows in 10.0 s (4,130 rows/s)"
    assert lines[1:3] == ["         heat 41,000", "         shake 300"]
    assert lines[-2:] == [
        "skipped  3 rows without id, time or a finite value",
        "lost     at least 2 records: see below",
    ]


def test_the_line_on_a_terminal_tells_the_rate_of_the_last_second() -> None:
    clock, so_far = Clock(), Written()
    screen = ProduceScreen(so_far, "table", clock)
    assert screen.line().plain == "0 rows · 0 rows/s"
    clock.now, so_far.rows = 1.0, 500
    assert screen.line().plain == "500 rows · 500 rows/s"
    clock.now, so_far.rows, so_far.skipped = 2.0, 700, 1
    assert screen.line().plain == "700 rows · 200 rows/s · 1 skipped"
