"""Replay: finished input through the whole pipeline; same input, same results, to the last bit."""

import pickle
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from skyband.align.stage import AlignSettings
from skyband.control.stage import CATALOG_TOPIC
from skyband.files.definitions import load_definitions
from skyband.files.rows import RowSource, open_rows
from skyband.local.pipeline import LocalPipeline, finished_input, topics_of
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.model.approximation import Approximation
from skyband.model.definitions import Definitions
from skyband.model.planner import plan
from skyband.model.query import Algorithm
from skyband.model.result import Result
from skyband.model.source_rows import DeadLetter

__all__ = ["Replay", "ReplaySummary", "as_document", "prepare", "replay"]

BATCH_ROWS = 50_000
_KEPT_LETTERS = 5


@dataclass(slots=True)
class ReplaySummary:
    """What a replay has read and found so far. `rejected` counts records by reason; `examples` are the first few.

    `approximations`: how well each approximate query did, by its name.
    """

    rows: int = 0
    accepted: int = 0
    late: int = 0
    results: int = 0
    evaluations: int = 0
    objects: int = 0
    held: int = 0
    state_bytes: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    examples: list[DeadLetter] = field(default_factory=list)
    approximations: dict[str, Approximation] = field(default_factory=dict)


def prepare(
    definitions: Definitions | str | Path,
    *,
    algorithm: Algorithm = Algorithm.AUTO,
    shards: int | None = None,
    candidates: int | None = None,
) -> Definitions:
    """Return definitions with another algorithm or other candidates for all queries, or another number of shards.

    Raises DefinitionError for definitions that are wrong, NotServedError for what the queries or shards do not allow.
    """
    made = definitions if isinstance(definitions, Definitions) else load_definitions(definitions)
    group = made.group if shards is None else replace(made.group, shards=shards)
    queries = made.queries
    if algorithm is not Algorithm.AUTO:
        queries = tuple(replace(query, algorithm=algorithm) for query in queries)
    if candidates is not None:
        queries = tuple(replace(query, candidates=candidates) for query in queries)
    for query in queries:
        plan(group, query)
    return Definitions(group, queries)


class Replay:
    """One replay: iterate it once for the results, in order of (window end, query); count windows come last.

    Evaluations run from the first accepted row to the first window end after the last one. `summary` and `source` may
    be looked at meanwhile. Cost: memory for the retention, not for the input.
    """

    def __init__(self, definitions: Definitions, source: RowSource, *, batch_rows: int = BATCH_ROWS) -> None:
        self.definitions = finished_input(definitions)
        self.source = source
        self.summary = ReplaySummary()
        self.on_chunk: Callable[[], None] | None = None
        self._windows = {query.name: query.window for query in definitions.queries}
        clock = ManualClock()
        log = MemoryLog(clock)
        for name, partitions in topics_of(definitions.group, source.partitions).items():
            # All but the catalog, which a stage may read from the beginning at any time, is dropped once it was read.
            log.create_topic(name, partitions, truncate=name != CATALOG_TOPIC)
        settings = AlignSettings(batch_rows=batch_rows, max_rows=batch_rows, flush_interval_us=0, writer="replay")
        self.pipeline = LocalPipeline(self.definitions, log, clock, source.partitions, align=settings)
        # Of count windows that end at one row; the stages may read and write them in two parts, each in order.
        self._ending: list[Result] = []

    def __iter__(self) -> Iterator[Result]:
        held: deque[Result] = deque()
        with closing(self.pipeline), tempfile.TemporaryFile() as by_count:
            for _ in self._run():
                held.extend(self._take(by_count))
                # Rejected rows can move time past the last accepted one, but only accepted ones ask for evaluations.
                newest = self.pipeline.newest_us
                while held and held[0].window_end - self._windows[held[0].query].slide <= newest:
                    yield self._counted(held.popleft())
            self._keep_ending(by_count)
            self._finish_summary()
            by_count.seek(0)
            yield from map(self._counted, _unpickle(by_count))

    def _run(self) -> Iterator[None]:
        """Feed the source chunk by chunk; yield whenever there may be results."""
        pipeline = self.pipeline
        for chunk in self.source:
            pipeline.feed((chunk.stream, chunk.partition), chunk.from_offset, chunk.to_offset, chunk.rows)
            self.summary.rows += chunk.to_offset - chunk.from_offset
            pipeline.finish(self.source.take_ended())
            while pipeline.step():
                yield
            if self.on_chunk is not None:
                self.on_chunk()
        pipeline.finish()
        while pipeline.step():
            yield
        yield

    def _take(self, by_count: BinaryIO) -> Iterator[Result]:
        """Return new results of time windows; keep those of count windows for the end."""
        for letter in self.pipeline.dead_letters():
            self.summary.rejected[letter.reason.label] += 1
            if len(self.summary.examples) < _KEPT_LETTERS:
                self.summary.examples.append(letter)
        while results := self.pipeline.results():
            for result in results:
                if not self._windows[result.query].in_rows:
                    yield result
                    continue
                if self._ending and self._ending[0].window_end != result.window_end:
                    self._keep_ending(by_count)
                self._ending.append(result)

    def _keep_ending(self, by_count: BinaryIO) -> None:
        for result in sorted(self._ending, key=lambda result: result.query):
            pickle.dump(result, by_count)
        self._ending = []

    def _counted(self, result: Result) -> Result:
        self.summary.results += 1
        return result

    def _finish_summary(self) -> None:
        align, shards = self.pipeline.statistics()
        self.summary.accepted = sum(counts.accepted for counts in align.counts)
        self.summary.late = sum(shard.late_rows for shard in shards)
        self.summary.evaluations = sum(shard.evaluations for shard in shards)
        self.summary.objects = sum(shard.objects for shard in shards)
        self.summary.held = sum(shard.held for shard in shards)
        self.summary.state_bytes = sum(shard.state_bytes for shard in shards)
        self.summary.approximations = self.pipeline.approximations()


def _unpickle(file: BinaryIO) -> Iterator[Result]:
    while True:
        try:
            yield pickle.load(file)
        except EOFError:
            return


def replay(
    definitions: Definitions | str | Path,
    rows: Any,
    *,
    algorithm: Algorithm | str = Algorithm.AUTO,
    shards: int | None = None,
    candidates: int | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Result]:
    """Yield the results of `definitions` over finished `rows`.

    `definitions`: a file, its text, a mapping, or Definitions. `rows`: paths (JSON Lines, CSV, Parquet), a pandas or
    polars frame, an Arrow table, or an iterable of rows. `candidates`: how many objects outside each result are told
    that could still come in, for all queries. Raises DefinitionError or InputError before the first result.

    >>> rows = [("a", "x", 1_000_000, 3.0), ("a", "y", 2_000_000, 5.0)]
    >>> text = "{group: {name: g, streams: [{name: a}]}, queries: [{name: q, k: 1, score: a, window: {size: 10s}}]}"
    >>> [(r.window_end, r.rows[0].object_id) for r in replay(text + chr(10), rows)]
    [(10000000, 'y')]
    """
    made = prepare(definitions, algorithm=Algorithm(algorithm), shards=shards, candidates=candidates)
    return iter(Replay(made, open_rows(made.group, rows, batch_rows=batch_rows), batch_rows=batch_rows))


def as_document(result: Result, *, candidates: bool = False) -> dict[str, object]:
    """Return a result as replay writes it: one JSON object. `candidates`: with what could still happen."""
    rows = []
    for row in result.rows:
        line: dict[str, object] = {"rank": row.rank, "object_id": row.object_id, "score": row.score}
        line["attributes"] = row.attributes
        if row.event_time_us is not None:
            line["event_time"] = row.event_time_us
        if candidates:
            line["best_score"], line["safe_until"] = row.best_score, row.safe_until
        rows.append(line)
    document = {"query": result.query, "window_start": result.window_start, "window_end": result.window_end}
    if candidates:
        return {**document, "rows": rows, "candidates": [asdict(candidate) for candidate in result.candidates]}
    return {**document, "rows": rows}
