"""Groups, queries and rows of every variety, for comparing fast paths with the oracle.

One set of builders, driven by a *chooser*: from Hypothesis (it shrinks) or from a seed (it is fast and can be large).
To Hypothesis a row is one string of bytes, so that it can leave out rows and simplify each.
Values and times come from small sets, so that ties, equal times and exact window boundaries are the rule.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.model.binding import bind
from skyband.model.group import Group
from skyband.model.query import Order, Query, Window
from skyband.model.source_rows import SourceRows
from skyband.model.stream import Aggregate, Attribute, Identity, Late, OutOfRange, Stream
from tests.oracle import Partitions, Row

T = TypeVar("T")

# Starts of time: the epoch, now, and before the epoch.
STARTS = (0, 1_700_000_000_000_000, -50_000_000)
PANES = (1_000_000, 1, 250_000)
BOUNDS = ((0.0, 10.0), (0.0, math.inf), (-5.0, 5.0), (1.0, 4.0), (-10.0, -1.0), (-math.inf, math.inf), (-math.inf, 3.0))
MISSING = (None, None, None, 0.0, 2.5, -3.0)
NUMBERS = ("0.7", "3", "2", "0.1", "-1", "0.5")
# Ids that share their first 8 and 16 bytes, whose order differs in UTF-16, that contain or end in a zero byte.
IDS = (
    *("b", "a", "ab", "a\x00", "B", "z" * 40, "0", "10", "9", " ", "é", "e\u0301", "漢字", "\uffff", "\U0001f701"),
    *("sensor-0", "sensor-00", "sensor-01", "sensor-00-north-1", "sensor-00-north-2", "sensor-00-north-10"),
    *("漢" * 13, "漢" * 12 + "字", "ß", "SS", "a b", "a/b", '"', "\\"),
)


class Definitions(NamedTuple):
    """A group and queries that bind to it."""

    group: Group
    queries: tuple[Query, ...]


class Chooser(Protocol):
    """Where the variety comes from."""

    def number(self, lo: int, hi: int) -> int:
        """Return an integer in [lo, hi]."""

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; the first is the simplest."""

    def chance(self, percent: int) -> bool:
        """Return True in about `percent` of 100 cases."""


class Seeded:
    """Chooses by a seeded random generator."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def number(self, lo: int, hi: int) -> int:
        return self._random.randint(lo, hi)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent


class Drawn:
    """Chooses by Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def number(self, lo: int, hi: int) -> int:
        return self._draw(st.integers(lo, hi))

    def pick(self, options: Sequence[T]) -> T:
        return options[self._draw(st.integers(0, len(options) - 1))]

    def chance(self, percent: int) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 - percent


class Bytes:
    """Chooses by the bytes of a string, again and again; zeros give the simplest."""

    def __init__(self, data: bytes) -> None:
        self._bytes = cycle(data)

    def number(self, lo: int, hi: int) -> int:
        value, reach = next(self._bytes), 256
        while reach <= hi - lo:
            value, reach = value * 256 + next(self._bytes), reach * 256
        return lo + value % (hi - lo + 1)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent


def make_definitions(choose: Chooser, *, counts: bool = True) -> Definitions:
    """Return a group of 1 to 4 streams and 1 to 4 queries that bind; `counts` allows count windows."""
    while True:
        group = _group(choose, counts)
        found = [query for i in range(choose.number(1, 4)) if (query := _query(choose, group, f"q{i}", counts))]
        if found:
            # Names out of order, so that results cannot be in the right order by accident.
            return Definitions(group, tuple(found[::-1]))


def _group(choose: Chooser, counts: bool) -> Group:
    pane = choose.pick(PANES)
    if choose.chance(15):
        streams = [_stream(choose, "points", ("a", "b", "c")[: choose.number(1, 3)], pane, Identity.ROW)]
    else:
        streams = []
        for i in range(choose.number(1, 4)):
            name = "abcd"[i]
            of_objects = choose.chance(30)
            names = tuple(f"{name}{j}" for j in range(choose.number(1, 3))) if of_objects else (name,)
            streams.append(_stream(choose, f"{name}s" if of_objects else name, names, pane, Identity.OBJECT))
    return Group(
        name="g", streams=tuple(streams), retention_us=pane * 16, pane_us=pane, retention_rows=20 if counts else 0
    )


def _stream(choose: Chooser, name: str, attributes: tuple[str, ...], pane: int, identity: Identity) -> Stream:
    aggregate = choose.pick((*Aggregate, Aggregate.BEST, Aggregate.BEST, Aggregate.MAX))
    return Stream(
        name=name,
        attributes=tuple(_attribute(choose, attribute) for attribute in attributes),
        is_object_stream=attributes != (name,),
        identity=identity,
        aggregate=aggregate,
        max_delay_us=choose.pick((0, pane, 3 * pane, 1)),
        late=choose.pick((Late.APPLY, Late.APPLY, Late.DROP)),
    )


def _attribute(choose: Chooser, name: str) -> Attribute:
    lo, hi = choose.pick(BOUNDS)
    out = choose.pick((OutOfRange.REJECT, OutOfRange.CLAMP))
    return Attribute(name=name, lo=lo, hi=hi, out_of_range=out, missing=choose.pick(MISSING))


def _query(choose: Chooser, group: Group, name: str, counts: bool) -> Query | None:
    """Return a query that binds, or None if a few attempts find none."""
    for _ in range(6):
        streams = tuple(stream.name for stream in group.streams if choose.chance(40))
        query = Query(
            name=name,
            k=choose.pick((2, 1, 3, 5, 1_000)),
            score=_score(choose, group.attribute_names, 3),
            window=_window(choose, group, counts),
            order=choose.pick((Order.HIGHEST, Order.LOWEST)),
            require=streams if choose.chance(30) else (),
            require_all=choose.chance(20),
        )
        try:
            bind(group, query)
        except DefinitionError:
            continue
        return query
    return None


def _window(choose: Chooser, group: Group, counts: bool) -> Window:
    if counts and choose.chance(15):
        return Window(choose.number(1, 20), choose.pick((1, 1, 2, 7)), in_rows=True)
    size, slide = choose.number(1, 12), choose.pick((1, 2, 3, 5))
    if choose.chance(30):
        slide = size + choose.pick((0, 0, 1, 4))  # tumbling, or with gaps
    return Window(size * group.pane_us, slide * group.pane_us)


def _score(choose: Chooser, names: Sequence[str], depth: int) -> str:
    """Return an expression: mostly weighted sums, which bind to most groups. (What is not chanced is the simplest.)"""
    if depth == 3 and not choose.chance(50):
        used = [name for name in names if choose.chance(60)] or [names[0]]
        return " + ".join(f"{choose.pick(NUMBERS)}*{name}" for name in used)
    if depth == 0 or not choose.chance(85):
        return choose.pick((*names, *names, *names, choose.pick(NUMBERS)))
    forms = ("-({0})", "abs({0})", "{0} + {1}", "({0}) * {1}", "{0} - ({1})", "min({0}, {1})", "max({0}, {1})")
    rare = ("({0}) / ({1})", "sqrt({0})", "log1p({0})", "exp({0})", "({0})**2", "pow({0}, 0.5)", "pow({0}, -1)")
    form = choose.pick(rare if choose.chance(35) else forms)
    return form.format(*(_score(choose, names, depth - 1) for _ in range(form.count("{"))))


@dataclass
class _Clock:
    """Event time as it goes on: `now` is where the next row would be if it were neither late nor early."""

    pane: int
    now: int

    def step(self, choose: Chooser) -> int:
        """Move on, and return the event time of a row: bursts, exact boundaries, empty stretches."""
        jump = choose.number(0, 99)
        if jump >= 97:
            self.now += self.pane * choose.number(5, 40)
        elif jump >= 60:
            self.now += choose.number(1, max(1, self.pane // 2))
        elif jump >= 45:
            self.now = (self.now // self.pane + 1) * self.pane
        time = self.now
        if choose.chance(20):
            time -= choose.number(0, 6 * self.pane)
        if choose.chance(25):
            time = time // self.pane * self.pane - choose.pick((0, 0, 1))
        return time


def make_rows(
    setting: Chooser, definitions: Definitions, choosers: Sequence[Chooser]
) -> dict[tuple[int, int], list[Row]]:
    """Return a row by each of `choosers` (more if one goes everywhere), in 1 to 3 source partitions of each stream."""
    group = definitions.group
    parts = {(s, p): list[Row]() for s in range(len(group.streams)) for p in range(setting.pick((1, 1, 2, 3)))}
    places = list(parts)
    pool = [setting.pick(IDS) for _ in range(setting.pick((3, 8, 20)))]
    trend = setting.pick((0, 0, 1, -1))
    clock = _Clock(group.pane_us, setting.pick(STARTS))
    for i, choose in enumerate(choosers):
        everywhere = choose.chance(8)  # one row of the object in every partition, at the same time
        chosen = places if everywhere else [choose.pick(places)]
        time = clock.step(choose)
        object_id = choose.pick(pool)
        if choose.chance(15):
            object_id = f"{choose.pick(('n', 'sensor-00-north-'))}{i}"  # seen this once
        if choose.chance(2):
            object_id = ""
        for place in chosen:
            attributes = group.streams[place[0]].attributes
            values = tuple(_value(choose, attribute, trend * i / len(choosers)) for attribute in attributes)
            parts[place].append(Row(object_id, time, values))
    return parts


def _value(choose: Chooser, attribute: Attribute, trend: float) -> float:
    """Return a value: mostly one of five within the bounds, with a trend, sometimes arbitrary or unusable."""
    lo = attribute.lo if math.isfinite(attribute.lo) else -4.0
    hi = attribute.hi if math.isfinite(attribute.hi) else lo + 8.0
    kind = choose.number(0, 99)
    if kind >= 97:
        return choose.pick((math.nan, math.inf, -math.inf, hi + 1.0, lo - 1.0, 1e300))
    if kind >= 94:
        return -0.0
    share = choose.number(0, 1_000) / 1_000 if kind >= 80 else choose.pick((0.5, 0.0, 0.25, 0.75, 1.0))
    if trend:
        share = min(1.0, max(0.0, 0.7 * abs(trend if trend > 0 else 1 + trend) + 0.3 * share))
    return lo + (hi - lo) * share


@st.composite
def definitions(draw: st.DrawFn, *, counts: bool = True) -> Definitions:
    """Draw a group and queries that bind to it."""
    return make_definitions(Drawn(draw), counts=counts)


@st.composite
def rows(draw: st.DrawFn, definitions: Definitions, max_rows: int = 60) -> dict[tuple[int, int], list[Row]]:
    """Draw up to `max_rows` rows (a few more if some go everywhere) for a group."""
    # Hypothesis keeps lists short unless told otherwise: without a least length, 4 rows on average.
    least = draw(st.sampled_from((0, max_rows // 8, max_rows // 4, max_rows // 2)))
    strings = draw(st.lists(st.binary(min_size=20, max_size=20), min_size=least, max_size=max_rows))
    return make_rows(Drawn(draw), definitions, [Bytes(string) for string in strings])


def seeded(
    seed: int, size: int | None = None, *, counts: bool = True
) -> tuple[Group, tuple[Query, ...], dict[tuple[int, int], list[Row]]]:
    """Return group, queries and rows of a seed: about `size` rows, by default from 0 to 3,000, mostly a few hundred."""
    choose = Seeded(seed)
    made = make_definitions(choose, counts=counts)
    count = choose.number(0, choose.pick((30, 300, 300, 1_000, 3_000))) if size is None else size
    return made.group, made.queries, make_rows(choose, made, [choose] * count)


def source_rows(rows: Sequence[Row], width: int, first_offset: int = 0) -> SourceRows:
    """Return rows of one source partition in columns, at consecutive offsets; `width` is the stream's attributes."""
    ids = [row.object_id.encode() for row in rows]
    return SourceRows(
        offset=np.arange(first_offset, first_offset + len(rows), dtype=np.int64),
        event_time_us=np.array([row.event_time_us for row in rows], dtype=np.int64),
        id_bytes=np.frombuffer(b"".join(ids), dtype=np.uint8).copy(),
        id_ends=np.cumsum([len(i) for i in ids], dtype=np.int64),
        values=np.array([row.values for row in rows], dtype=np.float64).reshape(len(rows), width),
        reason=np.zeros(len(rows), dtype=np.uint8),
    )


def input_files(group: Group, partitions: Partitions) -> list[list[dict[str, object]]]:
    """Return replay's input: file after file (file p holds source partition p of every stream), one dict a row."""
    files: list[list[dict[str, object]]] = [[] for _ in range(1 + max((p for _, p in partitions), default=0))]
    for (index, partition), part in sorted(partitions.items()):
        stream = group.streams[index]
        names = [attribute.name for attribute in stream.attributes] if stream.is_object_stream else ["value"]
        for row in part:
            head = {"stream": stream.name, "object_id": row.object_id, "event_time": row.event_time_us}
            files[partition].append(head | dict(zip(names, row.values, strict=True)))
    return files
