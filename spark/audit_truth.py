"""What results should have been, in SQL: every row in every window that it lies in, objects combined, scored, ranked.

A row lies in the windows with ends in [low, high], multiples of the slide: those past its event and release time, up to
a size past its event time. Rows of one object with the same ends are combined before each is put into its windows, so
that a window of 60 slides costs 60 copies of an object, not of its rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from skyband.model.binding import BoundColumn, BoundQuery
from skyband.model.stream import Aggregate
from spark.audit_score import ScoreColumn, is_finite
from spark.audit_time import floor_to

__all__ = ["EXTRA_ROWS", "numbered", "timed", "truth"]

# Beyond k, for what stands so close to the last row that it may be there instead.
EXTRA_ROWS = 16
_ROW = ("partition", "source_offset")
# Sums in another order differ by some 1e-16 of the sum of their absolute values.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class _Combined:
    """How one attribute is combined: columns of the parts, how parts become one, and the value, null for none."""

    parts: Mapping[str, Column]
    whole: Mapping[str, Column]
    value: Column
    slack: Column = field(default_factory=lambda: sql.lit(0.0))


def timed(rows: DataFrame, times: DataFrame) -> DataFrame:
    """Return rows with `settled_us`, up to where all had been shown before they came, and as released then.

    A row that the frontier had passed before its batch came counts from there on.
    """
    before = times.select(
        "shard", "aligned_offset", "frontier_before_us", sql.col("settled_before_us").alias("settled_us")
    )
    joined = rows.join(before, ["shard", "aligned_offset"])
    return joined.withColumn("release_us", sql.greatest("release_us", "frontier_before_us")).drop("frontier_before_us")


def numbered(rows: DataFrame) -> DataFrame:
    """Return rows with their `number` in the total order, from 1. Cost: one task sorts them all."""
    # In one partition, said so: Spark warns of one that is not named.
    order = Window.partitionBy(sql.lit(0)).orderBy("release_us", "stream", "partition", "source_offset")
    return rows.withColumn("number", sql.row_number().over(order).cast("long"))


def truth(rows: DataFrame, bound: BoundQuery, first: int, last: int, k: int, *, by_row: bool) -> DataFrame:
    """Return the window ends in [first, last] at which `bound` has rows: window_end, and rows as an array of structs.

    Each has rank, score, object_id, event_us (null unless `by_row`: each row is an object), attributes (in the order of
    `bound.columns`, null where there is none) and slack, by how much a sum may differ; k of them and some more.
    """
    streams = sorted({column.stream for column in bound.columns})
    rows = _with_ends(rows.where(sql.col("stream").isin(streams)), bound, first, last)
    objects = _rows_as_objects(rows, bound) if by_row else _objects(rows, bound)
    names = [f"v{place}" for place in range(len(bound.columns))]
    for required in bound.required_streams:
        place = next(place for place, column in enumerate(bound.columns) if column.stream == required)
        objects = objects.where(sql.col(f"v{place}").isNotNull())
    values = {
        column.name: sql.coalesce(sql.col(f"v{place}"), sql.lit(column.missing))
        for place, column in enumerate(bound.columns)
        if column.in_score
    }
    scored = ScoreColumn(bound.query.score, values).add(objects, "score")
    return _ranked(scored, names, k, descending=bound.descending, by_row=by_row)


def _with_ends(rows: DataFrame, bound: BoundQuery, first: int, last: int) -> DataFrame:
    """Return rows with `low` and `high`, the least and the greatest window end that they are in."""
    size, slide = bound.query.window.size, bound.query.window.slide
    if bound.query.window.in_rows:
        low = floor_to(sql.col("number") - 1, slide) + slide
        high = floor_to(sql.col("number") + (size - 1), slide)
    else:
        # Also past all that was shown before it came, while everything was idle.
        low = (
            floor_to(sql.greatest(sql.col("event_us"), sql.col("release_us"), sql.col("settled_us") + slide), slide)
            + slide
        )
        high = floor_to(sql.col("event_us") + size, slide)
    least = sql.greatest(low, sql.lit(first // -slide * -slide)).alias("low")
    found = rows.select("*", least, sql.least(high, sql.lit(last // slide * slide)).alias("high"))
    return found.where(sql.col("low") <= sql.col("high"))


def _ends(slide: int) -> Column:
    return sql.explode(sql.sequence("low", "high", sql.lit(slide).cast("long"))).alias("window_end")


def _rows_as_objects(rows: DataFrame, bound: BoundQuery) -> DataFrame:
    values = [sql.col("values")[column.value].alias(f"v{place}") for place, column in enumerate(bound.columns)]
    ends = _ends(bound.query.window.slide)
    return rows.select("object_id", "event_us", "release_us", *_ROW, *values, ends, sql.lit(0.0).alias("slack"))


def _objects(rows: DataFrame, bound: BoundQuery) -> DataFrame:
    ways = [_combine(column, f"p{place}") for place, column in enumerate(bound.columns)]
    parts = [column.alias(name) for way in ways for name, column in way.parts.items()]
    whole = [column.alias(name) for way in ways for name, column in way.whole.items()]
    names = [name for way in ways for name in way.parts]
    partial = rows.groupBy("object_id", "low", "high").agg(*parts)
    spread = partial.select("object_id", *names, _ends(bound.query.window.slide))
    merged = spread.groupBy("object_id", "window_end").agg(*whole)
    values = [way.value.alias(f"v{place}") for place, way in enumerate(ways)]
    slack = reduce(lambda x, y: sql.greatest(x, y), [way.slack for way in ways], sql.lit(0.0))
    return merged.select("object_id", "window_end", *values, slack.alias("slack"))


def _combine(column: BoundColumn, name: str) -> _Combined:
    is_own = sql.col("stream") == column.stream
    value = sql.when(is_own, sql.col("values")[column.value])
    at = sql.col(name)
    match column.aggregate:
        case Aggregate.COUNT:
            count = sql.when(at > 0, at.cast("double"))
            return _Combined({name: sql.count(value)}, {name: sql.sum(name)}, count)
        case Aggregate.SUM:
            size = f"{name}_size"
            parts = {name: sql.sum(value), size: sql.sum(sql.abs(value))}
            slack = sql.coalesce(sql.col(size), sql.lit(0.0)) * _ROUNDING
            return _Combined(parts, {name: sql.sum(name), size: sql.sum(size)}, at, slack)
        case Aggregate.LATEST | Aggregate.FIRST:
            choose = sql.max if column.aggregate is Aggregate.LATEST else sql.min
            placed = sql.struct("event_us", "release_us", *_ROW, sql.col("values")[column.value].alias("value"))
            return _Combined({name: choose(sql.when(is_own, placed))}, {name: choose(name)}, at["value"])
    largest = column.aggregate is Aggregate.MAX or (column.aggregate is Aggregate.BEST and column.prefers_high)
    choose = sql.max if largest else sql.min
    return _Combined({name: choose(value)}, {name: choose(name)}, at)


def _ranked(scored: DataFrame, names: list[str], k: int, *, descending: bool, by_row: bool) -> DataFrame:
    eligible = is_finite(sql.col("score"))
    best = sql.desc("score") if descending else sql.asc("score")
    last = ["release_us", *_ROW] if by_row else []
    # A filter on the score would be moved below the steps of the score, and written out there.
    order = Window.partitionBy("window_end").orderBy(sql.desc(eligible), best, "object_id", *last)
    ranked = scored.withColumn("rank", sql.row_number().over(order))
    conditions = [sql.col("rank") <= k + EXTRA_ROWS, eligible]
    kept = ranked.where(reduce(and_, conditions))
    event = sql.col("event_us") if by_row else sql.lit(None).cast("long").alias("event_us")
    row = sql.struct("rank", "score", "object_id", event, sql.array(*names).alias("attributes"), "slack")
    return kept.groupBy("window_end").agg(sql.sort_array(sql.collect_list(row)).alias("rows"))
