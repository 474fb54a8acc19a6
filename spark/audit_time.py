"""How far each shard had come at each of its batches, told by the sections of its aligned log, in SQL.

A source partition counts as its watermark, an idle one as the newest event time less its `max_delay` if that is more, a
finished one not at all; the least is the frontier. When all are idle or finished, all up to the newest is settled.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from skyband.model.catalog import CATALOG_STREAM
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.stream import IdleThen

__all__ = ["floor_to", "times"]

_BATCH = ("shard", "aligned_offset")
_PLACE = ("shard", "stream", "partition")


def floor_to(value: Column, step: int) -> Column:
    """Return the largest multiple of `step` that is not above a whole number."""
    return value - sql.pmod(value, sql.lit(step))


def times(sections: DataFrame, group: Group) -> DataFrame:
    """Return for each batch of each shard where it stood before and behind it.

    Columns: shard, aligned_offset, frontier_us and settled_us behind the batch, frontier_before_us and
    settled_before_us; MIN_TIME_US where nothing is known. Cost: batches times source partitions, sorted.
    """
    by_batch = _without_old(sections).groupBy(*_PLACE, "aligned_offset")
    told = by_batch.agg(
        sql.max("watermark_us").alias("watermark_us"),
        sql.max("newest_us").alias("newest_us"),
        sql.max(sql.struct("to_offset", "written_us", "idle_until_us")).alias("lease"),
    ).where(sql.col("stream") != CATALOG_STREAM)
    batches = _batches(sections, told)
    grid = batches.join(told.select(*_PLACE).distinct(), "shard")
    grid = grid.join(told.drop("newest_us"), [*_PLACE, "aligned_offset"], "left")
    return _behind(_counted(grid, group), group.pane_us)


def _without_old(sections: DataFrame) -> DataFrame:
    """Leave out sections that end below what was covered before: they say nothing."""
    order = Window.partitionBy(*_PLACE).orderBy("aligned_offset", "section")
    covered = sql.max("to_offset").over(order.rowsBetween(Window.unboundedPreceding, -1))
    frame = sections.withColumn("covered", covered)
    return frame.where(sql.col("covered").isNull() | (sql.col("to_offset") >= sql.col("covered")))


def _batches(sections: DataFrame, told: DataFrame) -> DataFrame:
    """Return each batch with the clock of the writers and the newest event time as of then."""
    written = sections.groupBy(*_BATCH).agg(sql.max("written_us").alias("written_us"))
    newest = told.groupBy(*_BATCH).agg(sql.max("newest_us").alias("newest_us"))
    so_far = Window.partitionBy("shard").orderBy("aligned_offset").rowsBetween(Window.unboundedPreceding, 0)
    return written.join(newest, [*_BATCH], "left").select(
        *_BATCH,
        sql.max("written_us").over(so_far).alias("clock_us"),
        sql.coalesce(sql.max("newest_us").over(so_far), sql.lit(MIN_TIME_US)).alias("group_newest_us"),
    )


def _counted(grid: DataFrame, group: Group) -> DataFrame:
    """Return of each batch the least that its source partitions count, and whether all are idle or finished."""
    so_far = Window.partitionBy(*_PLACE).orderBy("aligned_offset").rowsBetween(Window.unboundedPreceding, 0)
    watermark = sql.coalesce(sql.max("watermark_us").over(so_far), sql.lit(MIN_TIME_US))
    grid = grid.withColumn("so_far_us", watermark).withColumn("lease", sql.max("lease").over(so_far))
    delay = _of_stream([stream.max_delay_us for stream in group.streams])
    may_idle = _of_stream([int(stream.idle_then is not IdleThen.HOLD) for stream in group.streams]) == 1
    idle_until = sql.coalesce(sql.col("lease.idle_until_us"), sql.lit(0))
    grid = grid.withColumn("idle", may_idle & (idle_until != 0) & (idle_until > sql.col("clock_us")))
    grid = grid.withColumn("finished", sql.col("so_far_us") >= MAX_TIME_US)
    counts = sql.when(sql.col("idle"), sql.greatest("so_far_us", sql.col("group_newest_us") - delay))
    return grid.groupBy(*_BATCH, "group_newest_us").agg(
        sql.min(sql.when(~sql.col("finished"), counts.otherwise(sql.col("so_far_us")))).alias("least_us"),
        sql.bool_and(sql.col("idle") | sql.col("finished")).alias("all_idle"),
    )


def _behind(counted: DataFrame, pane_us: int) -> DataFrame:
    newest = sql.col("group_newest_us")
    is_settled = sql.col("all_idle") & (newest > MIN_TIME_US)
    passed = sql.when(is_settled, floor_to(newest, pane_us) + pane_us)
    steps = counted.select(
        *_BATCH,
        sql.greatest(sql.coalesce("least_us", sql.lit(MIN_TIME_US)), sql.coalesce(passed, sql.lit(MIN_TIME_US))).alias(
            "step_us"
        ),
        sql.when(is_settled, newest).otherwise(sql.lit(MIN_TIME_US)).alias("settle_us"),
    )
    order = Window.partitionBy("shard").orderBy("aligned_offset")
    behind = order.rowsBetween(Window.unboundedPreceding, 0)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    nothing = sql.lit(MIN_TIME_US)
    return steps.select(
        *_BATCH,
        sql.max("step_us").over(behind).alias("frontier_us"),
        sql.max("settle_us").over(behind).alias("settled_us"),
        sql.coalesce(sql.max("step_us").over(before), nothing).alias("frontier_before_us"),
        sql.coalesce(sql.max("settle_us").over(before), nothing).alias("settled_before_us"),
    )


def _of_stream(values: Sequence[int]) -> Column:
    """Return what belongs to the stream of a row."""
    first, *others = enumerate(values)
    chosen = sql.when(sql.col("stream") == first[0], sql.lit(first[1]))
    return reduce(lambda column, its: column.when(sql.col("stream") == its[0], sql.lit(its[1])), others, chosen)
