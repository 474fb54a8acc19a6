"""What is known about a group's streams: how many objects, which come together, how far apart, how often again.

All of it is estimated over one window ``[at_us - window_us, at_us)``. A *standard error* is a root mean square error,
in the unit of what it belongs to.
"""

from dataclasses import dataclass

__all__ = [
    "LAG_QUANTILES",
    "VALUE_QUANTILES",
    "Appearance",
    "Estimate",
    "GroupStatistics",
    "PairStatistics",
    "StreamStatistics",
]

# Which quantiles are published.
LAG_QUANTILES = (0.05, 0.5, 0.95)
VALUE_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, and its standard error in the same unit."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Appearance:
    """The chance, 0 to 1, that an object of given streams comes on another too; `objects`: how many tell so."""

    probability: float
    error: float
    objects: int


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """One stream: distinct objects, how often they come again, and its values.

    `second_moment` is the sum over objects of their squared numbers of observations; no object has more observations
    than `repetition_bound`, to two standard errors, which is far off where there are many objects. `value_quantiles`
    holds per attribute the VALUE_QUANTILES of the objects' latest values in the attribute's unit; it is empty while too
    few objects are known.
    """

    cardinality: Estimate
    second_moment: Estimate
    repetition_bound: float
    value_quantiles: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """An ordered pair of streams: the chance that an object of `given` comes on `stream`, and how much later.

    `appearance` None: unknown, too few objects. `lag_us` holds the LAG_QUANTILES of the time on `stream` less the time
    on `given`, in microseconds, so that it is negative where `stream` comes first; empty: unknown.
    """

    given: int
    stream: int
    appearance: Appearance | None
    lag_us: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """A group in the window ``[at_us - window_us, at_us)``; `rate` is the share of its objects that was sampled.

    `pairs` holds every ordered pair of two streams: given 0 first, in the order of the streams.
    """

    at_us: int
    window_us: int
    rate: float
    sampled_objects: int
    streams: tuple[StreamStatistics, ...]
    pairs: tuple[PairStatistics, ...]

    def pair(self, given: int, stream: int) -> PairStatistics:
        """Return the statistics of two different streams. Raises KeyError if they are the same."""
        if given == stream:
            raise KeyError(f"stream {stream} makes no pair with itself")
        return self.pairs[given * (len(self.streams) - 1) + stream - (stream > given)]
