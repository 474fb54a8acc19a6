"""Aligned logs of any number of shards, as one or several aligners write them, with queries, leases and repeats."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceKey, SourceStart
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord
from skyband.coverage.sequencer import Sequencer
from skyband.engine.shard import Shard
from skyband.fanout.merger import Merger
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.planner import plan
from skyband.model.query import Query, QueryState
from skyband.model.result import Result
from spark.archive_accepted import AcceptedBatches
from spark.rebuild_rekey import NewShards, alike, readers_of, rekeyed
from spark.rebuild_survey import Span, spans_of, survey
from tests.oracle import Row
from tests.workloads import source_rows

Log = list[AlignedBatch]
Rows = Mapping[SourceKey, Sequence[Row]]
_NO_CAP = 1 << 40


def change(group: Group, query: Query, revision: int, state: QueryState = QueryState.ACTIVE) -> QueryChange:
    planned = replace(query, algorithm=plan(group, query).algorithm)
    return QueryChange(uid=query.name, revision=revision, group=group.name, query=planned, state=state)


def written(
    group: Group, queries: Sequence[Query], rows: Rows, shards: int, seed: int, *, generation: int = 1
) -> dict[int, Log]:
    """Return the log of each shard, by one aligner: the same flushes for a seed, whatever the shards."""
    random = Random(seed)
    aligner = Aligner(group, generation, shards, {key: SourceStart() for key in (CATALOG_KEY, *rows)})
    logs: dict[int, Log] = {shard: [] for shard in range(shards)}
    cursors = dict.fromkeys(rows, 0)
    told: dict[str, int] = {}
    now_us = at = 0
    while any(cursors[key] < len(its) for key, its in rows.items()):
        for query in queries:
            revision = told.get(query.name, 0)
            if revision < 4 and random.random() < (0.04 if revision else 0.5):
                state = QueryState.PAUSED if revision % 2 else QueryState.ACTIVE
                told[query.name] = revision + 1
                aligner.add_catalog(at, at + 1, [CatalogRecord(at, change(group, query, revision + 1, state))])
                at += 1
        for key, its in rows.items():
            low = cursors[key]
            high = min(len(its), low + random.randint(0, 6))
            width = len(group.streams[key[0]].attributes)
            if high > low:
                aligner.add(*key, low, high, source_rows(its[low:high], width, low))
            cursors[key] = high
        now_us += random.choice((1_000, 1_000, 400_000, 30_000_000))
        aligner.tick(now_us, {key for key, its in rows.items() if random.random() < 0.3 or cursors[key] == len(its)})
        for batch in aligner.flush(now_us):
            logs[batch.shard].append(batch)
    return logs


def by_several(group: Group, rows: Rows, shards: int, seed: int) -> dict[int, Log]:
    """Return logs by one aligner a source partition: interleaved otherwise on each shard, with repeats and zombies."""
    random = Random(seed)
    logs: dict[int, Log] = {}
    for shard in range(shards):
        queues = []
        for key, its in rows.items():
            # What an aligner writes does not depend on who else writes; where it is cut does not matter either.
            queue = _one(group, key, its, shards, shard, Random(seed + 7 * shard))
            queues.append(queue)
        log: Log = []
        while any(queues):
            queue = random.choice([queue for queue in queues if queue])
            log.append(queue.pop(0))
            if random.random() < 0.1:
                log.append(random.choice(log[-5:]))
        logs[shard] = log
    return logs


def _one(group: Group, key: SourceKey, rows: Sequence[Row], shards: int, shard: int, random: Random) -> Log:
    aligner = Aligner(group, 1, shards, {key: SourceStart()}, writer=f"a{key}")
    found: Log = []
    low = 0
    while low < len(rows):
        high = min(len(rows), low + random.randint(1, 9))
        width = len(group.streams[key[0]].attributes)
        aligner.add(*key, low, high, source_rows(rows[low:high], width, low))
        found += [batch for batch in aligner.flush(0) if batch.shard == shard]
        low = high
    return found


def fresh(group: Group, log: Iterable[AlignedBatch]) -> Iterator[AlignedBatch]:
    """Yield what of a shard's log is new."""
    accepted: AcceptedBatches | None = None
    for batch in log:
        accepted = accepted or AcceptedBatches(group, batch.generation, batch.shard)
        found = accepted.offer(batch)
        if found is not None:
            yield found


def rebuilt(
    group: Group,
    logs: Mapping[int, Log],
    shards: int,
    *,
    tasks: int = 2,
    spans: Mapping[SourceKey, Span] | None = None,
    **more: object,
) -> dict[int, Log]:
    """Return the logs of the next generation, as `tasks` make them."""
    if spans is None:
        spans = spans_of([survey(shard, fresh(group, log)) for shard, log in logs.items()], {})
    found: dict[int, Log] = {}
    for wanted in alike(shards, len(logs), tasks):
        new = NewShards(
            group=group.name,
            generation=2,
            wanted=wanted,
            shards=shards,
            old_shards=len(logs),
            width=group.width,
            writer="rebuild-1",
            spans=spans,
            **more,  # type: ignore[arg-type]
        )
        readers = {old: fresh(group, logs[old]) for old in readers_of(wanted[0], shards, len(logs))}
        found |= {shard: [] for shard in wanted}
        for batch in rekeyed(new, readers):
            found[batch.shard].append(batch)
    return found


def results(group: Group, logs: Mapping[int, Log], starts: Iterable[SourceKey], generation: int) -> list[Result]:
    """Return what engine and merge make of the logs, in order."""
    merger = Merger(group.name, generation, len(logs))
    begins = dict.fromkeys((CATALOG_KEY, *starts), 0)
    shards = {
        number: Shard(group, generation, number, Sequencer(group, generation, number, begins, _NO_CAP))
        for number in logs
    }
    newest: dict[str, QueryChange] = {}
    for record in (record for batch in logs[0] for record in batch.catalog):
        if record.change is not None:
            newest[record.change.uid] = record.change
    for query in newest.values():
        merger.change_query(query)
    found: list[Result] = []
    offset = 0
    for number, shard in shards.items():
        for batch in logs[number]:
            for section in batch.sections:
                if not shard.sequencer.knows((section.stream, section.partition)):
                    shard.sequencer.add_partition((section.stream, section.partition), section.from_offset)
            shard.offer(batch)
            for value in shard.advance():
                merger.accept(value, 0, offset)
                offset += 1
        found += merger.take()
    return sorted(found, key=lambda result: (result.window_end, result.query))
