"""The demo as values: its truth against brute force proper, frames, pace, and the shipped files."""

import gzip
import itertools
import re
from pathlib import Path

import pytest

from skyband.files.definitions import load_definitions
from skyband.local import brute_force
from skyband.local.demo import (
    DEFINITIONS,
    FLIGHTS,
    SLIDE_US,
    Demo,
    Flight,
    K,
    Pace,
    Row,
    Truth,
    difference,
    evaluation_count,
    frame,
    read_rows,
    truths,
)
from skyband.model.result import Result, ResultRow

HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
ROWS = [
    Row(10 * MINUTE_US, False, "A", 30.0),
    Row(15 * MINUTE_US, False, "B", 50.0),
    Row(75 * MINUTE_US, True, "B", 10.0),
    Row(95 * MINUTE_US, True, "A", 40.0),
]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows()


def as_result(truth: Truth, **changes: object) -> Result:
    made = []
    for rank, flight in enumerate(truth.best, start=1):
        delays = {"departure_delay": flight.departure, "arrival_delay": flight.arrival}
        present = {name: delay for name, delay in delays.items() if delay is not None}
        made.append(ResultRow(rank, flight.flight, flight.score, present))
    fields = {"window_start": truth.window_start, "window_end": truth.window_end, "rows": tuple(made)} | changes
    return Result(query="most-delayed", uid="1", **fields)  # type: ignore[arg-type]


def the_truth(*flights: Flight) -> Truth:
    return Truth(0, 6 * HOUR_US, flights, len(flights), 0)


# --- shipped files


def test_the_shipped_definitions_are_those_of_the_examples() -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "flights.yaml"
    assert example.read_bytes() == DEFINITIONS.read_bytes()


def test_the_shipped_flights_are_in_order_of_event_time(rows: list[Row]) -> None:
    with gzip.open(FLIGHTS, "rt") as file:
        times = [int(line.split(",")[2]) for line in list(file)[1:]]
    assert times == sorted(times)
    assert [row.event_time_us for row in rows] == times
    assert evaluation_count(rows) == 4_468


# --- the truth


def test_a_flight_in_the_air_counts_its_departure_alone_until_it_lands() -> None:
    found = {truth.window_end // MINUTE_US: truth for truth in truths(ROWS)}
    assert list(found) == [20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert found[70].best == (Flight(50.0, "B", 50.0, None), Flight(30.0, "A", 30.0, None))
    assert (found[70].flights, found[70].in_the_air) == (2, 2)
    assert found[80].best == (Flight(70.0, "B", 50.0, 10.0), Flight(30.0, "A", 30.0, None))
    assert (found[100].flights, found[100].in_the_air) == (2, 0)
    assert found[100].best[0] == Flight(110.0, "A", 30.0, 40.0)


def test_an_empty_truth_comes_once_after_one_with_flights() -> None:
    far = [*ROWS, Row(20 * HOUR_US, False, "C", 1.0)]
    counts = [truth.flights for truth in truths(far)]
    assert counts.count(0) == 1
    assert counts[-2:] == [0, 1]


def test_delays_are_clamped() -> None:
    early = [Row(0, False, "A", -5.0), Row(1, True, "A", 9_999.0)]
    assert next(truths(early)).best == (Flight(4_000.0, "A", 0.0, 2_000.0),)


def test_the_truth_is_what_brute_force_finds_from_the_definitions(rows: list[Row]) -> None:
    definitions = load_definitions(DEFINITIONS)
    some = rows[9_000:10_500]
    partitions: dict[tuple[int, int], list[brute_force.Row]] = {(0, 0): [], (1, 0): []}
    for row in some:
        place = (definitions.group.stream_index("arrival_delay" if row.is_arrival else "departure_delay"), 0)
        partitions[place].append(brute_force.Row(row.flight, row.event_time_us, (row.delay,)))
    expected = brute_force.brute_force_results(definitions.group, definitions.queries, partitions)
    found = [as_result(truth) for truth in truths(some)]
    assert len(found) > 100
    assert [(r.window_start, r.window_end) for r in found] == [(d["window_start"], d["window_end"]) for d in expected]
    for result, document in zip(found, expected, strict=True):
        assert [
            {"rank": row.rank, "object_id": row.object_id, "score": row.score, "attributes": row.attributes}
            for row in result.rows
        ] == document["rows"]


# --- differences


def test_equal_results_do_not_differ() -> None:
    truth = the_truth(Flight(5.0, "A", 5.0, None))
    assert difference(as_result(truth), truth) is None
    assert difference(None, None) is None


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, "is missing"),
        (as_result(the_truth(), window_end=7), "has the window"),
        (as_result(the_truth(Flight(6.0, "A", 5.0, None))), "rank 1 .* A with 6.0 .* brute force finds A with 5.0"),
        (as_result(the_truth(Flight(5.0, "B", 5.0, None))), "rank 1 .* B with 5.0"),
        (as_result(the_truth(Flight(5.0, "A", 5.0, 0.0))), "rank 1"),
        (as_result(the_truth()), "do not run from 1 to 1"),
        (as_result(the_truth(Flight(5.0, "A", 5.0, None), Flight(4.0, "B", 4.0, None))), "do not run from 1 to 1"),
    ],
)
def test_a_difference_is_said_in_words(result: Result | None, said: str) -> None:
    found = difference(result, the_truth(Flight(5.0, "A", 5.0, None)))
    assert found is not None
    assert re.search(said, found), found


def test_a_result_too_many_differs() -> None:
    truth = the_truth(Flight(5.0, "A", 5.0, None))
    assert "brute force has not" in str(difference(as_result(truth), None))


# --- frames


def test_a_frame_says_how_flights_moved_since_the_one_shown_before() -> None:
    truth = the_truth(Flight(9.0, "A", 3.0, 3.0), Flight(8.0, "B", 4.0, 2.0), Flight(7.0, "C", 1.0, 3.0))
    now = frame(1, truth, as_result(truth), {"A": 3, "C": 3, "B": 1})
    assert [line.moved for line in now.lines] == [2, -1, 0]
    assert [line.moved for line in frame(1, truth, as_result(truth), {}).lines] == [None] * 3
    assert now.ranks == {"A": 1, "B": 2, "C": 3}


def test_a_flight_in_the_air_could_still_reach_the_most_delay_of_an_arrival() -> None:
    truth = the_truth(Flight(272.0, "A", 272.0, None), Flight(9.0, "B", 3.0, 3.0), Flight(8.0, "C", None, 4.0))
    lines = frame(1, truth, as_result(truth), {}).lines
    assert [line.could_reach for line in lines] == [4_272.0, None, None]
    assert [line.in_the_air for line in lines] == [True, False, False]


def test_the_pace_begins_slowly_ends_in_time_and_never_goes_back() -> None:
    pace = Pace(count=4_468, seconds=30.0)
    due = [pace.shown_after_s(number) for number in range(4_469)]
    assert due[0] == 0.0
    assert due[-1] == pytest.approx(30.0)
    assert due == sorted(due)
    assert pace.shown_after_s(10_000) == pytest.approx(30.0)
    assert pace.evaluations_per_s(1) < 20
    assert pace.evaluations_per_s(4_468) == pytest.approx(4_468 / 30 * 1.9)
    step = due[2_001] - due[2_000]
    assert pace.evaluations_per_s(2_000) == pytest.approx(1 / step, rel=0.01)


# --- a run


def test_each_evaluation_comes_out_compared(rows: list[Row]) -> None:
    ticks = iter(range(10**9))
    run = Demo(lambda: float(next(ticks)), rows[:600])
    seen = list(run)
    assert run.difference is None
    assert run.checked == len(seen) == evaluation_count(rows[:600])
    assert [number for number, _, _ in seen] == list(range(1, len(seen) + 1))
    assert all(b.window_end - a.window_end == SLIDE_US for (_, a, _), (_, b, _) in itertools.pairwise(seen))
    assert len(seen[-1][2].rows) == K
    assert run.late_rows == 0
    assert 0.0 < run.rows_per_s <= 600.0


def test_a_run_ends_at_its_first_difference(rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    run = Demo(lambda: 0.0, rows[:600])
    changed = list(rows[:600])
    place = next(i for i, row in enumerate(changed) if i > 300 and row.delay > 60)
    changed[place] = changed[place]._replace(delay=changed[place].delay + 1)
    run.rows = changed
    seen = list(run)
    assert run.difference is not None
    assert 0 < run.checked == len(seen) < evaluation_count(changed)
    assert "brute force finds" in run.difference


def test_a_warm_up_leaves_the_run_as_it_was(rows: list[Row]) -> None:
    run = Demo(lambda: 0.0, rows[:300])
    run.warm_up()
    assert run.rows_per_s == 0.0
    assert len(list(run)) == evaluation_count(rows[:300])
