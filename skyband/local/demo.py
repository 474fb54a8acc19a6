"""The demo as values: flights from a file, the question asked of them, its answer by brute force, and what to show.

The *truth* of an evaluation looks at every raw row of its window again and keeps nothing from the one before; it uses
nothing of the pipeline, neither its readers nor its score language. A *frame* is what a screen shows of one evaluation.

A flight has a departure delay once it has departed and an arrival delay once it has landed. In a window it is *in the
air* if it departed there and has not landed by the window's end; its arrival delay may still be anything up to `hi`.
"""

import csv
import gzip
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from skyband.files.definitions import load_definitions
from skyband.files.rows import open_rows
from skyband.local.replay import Replay
from skyband.model.result import Result

__all__ = [
    "DEFINITIONS",
    "FLIGHTS",
    "SLIDE_US",
    "Demo",
    "Flight",
    "Frame",
    "Line",
    "Pace",
    "Truth",
    "difference",
    "evaluation_count",
    "frame",
    "read_rows",
    "truths",
]

_DATA = Path(__file__).parent / "data"
DEFINITIONS = _DATA / "flights.yaml"
FLIGHTS = _DATA / "flights_2013_07.csv.gz"

# The question of flights.yaml, once more and in other words, so that the truth does not depend on how it is read.
K = 10
SIZE_US = 6 * 3_600_000_000
SLIDE_US = 600_000_000
MOST_DELAY = 2000.0

# Rows fed at once: about a day, so that results come in a steady stream and not in two lumps.
_BATCH_ROWS = 2_000


class Row(NamedTuple):
    """One line of the file: whether it is an arrival, the flight, when, and the delay in minutes as it came."""

    event_time_us: int
    is_arrival: bool
    flight: str
    delay: float


class Flight(NamedTuple):
    """One flight of a window; a delay is None if it did not fall into the window."""

    score: float
    flight: str
    departure: float | None
    arrival: float | None


@dataclass(frozen=True, slots=True)
class Truth:
    """The answer of one evaluation by brute force, with the number of flights it was chosen from."""

    window_start: int
    window_end: int
    best: tuple[Flight, ...]
    flights: int
    in_the_air: int


def read_rows(path: Path = FLIGHTS) -> list[Row]:
    """Return the rows of a flights file in order of event time."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [
            Row(int(line["event_time"]), line["stream"] == "arrival_delay", line["object_id"], float(line["value"]))
            for line in csv.DictReader(file)
        ]
    return sorted(rows, key=lambda row: row.event_time_us)


def truths(rows: Sequence[Row]) -> Iterator[Truth]:
    """Yield the truth of every evaluation that is written: those with rows, and the first empty one after such.

    Cost: one pass over the rows of each window, about 1 us a row.
    """
    times = [row.event_time_us for row in rows]
    shown = False
    for end in _window_ends(rows):
        truth = _truth(rows[bisect_left(times, end - SIZE_US) : bisect_left(times, end)], end)
        if truth.best or shown:
            yield truth
        shown = bool(truth.best)


def evaluation_count(rows: Sequence[Row]) -> int:
    """Return how many evaluations the rows ask for."""
    return len(_window_ends(rows))


def _window_ends(rows: Sequence[Row]) -> range:
    if not rows:
        return range(0)
    first, last = (rows[place].event_time_us // SLIDE_US + 1 for place in (0, -1))
    return range(first * SLIDE_US, (last + 1) * SLIDE_US, SLIDE_US)


def _truth(rows: Sequence[Row], end: int) -> Truth:
    departures: dict[str, float] = {}
    arrivals: dict[str, float] = {}
    for row in rows:
        delays = arrivals if row.is_arrival else departures
        delay = min(max(row.delay, 0.0), MOST_DELAY)
        delays[row.flight] = max(delay, delays.get(row.flight, 0.0))
    flights = departures.keys() | arrivals.keys()
    ranked = sorted((-(departures.get(f, 0.0) + 2 * arrivals.get(f, 0.0)), f) for f in flights)
    best = tuple(Flight(-score + 0.0, f, departures.get(f), arrivals.get(f)) for score, f in ranked[:K])
    return Truth(end - SIZE_US, end, best, len(flights), len(departures.keys() - arrivals.keys()))


def difference(result: Result | None, truth: Truth | None) -> str | None:
    """Return in one sentence how a result differs from the truth (None: there is none of that kind), or None."""
    if result is None:
        return None if truth is None else f"the evaluation at {truth.window_end} us is missing"
    if truth is None:
        return f"the evaluation at {result.window_end} us is one that brute force has not"
    own_window, window = (result.window_start, result.window_end), (truth.window_start, truth.window_end)
    if own_window != window:
        return f"a result has the window {own_window} us, brute force {window}"
    found = [_as_flight(row.object_id, row.score, row.attributes) for row in result.rows]
    for place, (own, other) in enumerate(zip(found, truth.best, strict=False), start=1):
        if own != other:
            return f"rank {place} at {truth.window_end} us is {_words(own)}, brute force finds {_words(other)}"
    if [row.rank for row in result.rows] != list(range(1, len(truth.best) + 1)):
        return f"ranks at {truth.window_end} us do not run from 1 to {len(truth.best)}, as brute force finds"
    return None


def _as_flight(flight: str, score: float, attributes: Mapping[str, float]) -> Flight:
    return Flight(score, flight, attributes.get("departure_delay"), attributes.get("arrival_delay"))


def _words(flight: Flight) -> str:
    return f"{flight.flight} with {flight.score!r} (departure {flight.departure}, arrival {flight.arrival})"


@dataclass(frozen=True, slots=True)
class Line:
    """One flight on the screen.

    `moved` is how many places it rose since the frame before (below 0: sank), None if it was not there. `could_reach`
    is the highest score it may still get, None once it has landed.
    """

    rank: int
    flight: Flight
    moved: int | None
    could_reach: float | None

    @property
    def in_the_air(self) -> bool:
        """Whether the flight has departed and not landed."""
        return self.could_reach is not None


@dataclass(frozen=True, slots=True)
class Frame:
    """One evaluation as it is shown; `number` counts evaluations from 1."""

    number: int
    window_start: int
    window_end: int
    flights: int
    in_the_air: int
    lines: tuple[Line, ...]

    @property
    def ranks(self) -> dict[str, int]:
        """The rank of each flight shown."""
        return {line.flight.flight: line.rank for line in self.lines}


def frame(number: int, truth: Truth, result: Result, before: Mapping[str, int]) -> Frame:
    """Return the frame of a result; `before` are the ranks in the frame that was shown before it."""
    lines = []
    for row in result.rows:
        flight = _as_flight(row.object_id, row.score, row.attributes)
        old = before.get(row.object_id)
        lines.append(Line(row.rank, flight, None if old is None else old - row.rank, _could_reach(flight)))
    return Frame(number, result.window_start, result.window_end, truth.flights, truth.in_the_air, tuple(lines))


def _could_reach(flight: Flight) -> float | None:
    if flight.departure is None or flight.arrival is not None:
        return None
    return flight.departure + 2 * MOST_DELAY


@dataclass(frozen=True, slots=True)
class Pace:
    """When each of `count` evaluations is shown: slowly at first, so that one can read along, then ever faster.

    With u the part of `seconds` that has passed, `count` times ``(1 - start)*u**2 + start*u`` have been shown.
    """

    count: int
    seconds: float
    start: float = 0.1

    def shown_after_s(self, number: int) -> float:
        """Return after how many seconds evaluation `number` is due."""
        part = min(1.0, max(0.0, number / self.count))
        bend = 1.0 - self.start
        return self.seconds * (math.sqrt(self.start**2 + 4 * bend * part) - self.start) / (2 * bend)

    def evaluations_per_s(self, number: int) -> float:
        """Return how fast evaluations follow each other at evaluation `number`."""
        part = self.shown_after_s(number) / self.seconds
        return self.count / self.seconds * (self.start + 2 * (1.0 - self.start) * part)


class Demo:
    """The flights through all stages. Iterate it once for (number, truth, result), each compared before it comes out.

    It ends at the first difference, which is then in `difference`; `checked` counts evaluations that were equal.
    `clock` gives seconds and measures the pipeline alone, not the comparison.
    """

    def __init__(self, clock: Callable[[], float], rows: Sequence[Row] | None = None) -> None:
        self.rows = read_rows() if rows is None else rows
        self.checked = 0
        self.difference: str | None = None
        self._clock = clock
        self._busy_s = 0.0
        self._definitions = load_definitions(DEFINITIONS)
        inputs = [FLIGHTS] if rows is None else _as_input(rows)
        self._replay = self._replay_of(inputs)

    def _replay_of(self, inputs: object) -> Replay:
        source = open_rows(self._definitions.group, inputs, batch_rows=_BATCH_ROWS)
        return Replay(self._definitions, source, batch_rows=_BATCH_ROWS)

    def warm_up(self) -> None:
        """Send the first rows through a pipeline of their own, so that all kernels are compiled."""
        for _ in self._replay_of(_as_input(self.rows[: 2 * _BATCH_ROWS])):
            pass

    def __iter__(self) -> Iterator[tuple[int, Truth, Result]]:
        for result, truth in zip_longest(self._timed_results(), truths(self.rows)):
            self.difference = difference(result, truth)
            if self.difference is not None:
                return
            self.checked += 1
            yield self.checked, truth, result

    def _timed_results(self) -> Iterator[Result]:
        results = iter(self._replay)
        while True:
            began_s = self._clock()
            result = next(results, None)
            self._busy_s += self._clock() - began_s
            if result is None:
                return
            yield result

    @property
    def rows_per_s(self) -> float:
        """Rows that went through the pipeline in each second it worked."""
        return self._replay.summary.rows / self._busy_s if self._busy_s > 0 else 0.0

    @property
    def late_rows(self) -> int:
        """Rows that came behind their stream's watermark so far."""
        return sum(counts.late for counts in self._replay.pipeline.statistics()[0].counts)


def _as_input(rows: Sequence[Row]) -> list[tuple[str, str, int, float]]:
    streams = ("departure_delay", "arrival_delay")
    return [(streams[row.is_arrival], row.flight, row.event_time_us, row.delay) for row in rows]
