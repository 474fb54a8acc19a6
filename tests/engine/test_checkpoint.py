"""A shard that is restarted from its checkpoints says what one says that has run throughout."""

import json
from random import Random

import pytest

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord
from skyband.coverage.sequencer import Sequencer
from skyband.engine.checkpoint import Checkpoint
from skyband.engine.checkpointer import Checkpointer
from skyband.engine.shard import Shard
from skyband.errors import LogError
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import Query, QueryState, Window
from skyband.model.stream import Aggregate, Attribute, Stream
from tests.engine.pure_pipeline import NO_CAP
from tests.engine.variants import Rows, fitting
from tests.oracle import Row
from tests.workloads import seeded, source_rows

Told = dict[tuple[object, ...], tuple[object, ...]]


def aligned(group: Group, queries: list[Query], partitions: Rows, random: Random) -> list[AlignedBatch]:
    """Return the log of one shard: rows in small batches, queries that come, change and go at random places."""
    aligner = Aligner(group, 1, 1, {place: SourceStart() for place in (CATALOG_KEY, *partitions)})
    cursors = dict.fromkeys(partitions, 0)
    lives: dict[str, int] = {}
    batches: list[AlignedBatch] = []
    changes = 0
    while any(cursors[place] < len(rows) for place, rows in partitions.items()):
        for query in queries:
            revision = lives.get(query.name, 0)
            if revision and random.random() > 0.03:
                continue
            state = random.choice((QueryState.ACTIVE, QueryState.ACTIVE, QueryState.PAUSED)) if revision else None
            lives[query.name] = revision + 1
            change = QueryChange(
                uid=query.name, revision=revision + 1, group="g", query=query, state=state or QueryState.ACTIVE
            )
            aligner.add_catalog(changes, changes + 1, [CatalogRecord(changes, change)])
            changes += 1
        for place, rows in partitions.items():
            lo = cursors[place]
            hi = min(len(rows), lo + random.randint(0, 6))
            if hi > lo:
                width = len(group.streams[place[0]].attributes)
                aligner.add(*place, lo, hi, source_rows(rows[lo:hi], width, lo))
            cursors[place] = hi
        batches += aligner.flush(0)
    for place in partitions:
        aligner.finish(*place)
    return batches + aligner.flush(0)


def new_shard(group: Group, partitions: Rows) -> Shard:
    starts = dict.fromkeys((CATALOG_KEY, *partitions), 0)
    return Shard(group, 1, 0, Sequencer(group, 1, 0, starts, NO_CAP))


def note(values: list[object], told: Told) -> None:
    """Add what a shard says to `told`; what it says again must be the same."""
    for value in values:
        if isinstance(value, Activated):
            said = {("activated", value.uid, value.revision): (value.first_us,)}
        elif isinstance(value, PartialBatch):
            starts = [0, *value.id_ends.tolist()]
            ids = [value.id_bytes[starts[i] : starts[i + 1]].tobytes() for i in range(len(value.id_ends))]
            rows = [
                (ids[i], value.score[i].item(), value.present[i].tolist(), value.attributes[i].tolist())
                for i in value.ranking
            ]
            said = {(e.uid, e.window_end): (e.revision, e.k, *rows[e.start : e.stop]) for e in value.evaluations}
        else:
            assert isinstance(value, Progress)
            continue
        for key, what in said.items():
            assert repr(told.setdefault(key, what)) == repr(what), key


def whole(group: Group, partitions: Rows, batches: list[AlignedBatch]) -> tuple[Told, Shard]:
    shard, told = new_shard(group, partitions), Told()
    for batch in batches:
        shard.offer(batch)
        note(list(shard.advance()), told)
    return told, shard


def restarted(
    group: Group, partitions: Rows, batches: list[AlignedBatch], random: Random
) -> tuple[Told, Shard, int, int]:
    """Run with restarts, each from a checkpoint that was written some batches before; count those with and without."""
    told, at, until, stored = Told(), 0, 0, None
    shard = new_shard(group, partitions)
    keeper = Checkpointer(shard)
    anew = from_checkpoint = 0
    reached = 0
    while at < len(batches):
        if at > reached and random.random() < 0.12:
            reached = at
            shard = new_shard(group, partitions)
            at = until = 0
            if stored is not None:
                checkpoint = Checkpoint.of(json.loads(stored))
                shard.restore(checkpoint)
                at = checkpoint.aligned_offset
                from_checkpoint += 1
                until = checkpoint.done.aligned_offset
            else:
                anew += 1
            keeper = Checkpointer(shard)
        if shard.is_replaying and at == until:
            shard.resume()
            assert shard.done(at) == checkpoint.done
        keeper.before(at)
        shard.offer(batches[at])
        said = list(shard.advance())
        assert not (shard.is_replaying and said)
        note(said, told)
        at += 1
        if random.random() < 0.4:
            checkpoint_now = keeper.checkpoint(at)
            if checkpoint_now is not None:
                assert checkpoint_now.aligned_offset <= at
                stored = json.dumps(checkpoint_now.document())
    return told, shard, anew, from_checkpoint


def long_stream(seed: int) -> tuple[Group, list[Query], Rows]:
    """Return a workload far longer than what is kept, so that checkpoints move on."""
    random = Random(seed)
    aggregates = (Aggregate.BEST, Aggregate.SUM, Aggregate.LATEST)
    streams = tuple(
        Stream(
            name=name,
            attributes=(Attribute(name=name, lo=0.0, hi=10.0),),
            aggregate=random.choice(aggregates) if name == "b" else Aggregate.BEST,
            max_delay_us=random.choice((0, 2)),
        )
        for name in "ab"
    )
    group = Group(name="g", streams=streams, retention_us=20, pane_us=1, retention_rows=25)
    asked = [
        Query(name="sums", k=3, score="b", window=Window(10, 2)),
        Query(
            name="both",
            k=2,
            score="0.5*a + 2*b" if streams[1].aggregate is not Aggregate.LATEST else "a + b*0",
            window=Window(20, 5),
        ),
        Query(name="gaps", k=2, score="a", window=Window(4, 17)),
        Query(name="rows", k=2, score="a", window=Window(15, 4, in_rows=True)),
    ]
    rows: Rows = {(0, 0): [], (0, 1): [], (1, 0): []}
    for place, part in rows.items():
        now = 0
        for _ in range(400):
            now += random.choice((0, 0, 1, 1, 1, 2, 60 if random.random() < 0.02 else 1))
            late = random.choice((0, 0, 0, 1, 5))
            part.append(Row(f"o{random.randrange(12)}", max(0, now - late), (random.randrange(11) / (1 + place[0]),)))
    return group, [query for _, query in fitting(group, asked)], rows


@pytest.mark.parametrize("seed", range(12))
def test_a_long_run_with_restarts_tells_what_an_unbroken_one_tells(seed: int) -> None:
    group, queries, rows = long_stream(seed)
    random = Random(seed)
    batches = aligned(group, queries, rows, random)
    truth, unbroken = whole(group, rows, batches)
    told, shard, _, from_checkpoint = restarted(group, rows, batches, random)
    assert told.keys() == truth.keys()
    assert {key: repr(what) for key, what in told.items()} == {key: repr(what) for key, what in truth.items()}
    assert from_checkpoint > 3
    shard._check()
    assert shard.sequencer.frontier_us == unbroken.sequencer.frontier_us
    assert len(truth) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2_000, 2_120))
def test_runs_of_every_kind_with_restarts_tell_what_unbroken_ones_tell(seed: int) -> None:
    group, queries, partitions = seeded(seed, 200)
    asked = [query for _, query in fitting(group, queries)]
    random = Random(seed)
    batches = aligned(group, asked, partitions, random)
    truth, _ = whole(group, partitions, batches)
    told, shard, _, _ = restarted(group, partitions, batches, random)
    assert {key: repr(what) for key, what in told.items()} == {key: repr(what) for key, what in truth.items()}
    shard._check()


def test_a_checkpoint_of_another_version_is_refused() -> None:
    with pytest.raises(LogError, match="has version 0, this engine reads 1 to 2"):
        Checkpoint.of({"version": 0})


def test_a_checkpoint_of_version_1_is_read() -> None:
    group, _, rows = long_stream(1)
    shard = new_shard(group, rows)
    told_of = Checkpoint("g", 1, 0, 0, shard.standing(), shard.done(0))
    assert "snapshot" not in told_of.document()
    assert Checkpoint.of({**told_of.document(), "version": 1}) == told_of


def test_a_damaged_checkpoint_is_refused() -> None:
    with pytest.raises(LogError, match="damaged"):
        Checkpoint.of({"version": 1, "group": "g"})


def test_a_checkpoint_is_read_back_as_it_was_and_moves_on_with_the_log() -> None:
    group, queries, rows = long_stream(1)
    batches = aligned(group, queries, rows, Random(1))
    shard = new_shard(group, rows)
    keeper = Checkpointer(shard)
    found = None
    for offset, batch in enumerate(batches):
        keeper.before(offset)
        shard.offer(batch)
        shard.advance()
        found = keeper.checkpoint(offset + 1) or found
    assert found is not None
    assert Checkpoint.of(json.loads(json.dumps(found.document()))) == found
    assert found.aligned_offset > len(batches) // 2
