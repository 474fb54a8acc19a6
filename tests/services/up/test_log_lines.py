"""What programs write, as lines for a person."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.up.log_lines import LogTail, as_line, line_of

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def written(**event: object) -> str:
    return json.dumps({"timestamp": "2026-01-02T12:00:00.123456Z", "service": "engine", "level": "info"} | event)


def test_an_event_is_a_line_with_local_time_name_and_fields() -> None:
    line = line_of("engine", written(event="shard restored", group="flights", shard=0, parts=["a"], why="no rows yet"))
    local = f"{NOON.astimezone():%H:%M:%S}"
    assert line == f"{local}  engine    shard restored  group=flights  shard=0  parts=[\"a\"]  why='no rows yet'"


@pytest.mark.parametrize("level", ["warning", "error"])
def test_what_is_bad_is_marked(level: str) -> None:
    assert (line_of("engine", written(event="stage failed", level=level)) or "").endswith(f"{level}: stage failed")


@pytest.mark.parametrize(
    "line", ["Traceback (most recent call last):", "{}", "[1]", '"text"', "{", written(event="x", level="debug")]
)
def test_what_is_no_event_or_for_nobody_is_not_shown(line: str) -> None:
    assert line_of("engine", line) is None


def test_a_trace_is_left_to_the_log() -> None:
    line = line_of("engine", written(event="stage failed", level="error", exception="Traceback\n  …"))
    assert line is not None
    assert "Traceback" not in line


def test_an_event_without_a_time_gets_one() -> None:
    assert line_of("engine", json.dumps({"event": "ready"})) is not None


def test_names_stand_below_each_other() -> None:
    lines = [as_line(NOON, name, "ready") for name in ("align", "control")]
    assert len({line.index("ready") for line in lines}) == 1


def test_a_tail_reads_whole_lines_that_were_added(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n")
    tail = LogTail(path)
    assert tail.read() == []
    with path.open("a") as file:
        file.write("one\n\ntw")
        file.flush()
        assert tail.read() == ["one"]
        file.write("o\n")
        file.flush()
        assert tail.read() == ["two"]
        file.write("thr\xe9e\n")
    assert tail.read() == ["thrée"]
    assert tail.last == "thrée"
