"""Which windows can be audited: where the aligned log is whole, where it is read to, where results are still kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from skyband.cli.figures import as_time
from skyband.model.catalog import CATALOG_STREAM
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.query import Window

__all__ = ["Edges", "Kept", "Span", "edges_of", "span_of"]


@dataclass(frozen=True, slots=True)
class Edges:
    """What an aligned log knows.

    `whole_from_us`: all rows with event times from here on are there (MIN_TIME_US: all). `frontiers`: by shard how far
    it has been read, frontier and settled. `written_us`: when its first batch was written.
    """

    whole_from_us: int
    frontiers: Mapping[int, tuple[int, int]]
    written_us: int

    @property
    def is_whole(self) -> bool:
        """Whether it is there from its beginning."""
        return self.whole_from_us == MIN_TIME_US

    def limit_us(self, slide: int) -> int:
        """Return the last time at which every window of this slide that ends there is evaluated."""
        return min(max(frontier, settled + slide) for frontier, settled in self.frontiers.values())


@dataclass(frozen=True, slots=True)
class Kept:
    """What of a query's results is not to be had, or not to be judged.

    `oldest`: the first window end kept, where others may have been deleted. `older_to`: the last written before the
    generation.
    """

    oldest: int | None = None
    older_to: int | None = None


@dataclass(slots=True)
class Span:
    """The window ends of a query that are audited, [first, last], and why no others."""

    first: int
    last: int
    notes: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return self.first > self.last


def edges_of(sections: DataFrame, times: DataFrame) -> Edges:
    """Return what the sections of an aligned log say of its edges."""
    behind = times.groupBy("shard").agg(
        sql.max("frontier_us").alias("frontier"), sql.max("settled_us").alias("settled")
    )
    frontiers = {row.shard: (row.frontier, row.settled) for row in behind.collect()}
    begin = sections.groupBy("shard", "stream", "partition").agg(
        sql.min("aligned_offset").alias("offset"),
        sql.min("newest_us").alias("newest"),
        sql.min("written_us").alias("written"),
    )
    begins = begin.groupBy("shard").agg(
        sql.min("offset").alias("offset"),
        sql.max(sql.when(sql.col("stream") != CATALOG_STREAM, sql.col("newest"))).alias("newest"),
        sql.min("written").alias("written"),
    )
    rows = begins.collect()
    # All that was written before is no newer than the newest event time of then.
    cut = [MAX_TIME_US if row.newest is None else row.newest + 1 for row in rows if row.offset > 0]
    return Edges(max(cut, default=MIN_TIME_US), frontiers, min((row.written for row in rows), default=0))


def span_of(window: Window, edges: Edges, kept: Kept, from_us: int, to_us: int) -> Span:
    """Return which windows of time that end in [from_us, to_us) can be audited."""
    span = Span(from_us, to_us - 1, [])
    slide = window.slide
    if edges.whole_from_us + window.size > span.first:
        span.first = edges.whole_from_us + window.size
        span.notes.append(f"windows that begin before {as_time(edges.whole_from_us)}, since when rows are kept")
    if kept.oldest is not None and kept.oldest > span.first:
        span.first = kept.oldest
        span.notes.append(f"windows that end before {as_time(kept.oldest)}, the first whose result is kept")
    if kept.older_to is not None and kept.older_to >= span.first:
        span.first = kept.older_to + slide
        span.notes.append(f"windows that end up to {as_time(kept.older_to)}, of which an older generation spoke")
    if edges.limit_us(slide) < span.last:
        span.last = edges.limit_us(slide)
        span.notes.append(f"windows that end after {as_time(span.last)}, up to where the aligned log is read")
    return span
