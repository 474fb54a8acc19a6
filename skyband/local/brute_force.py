"""The truth: brute force over every row, in the plainest Python. Slow on purpose; read it beside "semantics" in docs.

A *row* is what a producer wrote; its offset is its place in its source partition. An accepted row is *seen*: it has a
release time, and seen rows sort in the group's total order (release time, stream, partition, offset). Nothing is kept
from one evaluation to the next. Only names, directions and missing values come from the code under test (`bind`).

Order of the results: time windows by (window end, query), then count windows by (row number, query).
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from skyband.local.brute_force_score import scorer
from skyband.model.binding import BoundColumn, BoundQuery, bind
from skyband.model.group import Group
from skyband.model.query import Query, Window
from skyband.model.stream import Aggregate, Late, OutOfRange, Stream


class Row(NamedTuple):
    """A record as it came; one value per attribute of its stream."""

    object_id: str
    event_time_us: int
    values: tuple[float, ...]


Partitions = Mapping[tuple[int, int], Sequence[Row]]


class Seen(NamedTuple):
    """An accepted row; the first four fields are its place in the total order."""

    release: int
    stream: int
    partition: int
    offset: int
    event: int
    object_id: str
    values: tuple[float, ...]


def brute_force_results(group: Group, queries: Sequence[Query], partitions: Partitions) -> list[dict[str, Any]]:
    """Return what replay writes, as dicts. `partitions`: rows of each (stream index, source partition), in order."""
    seen, results = accepted(group, partitions), []
    for query in queries:
        for result in evaluations(group, query, seen):
            results.append(((query.window.in_rows, result["window_end"], query.name), result))
    return [result for _, result in sorted(results, key=lambda item: item[0])]


def evaluations(group: Group, query: Query, seen: list[Seen]) -> Iterator[dict[str, Any]]:
    """Yield the results of one query over accepted rows, one after the other."""
    bound, evaluate, shown = bind(group, query), scorer(query.score), False
    for start, end, rows in windows(query.window, seen):
        ranking = rank(group, bound, evaluate, rows)
        if ranking or shown:  # an empty ranking is written once, after one with rows
            yield {"query": query.name, "window_start": start, "window_end": end, "rows": ranking}
        shown = bool(ranking)


def accepted(group: Group, partitions: Partitions) -> list[Seen]:
    """Return the rows that count, in total order."""
    seen = []
    for (stream_index, partition), rows in partitions.items():
        stream, watermark = group.streams[stream_index], -math.inf
        for offset, row in enumerate(rows):
            event, values = row.event_time_us, cleaned(stream, row.values)
            release = event if event >= watermark else int(watermark)
            watermark = max(watermark, event - stream.max_delay_us)  # a rejected row moves it too
            dropped = release > event and stream.late is Late.DROP
            if row.object_id and values is not None and not dropped:
                seen.append(Seen(release, stream_index, partition, offset, event, row.object_id, values))
    return sorted(seen)


def cleaned(stream: Stream, values: tuple[float, ...]) -> tuple[float, ...] | None:
    """Return the values as they count, or None if one of them rejects the row."""
    clean = []
    for attribute, value in zip(stream.attributes, values, strict=True):
        outside = not attribute.lo <= value <= attribute.hi
        if not math.isfinite(value) or (outside and attribute.out_of_range is OutOfRange.REJECT):
            return None
        clean.append(min(max(value, attribute.lo), attribute.hi) + 0.0)  # + 0.0 turns -0.0 into 0.0
    return tuple(clean)


def windows(window: Window, seen: list[Seen]) -> Iterator[tuple[int, int, list[Seen]]]:
    """Yield start, end and rows of every evaluation."""
    size, slide = window.size, window.slide
    if window.in_rows:
        for n in range(slide, len(seen) + 1, slide):
            yield n - size, n, seen[max(0, n - size) : n]
    elif seen:
        by_event = sorted(seen, key=lambda row: row.event)
        events = [row.event for row in by_event]
        for end in range((events[0] // slide + 1) * slide, (events[-1] // slide + 1) * slide + 1, slide):
            inside = by_event[bisect_left(events, end - size) : bisect_left(events, end)]
            yield end - size, end, sorted(row for row in inside if row.release < end)


def rank(group: Group, bound: BoundQuery, evaluate: Callable[..., float], rows: list[Seen]) -> list[dict[str, Any]]:
    """Return the k best objects of these rows, which are in total order."""
    objects: dict[Any, list[Seen]] = {}
    pane_us = None if bound.query.window.in_rows else group.pane_us
    for row in rows:
        objects.setdefault(row[:4] if group.is_row_identity else row.object_id, []).append(row)
    ranked = []
    for own in objects.values():
        seen_in = {row.stream for row in own}
        present = {c.name: combined(c, own, pane_us) for c in bound.columns if c.stream in seen_in}
        if not present or not set(bound.required_streams) <= seen_in:
            continue
        score = evaluate({c.name: present.get(c.name, c.missing) for c in bound.columns}) + 0.0
        if math.isfinite(score):
            ranked.append((-score if bound.descending else score, own[0].object_id.encode(), own[0], score, present))
    result: list[dict[str, Any]] = []
    for _, _, row, score, present in sorted(ranked, key=lambda item: item[:3])[: bound.query.k]:
        line = {"rank": len(result) + 1, "object_id": row.object_id, "score": score, "attributes": present}
        result.append({**line, "event_time": row.event} if group.is_row_identity else line)
    return result


def combined(column: BoundColumn, own: list[Seen], pane_us: int | None) -> float:
    """Return the one value of an object's rows in the window, given in total order; no pane: each row is one."""
    rows = [row for row in own if row.stream == column.stream]
    values = [row.values[column.value] for row in rows]
    match column.aggregate:
        case Aggregate.LATEST:
            return max(rows, key=lambda row: (row.event, row)).values[column.value]
        case Aggregate.FIRST:
            return min(rows, key=lambda row: (row.event, row)).values[column.value]
        case Aggregate.COUNT:
            return float(len(rows))
        case Aggregate.SUM:
            panes: dict[int, float] = {}
            for place, (row, value) in enumerate(zip(rows, values, strict=True)):
                pane = row.event // pane_us if pane_us else place
                panes[pane] = panes.get(pane, 0.0) + value
            total = 0.0
            for pane in sorted(panes):
                total += panes[pane]
            return total
    largest = column.aggregate is Aggregate.MAX or (column.aggregate is Aggregate.BEST and column.prefers_high)
    return max(values) if largest else min(values)
