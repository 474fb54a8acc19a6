"""More questions over the same rows: every algorithm that fits, and siblings that share a score, not k and window."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from skyband.model.group import Group
from skyband.model.query import Algorithm, Query, Window
from skyband.model.stream import Aggregate, Attribute, Stream
from tests.engine.pure_pipeline import planned
from tests.engine.traits import fits
from tests.oracle import Row
from tests.workloads import Chooser

Rows = dict[tuple[int, int], list[Row]]


def siblings(choose: Chooser, group: Group, query: Query, count: int) -> list[Query]:
    """Return the query, and others of its score with another k, window or slide: they share its rankings."""
    found = [query]
    for i in range(count):
        window = query.window
        tick = 1 if window.in_rows else group.pane_us
        most = group.retention_rows if window.in_rows else group.retention_us // group.pane_us
        size = window.size if choose.chance(40) else tick * choose.number(1, most)
        slide = tick * choose.pick((1, 2, 3, 5, size // tick, size // tick + 3))
        other = Window(size, slide, in_rows=window.in_rows)
        found.append(replace(query, name=f"{query.name}s{i}", k=choose.pick((1, 2, 3, 7)), window=other))
    return found


def fitting(group: Group, queries: Sequence[Query]) -> list[tuple[str, Query]]:
    """Return each query under every algorithm that can answer it, as (its name, the query under a name of its own)."""
    return [
        (query.name, replace(planned(group, query, algorithm), name=f"{query.name}-{algorithm}"))
        for query in queries
        for algorithm in Algorithm
        if fits(group, query, algorithm)
    ]


def expected(oracle: Sequence[Mapping[str, Any]], asked: Sequence[tuple[str, Query]]) -> list[dict[str, Any]]:
    """Return the oracle's results under the names that `fitting` gave, in replay's order."""
    own: dict[str, list[Mapping[str, Any]]] = {}
    for result in oracle:
        own.setdefault(result["query"], []).append(result)
    renamed = [
        ((query.window.in_rows, result["window_end"], query.name), {**result, "query": query.name})
        for name, query in asked
        for result in own.get(name, ())
    ]
    return [result for _, result in sorted(renamed, key=lambda item: item[0])]


def promising(group: Group, rows: Rows, repeat_after_us: int) -> tuple[Group, Rows]:
    """Return a group whose streams promise `repeat_after_us`, and the rows without those that would break it."""

    def promise(stream: Stream) -> Stream:
        return replace(stream, repeat_after_us=repeat_after_us)

    group = replace(group, streams=tuple(promise(stream) for stream in group.streams))
    times: dict[tuple[int, str], list[int]] = {}
    kept: Rows = {place: [] for place in rows}
    for place, part in rows.items():
        for row in part:
            seen = times.setdefault((place[0], row.object_id), [])
            if all(abs(row.event_time_us - time) >= repeat_after_us for time in seen):
                seen.append(row.event_time_us)
                kept[place].append(row)
    return group, kept


def falling_leaders(count: int = 1_500) -> tuple[Group, list[Query], Rows]:
    """Return a workload whose leaders fall again and again, among more objects than a view has room for."""
    attribute = Attribute(name="a", lo=-10.0, hi=10.0, missing=-10.0)
    stream = Stream(name="a", attributes=(attribute,), aggregate=Aggregate.LATEST)
    group = Group(name="g", streams=(stream,), retention_us=40, pane_us=1)
    random, leaders, given = Random(9), list[str](), list[Row]()
    for i in range(count):
        if leaders and i // 250 % 2:
            given.append(Row(leaders.pop(), i // 25, (-float(random.randint(0, 9)),)))
        else:
            leaders.append(f"sensor-00-north-{random.randrange(400)}")
            given.append(Row(leaders[-1], i // 25, (float(random.randint(0, 9)),)))
    windows = ((3, 40, 1), (5, 40, 3), (1, 8, 2))
    queries = [Query(name=f"q{k}", k=k, score="a", window=Window(size, slide)) for k, size, slide in windows]
    return group, queries, {(0, 0): given}
