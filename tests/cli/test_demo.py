"""``skyband demo``: its lines, its screen, its end."""

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from skyband.cli.demo_picture import record
from skyband.cli.demo_screen import Gauges, day_line, frame_view, local_time, title
from skyband.errors import DefinitionError
from skyband.local.demo import Demo, Flight, Frame, Line, read_rows
from tests.cli.conftest import ROOT, START, Answer

Call = Callable[..., Answer]

LAST = "4,468 evaluations checked against brute force: all equal."
END_US = 1_373_496_000_000_000  # 2013-07-10 18:40 in New York
GAUGES = Gauges(checked=1_380, of=4_468, late_rows=0, rows_per_s=41_300.0, speed=9_800.0, remaining_s=21.4)
FRAME = Frame(
    number=1_380,
    window_start=END_US - 21_600_000_000,
    window_end=END_US,
    flights=1_204,
    in_the_air=312,
    lines=(
        Line(1, Flight(1_133.0, "EV5711-JFK-IAD-0710", 363.0, 385.0), 0, None),
        Line(2, Flight(947.0, "WN3297-LGA-BNA-0710", 321.0, 313.0), 3, None),
        Line(3, Flight(272.0, "DL1947-LGA-ATL-0710", 272.0, None), None, 4_272.0),
        Line(4, Flight(200.0, "DL1948-LGA-ATL-0710", None, 100.0), -1, None),
    ),
)


def rendered(width: int) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(title(width))
    console.print(frame_view(FRAME, GAUGES, width))
    return console.export_text().splitlines()


# --- the screen


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_frame_fits_the_screen_and_nothing_is_cut(width: int) -> None:
    lines = rendered(width)
    text = "\n".join(lines)
    assert max(len(line.rstrip()) for line in lines) <= width
    for words in (
        "07-10 18:40 ▸ window 12:40 – 18:40",
        "1,204 flights in the window",
        "312 still in the air",
        "0 late rows",
        "41,300 rows/s",
        "score = departure_delay + 2*arrival_delay",
        "event time ×9,800",
        "ends in 21 s",
        "1,380 of 4,468 evaluations checked against brute force: all equal so far",
    ):
        assert words in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_frame_shows_movement_and_flights_in_the_air(width: int) -> None:
    rows = [line.split() for line in rendered(width) if re.match(r" *\d+ ", line) and "-07" in line]
    assert rows == [
        ["1", "=", "EV5711-JFK-IAD-0710", "1133", "+363", "+385"],
        ["2", "▲", "3", "WN3297-LGA-BNA-0710", "947", "+321", "+313"],
        ["3", "new", "DL1947-LGA-ATL-0710", "272…", "+272", "in", "the", "air", "could", "reach", "4272"],
        ["4", "▼", "1", "DL1948-LGA-ATL-0710", "200", "–", "+100"],
    ]


def test_a_frame_has_the_same_height_whatever_it_shows() -> None:
    heights = set()
    for count in (0, 4):
        console = Console(width=100, record=True, file=io.StringIO())
        shown = Frame(1, FRAME.window_start, END_US, 0, 0, FRAME.lines[:count])
        console.print(frame_view(shown, GAUGES, 100))
        heights.add(len(console.export_text().splitlines()))
    assert len(heights) == 1


def test_times_are_those_of_new_york() -> None:
    assert f"{local_time(END_US):%Y-%m-%d %H:%M %z}" == "2013-07-10 18:40 -0400"


def test_a_day_is_one_line() -> None:
    line = day_line("2013-07-10", Flight(1_133.0, "EV5711-JFK-IAD-0710", 363.0, 385.0), 1_380)
    assert line.split() == [
        *("2013-07-10", "most", "delayed", "EV5711-JFK-IAD-0710", "1133"),
        *("departure", "+363", "arrival", "+385", "1,380", "evaluations", "equal"),
    ]
    assert "no flight" in day_line("2013-07-11", None, 1)


# --- runs


@pytest.mark.slow
def test_without_a_terminal_it_is_a_line_a_day_and_ends_by_itself(start: Call) -> None:
    answer = start("demo")
    lines = answer.out.splitlines()
    assert answer.code == 0
    assert [line[:10] for line in lines[:-2]] == [f"2013-07-{day:02}" for day in range(1, 32)] + ["2013-08-01"]
    assert lines[-2].startswith("next:  skyband replay --definitions examples/flights.yaml --input ")
    assert lines[-1] == LAST
    assert "\x1b" not in answer.out
    assert answer.err == ""


def test_a_difference_ends_it_with_1_and_says_where(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read_rows()
    late = max(range(3_000), key=lambda place: rows[place].delay)
    changed = [row._replace(delay=row.delay + (place == late)) for place, row in enumerate(rows)]
    monkeypatch.setattr("skyband.local.demo.read_rows", lambda: changed)
    answer = call("demo")
    assert answer.code == 1
    assert re.search(rf"{rows[late].flight} .* brute force finds {rows[late].flight}", answer.err)
    assert re.search(r"; \d+ evaluations before it were equal$", answer.err.strip())
    assert "all equal" not in answer.out


def terminal(*arguments: str, interrupt_after: str = "", columns: int = 80) -> tuple[int, str]:
    """Run the demo on a terminal of its own; send Ctrl-C once `interrupt_after` has been seen."""
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", START, "demo", *arguments],
        cwd=ROOT,
        stdin=child,
        stdout=child,
        stderr=child,
        env=environment,
        start_new_session=True,
    )
    os.close(child)
    seen = b""
    while True:
        ready, _, _ = select.select([parent], [], [], 120)
        assert ready, "the demo says nothing"
        try:
            block = os.read(parent, 65_536)
        except OSError:
            break
        if not block:
            break
        seen += block
        if interrupt_after and interrupt_after.encode() in seen:
            process.send_signal(signal.SIGINT)
            interrupt_after = ""
    os.close(parent)
    return process.wait(), seen.decode()


@pytest.mark.slow
def test_on_a_terminal_it_moves_and_ends_with_the_comparison() -> None:
    began_s = time.monotonic()
    code, seen = terminal("--seconds", "5")
    assert code == 0
    assert time.monotonic() - began_s < 60
    assert "still in the air" in seen
    # How many frames there are, and of when, is the machine's; what a flight moves by is told above.
    assert len(set(re.findall(r"([\d,]+) of 4,468 evaluations checked", seen))) > 2
    assert "could reach" in seen
    assert seen.rstrip().splitlines()[-1] == LAST


@pytest.mark.slow
def test_an_interrupt_leaves_a_tidy_terminal_and_exits_with_130() -> None:
    code, seen = terminal(interrupt_after="could reach")
    assert code == 130
    assert "Traceback" not in seen
    assert re.search(r"stopped after [\d,]+ evaluations, all equal to brute force", seen)
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l"), "the cursor is shown again"


def test_a_frame_can_be_drawn_for_a_document(tmp_path: Path) -> None:
    file = tmp_path / "demo.svg"
    record(Demo(lambda: 0.0, read_rows()[:900]), file, "2013-07-01 11:40", 30.0)
    picture = file.read_text()
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "11:40" in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_a_frame_of_a_time_without_an_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="--at 2013-07-01 11:45: no evaluation ends then"):
        record(Demo(lambda: 0.0, read_rows()[:300]), tmp_path / "demo.svg", "2013-07-01 11:45", 30.0)
