"""Flights in the air, and what they could reach, in six days of real ones."""

from bisect import bisect_left

import skyband
from skyband.local.demo import DEFINITIONS, MOST_DELAY, SIZE_US, SLIDE_US, Row, read_rows
from skyband.model.result import Result

STREAMS = ("departure_delay", "arrival_delay")


def in_the_air(rows: list[Row], end: int) -> dict[str, tuple[float, int]]:
    """Return the flights that departed in a window and have not landed, with departure delay and time."""
    times = [row.event_time_us for row in rows]
    inside = rows[bisect_left(times, end - SIZE_US) : bisect_left(times, end)]
    landed = {row.flight for row in inside if row.is_arrival}
    return {
        row.flight: (min(max(row.delay, 0.0), MOST_DELAY), row.event_time_us)
        for row in inside
        if not row.is_arrival and row.flight not in landed
    }


def test_flights_in_the_air_are_told_with_what_they_could_reach() -> None:
    rows, told = read_rows()[:12_000], 0
    given = [(STREAMS[row.is_arrival], row.flight, row.event_time_us, row.delay) for row in rows]
    results: list[Result] = list(skyband.replay(DEFINITIONS, given, candidates=5, shards=3))
    for result in results[:: len(results) // 40]:
        flying = in_the_air(rows, result.window_end)
        shown = {row.object_id for row in result.rows}
        expected = sorted((-(delay + 2 * MOST_DELAY), flight) for flight, (delay, _) in flying.items())
        outside = [(flight, -best) for best, flight in expected if flight not in shown]
        found = {candidate.object_id: candidate for candidate in result.candidates}
        # Who has landed and not departed in the window may come, too: as if it were to depart yet.
        assert [(flight, best) for flight, best in outside if flight in found] == [
            (candidate.object_id, candidate.best_score)
            for candidate in result.candidates
            if candidate.object_id in flying
        ]
        for candidate in result.candidates:
            if candidate.object_id in flying:
                delay, departed = flying[candidate.object_id]
                assert (candidate.score, candidate.lacks) == (delay, ("arrival_delay",))
                assert candidate.until == (departed + SIZE_US) // SLIDE_US * SLIDE_US
                told += 1
        for row in result.rows:
            lacking = row.object_id in flying
            assert row.best_score == (
                row.score + 2 * MOST_DELAY if lacking else row.score
            ) or "departure_delay" not in (row.attributes)
    assert told > 100
