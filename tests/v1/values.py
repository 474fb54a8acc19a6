"""Values of the model, at random: any that can be stored."""

from hypothesis import strategies as st

from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Order, Query, QueryState, Window
from skyband.model.resources import GroupResource, GroupSpec, QueryResource, SourceStart, Stamp, StreamResource
from skyband.model.result import Candidate, Result, ResultRow
from skyband.model.status import Holder, QueryStatus, ShardStatus
from skyband.model.stream import (
    Aggregate,
    Attribute,
    Fields,
    Format,
    Identity,
    IdleThen,
    Late,
    OutOfRange,
    Stream,
    TimeUnit,
)

TEN_YEARS_US = 3_660 * 86_400_000_000

names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True)
ids = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_-]{0,8}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
lengths = st.integers(0, TEN_YEARS_US)
offsets = st.integers(0, 2**62)
event_times = st.integers(-(2**61), 2**61)
times = st.integers(0, 4_000_000_000_000_000)
frontiers = st.one_of(st.just(MIN_TIME_US), event_times)


@st.composite
def attributes(draw: st.DrawFn, name: str | None = None) -> Attribute:
    lo, hi = sorted(draw(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2, unique=True)))
    if lo == hi or lo == float("inf") or hi == float("-inf"):
        lo, hi = 0.0, 1.0
    return Attribute(
        name=draw(names) if name is None else name,
        lo=lo,
        hi=hi,
        out_of_range=draw(st.sampled_from(OutOfRange)),
        missing=draw(st.none() | numbers),
    )


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    is_object_stream = draw(st.booleans())
    name = draw(ids if is_object_stream else names)
    identity = draw(st.sampled_from(Identity)) if is_object_stream else Identity.OBJECT
    several = st.lists(attributes(), min_size=1, max_size=3, unique_by=lambda a: a.name)
    value = "value" if is_object_stream else draw(texts)
    return Stream(
        name=name,
        attributes=tuple(draw(several)) if is_object_stream else (draw(attributes(name)),),
        is_object_stream=is_object_stream,
        identity=identity,
        aggregate=draw(st.sampled_from(Aggregate)),
        repeat_after_us=draw(st.none() | st.just(MAX_TIME_US) | st.integers(1, TEN_YEARS_US)),
        max_delay_us=draw(lengths),
        late=draw(st.sampled_from(Late)),
        idle_after_us=draw(lengths),
        idle_then=draw(st.sampled_from(IdleThen)),
        max_ahead_us=draw(lengths),
        topic=draw(texts),
        format=draw(st.sampled_from(Format)),
        schema=draw(texts),
        fields=Fields(
            object_id=draw(texts), event_time=draw(texts), value=value, time_unit=draw(st.sampled_from(TimeUnit))
        ),
    )


stamps = st.builds(Stamp, uid=texts, revision=st.integers(1, 2**40), created_us=times, updated_us=times)
stream_resources = st.builds(StreamResource, stream=streams(), stamp=stamps)


@st.composite
def specs(draw: st.DrawFn) -> GroupSpec:
    pane_us = draw(st.integers(1, 10**9))
    return GroupSpec(
        name=draw(ids),
        streams=tuple(draw(st.lists(ids, min_size=1, max_size=3))),
        retention_us=pane_us * draw(st.integers(1, 10_000)),
        pane_us=pane_us,
        retention_rows=draw(st.integers(0, 2**24)),
        shards=draw(st.integers(1, 4096)),
        max_drift_us=draw(lengths),
    )


@st.composite
def group_resources(draw: st.DrawFn) -> GroupResource:
    stream = draw(streams())
    spec = draw(specs())
    spec = GroupSpec.of(
        GroupSpec(
            name=spec.name,
            streams=(stream.name,),
            retention_us=spec.retention_us,
            pane_us=spec.pane_us,
            shards=spec.shards,
            max_drift_us=spec.max_drift_us,
        ).build([stream])
    )
    starts = st.builds(
        SourceStart,
        stream=st.just(stream.name),
        partition=st.integers(0, 2**31 - 1),
        offset=offsets,
        topic_id=texts,
    )
    return GroupResource(
        group=spec.build([stream]),
        generation=draw(st.integers(1, 2**31)),
        sources=tuple(draw(st.lists(starts, max_size=3))),
        stamp=draw(stamps),
    )


@st.composite
def windows(draw: st.DrawFn) -> Window:
    if draw(st.booleans()):
        return Window(draw(st.integers(1, 2**40)), draw(st.integers(1, 2**40)), in_rows=True)
    return Window(draw(st.integers(1, TEN_YEARS_US)), draw(st.integers(1, TEN_YEARS_US)))


queries = st.builds(
    Query,
    name=ids,
    k=st.integers(1, 1_000_000),
    score=st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
    window=windows(),
    order=st.sampled_from(Order),
    require=st.lists(ids, max_size=3).map(tuple),
    require_all=st.booleans(),
    algorithm=st.sampled_from(Algorithm),
)
plans = st.builds(
    Plan,
    algorithm=st.sampled_from([a for a in Algorithm if a is not Algorithm.AUTO]),
    reason=texts,
    relies_on=st.lists(texts, max_size=2).map(tuple),
    cost=texts,
)
query_resources = st.builds(
    QueryResource, group=ids, query=queries, plan=plans, state=st.sampled_from(QueryState), stamp=stamps
)

rows = st.builds(
    ResultRow,
    rank=st.integers(1, 1_000_000),
    object_id=texts,
    score=numbers,
    attributes=st.dictionaries(names, numbers, max_size=3),
    event_time_us=st.none() | event_times,
    best_score=st.none() | numbers,
    safe_until=st.none() | event_times,
)
candidates = st.builds(
    Candidate,
    object_id=texts,
    score=st.none() | numbers,
    best_score=st.none() | numbers,
    lacks=st.lists(names, max_size=3).map(tuple),
    until=event_times,
)
results = st.builds(
    Result,
    query=ids,
    uid=texts,
    window_start=event_times,
    window_end=event_times,
    rows=st.lists(rows, max_size=4).map(tuple),
    frontier_us=st.none() | event_times,
    revision=st.integers(0, 2**40),
    candidates=st.lists(candidates, max_size=3).map(tuple),
)

counts = st.integers(0, 2**50)
holders = st.builds(
    Holder,
    stream=ids,
    partition=st.integers(0, 10_000),
    watermark_us=frontiers,
    unread_rows=st.none() | counts,
    reader=texts,
    rows_per_second=st.none() | numbers,
)
shards = st.builds(
    ShardStatus,
    shard=st.integers(0, 4095),
    frontier_us=frontiers,
    newest_us=frontiers,
    holder=st.none() | holders,
    stopped=texts,
)
statuses = st.builds(
    QueryStatus,
    shards=st.lists(shards, max_size=2).map(tuple),
    silent_shards=st.lists(st.integers(0, 4095), max_size=3).map(tuple),
    rows_in=st.none() | counts,
    rows_late=counts,
    rejected=st.lists(st.tuples(texts, counts), max_size=2).map(tuple),
    paused=st.lists(st.tuples(ids, st.integers(0, 10_000)), max_size=2).map(tuple),
    evaluations=counts,
    last_result_us=st.none() | times,
    last_window_end=st.none() | event_times,
    hot=counts,
    objects=counts,
    state_bytes=counts,
    broken_promises=counts,
)
