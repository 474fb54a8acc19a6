"""Algorithms that forget, and what they know of the streams, on one core: rows in columns in, no shard around them."""

from time import process_time

import numpy as np

from benchmarks.papers.columns import distinct_rows, numbered
from skyband.engine.incomplete import EaaRelaxed, EaaTail
from skyband.model.binding import bind
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, Window
from skyband.model.stream import Attribute, Stream
from skyband.sketch.group_sketch import GroupSketch
from skyband.structures.store_arrays import Rows

BATCH_ROWS = 10_000


def soon(count: int) -> Rows:
    """Return rows of the paper's generator, row n at n us: half of them of one of the last 100 objects of the other."""
    return distinct_rows(1, count, alpha=0.5)


def apart(count: int, window: int) -> Rows:
    """Return rows of two streams, row n at n us; half of the objects come on both, up to W / 10 rows apart."""
    random = np.random.default_rng(1)
    objects = -(-count * 2 // 3) + window
    first = np.arange(objects)
    again = np.flatnonzero(random.random(objects) < 0.5)
    # Of three rows two are of objects that come for the first time.
    times = np.concatenate([first, again + random.integers(0, window * 2 // 30, len(again))])
    order = np.argsort(times, kind="stable")[:count]
    came = np.concatenate([first, again])[order]
    stream = np.where(order < objects, came % 2, 1 - came % 2)
    return numbered(stream, came, random.random(count))


def forgetting(kind: type[EaaRelaxed], rows: Rows, window: int, k: int, slides: int = 100) -> dict[str, float]:
    """Rank the last `window` rows by a sum, `slides` times a window; no object comes twice on a stream."""
    count = len(rows.stream)
    streams = tuple(
        Stream(name=name, attributes=(Attribute(name=name, hi=1.0),), repeat_after_us=MAX_TIME_US) for name in "ab"
    )
    group = Group(name="bench", streams=streams, retention_us=window, pane_us=1, retention_rows=window)
    slide = window // slides
    bound = bind(group, Query(name="top", k=k, score="a + b", window=Window(window, slide, in_rows=True)))
    ranking = kind(bound, group)
    sizes, ks = np.array([window]), np.array([k])
    held = evaluations = 0
    began = process_time()
    for end in range(slide, count + 1, slide):
        for first in range(end - slide, end, BATCH_ROWS):
            ranking.take(rows, first, min(first + BATCH_ROWS, end), end - window, first)
        held = max(held, ranking.held)
        ranking.rank(end, sizes, ks)
        evaluations += 1
    seconds = process_time() - began
    return {
        "rows": count,
        "seconds": seconds,
        "rows_per_s": count / seconds,
        "evaluations": evaluations,
        "held": held,
        "state_mb": ranking.state_bytes / 1e6,
    }


def sketch(count: int) -> dict[str, float]:
    """Keep the sketches of two streams: 64 bitmaps and 5 KB of sample each, windows of 100,000 rows."""
    window_us = 100_000
    rows = soon(count)
    pane_us = window_us // 50
    found = GroupSketch(2, 1, window_us, pane_us, bitmaps=64, budget_bytes=2 * 5 * 1024)
    began = process_time()
    for first in range(0, count, BATCH_ROWS):
        last = min(first + BATCH_ROWS, count)
        found.add(rows, first, last)
        found.expire(last // pane_us * pane_us - window_us)
    seconds = process_time() - began
    return {"rows": count, "seconds": seconds, "rows_per_s": count / seconds, "state_mb": found.state_bytes / 1e6}


CASES = {
    "forget_100k": lambda: forgetting(EaaRelaxed, soon(2_000_000), 100_000, 10),
    "forget_1m": lambda: forgetting(EaaRelaxed, soon(3_000_000), 1_000_000, 100),
    "forget_apart_100k": lambda: forgetting(EaaRelaxed, apart(2_000_000, 100_000), 100_000, 10),
    "forget_tail_100k": lambda: forgetting(EaaTail, soon(1_000_000), 100_000, 10),
    "sketch_rows": lambda: sketch(2_000_000),
}
