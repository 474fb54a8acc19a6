"""Sources aligned anew, each on its own, are in their order what one aligner of all would have let engines see."""

from dataclasses import replace
from itertools import pairwise

import pytest

from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord
from skyband.coverage.sequencer import Sequencer
from skyband.errors import LogError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.source_rows import SourceRows
from skyband.model.stream import Attribute, Stream
from spark import rebuild_pieces
from spark.rebuild_pieces import Source, catalog_batch, pieces, with_catalog
from tests.oracle import Row
from tests.spark.rebuild_logs import Log, Rows, change, results, written
from tests.workloads import seeded, source_rows

NOW_US = 2_000_000_000_000_000


def chunks(group: Group, key: SourceKey, rows: list[Row], size: int = 7) -> list[tuple[int, SourceRows]]:
    width = len(group.streams[key[0]].attributes)
    return [
        (min(len(rows), low + size), source_rows(rows[low : low + size], width, low))
        for low in range(0, len(rows), size)
    ]


def aligned(group: Group, rows: Rows, *, idle: bool = False, since_us: int | None = None) -> dict[int, Log]:
    """Return the log of each shard: all pieces in their order."""
    found = []
    for key, its in rows.items():
        source = Source(key=key, begin=0, end=len(its), is_idle=idle)
        found += list(
            pieces(group, 2, source, chunks(group, key, list(its)), now_us=NOW_US, writer="r", since_us=since_us)
        )
    assert len({order for order, _ in found}) == len(found)
    found.sort(key=lambda each: each[0])
    return {shard: [batch for order, batch in found if order[0] == shard] for shard in range(group.shards)}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild_pieces, "PIECE_ROWS", 20)


def rows_of(logs: dict[int, Log]) -> list[tuple[object, ...]]:
    found = []
    for log in logs.values():
        for batch in log:
            stop = 0
            for section in batch.sections:
                low, stop = stop, stop + section.rows
                for i in range(low, stop):
                    place = (section.stream, section.partition, int(batch.offset[i]))
                    found.append((batch.shard, *place, int(batch.release_time_us[i]), batch.values[i].tolist()))
    return sorted(found)


@pytest.mark.parametrize("seed", range(8))
def test_rows_release_times_and_results_are_those_of_one_aligner(seed: int) -> None:
    group, queries, rows = seeded(seed, 200, counts=False)
    group = replace(group, shards=3, streams=tuple(replace(its, idle_after_us=MAX_TIME_US) for its in group.streams))
    theirs = written(group, (), rows, 3, seed, generation=2)
    ours = aligned(group, rows)
    assert rows_of(ours) == rows_of(theirs)
    records = tuple(CatalogRecord(offset, change(group, query, 1)) for offset, query in enumerate(queries))
    for logs in (ours, theirs):
        for shard, log in logs.items():
            log.insert(0, catalog_batch(group, 2, shard, "r", 0, len(records), records))
    ends = [(r.query, r.window_end, r.rows) for r in results(group, ours, rows, 2)]
    assert ends == [(r.query, r.window_end, r.rows) for r in results(group, theirs, rows, 2)]


def two_streams(**more: object) -> Group:
    streams = tuple(Stream(name=name, attributes=(Attribute(name=name),), **more) for name in "ab")  # type: ignore[arg-type]
    return Group(name="g", streams=streams, retention_us=100, pane_us=1, shards=1)


def test_few_rows_wait_in_an_engine_also_where_a_partition_was_silent_for_long() -> None:
    group = two_streams()
    steady = [Row(f"o{i}", i, (1.0,)) for i in range(2_000)]
    silent = [Row("x", i, (1.0,)) for i in range(100)] + [Row("x", i, (1.0,)) for i in range(1_900, 2_000)]
    (log,) = aligned(group, {(0, 0): steady, (1, 0): silent}).values()
    starts = {CATALOG_KEY: 0, (0, 0): 0, (1, 0): 0}
    sequencer = Sequencer(group, 2, 0, starts, 1 << 30)
    most = 0
    for batch in log:
        sequencer.offer(batch)
        sequencer.take(sequencer.frontier_us)
        most = max(most, sequencer.pending_rows)
    assert sequencer.statistics().overtaken == 0
    assert most <= 150


def test_one_that_is_silent_at_its_end_holds_nobody_until_live_aligners_go_on() -> None:
    group = two_streams()
    rows = {(0, 0): [Row(f"o{i}", i, (1.0,)) for i in range(500)], (1, 0): [Row("x", 3, (1.0,))]}
    for idle, frontier in ((True, 500), (False, 3)):
        (log,) = aligned(group, rows, idle=idle).values()
        sequencer = Sequencer(group, 2, 0, {CATALOG_KEY: 0, (0, 0): 0, (1, 0): 0}, 1 << 30)
        for batch in log:
            sequencer.offer(batch)
        assert sequencer.frontier_us == frontier
    leases = [section.idle_until_us for batch in log for section in batch.sections]
    assert max(leases) == 0


def test_rows_of_before_the_time_asked_for_are_left_out_with_their_times_kept() -> None:
    group = two_streams()
    rows = {(0, 0): [Row(f"o{i}", i, (1.0,)) for i in range(100)]}
    (log,) = aligned(group, rows, since_us=60).values()
    assert [int(t) for batch in log for t in batch.event_time_us] == list(range(60, 100))
    sections = [section for batch in log for section in batch.sections]
    assert sections[-1].watermark_us == 99
    assert all(one.to_offset == other.from_offset for one, other in pairwise(sections))


def test_the_catalog_comes_before_the_frontier_reaches_what_is_not_written_yet() -> None:
    group = two_streams()
    rows = {(0, 0): [Row("o", i, (1.0,)) for i in range(400)], (1, 0): [Row("x", i, (1.0,)) for i in range(400)]}
    (log,) = aligned(group, rows).values()
    catalog = catalog_batch(group, 2, 0, "r", NOW_US, 4, ())

    def place(until_us: int) -> tuple[int, int]:
        sequencer = Sequencer(group, 2, 0, {CATALOG_KEY: 0, (0, 0): 0, (1, 0): 0}, 1 << 30)
        batches: list[AlignedBatch] = list(with_catalog(log, catalog, [(0, 0), (1, 0)], until_us))
        at = batches.index(catalog)
        for batch in batches[:at]:
            sequencer.offer(batch)
        return at, sequencer.frontier_us

    at, frontier = place(200)
    assert 0 < at < len(log)
    assert 150 < frontier < 200
    assert place(MIN_TIME_US) == (0, MIN_TIME_US)
    assert place(10**6)[0] == len(log)


def test_a_source_that_ends_too_soon_is_an_error() -> None:
    group = two_streams()
    source = Source(key=(0, 0), begin=0, end=9)
    with pytest.raises(LogError, match="stream 'a', partition 0 ends at offset 0, before 9; start the rebuild again"):
        list(pieces(group, 2, source, [], now_us=NOW_US, writer="r"))
