"""The engine on one core: aligned batches in, partials out; no log, no decoding, no merge."""

from dataclasses import dataclass, replace
from time import process_time

import numpy as np

from skyband.align.aligner import Aligner
from skyband.align.source import SourceStart
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.engine.shard import Shard
from skyband.generate.arrivals import source_rows
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.partials import PartialBatch
from skyband.model.planner import plan
from skyband.model.query import Query, QueryState, Window
from skyband.model.stream import Aggregate, Attribute, Stream

BATCH_ROWS = 20_000


@dataclass(frozen=True)
class Work:
    """Batches for one shard, and who asks what of them."""

    group: Group
    batches: list[AlignedBatch]
    rows: int


def aligned(group: Group, columns: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Work:
    """Return batches of rows that come in event-time order; per stream: objects, event times (us), values."""
    places = {(stream, 0): SourceStart() for stream in range(len(columns))}
    aligner = Aligner(group, 1, 1, places, max_rows=10 * BATCH_ROWS)
    cursors = [0] * len(columns)
    batches: list[AlignedBatch] = []
    rows = sum(len(objects) for objects, _, _ in columns)
    last = max(int(times[-1]) for _, times, _ in columns)
    step = max(1, round((last + 1) / (rows / BATCH_ROWS)))
    for end in range(step, last + step + 1, step):
        for stream, (objects, times, values) in enumerate(columns):
            lo = cursors[stream]
            hi = int(np.searchsorted(times, end))
            chunk = source_rows(times[lo:hi], objects[lo:hi], values[lo:hi], np.arange(hi - lo))
            chunk = replace(chunk, offset=np.arange(lo, hi))
            aligner.add(stream, 0, lo, hi, chunk)
            cursors[stream] = hi
        batches += aligner.flush(0)
    for stream in range(len(columns)):
        aligner.finish(stream, 0)
    batches += aligner.flush(0)
    return Work(group, batches, rows)


def run(work: Work, queries: list[Query]) -> dict[str, float]:
    """Run the queries over the batches; return rows a second and what was held at most."""
    group = work.group
    shard = Shard(group, 1, 0, Sequencer(group, 1, 0, {(s, 0): 0 for s in range(len(group.streams))}, 1 << 40))
    for query in queries:
        chosen = replace(query, algorithm=plan(group, query).algorithm)
        shard.change(QueryChange(uid=query.name, revision=1, group=group.name, query=chosen, state=QueryState.ACTIVE))
    held = evaluations = 0
    began = process_time()
    for batch in work.batches:
        shard.offer(batch)
        for value in shard.advance():
            evaluations += len(value.evaluations) if isinstance(value, PartialBatch) else 0
        held = max(held, shard.statistics().held)
    seconds = process_time() - began
    statistics = shard.statistics()
    return {
        "rows": work.rows,
        "seconds": seconds,
        "rows_per_s": work.rows / seconds,
        "evaluations": evaluations,
        "held": held,
        "refills": statistics.refills,
        "state_mb": statistics.state_bytes / 1e6,
    }


def two_attributes(objects: int, window: int, pane: int, seed: int = 1) -> Work:
    """Each object once in each of two streams, the second up to a tenth of a window later; one object a microsecond."""
    rng = np.random.default_rng(seed)
    first = np.arange(objects, dtype=np.int64)
    second = first + rng.integers(0, window // 10, objects)
    order = np.argsort(second, kind="stable")
    streams = tuple(Stream(name=name, attributes=(Attribute(name=name, hi=1.0),)) for name in ("a", "b"))
    group = Group(name="bench", streams=streams, retention_us=window, pane_us=pane)
    values = rng.random((2, objects))
    return aligned(group, [(first, first, values[0]), (first[order], second[order], values[1])])


def rank(objects: int, window: int, k: int, slide: int) -> dict[str, float]:
    """Top k of the objects of a window by a weighted sum."""
    work = two_attributes(objects, window, slide)
    query = Query(name="top", k=k, score="0.7*a + 0.3*b", window=Window(window, slide))
    result = run(work, [query])
    result["hot_against_theory"] = result["held"] / (k * (1 + np.log(window / k)))
    return result


def many_queries(objects: int, window: int, slide: int, queries: int) -> dict[str, float]:
    """Queries of different k and window on one score, against one of the largest."""
    work = two_attributes(objects, window, slide)
    asked = [
        Query(
            name=f"q{i}",
            k=1 + i % 10,
            score="0.7*a + 0.3*b",
            window=Window(slide * (1 + i * (window // slide) // queries), slide),
        )
        for i in range(queries)
    ]
    alone = run(work, [Query(name="top", k=10, score="0.7*a + 0.3*b", window=Window(window, slide))])
    result = run(work, asked)
    result["times_one_query"] = result["seconds"] / alone["seconds"]
    return result


def view(objects: int, panes: int, rows_per_pane: int, seconds: int) -> dict[str, float]:
    """Top 10 objects by a window sum, every pane."""
    rng = np.random.default_rng(2)
    rows = rows_per_pane * seconds
    times = np.arange(rows, dtype=np.int64) * 1_000_000 // rows_per_pane
    stream = Stream(name="v", attributes=(Attribute(name="v"),), aggregate=Aggregate.SUM)
    group = Group(name="bench", streams=(stream,), retention_us=panes * 1_000_000)
    work = aligned(group, [(rng.integers(0, objects, rows), times, rng.random(rows))])
    return run(work, [Query(name="top", k=10, score="v", window=Window(panes * 1_000_000, 1_000_000))])


CASES = {
    "rank_100k": lambda: rank(1_000_000, 100_000, 10, 1_000),
    "rank_1m": lambda: rank(2_000_000, 1_000_000, 100, 1_000),
    "many_queries": lambda: many_queries(500_000, 100_000, 1_000, 1_000),
    "view_sums": lambda: view(10_000, 60, 100_000, 100),
    "view_sums_sparse": lambda: view(10_000, 60, 6_667, 300),
}
