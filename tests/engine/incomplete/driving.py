"""Drives a ranking that forgets over rows, one evaluation after the other, and says what brute force shows there."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skyband.engine.ranked import ForgettingRanking, Ranked
from skyband.local.brute_force import rank as exact_ranking
from skyband.local.brute_force import windows
from skyband.local.brute_force_score import scorer
from skyband.model.binding import BoundQuery, bind
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Late, Stream
from skyband.structures.hashing import hash_ids
from skyband.structures.store_arrays import Rows
from tests.engine.variants import promising
from tests.oracle import Row, Seen, accepted
from tests.workloads import Definitions, Seeded, make_rows

Partitions = dict[tuple[int, int], list[Row]]


def columns(group: Group, seen: Sequence[Seen]) -> Rows:
    """Return accepted rows, in total order, in columns."""
    ids = [row.object_id.encode() for row in seen]
    values = np.zeros((len(seen), group.width))
    for i, row in enumerate(seen):
        values[i, : len(row.values)] = row.values
    ends = np.cumsum([len(i) for i in ids], dtype=np.int64)
    arena = np.frombuffer(b"".join(ids), np.uint8).copy()
    return Rows(
        stream=np.array([row.stream for row in seen], np.int32),
        event_time_us=np.array([row.event for row in seen], np.int64),
        id_bytes=arena,
        id_ends=ends,
        id_hash=hash_ids(arena, ends).view(np.int64),
        values=values,
    )


def evaluations(group: Group, query: Query, seen: Sequence[Seen]) -> Iterator[tuple[int, int, list[Seen]]]:
    """Yield (how many rows come before it, its end in ticks, the rows it sees) of each evaluation."""
    release = np.array([row.release for row in seen], np.int64)
    for _, end, inside in windows(query.window, list(seen)):
        if query.window.in_rows:
            yield end, end, inside
        else:
            yield int(np.searchsorted(release, end)), end // group.pane_us, inside


def drive(ranking: ForgettingRanking, rows: Rows, before: int, stop: int, low: int, batch: int) -> int:
    """Hand rows [before, stop) to a ranking in batches; return `stop`."""
    for first in range(before, stop, batch):
        ranking.take(rows, first, min(first + batch, stop), low, first)
    return stop


def ticks(group: Group, query: Query) -> tuple[int, int]:
    """Return a query's size and slide in ticks."""
    unit = 1 if query.window.in_rows else group.pane_us
    return query.window.size // unit, query.window.slide // unit


def ask(ranking: ForgettingRanking, end: int, size: int, k: int) -> Ranked:
    """Evaluate."""
    return ranking.rank(end, np.array([size]), np.array([k]))


def shown(ranking: ForgettingRanking, ranked: Ranked) -> list[dict[str, Any]]:
    """Return a ranking as brute force writes it."""
    found = []
    own = ranked.ranking[ranked.starts[0] : ranked.starts[1]]
    arena, ends = ranking.objects.ids(ranked.slot[own])
    start = 0
    for place, at in enumerate(own):
        object_id = arena[start : ends[place]].tobytes().decode()
        start = int(ends[place])
        score = float(ranked.rank[at]) if ranking.bound.descending else 0.0 - float(ranked.rank[at])
        bits = int(ranked.present[at])
        attributes = {c.name: float(ranked.values[at, j]) for j, c in enumerate(ranking.bound.columns) if bits >> j & 1}
        found.append({"rank": place + 1, "object_id": object_id, "score": score, "attributes": attributes})
    return found


def truth(group: Group, bound: BoundQuery, inside: list[Seen]) -> list[dict[str, Any]]:
    """Return what brute force shows."""
    return exact_ranking(group, bound, scorer(bound.query.score), inside)


def assert_exact(
    ranking: ForgettingRanking, group: Group, partitions: Partitions, batch: int = 7, every: int = 1
) -> int:
    """Assert that a ranking shows what brute force shows, to the last bit, at each evaluation; return how many rows."""
    query = ranking.bound.query
    seen = accepted(group, partitions)
    rows, (size, _) = columns(group, seen), ticks(group, query)
    before = found = 0
    for count, (stop, end, inside) in enumerate(evaluations(group, query, seen)):
        before = drive(ranking, rows, before, stop, end - size, batch)
        if count % 5 == 0:
            ranking._check()
        if count % every:
            continue
        got = shown(ranking, ask(ranking, end, size, query.k))
        expected = truth(group, ranking.bound, inside)
        assert repr(got) == repr(expected), (query, end, got, expected)
        found += len(got)
        if count % 5 == 0:
            ranking._check()
    return found


PROMISES = ("none", "once", "twice", "never")


def steady(seed: int, size: int, promise: str | None = None) -> tuple[Group, Query, Partitions]:
    """Return a group, a query that an algorithm that forgets can serve, and rows that keep the group's promises."""
    choose = Seeded(seed)
    promise = promise or choose.pick(PROMISES)
    pane = choose.pick((1, 10, 1_000_000))
    lowest = choose.chance(30)
    panes = choose.number(1, 12)
    slide = choose.pick((1, 2, 3, 5, panes, panes + 2))
    by_count = promise in ("none", "never") and choose.chance(25)
    window = Window(choose.number(1, 20), choose.pick((1, 2, 7)), in_rows=True)
    if not by_count:
        window = Window(panes * pane, slide * pane)
    streams, terms = [], []
    for i in range(choose.number(1, 4)):
        falls = choose.chance(30)
        terms.append(f"{'-' if falls else ''}{choose.pick(('1', '0.7', '3'))}*{'abcd'[i]}")
        high = falls == lowest
        options = [Aggregate.BEST, Aggregate.BEST, Aggregate.MAX if high else Aggregate.MIN]
        if promise != "none" and high:
            options += [Aggregate.SUM, Aggregate.COUNT]
        attribute = Attribute(name="abcd"[i], lo=0.0, hi=choose.pick((10.0, 3.0)))
        streams.append(
            Stream(
                name="abcd"[i],
                attributes=(attribute,),
                aggregate=choose.pick(options),
                max_delay_us=choose.pick((0, pane, 3 * pane)),
                late=choose.pick((Late.APPLY, Late.APPLY, Late.DROP)),
            )
        )
    group = Group(
        name="g", streams=tuple(streams), retention_us=16 * pane, pane_us=pane, retention_rows=20 if by_count else 0
    )
    query = Query(
        name="q",
        k=choose.pick((1, 2, 3, 5, 1_000)),
        score=" + ".join(terms),
        window=window,
        order=Order.LOWEST if lowest else Order.HIGHEST,
        require=("a",) if choose.chance(20) else (),
        require_all=choose.chance(20),
    )
    partitions = make_rows(choose, Definitions(group, (query,)), [choose] * size)
    if promise != "none":
        repeat = {"once": panes * pane, "twice": 2 * panes * pane, "never": MAX_TIME_US}[promise]
        group, partitions = promising(group, partitions, repeat)
    bind(group, query)
    return group, query, partitions


def with_streams(group: Group, **more: Any) -> Group:
    """Return the group with something else said of each stream."""
    return replace(group, streams=tuple(replace(stream, **more) for stream in group.streams))
