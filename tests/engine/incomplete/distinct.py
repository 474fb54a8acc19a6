"""The workload of the published figures: streams of distinct objects, count windows, two attributes added up."""

from typing import NamedTuple

import numpy as np

from skyband.engine.incomplete.own_recall import picked
from skyband.engine.ranked import ForgettingRanking
from skyband.generate.attribute_streams import distinct_objects
from skyband.model.binding import BoundQuery, bind
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, Window
from skyband.model.stream import Attribute, Stream
from skyband.structures.hashing import hash_ids
from skyband.structures.store_arrays import Rows
from tests.engine.incomplete.driving import ask, drive


def asked(size: int, slide: int, k: int, streams: int = 2, repeat_after: int | None = None) -> tuple[BoundQuery, Group]:
    """Return a query for the k largest sums over the last `size` rows of streams whose objects come once.

    `repeat_after`: all that is promised of them, in rows; the window is one of time then, a microsecond for each row.
    """
    names = "abcd"[:streams]
    group = Group(
        name="g",
        streams=tuple(
            Stream(
                name=name,
                attributes=(Attribute(name=name, lo=0.0, hi=1.0),),
                repeat_after_us=repeat_after or MAX_TIME_US,
            )
            for name in names
        ),
        retention_us=size,
        pane_us=1,
        retention_rows=size,
    )
    window = Window(size, slide, in_rows=repeat_after is None)
    return bind(group, Query(name="q", k=k, score=" + ".join(names), window=window)), group


def distinct_rows(seed: int, count: int, alpha: float, streams: int = 2, recent: int = 100) -> Rows:
    """Return rows of distinct objects in the order of their times, which are then counted from 0."""
    parts = distinct_objects(seed, count, streams=streams, alpha=alpha, recent=recent)
    starts = np.cumsum([0, *(len(part.id_bytes) for part in parts)])
    id_bytes = np.concatenate([part.id_bytes for part in parts])
    id_ends = np.concatenate([part.id_ends + start for part, start in zip(parts, starts, strict=False)])
    times = np.concatenate([part.event_time_us for part in parts])
    rows = Rows(
        stream=np.repeat(np.arange(streams, dtype=np.int32), [len(part.event_time_us) for part in parts]),
        event_time_us=times,
        id_bytes=id_bytes,
        id_ends=id_ends,
        id_hash=hash_ids(id_bytes, id_ends).view(np.int64),
        values=np.concatenate([part.values for part in parts]),
    )
    order = np.argsort(times, kind="stable")
    return picked(rows, order, np.arange(count))


class Measured(NamedTuple):
    """Means over evaluations after two windows: share of the exact result shown, instances held, and by the exact."""

    precision: float
    held: float
    exact_held: float


def measure(
    exact: ForgettingRanking, ranking: ForgettingRanking, rows: Rows, size: int, slide: int, k: int
) -> Measured:
    """Drive both over the same rows."""
    hits, held, exact_held = [], [], []
    for end in range(slide, len(rows.stream) + 1, slide):
        results = []
        for each in (exact, ranking):
            drive(each, rows, end - slide, end, end - size, slide)
            ranked = ask(each, end, size, k)
            arena, ends = each.objects.ids(ranked.slot)
            results.append({arena[a:b].tobytes() for a, b in zip((0, *ends), ends, strict=False)})
        if end > 2 * size:
            hits.append(len(results[0] & results[1]) / k)
            held.append(ranking.held)
            exact_held.append(exact.held)
    assert len(hits) >= 50
    return Measured(float(np.mean(hits)), float(np.mean(held)), float(np.mean(exact_held)))
