"""The truth about what could still happen, by brute force: every object of every window, looked at again each time."""

import math
from collections.abc import Iterator
from typing import Any

from skyband.local.brute_force import Seen, combined, windows
from skyband.local.brute_force_score import scorer
from skyband.model.binding import BoundColumn, bind
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query
from skyband.model.stream import Aggregate

ADDS = (Aggregate.SUM, Aggregate.COUNT)


def outlooks(group: Group, query: Query, seen: list[Seen]) -> Iterator[dict[str, Any]]:
    """Yield of each result: window end, rows as (id, best score, safe until), candidates as tuples; and how many."""
    shown = False
    for _, end, rows in windows(query.window, seen):
        found = outlook(group, query, rows, end)
        if found["rows"] or shown:
            yield found
        shown = bool(found["rows"])


def outlook(group: Group, query: Query, rows: list[Seen], end: int) -> dict[str, Any]:
    bound, evaluate, by_row = bind(group, query), scorer(query.score), group.is_row_identity
    sign, size, slide = (-1.0 if bound.descending else 1.0), query.window.size, query.window.slide
    numbers = {row[:4]: end - len(rows) + place for place, row in enumerate(rows)}
    objects: dict[Any, list[Seen]] = {}
    for row in rows:
        objects.setdefault(row[:4] if by_row else row.object_id, []).append(row)
    cases = []
    for own in objects.values():
        own = [row for row in own if row.stream in {column.stream for column in bound.columns}]
        seen_in = {row.stream for row in own}
        pane_us = None if query.window.in_rows else group.pane_us
        present = {c.name: combined(c, own, pane_us) for c in bound.columns if c.stream in seen_in}
        if not present:
            continue
        settled = {c.name for c in bound.columns if c.name in present and (by_row or promised(group, query, c))}
        score = evaluate({c.name: present.get(c.name, c.missing) for c in bound.columns}) + 0.0
        if not math.isfinite(score) or not set(bound.required_streams) <= seen_in:
            score = None
        best = {c.name: present[c.name] if c.name in settled else best_of(group, query, c) for c in bound.columns}
        could = evaluate(best) + 0.0
        if not math.isfinite(could):
            if settled >= {c.name for c in bound.columns if c.in_score}:
                continue  # nothing can make it finite
            could = None
        begin = min(numbers[row[:4]] if query.window.in_rows else row.event for row in own)
        lacks = tuple(c.name for c in bound.columns if c.name not in present)
        cases.append((own[0], score, could, lacks, (begin + size) // slide * slide))

    def key(score: float | None, row: Seen) -> tuple[Any, ...]:
        place = row[:4] if by_row else ()
        return (-math.inf if score is None else sign * score, row.object_id.encode(), place)

    ranked = sorted((case for case in cases if case[1] is not None), key=lambda case: key(case[1], case[0]))[: query.k]
    last = None if len(ranked) < query.k else key(ranked[-1][1], ranked[-1][0])
    told = []
    for case in ranked:
        others = sum(key(other[2], other[0]) < key(case[1], case[0]) for other in cases if other is not case)
        told.append((case[0].object_id, case[2], case[4] if others < query.k else None))
    outside = [case for case in cases if case not in ranked and (last is None or key(case[2], case[0]) < last)]
    outside.sort(key=lambda case: key(case[2], case[0]))
    candidates = [(row.object_id, *facts) for row, *facts in outside]
    return {"window_end": end, "rows": told, "candidates": candidates[: query.candidates], "could": len(candidates)}


def promised(group: Group, query: Query, column: BoundColumn) -> bool:
    after = group.streams[column.stream].repeat_after_us
    return after is not None and after >= (MAX_TIME_US if query.window.in_rows else query.window.size)


def best_of(group: Group, query: Query, column: BoundColumn) -> float:
    """Return what an attribute could become that ranks its object best."""
    attribute = group.streams[column.stream].attributes[column.value]
    if column.prefers_high is None:
        return math.nan
    good = 1.0 if column.prefers_high else -1.0
    better = max if column.prefers_high else min
    if column.aggregate in ADDS and not promised(group, query, column):
        return good * math.inf
    if column.aggregate is Aggregate.COUNT:
        return 1.0 if column.prefers_high else 0.0
    return better(attribute.hi if column.prefers_high else attribute.lo, column.missing)
