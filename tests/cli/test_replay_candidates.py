"""``skyband replay --candidates``: what could still happen, as lines and as a table; else nothing of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Answer
from tests.cli.test_replay import DEFINITIONS, EXPECTED, ROWS, written

Call = Callable[..., Answer]


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    file = tmp_path / "factory.yaml"
    file.write_text(DEFINITIONS.replace("lo: 0, hi: 100", "lo: 0, hi: 100, repeat_after: never"))
    return file


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return written(tmp_path / "rows.jsonl", *ROWS)


def test_candidates_are_told_of_queries_that_ask_and_the_plain_output_stays(
    call: Call, definitions: Path, rows: Path
) -> None:
    asked = ("replay", "--definitions", definitions, "--input", rows)
    assert call(*asked).out == EXPECTED
    answer = call(*asked, "--candidates", 3, "--check")
    assert "checked   2 evaluations against brute force: all equal" in answer.err
    last = json.loads(answer.out.splitlines()[-1])
    assert list(last) == ["query", "window_start", "window_end", "rows", "candidates"]
    assert last["rows"] == [
        {
            **{"rank": 1, "object_id": "m1", "score": 80.0, "attributes": {"temperature": 80.0}},
            **{"best_score": 90.0, "safe_until": 6_000_000},
        },
        {
            **{"rank": 2, "object_id": "m2", "score": 9.5, "attributes": {"vibration": 9.5}},
            **{"best_score": 110.0, "safe_until": None},
        },
    ]
    assert last["candidates"] == [
        {"object_id": "mé", "score": 0.1, "best_score": 10.1, "lacks": ["vibration"], "until": 8_000_000}
    ]


def test_a_table_shows_what_could_happen(call: Call, definitions: Path, rows: Path) -> None:
    answer = call("replay", "--definitions", definitions, "--input", rows, "--candidates", 1, "-o", "table")
    lines = [line.rstrip() for line in answer.out.splitlines()]
    assert [line.split() for line in lines[2:5]] == [
        ["#", "object", "score", "could", "reach", "temperature", "vibration"],
        ["1", "m1", "80", "90", "80", "–"],
        ["2", "m2", "9.5", "110", "–", "9.5"],
    ]
    assert lines[5].split() == ["could", "still", "come", "in", "now", "could", "reach", "lacks", "until"]
    assert lines[6].split()[:4] == ["mé", "0.1", "10.1", "vibration"]


def test_more_candidates_than_are_told_of_are_refused(call: Call, definitions: Path, rows: Path) -> None:
    answer = call("replay", "--definitions", definitions, "--input", rows, "--candidates", 1_001)
    assert answer.code == 2
    assert "--candidates 1001: candidates must be from 0 to 1,000, not 1,001" in answer.err
