"""Audits a past range: truth in SQL from the aligned log, compared with what was written."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.storagelevel import StorageLevel

from services.runtime.codecs import Codecs
from skyband.cli.figures import as_time
from skyband.errors import LogError, NotServedError
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import Window
from spark.audit_activity import Passed
from spark.audit_catalog import Asked, Catalog, changes_in, queries_of
from spark.audit_input import AlignedFrames
from spark.audit_judge import Brief, Tally, judge
from spark.audit_range import Edges, Kept, Span, edges_of, span_of
from spark.audit_results import gathered
from spark.audit_time import times
from spark.audit_truth import numbered, timed, truth

__all__ = ["Audit", "Audited"]


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit has found: the queries, which of their windows were audited, and the tally."""

    queries: Sequence[Asked]
    spans: Mapping[str, Span]
    tally: Tally


class Audit:
    """One audit of one generation of a group.

    `results` returns the frame of what was written, of some uids; `loses` says whether what was written of a uid first
    may have been deleted.
    """

    def __init__(
        self,
        catalog: Catalog,
        frames: AlignedFrames,
        results: Callable[[Iterable[str]], DataFrame],
        loses: Callable[[str], bool] = lambda uid: False,
    ) -> None:
        self._catalog = catalog
        self._group = catalog.group.group
        self._generation = catalog.group.generation
        self._frames, self._results, self._loses = frames, results, loses

    def run(self, from_us: int, to_us: int, names: Iterable[str] = ()) -> Audited:
        """Audit windows that end in [from_us, to_us); of count windows, those that end with a row released then.

        Raises NotFoundError for an unknown query, NotServedError if nothing can be audited, LogError for an empty log.
        Cost: a few passes over the sections; each query one pass over the rows, grouped by object and window.
        """
        with ExitStack() as stack:
            sections = _kept_on_disk(stack, self._frames.sections)
            time = _kept_on_disk(stack, times(sections, self._group))
            edges = self._edges(sections, time)
            needs_numbers = bool(self._group.retention_rows)
            seen = self._changes(sections, time)
            asked = queries_of(self._catalog, seen, names, is_whole=edges.is_whole)
            if needs_numbers and any(its.bound.query.window.in_rows for its in asked):
                by_number = _kept_on_disk(stack, numbered(timed(self._frames.rows(), time)))
                asked = queries_of(self._catalog, self._as_numbers(seen, by_number), names, is_whole=edges.is_whole)
                return self._audited(stack, asked, edges, (from_us, to_us), time, by_number)
            return self._audited(stack, asked, edges, (from_us, to_us), time, None)

    def _edges(self, sections: DataFrame, time: DataFrame) -> Edges:
        edges = edges_of(sections, time)
        if silent := sorted(set(range(self._group.shards)) - edges.frontiers.keys()):
            raise LogError(
                f"the aligned log of group {self._group.name!r}, generation {self._generation}, has nothing of shard "
                f"{silent[0]}; see whether align runs, and whether the archive is complete"
            )
        return edges

    def _changes(self, sections: DataFrame, time: DataFrame) -> list[Passed]:
        """Return the changes of queries, and how far each shard was when they reached it."""
        told = sections.where(sql.col("catalog").isNotNull()).select("shard", "aligned_offset", "catalog")
        told = told.join(time, ["shard", "aligned_offset"]).orderBy("shard", "aligned_offset")
        codecs = Codecs()
        return [
            Passed(change, row.shard, row.frontier_before_us, row.settled_before_us)
            for row in told.collect()
            for change in changes_in(codecs, self._group.name, self._generation, row.catalog)
        ]

    def _as_numbers(self, seen: Sequence[Passed], rows: DataFrame) -> list[Passed]:
        """Return the changes with numbers of rows instead of times, for queries over count windows."""
        points = sorted({its.point for its in seen if its.point != MIN_TIME_US})
        counts = [sql.count_if(sql.col("release_us") < point).alias(f"c{place}") for place, point in enumerate(points)]
        row = rows.agg(sql.count("*"), *counts).first()
        assert row is not None
        number = dict(zip(points, row[1:], strict=True)) | {MIN_TIME_US: MIN_TIME_US}
        return [
            Passed(its.change, its.shard, number[its.point]) if its.change.query.window.in_rows else its for its in seen
        ]

    def _audited(
        self,
        stack: ExitStack,
        asked: Sequence[Asked],
        edges: Edges,
        between: tuple[int, int],
        time: DataFrame,
        by_number: DataFrame | None,
    ) -> Audited:
        found = _kept_on_disk(stack, self._results([its.uid for its in asked]))
        kept = self._kept(asked, found, edges)
        spans = {its.uid: self._span(its, edges, kept[its.uid], between, by_number) for its in asked}
        able = [its for its in asked if not spans[its.uid].is_empty]
        if not able:
            why = {note for span in spans.values() for note in span.notes} or {"it had no query then"}
            raise NotServedError(
                f"nothing of this range of group {self._group.name!r} can be audited: left out are "
                f"{'; '.join(sorted(why))}"
            )
        timed_rows = self._rows_of(stack, able, spans, time)
        truths = {}
        for its in able:
            span, window = spans[its.uid], its.bound.query.window
            rows = by_number if window.in_rows else timed_rows
            assert rows is not None
            # One end before the first, to know whether the first takes away what was shown.
            its_truth = truth(
                rows,
                its.bound,
                span.first - window.slide,
                span.last,
                its.activity.largest_k,
                by_row=self._group.is_row_identity,
            )
            truths[its.uid] = its_truth, window.slide
        own = found.where(sql.col("uid").isin([its.uid for its in able]))
        briefs = {its.uid: _brief(its, spans[its.uid]) for its in able}
        return Audited(asked, spans, judge(gathered(truths, own), briefs))

    def _rows_of(
        self, stack: ExitStack, able: Sequence[Asked], spans: Mapping[str, Span], time: DataFrame
    ) -> DataFrame | None:
        """Return the rows that windows of time need, None if there are no such."""
        over_time = [its for its in able if not its.bound.query.window.in_rows]
        if not over_time:
            return None
        windows = {its.uid: its.bound.query.window for its in over_time}
        low = min(spans[uid].first - window.size - window.slide for uid, window in windows.items())
        rows = timed(self._frames.rows(low, max(spans[uid].last for uid in windows)), time)
        return _kept_on_disk(stack, rows) if len(over_time) > 1 else rows

    def _kept(self, asked: Sequence[Asked], found: DataFrame, edges: Edges) -> dict[str, Kept]:
        """Return what is not to be had of the results of each query."""
        is_older = sql.col("written_us") < edges.written_us
        told = found.groupBy("uid").agg(
            sql.min("window_end").alias("oldest"), sql.max(sql.when(is_older, sql.col("window_end"))).alias("older_to")
        )
        rows = {row.uid: row for row in told.collect()}
        kept = {}
        for its in asked:
            row = rows.get(its.uid)
            # Nothing is left of one whose results may be deleted: nothing of it can be judged.
            oldest = (None if row is None else row.oldest) if self._loses(its.uid) else MIN_TIME_US
            older = row.older_to if row is not None and self._generation > 1 else None
            kept[its.uid] = Kept(oldest, older)
        return kept

    def _span(
        self, its: Asked, edges: Edges, kept: Kept, between: tuple[int, int], by_number: DataFrame | None
    ) -> Span:
        window = its.bound.query.window
        if kept.oldest is None:
            return Span(0, -1, ["all windows, since no result is kept"])
        if not window.in_rows:
            return span_of(window, edges, kept, *between)
        return _span_of_numbers(window, edges, kept, between, by_number)


def _span_of_numbers(
    window: Window, edges: Edges, kept: Kept, between: tuple[int, int], rows: DataFrame | None
) -> Span:
    if not edges.is_whole:
        return Span(0, -1, ["count windows, since rows are numbered from the first, and the first are not kept"])
    assert rows is not None
    limit_us = min(frontier for frontier, _ in edges.frontiers.values())
    release = sql.col("release_us")
    ends = rows.where((release >= between[0]) & (release < min(between[1], limit_us)))
    row = ends.agg(sql.min("number").alias("first"), sql.max("number").alias("last")).first()
    if row is None or row.first is None:
        return Span(0, -1, ["count windows, since no row was released then"])
    span = Span(row["first"], row["last"], [])
    if limit_us < between[1]:
        span.notes.append(f"count windows after {as_time(limit_us)}, up to where the aligned log is read")
    for point, why in ((kept.oldest, "the first whose result is kept"), (kept.older_to, "of an older generation")):
        if point is not None and point > span.first:
            span.first = point + (window.slide if point == kept.older_to else 0)
            span.notes.append(f"count windows up to row {point:,}, {why}")
    return span


def _brief(its: Asked, span: Span) -> Brief:
    query = its.bound.query
    return Brief(
        activity=its.activity,
        first=span.first,
        last=span.last,
        size=query.window.size,
        slide=query.window.slide,
        attributes=tuple(column.name for column in its.bound.columns),
        is_approximate=query.algorithm.is_approximate,
    )


def _kept_on_disk(stack: ExitStack, frame: DataFrame) -> DataFrame:
    """Return a frame that is computed once, and dropped at the end."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    stack.callback(kept.unpersist)
    return kept
