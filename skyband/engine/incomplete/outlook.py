"""What becomes of objects: examples for each pattern, drawn from a sample of the ranking's own rows.

Words as in `foresight`. An object is *complete* if it was first seen a whole window ago or more, so that all that comes
of it within a window has come; only those are examples. Fewer than 30 for a pattern say nothing: the best case counts.

::

    at - 2 windows          at - 1 window                    at
    ├───────────────────────┼────────────────────────────────┤
     first seen here: an     first seen here: not yet
     example

Initial state: no patterns, no objects. Time is in ticks where windows are in rows, else in microseconds.
Sources: Haghani et al., CIKM 2009, sec. 4, for the expected bound; the sample and the tail bound are ours.
"""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete.bounds import TALLY, Ask
from skyband.engine.incomplete.foresight import (
    AGES,
    ASKED,
    EXAMPLES,
    EXPECTED,
    PATTERNS,
    TAIL,
    Foresight,
    no_foresight,
)
from skyband.model.duration import MAX_TIME_US
from skyband.model.saved_arrays import SavedArrays, array_of, part_of, prefixed
from skyband.structures.coordinated_sample import LEAST_OBJECTS, CoordinatedSample, SampledObjects
from skyband.structures.store_arrays import Rows

__all__ = ["Outlook", "expectation", "tail"]

# Objects that the sample has room for: of two windows, so that half of them are complete.
_SAMPLED = 1024

# Patterns kept in mind; those that come beyond have the best case.
_MOST_PATTERNS = 1024


class Complete:
    """Complete objects in columns of the query: bits of the columns each has shown, and their values."""

    def __init__(self, sampled: SampledObjects, ask: Ask, until_us: int) -> None:
        chosen = np.flatnonzero(sampled.first_us <= until_us)
        present, values = sampled.present[chosen], sampled.values[chosen]
        self._times = sampled.times[chosen]
        self._present = present
        self._stream_bits = ask.stream_bits
        self.shown = np.zeros(len(chosen), np.int64)
        self.values = np.tile(ask.missing, (len(chosen), 1))
        for stream, bits in enumerate(ask.stream_bits):
            there = (present >> stream) & 1 == 1
            self.shown[there] |= bits
            for column in range(ask.first_column[stream], ask.last_column[stream]):
                own = 1.0 if ask.kinds[column] == TALLY else values[there, stream, ask.fields[column]]
                self.values[there, column] = own

    def like(self, pattern: int, waited_us: int = 0) -> npt.NDArray[np.int64]:
        """Return those that have shown all of a pattern, and nothing else until they had waited so long; few: none.

        Those that have not waited may have shown the rest before, too: of an object whose past was forgotten nobody
        knows. Cost O(objects * streams).
        """
        alike = self.shown & pattern == pattern
        if waited_us:
            own = [stream for stream, bits in enumerate(self._stream_bits) if bits and bits & pattern == bits]
            first = self._times[:, own].min(axis=1, initial=MAX_TIME_US)
            for stream, bits in enumerate(self._stream_bits):
                if bits and not bits & pattern:
                    alike &= ((self._present >> stream) & 1 == 0) | (self._times[:, stream] - first > waited_us)
        found = np.flatnonzero(alike)
        return found if len(found) >= LEAST_OBJECTS else found[:0]


def expectation(complete: Complete, ask: Ask, patterns: Collection[int], epsilon: float) -> Foresight:
    """Return the expected values of what each pattern has not shown, the chance of each less a share `epsilon`.

    An attribute counts its worst value, and of what its best is above that the share of objects that came to show it.
    It is the same at each age.
    """
    examples: list[npt.NDArray[np.float64]] = []
    ordered, starts, places = sorted(patterns), [0], []
    for pattern in ordered:
        like = complete.like(pattern)
        for _ in range(AGES if len(like) else 0):
            came = ((complete.shown[like, np.newaxis] >> np.arange(len(ask.missing))) & 1).mean(axis=0)
            examples.append(ask.missing + (1.0 - epsilon) * came * (ask.best - ask.missing))
            starts.append(len(examples))
        places += [1 if len(like) else 0] * AGES
        starts += [len(examples)] * (0 if len(like) else AGES)
    return no_foresight(len(ask.missing), EXPECTED)._replace(
        patterns=np.array(ordered, np.int64),
        starts=np.array(starts, np.int64),
        places=np.array(places, np.int64),
        present=np.full(len(examples), ask.every, np.int64),
        values=np.array(examples, np.float64).reshape(len(examples), len(ask.missing)),
    )


def tail(complete: Complete, ask: Ask, patterns: Collection[int], epsilon: float) -> Foresight:
    """Return examples for each pattern; all but a share `epsilon` of them (above 0) end below an instance's bound.

    Where too few have waited as long, those serve that have waited less: more of them still came. Where an instance's
    own values are final, those are left out that show no more than it does.
    """
    step = max(1, ask.size // AGES)
    ordered, starts, places = sorted(patterns), [0], []
    chosen = np.zeros(0, np.int64)
    for pattern in ordered:
        like = complete.like(pattern)
        for age in range(AGES):
            if age and len(like):
                older = complete.like(pattern, age * step * (ask.tick_us or 1))
                like = older if len(older) else like
            count = min(len(like), EXAMPLES)
            # Evenly spread: they stand in the order of their hashes, which is chance.
            taken = like[np.arange(count) * len(like) // max(count, 1)]
            if pattern & ~ask.once == 0:
                taken = taken[complete.shown[taken] != pattern]
            chosen = np.concatenate([chosen, taken])
            starts.append(len(chosen))
            places.append(max(1, math.ceil(epsilon * count - 1e-9)) if count else 0)
    return no_foresight(len(ask.missing), TAIL)._replace(
        step=step,
        patterns=np.array(ordered, np.int64),
        starts=np.array(starts, np.int64),
        places=np.array(places, np.int64),
        present=complete.shown[chosen],
        values=np.ascontiguousarray(complete.values[chosen]),
    )


class Outlook:
    """A sample of a ranking's rows, the patterns that were met, and the foresight made of both."""

    def __init__(self, ask: Ask, width: int) -> None:
        self._ask = ask
        self._unit = ask.tick_us or 1
        streams = len(ask.stream_bits)
        each = 16 + streams * (8 + 8 * width)
        self.sample = CoordinatedSample(streams, width, 2 * ask.size * self._unit, budget_bytes=_SAMPLED * each)
        self.patterns: set[int] = set()
        self.unknown_patterns = 0

    def add(self, rows: Rows, first: int, last: int, number: int) -> None:
        """Take in rows [first, last), of which the first is row `number`. Cost O(1) a row."""
        if first >= last:
            return
        if self._ask.tick_us == 0:
            part = slice(first, last)
            rows = rows._replace(
                stream=rows.stream[part],
                event_time_us=np.arange(number, number + last - first, dtype=np.int64),
                id_hash=rows.id_hash[part],
                values=rows.values[part],
            )
            first, last = 0, last - first
        self.sample.add(rows, first, last)

    def meet(self, asked: npt.NDArray[np.int64]) -> None:
        """Keep in mind the patterns on a list of those asked for, and empty the list."""
        for pattern in asked[PATTERNS : PATTERNS + int(asked[ASKED])].tolist():
            if len(self.patterns) < _MOST_PATTERNS:
                self.patterns.add(pattern)
        asked[ASKED] = 0

    def knows_not(self, asked: npt.NDArray[np.int64]) -> bool:
        """Return whether there are patterns on the list that are to be kept in mind, and room for them."""
        return bool(asked[ASKED]) and len(self.patterns) < _MOST_PATTERNS

    def renew(self, end: int, kind: int, epsilon: float) -> Foresight:
        """Return the foresight as of tick `end`. Cost: the sample once per pattern."""
        at, size = end * self._unit, self._ask.size * self._unit
        self.sample.expire(at - 2 * size)
        complete = Complete(self.sample.objects(at, 2 * size), self._ask, at - size)
        make = expectation if kind == EXPECTED else tail
        sight = make(complete, self._ask, self.patterns, epsilon)
        self.unknown_patterns = int(np.count_nonzero(sight.places[::AGES] == 0))
        return sight

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sample and the patterns. Cost: a copy."""
        return {
            "patterns": np.array(sorted(self.patterns), np.int64),
            "unknown": np.array([self.unknown_patterns], np.int64),
            **prefixed("sample", self.sample.state()),
        }

    def restore(self, state: SavedArrays) -> None:
        """Know what the outlook of another ranking of the query knew. Raises LogError if it does not fit."""
        self.sample.restore(part_of(state, "sample"))
        self.patterns = set(array_of(state, "patterns", np.int64, (-1,)).tolist())
        self.unknown_patterns = int(array_of(state, "unknown", np.int64, (1,))[0])
