"""Rows that nobody measured: objects that come again and again on all streams of a group, out of order as promised."""

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skyband.errors import DefinitionError
from skyband.files.rows import Chunk
from skyband.generate.arrivals import arrival_order, event_times, source_rows
from skyband.generate.rhythm import Bursts
from skyband.generate.values import Values, correlated_shares, cycle, draw_values, zipf_ranks
from skyband.model.duration import parse_duration
from skyband.model.group import Group
from skyband.model.stream import Stream

__all__ = ["Manner", "add_manner_options", "generated", "read_manner"]

# The span of values where a stream has no bound.
_SPAN = 100.0
# Of a row's value, the share that its object has of its own on the stream; the rest is chance.
_OWN = 0.7
# With a cycle, the share that the time of day has in a value.
_SWING = 0.5
_LEAST_DURATION_US = 1_000_000
_OPTIONS = ("skew", "values", "correlation", "bursts", "drift", "cycle")


@dataclass(frozen=True, slots=True)
class Manner:
    """What made-up rows are like.

    `skew`: the n-th object comes as often as 1/n**skew (0: all as often). `values`: how they are distributed within
    their bounds. `correlation`: of an object's values on one stream with those on any other (Pearson). `bursts`: for a
    tenth of each minute rows come at so many times the rate of the rest (1: steadily). `drift_us`: within it the values
    of its own that each object has turn into others, and then into others again (0: never). `cycle_us`: values rise and
    fall with it, the highest in its middle (0: they do not).
    """

    skew: float = 0.0
    values: Values = Values.UNIFORM
    correlation: float = 0.0
    bursts: float = 1.0
    drift_us: int = 0
    cycle_us: int = 0

    def rhythm(self) -> Bursts | None:
        """Return the bursts, if there are any."""
        return Bursts(self.bursts) if self.bursts > 1.0 else None


_PLAIN = Manner()


def add_manner_options(parser: argparse.ArgumentParser) -> None:
    """Add the options from which `read_manner` reads."""
    options = parser.add_argument_group("what --generate makes up is like")
    add = options.add_argument
    add("--skew", type=_number(0.0), default=0.0, metavar="S", help="the n-th object comes as often as 1/n**S")
    add("--values", choices=("uniform", "zipf"), default="uniform", help="how they are distributed (%(default)s)")
    add("--correlation", type=_number(0.0, 1.0), default=0.0, metavar="RHO", help="between an object's streams")
    add("--bursts", type=_number(1.0), default=1.0, metavar="B", help="B times the rate for a tenth of each minute")
    add("--drift", type=_duration, default=0, metavar="DURATION", help="in which objects get other values")
    add("--cycle", type=_duration, default=0, metavar="DURATION", help="with which values rise and fall, such as 1d")


def read_manner(found: argparse.Namespace) -> Manner:
    """Take the options of `add_manner_options` out of what was parsed."""
    given = {name: vars(found).pop(name) for name in _OPTIONS}
    values = Values(given.pop("values"))
    return Manner(values=values, drift_us=given.pop("drift"), cycle_us=given.pop("cycle"), **given)


def generated(
    group: Group,
    *,
    begin_us: int,
    rows_per_second: float,
    objects: int = 1_000,
    seed: int = 0,
    rows: int | None = None,
    batch_rows: int = 1_000,
    manner: Manner = _PLAIN,
) -> Iterator[Chunk]:
    """Yield `rows` rows (None: without end), `rows_per_second` of event time from `begin_us` on, evenly over streams.

    Each object has values of its own, around which its rows lie. A row is late by at most the max_delay of its stream.
    The same seed gives the same rows for the same batches.
    """
    random = np.random.default_rng(seed)
    own = _OwnValues(objects, len(group.columns), seed, manner)
    counts = _batches(rows, batch_rows)
    start_us = begin_us
    for count in counts:
        times = event_times(random, count, rows_per_second, start_us, bursts=manner.rhythm())
        start_us = int(times[-1])
        which = random.integers(0, len(group.streams), count)
        numbers = zipf_ranks(random, count, objects, manner.skew) if manner.skew else random.integers(0, objects, count)
        first = 0
        for index, stream in enumerate(group.streams):
            mine = np.flatnonzero(which == index)
            columns = slice(first, first + len(stream.attributes))
            first = columns.stop
            if not len(mine):
                continue
            shares = own.shares(numbers[mine], times[mine], columns, random)
            order = arrival_order(random, times[mine], stream.max_delay_us)
            found = source_rows(times[mine], numbers[mine], _scaled(stream, shares), order)
            yield Chunk(index, 0, 0, len(mine), found)


class _OwnValues:
    """Values in [0, 1] that objects have of their own: one common to all streams, and one for each column.

    With drift, time is cut into epochs: an object's values move evenly from those of an epoch to those of the next.
    """

    def __init__(self, objects: int, columns: int, seed: int, manner: Manner) -> None:
        self._shape = (objects, 1 + columns)
        self._seed = seed
        self._manner = manner
        common, other = correlated_shares(manner.correlation)
        # The deviation of what is not common, as a share of that of a single draw.
        other /= math.hypot(_OWN, 1.0 - _OWN)
        self._common, self._other = common / (common + other), other / (common + other)
        self._epochs: dict[int, npt.NDArray[np.float64]] = {}

    def shares(
        self,
        numbers: npt.NDArray[np.int64],
        times_us: npt.NDArray[np.int64],
        columns: slice,
        random: np.random.Generator,
    ) -> npt.NDArray[np.float64]:
        """Return float64[rows, columns] for rows of these objects at these times."""
        values = self._at(numbers, times_us)
        own = values[:, 1:][:, columns]
        chance = draw_values(random, own.shape, self._manner.values)
        found = self._common * values[:, :1] + self._other * (_OWN * own + (1.0 - _OWN) * chance)
        if self._manner.cycle_us:
            found = (1.0 - _SWING) * found + _SWING * cycle(times_us, self._manner.cycle_us)[:, None]
        return found

    def _at(self, numbers: npt.NDArray[np.int64], times_us: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        drift_us = self._manner.drift_us
        if not drift_us:
            return self._epoch(0)[numbers]
        epochs = times_us // drift_us
        found = np.empty((len(numbers), self._shape[1]))
        for epoch in np.unique(epochs).tolist():
            rows = epochs == epoch
            share = (times_us[rows] % drift_us / drift_us)[:, None]
            before, after = self._epoch(epoch)[numbers[rows]], self._epoch(epoch + 1)[numbers[rows]]
            found[rows] = (1.0 - share) * before + share * after
        return found

    def _epoch(self, epoch: int) -> npt.NDArray[np.float64]:
        if epoch not in self._epochs:
            while len(self._epochs) > 1:
                # Time goes on: the oldest is not asked for again soon, and could be drawn again.
                del self._epochs[min(self._epochs)]
            random = np.random.default_rng([self._seed, epoch % 2**32])
            self._epochs[epoch] = draw_values(random, self._shape, self._manner.values)
        return self._epochs[epoch]


def _batches(rows: int | None, batch_rows: int) -> Iterator[int]:
    if rows is None:
        yield from itertools.repeat(batch_rows)
        return
    while rows > 0:
        yield min(rows, batch_rows)
        rows -= batch_rows


def _scaled(stream: Stream, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values within the bounds of their attributes."""
    lo = np.array([a.lo if np.isfinite(a.lo) else 0.0 for a in stream.attributes])
    hi = np.array([a.hi if np.isfinite(a.hi) else low + _SPAN for a, low in zip(stream.attributes, lo, strict=True)])
    values: npt.NDArray[np.float64] = np.round(lo + (hi - lo) * shares, 3).clip(lo, hi)
    return values


def _number(least: float, most: float = math.inf) -> Callable[[str], float]:
    """Return what reads a number within bounds."""

    def number(text: str) -> float:
        found = float(text)
        if not least <= found <= most or math.isinf(found):
            upto = f" and at most {most:g}" if most < math.inf else ""
            raise argparse.ArgumentTypeError(f"{text} must be at least {least:g}{upto}")
        return found

    return number


def _duration(text: str) -> int:
    try:
        found = parse_duration(text)
    except DefinitionError as error:
        raise argparse.ArgumentTypeError(error.message) from None
    if found < _LEAST_DURATION_US:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1s")
    return found
