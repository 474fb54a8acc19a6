"""Frames of a watch on a terminal; golden/watch_frames.txt holds them as they look."""

import io
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from skyband.cli.watch_board import WatchBoard, moves_of
from skyband.cli.watch_screen import watch_view
from skyband.client import Update
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Query, QueryState, Window
from skyband.model.resources import QueryResource, Stamp
from skyband.model.result import Candidate, Change, Delta, ResultRow

GOLDEN = Path(__file__).parent / "golden" / "watch_frames.txt"
S = 1_000_000
NOON = 1_782_907_200 * S


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class LostError(Exception):
    def details(self) -> str:
        return "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:5: Connection refused"


@pytest.fixture(autouse=True)
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()


def resource(k: int = 3) -> QueryResource:
    query = Query(name="hottest", k=k, score="0.7*temperature + 3*vibration", window=Window(60 * S, 10 * S))
    return QueryResource(
        group="factory",
        query=query,
        plan=Plan(Algorithm.TWO_TIER, "", (), ""),
        state=QueryState.ACTIVE,
        stamp=Stamp("u", 1, 0, 0),
    )


def row(rank: int, name: str, score: float, **attributes: float) -> ResultRow:
    return ResultRow(rank, name, score, attributes)


def update(end: int, *rows: ResultRow, **more: object) -> Update:
    fields: dict[str, object] = {
        "window_start": NOON + (end - 60) * S,
        "window_end": NOON + end * S,
        "rows": rows,
        "frontier_us": NOON + (end + 1) * S,
        "age": timedelta(milliseconds=300),
        **more,
    }
    return Update(**fields)  # type: ignore[arg-type]


M1 = row(1, "m1", 85.0, temperature=100.0, vibration=5.0)
M2 = row(2, "m2", 42.5, temperature=60.714285)
M3 = row(3, "press-3", 30.0, vibration=10.0)
FIRST = update(0, M1, M2, M3, is_snapshot=True, entered=(M1, M2, M3))
M3_UP, M1_DOWN, M4 = row(1, "press-3", 95.0, temperature=92.857, vibration=10.0), row(2, "m1", 85.0), row(3, "m4", 44.0)
SECOND = update(
    10,
    M3_UP,
    M1_DOWN,
    M4,
    entered=(M4,),
    left=(M2,),
    moved=(Delta(Change.MOVED, M3_UP, 3), Delta(Change.MOVED, M1_DOWN, 1)),
)


RISING = update(
    0,
    ResultRow(1, "m1", 85.0, {"temperature": 100.0, "vibration": 5.0}, None, 85.0),
    ResultRow(2, "m2", 42.5, {"temperature": 60.714285}, None, 72.5),
    ResultRow(3, "m3", 41.0, {"vibration": 3.0}),
    is_snapshot=True,
    candidates=(
        Candidate("press-3", None, None, ("temperature", "vibration"), NOON + 30 * S),
        Candidate("press-4", 30.0, 100.0, ("temperature",), NOON + 40 * S),
        Candidate("press-5", 39.0, 41.5, (), NOON + 20 * S),
    ),
)


def board(clock: Clock, k: int = 3, candidates: int = 0) -> WatchBoard:
    return WatchBoard(resource(k), ["temperature", "vibration"], clock, candidates=candidates)


def frame(made: WatchBoard, now_s: float, width: int = 100, height: int = 30) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, record=True)
    console.print(watch_view(made.view(), width, height, NOON + int(now_s * S)))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def frames() -> dict[str, str]:
    clock = Clock()
    made = board(clock)
    found = {"before the first result": frame(made, 0)}
    made.take(FIRST)
    clock.now = 0.5
    found["the first result: nothing is known of how it moved"] = frame(made, 1)
    clock.now = 10.0
    made.take(SECOND)
    clock.now = 10.4
    found["the next one: a row is new, one rose, one sank"] = frame(made, 11)
    clock.now = 15.0
    made.lost(LostError(), 1)
    clock.now = 27.0
    made.lost(LostError(), 2)
    found["the connection is lost"] = frame(made, 28)
    made.take(update(40, M3_UP, M1_DOWN, M4, skipped=2, is_snapshot=True))
    clock.now = 27.5
    found["it is back, and two results were passed over"] = frame(made, 41)
    clock.now = 60.0
    made.take(update(50, is_progress=True, state=QueryState.PAUSED))
    found["somebody paused the query, and nothing qualifies"] = frame(made, 60)
    found["on a narrow terminal"] = frame(made, 60, width=60)
    long = board(clock, k=20)
    long.take(update(0, *(row(rank, f"m{rank}", 100.0 - rank) for rank in range(1, 21)), is_snapshot=True))
    found["on a low one"] = frame(long, 1, height=12)
    rising = board(clock, candidates=2)
    rising.take(RISING)
    found["some could rise, and others come in"] = frame(rising, 1)
    found["on a low one, with fewer of these"] = frame(rising, 1, height=10)
    return found


def test_frames_look_as_they_did() -> None:
    text = "".join(f"── {name}\n{shown}\n\n" for name, shown in frames().items())
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_a_snapshot_after_a_gap_is_compared_with_what_was_shown() -> None:
    assert moves_of(FIRST, None) == ()
    again = update(50, M3_UP, M1_DOWN, M4, is_snapshot=True)
    assert moves_of(again, FIRST) == (2, -1, None)


def test_records_that_are_objects_of_their_own_move_by_rank_not_by_name() -> None:
    second = row(2, "m1", 84.0)
    changed = update(10, M1, second, entered=(second,))
    assert moves_of(changed, FIRST) == (0, None)


def test_the_rate_is_known_after_a_second_and_forgets_after_half_a_minute() -> None:
    clock = Clock()
    made = board(clock)
    for second in range(5):
        clock.now = float(second)
        made.take(FIRST)
    assert made.view().rate == 1.0
    clock.now = 100.0
    assert made.view().rate == 0.0
    assert made.view().results == 5


def test_the_age_grows_between_updates() -> None:
    clock = Clock()
    made = board(clock)
    made.take(FIRST)
    clock.now = 4.0
    assert made.view().age_s == pytest.approx(4.3)
