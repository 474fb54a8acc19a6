"""A letter as two lines, and as a line of JSON."""

import json

import pytest

from services.dead_letters.reader import Letter
from services.dead_letters.show import as_json, lines, preview
from skyband.log.record_log import Position
from skyband.model.source_rows import DeadLetter, Reason


def letter(raw: bytes) -> Letter:
    found = DeadLetter("heat", "factory.heat", 2, 18_220, Reason.OUT_OF_RANGE, "heat is 8000.0, outside [0, 100]", raw)
    return Letter(1_782_907_200_123_000, Position("dead-letters", 0), 7, found)


def test_it_says_when_where_why_and_what(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = lines(letter(b'{"object_id": "m1", "value": 8000}')).plain.splitlines()
    assert first.split("  ", 1)[1] == ("heat  factory.heat/2 at 18,220  out_of_range: heat is 8000.0, outside [0, 100]")
    assert second == '    34 B  {"object_id": "m1", "value": 8000}'


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"", "(no value)"),
        (b"abc", "abc"),
        (b"x" * 200, "x" * 79 + "…"),
        (b"\x00\x01\xff", "00 01 ff"),
        (b"two\nlines", "74 77 6f 0a 6c 69 6e 65 73"),
        ("größe".encode(), "größe"),
    ],
)
def test_bytes_are_shown_on_one_line(raw: bytes, shown: str) -> None:
    assert preview(raw) == shown


def test_long_bytes_are_cut() -> None:
    shown = preview(bytes(200))
    assert shown == "00 " * 26 + "…"


def test_a_program_gets_all_of_it() -> None:
    found = json.loads(as_json(letter(b"\xff\xfe")))
    assert found == {
        "time": "2026-07-01T12:00:00.123000+00:00",
        "stream": "heat",
        "topic": "factory.heat",
        "partition": 2,
        "offset": 18220,
        "reason": "out_of_range",
        "error": "heat is 8000.0, outside [0, 100]",
        "value_base64": "//4=",
    }
    assert json.loads(as_json(letter(b"text")))["value"] == "text"
