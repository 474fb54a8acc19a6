"""Values of every topic: drawn by Hypothesis, and made by the stages that make them."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.fanout.activation import Activation, Mark, MergeCheckpoint, ShardProgress
from skyband.model.catalog import QueryChange
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.partials import Activated, Contender, Evaluation, MergeProgress, PartialBatch, Progress
from skyband.model.query import Algorithm, Order, Query, QueryState, Window
from skyband.model.result import Candidate, Result, ResultRow
from skyband.model.source_rows import DeadLetter, Reason
from skyband.model.status import Holder, QueryReport, ShardReport, SourceReport
from skyband.sketch.publication import Publication
from tests.engine.pure_pipeline import PurePipeline, planned
from tests.workloads import seeded, source_rows

counts = st.integers(0, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
times = st.integers(MIN_TIME_US, MAX_TIME_US) | st.sampled_from([MIN_TIME_US, MAX_TIME_US, 0])
texts = st.text(max_size=12)
names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_-]{0,8}", fullmatch=True)
numbers = st.floats(allow_nan=False)


def tuples_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, max_size=3).map(tuple)


windows = st.builds(Window, st.integers(1, 10**12), st.integers(1, 10**12), st.booleans())
queries = st.builds(
    Query,
    name=names,
    k=st.integers(1, 1_000_000),
    score=texts,
    window=windows,
    order=st.sampled_from(Order),
    require=tuples_of(names),
    require_all=st.booleans(),
    algorithm=st.sampled_from(Algorithm),
)
changes = st.builds(
    QueryChange, uid=texts, revision=counts, group=names, query=queries, state=st.sampled_from(QueryState)
)
documents = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
places = st.fixed_dictionaries({"group": names, "generation": counts, "shard": counts, "aligned_offset": offsets})
checkpoints = st.builds(lambda state, place: {**state, **place}, documents, places)
chunks = st.builds(lambda piece, place: {**place, "chunk": piece}, st.binary(max_size=100), places)

result_rows = st.builds(
    ResultRow,
    counts,
    texts,
    numbers,
    st.dictionaries(names, numbers, max_size=3),
    st.none() | times,
    st.none() | numbers,
    st.none() | times,
)
candidates = st.builds(Candidate, texts, st.none() | numbers, st.none() | numbers, tuples_of(names), times)
results = st.builds(
    Result,
    query=names,
    uid=texts,
    window_start=times,
    window_end=times,
    rows=tuples_of(result_rows),
    frontier_us=st.none() | times,
    revision=counts,
    candidates=tuples_of(candidates),
)
letters = st.builds(
    DeadLetter,
    stream=names,
    topic=texts,
    partition=counts,
    offset=offsets,
    reason=st.sampled_from(Reason),
    error=texts,
    raw=st.binary(max_size=40),
)

activations = st.builds(Activation, counts, times, st.booleans(), times, counts, offsets)
marks = st.builds(
    Mark,
    change=changes,
    window_end=times,
    had_rows=st.booleans(),
    states=tuples_of(st.tuples(counts, st.booleans())),
    activations=tuples_of(tuples_of(activations)),
)
by_partition = st.dictionaries(counts, offsets, max_size=3)
merge_checkpoints = st.builds(
    MergeCheckpoint,
    group=names,
    generation=counts,
    progress=tuples_of(st.builds(ShardProgress, counts, counts, times, times, offsets)),
    read_to=by_partition,
    needed=by_partition,
    catalog_to=offsets,
)

progress = st.builds(Progress, names, counts, counts, times, times)
activated = st.builds(Activated, names, counts, counts, texts, counts, times)
merge_progress = st.builds(MergeProgress, names, counts, times, by_partition)
holders = st.builds(
    Holder,
    stream=names,
    partition=counts,
    watermark_us=times,
    unread_rows=st.none() | offsets,
    reader=texts,
    rows_per_second=st.none() | numbers,
)
query_reports = st.builds(
    QueryReport,
    uid=texts,
    evaluations=offsets,
    last_result_us=st.none() | times,
    last_window_end=st.none() | times,
    hot=offsets,
    state_bytes=offsets,
    broken_promises=offsets,
)
shard_reports = st.builds(
    ShardReport,
    group=names,
    generation=counts,
    shard=counts,
    frontier_us=times,
    newest_us=times,
    holder=st.none() | holders,
    stopped=texts,
    rows_in=offsets,
    rows_late=offsets,
    objects=offsets,
    state_bytes=offsets,
    queries=tuples_of(query_reports),
)
source_reports = st.builds(
    SourceReport,
    group=names,
    generation=counts,
    stream=names,
    partition=counts,
    rejected=tuples_of(st.tuples(texts, offsets)),
    paused=st.booleans(),
    unread_rows=st.none() | offsets,
    rows_per_second=st.none() | numbers,
    reader=texts,
)

publications = st.builds(
    Publication,
    group=names,
    generation=counts,
    shard=counts,
    aligned_offset=offsets,
    next_offsets=tuples_of(st.tuples(st.integers(-1, 63), counts, offsets)),
    newest_us=times,
    from_us=times,
    to_us=times,
    source=texts,
    published_us=times,
    observations=st.binary(max_size=40),
    sketch=st.binary(max_size=40),
)


@st.composite
def id_columns(draw: st.DrawFn, rows: int) -> tuple[Any, Any]:
    ids = draw(st.lists(st.binary(max_size=20), min_size=rows, max_size=rows))
    return np.frombuffer(b"".join(ids), np.uint8).copy(), np.cumsum([len(i) for i in ids], dtype=np.int64)


@st.composite
def aligned_batches(draw: st.DrawFn) -> AlignedBatch:
    """Draw batches that no aligner would make: any offsets that ascend, any times on the time line."""
    sections: list[Section] = []
    columns: list[int] = []
    for _ in range(draw(st.integers(0, 3))):
        found = sorted(draw(st.sets(st.integers(0, 2**62) | st.integers(0, 300), min_size=2, max_size=8)))
        first, *its, last = found
        columns += its
        sections.append(
            Section(
                stream=draw(st.integers(-1, 63)),
                partition=draw(counts),
                from_offset=first,
                to_offset=last,
                rows=len(its),
                watermark_us=draw(times),
                newest_us=draw(times),
                idle_until_us=draw(times),
            )
        )
    rows = len(columns)
    width = draw(st.integers(0, 3))
    numbers_of = st.lists(times, min_size=rows, max_size=rows) | st.lists(
        st.integers(0, 70_000), min_size=rows, max_size=rows
    )
    event_time_us = np.array(draw(numbers_of), np.int64) // 2  # event times and delays both stay in int64
    delays = np.abs(np.array(draw(numbers_of), np.int64)) // draw(st.sampled_from([1, 2**40]))
    id_bytes, id_ends = draw(id_columns(rows))
    cells = draw(st.lists(st.floats(), min_size=rows * width, max_size=rows * width))
    records = st.builds(CatalogRecord, offsets, st.none() | changes)
    return AlignedBatch(
        group=draw(names),
        generation=draw(counts),
        shard=draw(counts),
        writer=draw(texts),
        written_us=draw(times),
        sections=tuple(sections),
        offset=np.array(columns, np.int64),
        event_time_us=event_time_us,
        release_time_us=event_time_us + delays,
        id_bytes=id_bytes,
        id_ends=id_ends,
        id_hash=np.array(draw(st.lists(st.integers(0, 2**64 - 1), min_size=rows, max_size=rows)), np.uint64),
        values=np.array(cells, np.float64).reshape(rows, width),
        catalog=draw(tuples_of(records)),
    )


@st.composite
def partial_batches(draw: st.DrawFn) -> PartialBatch:
    rows, attribute_names = draw(st.integers(0, 5)), draw(tuples_of(names))
    lacks = tuples_of(st.integers(0, len(attribute_names) - 1)) if attribute_names else st.just(())
    contenders = tuples_of(st.builds(Contender, texts, st.none() | numbers, st.none() | numbers, lacks, times))
    ranking = draw(st.lists(st.integers(0, rows - 1), max_size=8)) if rows else []
    ends = st.integers(0, len(ranking))
    evaluations = []
    for _ in range(draw(st.integers(0, 3))):
        start, stop = sorted((draw(ends), draw(ends)))
        told = draw(texts), draw(counts), draw(counts), draw(times), draw(times), start, stop
        evaluations.append(Evaluation(*told, contenders=draw(contenders)))
    id_bytes, id_ends = draw(id_columns(rows))
    shape = (rows, len(attribute_names))
    cells = st.lists(numbers, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    flags = st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    by_row = draw(st.booleans())
    longs = st.lists(times, min_size=rows, max_size=rows)
    return PartialBatch(
        group=draw(names),
        generation=draw(counts),
        shard=draw(counts),
        descending=draw(st.booleans()),
        attribute_names=attribute_names,
        evaluations=tuple(evaluations),
        ranking=np.array(ranking, np.int32),
        id_bytes=id_bytes,
        id_ends=id_ends,
        score=np.array(draw(st.lists(numbers, min_size=rows, max_size=rows)), np.float64),
        event_time_us=np.array(draw(longs) if by_row else [], np.int64),
        sequence=np.array(draw(longs), np.int64) if by_row else np.zeros(rows, np.int64),
        attributes=np.array(draw(cells), np.float64).reshape(shape),
        present=np.array(draw(flags), np.bool_).reshape(shape),
        best=np.array(draw(st.lists(st.floats(), min_size=rows, max_size=rows)), np.float64),
    )


# By topic; a dict, so that a topic without values is found.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "aligned.factory.3": aligned_batches(),
    "catalog": documents | changes,
    "checkpoints": checkpoints | chunks,
    "dead-letters": letters,
    "marks": marks | merge_checkpoints,
    "partials": partial_batches() | progress | activated,
    "progress": shard_reports | source_reports | merge_progress,
    "results": results,
    "statistics": publications,
}


def aligned_by_align(seed: int, size: int | None = None, batch_rows: int = 100) -> Iterator[AlignedBatch]:
    """Yield what the aligner makes of a seed's rows, on three shards, with a query in the catalog."""
    group, asked, rows = seeded(seed, size)
    sources = {key: SourceStart() for key in (CATALOG_KEY, *rows)}
    aligner = Aligner(group, 2, 3, sources, writer="align-0")
    change = QueryChange(uid="u", revision=1, group=group.name, query=asked[0], state=QueryState.ACTIVE)
    aligner.add_catalog(0, 3, [CatalogRecord(0, None), CatalogRecord(2, change)])
    for first in range(0, max(map(len, rows.values())), batch_rows):
        for (stream, partition), part in rows.items():
            if chunk := part[first : first + batch_rows]:
                columns = source_rows(chunk, len(group.streams[stream].attributes), first)
                aligner.add(stream, partition, first, first + len(chunk), columns)
        yield from aligner.flush(1_760_000_000_000_000 + first)
    for place in rows:
        aligner.finish(*place)
    yield from aligner.flush(0)


def partials_by_engine(seed: int) -> list[PartialBatch]:
    """Return the partials that a seed's shards make."""
    group, asked, rows = seeded(seed)
    pipeline = PurePipeline(replace(group, shards=2 if not any(q.window.in_rows for q in asked) else 1), sorted(rows))
    for query in asked:
        pipeline.change(planned(group, query))
    for place, part in rows.items():
        pipeline.add(place, part, 0)
        pipeline.aligner.finish(*place)
    pipeline.flush()
    return pipeline.partials


def assert_same(left: Any, right: Any) -> None:
    """Assert that two values are equal, arrays in them by kind, shape and bits."""
    if isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert left.tobytes() == right.tobytes()
    elif is_dataclass(left):
        assert type(left) is type(right)
        for field in fields(left):
            assert_same(getattr(left, field.name), getattr(right, field.name))
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        assert left == right
        assert type(left) is type(right) or not isinstance(left, int | float | str | bool)


def assert_free(value: Any) -> None:
    """Assert that the arrays of a value are writable, contiguous, and keep no other memory alive."""
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            assert array.flags.carray, f"{field.name}: writable, contiguous, aligned"
            owner = array if array.base is None else array.base
            assert isinstance(owner, np.ndarray)
            assert (owner.flags.owndata, owner.nbytes) == (True, array.nbytes), field.name
