"""A query bound to its group: which columns it reads, what each counts when unseen, and whether it is steady.

*Steady*: an observation never makes the object rank worse and an expiry never makes it rank better
(algorithms: two-tier, skyband). Everything else is *unsteady* and served by the view.
"""

import math
from dataclasses import dataclass

from skyband.errors import DefinitionError, NotServedError
from skyband.model.direction import Direction, directions
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.group import Column, Group
from skyband.model.query import Order, Query
from skyband.model.score import Score, parse_score
from skyband.model.stream import Aggregate, Stream

__all__ = ["MAX_COLUMNS", "BoundColumn", "BoundQuery", "bind"]

# Which columns of an object are present is kept as bits of an int64.
MAX_COLUMNS = 62


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """One attribute that a query reads.

    `index` is its place in the group's columns, `prefers_high` whether a larger value ranks the object better (None:
    neither), `missing` what it counts while unseen, `in_score` False for an attribute that only `require` names.
    """

    index: int
    name: str
    stream: int
    value: int
    aggregate: Aggregate
    prefers_high: bool | None
    missing: float
    steady: bool
    in_score: bool


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query with everything that its group and score decide.

    `columns` are the attributes of the score and of the required streams, in group order; a result row shows exactly
    these. `score.attribute_indexes` point into the group's columns; `score_positions` into `columns`.
    """

    query: Query
    score: Score
    columns: tuple[BoundColumn, ...]
    score_positions: tuple[int, ...]
    required_streams: tuple[int, ...]
    descending: bool
    steady: bool
    sums: bool


def bind(group: Group, query: Query) -> BoundQuery:
    """Bind `query` to `group`.

    Raises DefinitionError (unknown names, windows that do not fit) and NotServedError (a worst value that does not
    exist, more than `MAX_COLUMNS` attributes). Cost: the length of the score.
    """
    _check_window(group, query)
    required = _required_streams(group, query)
    columns = group.columns
    score = parse_score(query.score, group.attribute_names, owner=f"group {group.name!r}")
    bounds = [_bounds(group.streams[columns[i].stream], columns[i]) for i in score.attribute_indexes]
    found = dict(zip(score.attribute_indexes, directions(score, bounds), strict=True))
    shown = [i for i, column in enumerate(columns) if i in found or column.stream in required]
    bound = tuple(_bind_column(group, query, columns[i], i, found.get(i)) for i in shown)
    if len(bound) > MAX_COLUMNS:
        raise NotServedError(
            f"query {query.name!r} reads {len(bound)} attributes, more than {MAX_COLUMNS}; use fewer in its score, or "
            "require fewer streams",
            field="score",
        )
    place = {column.index: position for position, column in enumerate(bound)}
    return BoundQuery(
        query=query,
        score=score,
        columns=bound,
        score_positions=tuple(place[i] for i in score.attribute_indexes),
        required_streams=required,
        descending=query.order is Order.HIGHEST,
        steady=group.is_row_identity or all(column.steady for column in bound if column.in_score),
        sums=any(column.aggregate in (Aggregate.SUM, Aggregate.COUNT) for column in bound if column.in_score),
    )


def _check_window(group: Group, query: Query) -> None:
    window = query.window
    if window.in_rows:
        if group.shards != 1:
            raise NotServedError(
                f"query {query.name!r} has a count window, which needs one shard; group {group.name!r} has "
                f"{group.shards}. Make a group with shards: 1",
                field="window.count",
            )
        if window.size > group.retention_rows:
            raise DefinitionError(
                f"window count {window.size:,} is above the group's retention_rows {group.retention_rows:,}; "
                "raise retention_rows or ask for fewer rows",
                field="window.count",
            )
        return
    for name, us in (("size", window.size), ("slide", window.slide)):
        if us % group.pane_us:
            nearest = max(1, round(us / group.pane_us)) * group.pane_us
            fitting = math.gcd(us, group.pane_us)
            raise DefinitionError(
                f"{name} {format_duration(us)} is no multiple of the group's pane {format_duration(group.pane_us)}; "
                f"use {format_duration(nearest)}, or set pane: {format_duration(fitting)} on the group "
                "(a new generation)",
                field=f"window.{name}",
            )
    if window.size > group.retention_us:
        raise DefinitionError(
            f"window size {format_duration(window.size)} is above the group's retention "
            f"{format_duration(group.retention_us)}; raise retention or ask for a smaller window",
            field="window.size",
        )


def _required_streams(group: Group, query: Query) -> tuple[int, ...]:
    if query.require_all:
        return tuple(range(len(group.streams)))
    try:
        return tuple(sorted({group.stream_index(name) for name in query.require}))
    except DefinitionError as error:
        raise DefinitionError(f"require names a stream that is not there: {error.message}", field="require") from None


def _bounds(stream: Stream, column: Column) -> tuple[float, float]:
    """Return the range of what the score can see of a column: combined values, and what stands for a missing one."""
    attribute = column.attribute
    lo, hi = attribute.lo, attribute.hi
    if stream.aggregate is Aggregate.COUNT:
        return 0.0, math.inf
    if stream.aggregate is Aggregate.SUM:
        return (0.0 if lo >= 0 else -math.inf), (0.0 if hi <= 0 else math.inf)
    if attribute.missing is not None:
        lo, hi = min(lo, attribute.missing), max(hi, attribute.missing)
    return lo, hi


def _bind_column(group: Group, query: Query, column: Column, index: int, direction: Direction | None) -> BoundColumn:
    stream, attribute = group.streams[column.stream], column.attribute
    in_score = direction is not None
    prefers_high = _prefers_high(query, direction)
    if in_score and not group.is_row_identity and stream.aggregate is Aggregate.BEST and prefers_high is None:
        raise NotServedError(
            f"attribute {attribute.name!r} combines by best, but score {query.score!r} neither only rises nor only "
            "falls with it, so no value is its best; give the stream another aggregate, or narrow lo and hi",
            field="score",
        )
    missing = _missing(group, query, stream, column, prefers_high, in_score)
    return BoundColumn(
        index=index,
        name=attribute.name,
        stream=column.stream,
        value=column.value,
        aggregate=stream.aggregate,
        prefers_high=prefers_high,
        missing=missing,
        steady=_is_steady(query, stream, column, prefers_high),
        in_score=in_score,
    )


def _prefers_high(query: Query, direction: Direction | None) -> bool | None:
    if direction is None or direction is Direction.CONSTANT:
        return True
    if direction is Direction.NEITHER:
        return None
    return (direction is Direction.RISING) == (query.order is Order.HIGHEST)


def _missing(
    group: Group, query: Query, stream: Stream, column: Column, prefers_high: bool | None, in_score: bool
) -> float:
    attribute = column.attribute
    if stream.aggregate in (Aggregate.SUM, Aggregate.COUNT) or not in_score or group.is_row_identity:
        return 0.0
    if attribute.missing is not None:
        return attribute.missing
    if prefers_high is None:
        raise NotServedError(
            f"attribute {attribute.name!r} has no worst value, because score {query.score!r} neither only rises nor "
            "only falls with it; set missing to a number on the stream",
            field="score",
        )
    worst = attribute.lo if prefers_high else attribute.hi
    if math.isinf(worst):
        bound = "lo" if prefers_high else "hi"
        raise NotServedError(
            f"attribute {attribute.name!r} needs {bound} for score {query.score!r}: unseen, it counts as its worst "
            f"value; declare {bound} on the stream, or set missing to a number",
            field="score",
        )
    return worst


def _is_steady(query: Query, stream: Stream, column: Column, prefers_high: bool | None) -> bool:
    attribute = column.attribute
    if prefers_high is None:
        return False
    if stream.aggregate is Aggregate.COUNT:
        return prefers_high
    if stream.aggregate is Aggregate.SUM:
        return (prefers_high and attribute.lo >= 0) or (not prefers_high and attribute.hi <= 0)
    worst = attribute.missing is None or attribute.missing == (attribute.lo if prefers_high else attribute.hi)
    if stream.aggregate is Aggregate.BEST:
        return worst
    if stream.aggregate in (Aggregate.LATEST, Aggregate.FIRST):
        # A good value can give way to a worse one; a promise that objects do not repeat is `skyband`'s business.
        return False
    return worst and (stream.aggregate is Aggregate.MAX) == prefers_high


def promised_once(group: Group, query: Query) -> bool:
    """Return whether every stream promises that an object comes at most once in the query's window."""
    size = MAX_TIME_US if query.window.in_rows else query.window.size
    return all(s.repeat_after_us is not None and s.repeat_after_us >= size for s in group.streams)
