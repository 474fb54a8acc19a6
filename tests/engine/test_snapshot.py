"""A shard that goes on from a snapshot says what one says that has run throughout, to the last bit."""

import hashlib
import json
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.engine import snapshot_bytes
from skyband.engine.shard import Shard
from skyband.engine.snapshot import Snapshot
from skyband.errors import LogError
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import Algorithm, Query, Window
from skyband.model.stream import Aggregate, Attribute, Stream
from tests.engine.pure_pipeline import NO_CAP, planned
from tests.engine.test_checkpoint import aligned, long_stream, new_shard
from tests.engine.variants import Rows, falling_leaders, fitting, promising
from tests.interpreted import assert_same_interpreted, print_digest
from tests.oracle import Row
from tests.workloads import definitions, rows, seeded

Said = list[str]
Case = tuple[Group, list[Query], Rows]


def said(values: list[object]) -> Said:
    """Return what a shard says, in its order, to the last bit: rows as they are ranked, wherever they lie."""
    found: Said = []
    for value in values:
        if not isinstance(value, PartialBatch):
            assert isinstance(value, Activated | Progress)
            found.append(repr(value))
            continue
        starts = [0, *value.id_ends.tolist()]
        columns = (value.score, value.event_time_us, value.sequence, value.attributes, value.present, value.best)
        for e in value.evaluations:
            at = value.ranking[e.start : e.stop]
            ids = [value.id_bytes[starts[i] : starts[i + 1]].tobytes() for i in at]
            rows_of = [column[at].tobytes() for column in columns if len(column)]
            about = (e.uid, e.revision, e.k, e.window_start, e.window_end, e.contenders)
            found.append(repr((value.attribute_names, about, ids, rows_of)))
    return found


def told(shard: Shard, batches: list[AlignedBatch]) -> list[Said]:
    """Return what a shard says of each batch."""
    found = []
    for batch in batches:
        shard.offer(batch)
        found.append(said(list(shard.advance())))
    return found


def gone_on(shard: Shard, group: Group, partitions: Rows, offset: int) -> Shard:
    """Return a new shard that holds what went through bytes."""
    data = shard.snapshot(offset).to_bytes()
    found = new_shard(group, partitions)
    found.restore_snapshot(Snapshot.from_bytes(data))
    found._check()
    # The same content is the same bytes, also when it comes out of bytes.
    assert found.snapshot(offset).to_bytes() == data
    return found


def cut_case(case: Case, random: Random, cuts: int) -> tuple[list[Said], list[Said], Shard, Shard]:
    """Return what an unbroken shard and one cut at random places say, and both."""
    group, queries, partitions = case
    batches = aligned(group, queries, partitions, random)
    unbroken = new_shard(group, partitions)
    truth = told(unbroken, batches)
    shard, found, at = new_shard(group, partitions), list[Said](), 0
    for stop in (*sorted(random.randint(0, len(batches)) for _ in range(cuts)), len(batches)):
        found += told(shard, batches[at:stop])
        shard, at = gone_on(shard, group, partitions, stop), stop
    return truth, found, unbroken, shard


def seen_once(seed: int) -> Case:
    """Return objects that never come twice on a stream, asked by every algorithm there is, over time and rows."""
    random = Random(seed)
    streams = tuple(
        Stream(name=name, attributes=(Attribute(name=name, lo=0.0, hi=10.0),), max_delay_us=random.choice((0, 3)))
        for name in "ab"
    )
    group = Group(name="g", streams=streams, retention_us=60, pane_us=1, retention_rows=40)
    partitions: Rows = {(0, 0): [], (1, 0): []}
    for part in partitions.values():
        for i in range(500):
            late = random.choice((0, 0, 0, 2))
            part.append(Row(f"o{i // 2 + random.randrange(8)}", max(0, i // 3 - late), (random.randrange(11) / 1.0,)))
        part.sort(key=lambda row: row.event_time_us // 4)
    group, partitions = promising(group, partitions, MAX_TIME_US)
    time, count = Window(30, 5), Window(20, 4, in_rows=True)
    asked = [(algorithm, time) for algorithm in Algorithm if algorithm is not Algorithm.SKYBAND] + [
        (each, count) for each in Algorithm if each.forgets
    ]
    queries = [
        planned(group, Query(name=f"{algorithm}-{window.size}", k=3, score="a + 0.5*b", window=window), algorithm)
        for algorithm, window in asked
    ]
    queries.append(planned(group, Query(name="who", k=2, score="b", window=Window(12, 3), candidates=2)))
    return group, queries, partitions


def whole_records() -> Case:
    """Return objects that come once, all in one record, asked by the skyband."""
    stream = Stream(
        name="a",
        attributes=(Attribute(name="x", lo=0.0, hi=10.0), Attribute(name="y", lo=0.0, hi=10.0)),
        is_object_stream=True,
        repeat_after_us=MAX_TIME_US,
    )
    group, random = Group(name="g", streams=(stream,), retention_us=40, pane_us=2), Random(3)
    part = [Row(f"o{i}", i // 4, (float(random.randrange(11)), float(random.randrange(5)))) for i in range(700)]
    windows = ((3, Window(40, 4)), (5, Window(16, 4)), (2, Window(8, 6)))
    queries = [Query(name=f"q{k}", k=k, score="x + y", window=window) for k, window in windows]
    return group, [planned(group, query, Algorithm.SKYBAND) for query in queries], {(0, 0): part}


def fallen() -> Case:
    group, queries, partitions = falling_leaders(700)
    return group, [query for _, query in fitting(group, queries)], partitions


def of_seed(seed: int) -> Case:
    group, queries, partitions = seeded(seed, 200)
    return group, [query for _, query in fitting(group, queries)], partitions


# Between them: count windows, records as objects, streams of objects, sums, lowest first, ties, gaps, late rows.
CASES: dict[str, Callable[[], Case]] = {
    **{f"seed {seed}": lambda seed=seed: of_seed(seed) for seed in (1, 7, 12, 201, 286, 313)},  # type: ignore[misc]
    **{f"long stream {seed}": lambda seed=seed: long_stream(seed) for seed in range(3)},  # type: ignore[misc]
    **{f"every algorithm {seed}": lambda seed=seed: seen_once(seed) for seed in range(2)},  # type: ignore[misc]
    "whole records": whole_records,
    "falling leaders": fallen,
}


@pytest.mark.parametrize("name", CASES)
def test_a_shard_cut_twice_tells_of_each_batch_what_an_unbroken_one_tells(name: str) -> None:
    truth, found, unbroken, shard = cut_case(CASES[name](), Random(name), 2)
    assert found == truth
    assert sum("b'" in line for each in truth for line in each) > 5
    shard._check()
    counted = ("rows", "late_rows", "expired_rows", "objects", "entries", "evaluations")
    assert [getattr(shard.statistics(), each) for each in counted] == [
        getattr(unbroken.statistics(), each) for each in counted
    ]
    assert shard.sequencer.statistics() == unbroken.sequencer.statistics()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3_000, 3_060))
def test_shards_of_every_kind_tell_the_same_when_cut(seed: int) -> None:
    case = of_seed(seed) if seed % 4 else seen_once(seed)
    truth, found, _, _ = cut_case(case, Random(seed), 4)
    assert found == truth


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_wherever_it_is_cut_a_shard_tells_the_same(data: st.DataObject) -> None:
    made = data.draw(definitions())
    partitions = data.draw(rows(made))
    queries = [query for _, query in fitting(made.group, made.queries)]
    truth, found, _, _ = cut_case((made.group, queries, partitions), Random(data.draw(st.integers(0, 99))), 2)
    assert found == truth


def cut_at(case: Case, share: float, seed: int = 5) -> tuple[Snapshot, list[AlignedBatch], int, Shard]:
    """Return a snapshot at a share of a shard's log, the log, where that is, and the shard."""
    group, queries, partitions = case
    batches = aligned(group, queries, partitions, Random(seed))
    shard, stop = new_shard(group, partitions), int(share * len(batches))
    told(shard, batches[:stop])
    return shard.snapshot(stop), batches, stop, shard


def test_rows_that_wait_for_time_wait_behind_a_snapshot() -> None:
    case = long_stream(4)
    snapshot, batches, stop, shard = cut_at(case, 0.5)
    assert shard.sequencer.pending_rows > 10
    again = new_shard(case[0], case[2])
    again.restore_snapshot(Snapshot.from_bytes(snapshot.to_bytes()))
    assert again.sequencer.pending_rows == shard.sequencer.pending_rows
    assert again.sequencer.newest_release_us == shard.sequencer.newest_release_us
    assert told(again, batches[stop:]) == told(shard, batches[stop:])


def test_a_shard_that_is_silent_up_to_what_is_done_tells_the_rest() -> None:
    case = long_stream(5)
    snapshot, batches, stop, shard = cut_at(case, 0.3)
    later = stop + 40
    told(shard, batches[stop:later])
    done = shard.done(later)
    again = new_shard(case[0], case[2])
    again.restore_snapshot(snapshot, done)
    assert again.is_replaying
    assert told(again, batches[stop:later]) == [[]] * 40
    with pytest.raises(LogError, match="has not told all that it read; take its snapshot after advance"):
        again.snapshot(later)
    again.resume()
    assert again.done(later) == done
    assert told(again, batches[later:]) == told(shard, batches[later:])


def test_a_snapshot_stands_alone_while_its_shard_goes_on() -> None:
    snapshot, batches, stop, shard = cut_at(seen_once(1), 0.6)
    before = snapshot.to_bytes()
    told(shard, batches[stop:])
    assert snapshot.to_bytes() == before


# --- what is refused


def test_each_bit_counts() -> None:
    data = cut_at(long_stream(1), 0.5)[0].to_bytes()
    for at in (3, 7, 8, 39, 40, 60, len(data) // 2, len(data) - 1):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises(LogError, match=r"damaged \(|has version"):
            Snapshot.from_bytes(bytes(damaged))
    for length in (0, 47, 48, len(data) - 8):
        with pytest.raises(LogError, match=r"damaged \(.*delete it, so that the shard reads its aligned log"):
            Snapshot.from_bytes(data[:length])


def test_another_version_is_named() -> None:
    data = cut_at(long_stream(1), 0.5)[0].to_bytes()
    with pytest.raises(LogError, match="a snapshot has version 9, this release reads 1; start the release that wrote"):
        Snapshot.from_bytes(data[:4] + struct.pack("<I", 9) + data[8:])


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"retention_us": 40}, "retention_us 20, the group has 40"),
        ({"retention_rows": 0}, "retention_rows 25, the group has 0"),
        ({"shards": 2}, "shards 1, the group has 2"),
        ({"streams": ()}, "streams "),
    ],
)
def test_a_group_of_another_shape_is_named(other: dict[str, object], what: str) -> None:
    group, _, partitions = long_stream(1)
    snapshot = cut_at(long_stream(1), 0.5)[0]
    if "streams" in other:
        other = {"streams": (replace(group.streams[0], aggregate=Aggregate.SUM), group.streams[1])}
    shard = new_shard(replace(group, **other), partitions)  # type: ignore[arg-type]
    with pytest.raises(LogError, match=f"shard 0 of group 'g' at aligned offset .* was made with {what}"):
        shard.restore_snapshot(snapshot)


def test_a_snapshot_of_another_shard_is_refused() -> None:
    group, _, partitions = long_stream(1)
    snapshot = cut_at(long_stream(1), 0.5)[0]
    shard = Shard(group, 2, 0, Sequencer(group, 2, 0, dict.fromkeys(partitions, 0), NO_CAP))
    with pytest.raises(LogError, match=r"\(1, 'g', 1, 0\), but \(1, 'g', 2, 0\) is being restored"):
        shard.restore_snapshot(snapshot)


def test_an_array_that_is_missing_or_another_is_named() -> None:
    group, _, partitions = long_stream(1)
    snapshot = cut_at(long_stream(1), 0.5)[0]
    name = "rankings.times.cells"
    missing = {key: array for key, array in snapshot.arrays.items() if key != name}
    shorter = {**snapshot.arrays, name: snapshot.arrays[name][1:]}
    for arrays, what in ((missing, "has no array 'cells'"), (shorter, "array 'cells' of a snapshot is float64")):
        with pytest.raises(LogError, match=what):
            new_shard(group, partitions).restore_snapshot(replace(snapshot, arrays=arrays))


# --- bytes


def digest() -> str:
    """Return a hash of the bytes of some snapshots."""
    found = hashlib.sha256()
    for case in (long_stream(2), seen_once(3), of_seed(286)):
        found.update(cut_at(case, 0.6)[0].to_bytes())
    return found.hexdigest()


def test_compiled_and_interpreted_kernels_leave_the_same_bytes() -> None:
    assert_same_interpreted(__file__)


def tree_of(data: bytes, size: int) -> str:
    """Return the digest of a snapshot's bytes by their description: of the head, and of each array in steps."""
    length = 8 + struct.unpack_from("<Q", data, 40)[0]
    parts, at = [data[40 : 40 + length]], 40 + length
    for _, kind, shape in json.loads(parts[0][8:])["arrays"]:
        parts.append(data[at : (at := at + int(kind[2:]) * math.prod(shape))])
    assert at == len(data)
    pieces = [part[i : i + size] for part in parts for i in range(0, len(part), size)]
    assert len(pieces) > 10
    return hashlib.sha256(b"".join(hashlib.sha256(piece).digest() for piece in pieces)).hexdigest()


def test_the_digest_of_many_pieces_is_that_of_their_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = cut_at(long_stream(1), 0.5)[0]
    monkeypatch.setattr(snapshot_bytes, "_PIECE", 1_000)
    data = snapshot.to_bytes()
    assert snapshot_bytes.digest_of(data) == tree_of(data, 1_000)
    assert Snapshot.from_bytes(data).checkpoint == snapshot.checkpoint


if __name__ == "__main__":
    print_digest(digest)
