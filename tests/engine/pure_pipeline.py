"""All stages' pure parts in a row, without logs: what the engine's tests run against the oracle."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.control.planner import plan
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.coverage.sequencer import Sequencer
from skyband.engine.shard import Shard
from skyband.fanout.merger import Merger
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.partials import Activated, PartialBatch
from skyband.model.query import Algorithm, Query, QueryState
from skyband.model.result import Result
from tests.oracle import Row
from tests.workloads import source_rows

NO_CAP = 1 << 40


def as_dict(result: Result, by_row: bool) -> dict[str, Any]:
    """Return a result as the oracle writes it."""
    rows = []
    for row in result.rows:
        line = {"rank": row.rank, "object_id": row.object_id, "score": row.score, "attributes": row.attributes}
        rows.append({**line, "event_time": row.event_time_us} if by_row else line)
    return {"query": result.query, "window_start": result.window_start, "window_end": result.window_end, "rows": rows}


class PurePipeline:
    """Aligner → shards → merger for one group.

    `check` asserts every structure's invariants after each batch. `catalog`: changes of queries come through the
    aligned log, with the next flush; else at once, to every shard.
    """

    def __init__(
        self, group: Group, places: Sequence[tuple[int, int]], *, check: bool = False, catalog: bool = False
    ) -> None:
        self.group = group
        sources = {place: SourceStart() for place in (*([CATALOG_KEY] if catalog else []), *places)}
        self.aligner = Aligner(group, 1, group.shards, sources)
        starts = dict.fromkeys(places, 0)
        self.shards = [
            Shard(group, 1, shard, Sequencer(group, 1, shard, starts, NO_CAP)) for shard in range(group.shards)
        ]
        self.merger = Merger(group.name, 1, group.shards)
        self.results: list[Result] = []
        self.activated: list[Activated] = []
        self.partials: list[PartialBatch] = []
        self._offset = 0
        self._changes = 0 if catalog else -1
        self._check = check

    def change(self, query: Query, revision: int = 1, state: QueryState = QueryState.ACTIVE) -> None:
        """Add or change a query everywhere."""
        change = QueryChange(uid=query.name, revision=revision, group=self.group.name, query=query, state=state)
        self.merger.change_query(change)
        if self._changes >= 0:
            self.aligner.add_catalog(self._changes, self._changes + 1, [CatalogRecord(self._changes, change)])
            self._changes += 1
            return
        for shard in self.shards:
            shard.change(change)

    def add(self, place: tuple[int, int], rows: Sequence[Row], first_offset: int) -> None:
        """Hand the aligner rows of one source partition."""
        width = len(self.group.streams[place[0]].attributes)
        columns = source_rows(rows, width, first_offset)
        self.aligner.add(*place, first_offset, first_offset + len(rows), columns)

    def flush(self, now_us: int = 0) -> None:
        """Carry what the aligner holds through to results."""
        for batch in self.aligner.flush(now_us):
            shard = self.shards[batch.shard]
            shard.offer(batch)
            for value in shard.advance():
                self.merger.accept(value, 0, self._offset)
                self._offset += 1
                if isinstance(value, Activated):
                    self.activated.append(value)
                elif isinstance(value, PartialBatch):
                    self.partials.append(value)
            if self._check:
                shard._check()
            self.results.extend(self.merger.take())


def planned(group: Group, query: Query, algorithm: Algorithm = Algorithm.AUTO) -> Query:
    """Return the query with the planner's choice, or with `algorithm` (raises where it does not fit)."""
    asked = query if algorithm is Algorithm.AUTO else replace(query, algorithm=algorithm)
    return replace(asked, algorithm=plan(group, asked).algorithm)


def run(
    group: Group,
    queries: Sequence[Query],
    partitions: Mapping[tuple[int, int], Sequence[Row]],
    *,
    shards: int = 1,
    batch_rows: int = 10_000,
    check: bool = False,
) -> list[dict[str, Any]]:
    """Return the results of planned queries in the oracle's form and order."""
    pipeline = PurePipeline(replace(group, shards=shards), sorted(partitions), check=check)
    for query in queries:
        pipeline.change(query)
    longest = max((len(rows) for rows in partitions.values()), default=0)
    for first in range(0, longest, batch_rows):
        for (stream, partition), rows in partitions.items():
            chunk = rows[first : first + batch_rows]
            if chunk:
                pipeline.add((stream, partition), chunk, first)
        pipeline.flush()
    for stream, partition in partitions:
        pipeline.aligner.finish(stream, partition)
    pipeline.flush()
    windows = {query.name: query.window for query in queries}
    newest = pipeline.shards[0].sequencer.newest_us
    results = [
        r for r in pipeline.results if windows[r.query].in_rows or r.window_end - windows[r.query].slide <= newest
    ]
    ordered = sorted(results, key=lambda r: (windows[r.query].in_rows, r.window_end, r.query))
    return [as_dict(result, group.is_row_identity) for result in ordered]
