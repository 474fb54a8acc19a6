"""The loop of the engine and full snapshots: it goes on from one at once, and deletes it once it can do without."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.engine.checkpoint import Checkpoint
from skyband.engine.shard import Shard
from skyband.engine.snapshot_records import chunks, done_key, join, snapshot_key, write_snapshot
from skyband.engine.stage import EngineStage
from skyband.engine.stored_checkpoints import read_checkpoints
from skyband.errors import LogError
from skyband.log.memory import MemoryProducer
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position, Record
from skyband.model.query import Query, Window
from tests.engine.pure_pipeline import NO_CAP
from tests.engine.stage_over_memory import GROUP, QUERY, JournalLog, Upstream, drain, stage_of
from tests.engine.test_snapshot import said

CUT = 20


def log_of(steps: int = 50, shards: int = 1) -> JournalLog:
    """Return a log of many retentions, with a query that comes and one that changes behind the cut."""
    log = JournalLog(shards)
    upstream = Upstream(log)
    upstream.change(QUERY)
    for step in range(steps):
        upstream.rows(*((f"o{(step * 3 + i) % 8}", step * 7 + i, float(step * 5 % 9 - i)) for i in range(4)))
        if step == 15:
            upstream.change(Query(name="r", k=1, score="-a", window=Window(30, 10)))
        if step == 25:
            upstream.change(Query(name="q", k=3, score="a", window=Window(20, 10)), 2)
        upstream.flush()
    return log


def unbroken(log: JournalLog, number: int = 0, until: int = 1_000) -> tuple[Shard, list[list[str]]]:
    """Return a shard that has read its log up to an offset, and what it says of each batch."""
    group = replace(GROUP, shards=log.partitions("aligned"))
    shard, told = Shard(group, 1, number, Sequencer(group, 1, number, {(0, 0): 0}, NO_CAP)), []
    for batch in log.values("aligned", number)[:until]:
        assert isinstance(batch, AlignedBatch)
        shard.offer(batch)
        told.append(said(list(shard.advance())))
    return shard, told


def written(log: JournalLog, at: int = CUT, number: int = 0, writer: str = "job-1") -> Checkpoint:
    """Write a snapshot of a shard at an offset, in several chunks."""
    snapshot = unbroken(log, number, at)[0].snapshot(at)
    return write_snapshot(MemoryProducer(log), "checkpoints", 2, snapshot, writer, chunk_bytes=1_000)


def shared(log: JournalLog, every_us: int = 0, **tuning: int) -> EngineStage:
    return stage_of(log, shared=True, checkpoint_every_us=every_us, **tuning)


def records(log: JournalLog) -> list[Record]:
    """Return what the topic of the checkpoints has, in the order of the partition that holds shard 0."""
    partition = log._partition(Position("checkpoints", partition_of("g/1/0", 2)))
    return [record for record in partition._records if record is not None]


def keys(found: Sequence[Record]) -> list[str]:
    return [record.key.decode() for record in found if record.key]


def partials(log: JournalLog, number: int = 0) -> list[str]:
    return said([value for value in log.values("partials") if value.shard == number])  # type: ignore[attr-defined]


def flat(told: Sequence[Sequence[str]]) -> list[str]:
    return [line for each in told for line in each]


def test_a_shard_goes_on_from_a_snapshot_though_the_log_before_it_is_gone() -> None:
    log = log_of()
    _, truth = unbroken(log)
    manifest = written(log)
    assert manifest.snapshot is not None
    assert manifest.snapshot.chunks > 3
    log._partition(Position("aligned", 0))._drop_below(CUT)
    stage = shared(log)
    drain(stage)
    assert stage.stopped == {}
    assert partials(log) == flat(truth[CUT:])
    assert sum("b'" in line for line in partials(log)) > 20


def test_without_the_snapshot_such_a_shard_stops() -> None:
    log = log_of()
    log._partition(Position("aligned", 0))._drop_below(CUT)
    stage = shared(log)
    drain(stage)
    assert "offsets 0 to 19 of aligned are gone, and no checkpoint lies behind them" in str(stage.stopped[0])


def test_until_there_is_a_small_checkpoint_a_restart_is_silent_up_to_what_was_done() -> None:
    log = log_of()
    _, truth = unbroken(log)
    manifest = written(log)
    stage = shared(log, max_records=2)
    for _ in range(2):
        assert stage.step()
    assert set(keys(records(log))[-2:]) == {done_key(manifest)} == {f"g/1/0/{CUT}/job-1/done"}
    stage.close()
    drain(shared(log))
    assert partials(log) == flat(truth[CUT:])


def test_a_later_small_checkpoint_deletes_the_snapshot_from_the_manifest_on() -> None:
    log = log_of()
    manifest = written(log)
    log.journal.clear()
    stage = shared(log, max_records=2)
    drain(stage)
    found = records(log)
    gone = [key for key, record in zip(keys(found), found, strict=True) if record.value is None]
    key, count = snapshot_key(manifest), manifest.snapshot.chunks if manifest.snapshot else 0
    assert set(gone) == {key, f"{key}/done", *(f"{key}/{i}" for i in range(count))}
    assert set(gone[:2]) == {key, f"{key}/done"}
    assert len(gone) == count + 2
    before = found[: next(i for i, record in enumerate(found) if record.value is None)]
    assert keys(before)[-1] == "g/1/0"
    assert log.journal.index("send NoneType") > log.journal.index("flush")
    stored = read_checkpoints(log, "checkpoints", "g", 1, {0})[0]
    assert not stored.of_snapshots
    small = stored.furthest()
    assert small is not None
    assert small.snapshot is None
    assert small.aligned_offset >= CUT


def test_a_small_checkpoint_that_reaches_less_far_does_not_hide_a_snapshot() -> None:
    log = log_of()
    _, truth = unbroken(log)
    running = shared(log, max_records=2)
    for _ in range(20):
        running.step()
    written(log, at=38)
    running.step()
    running.close()
    stored = read_checkpoints(log, "checkpoints", "g", 1, {0})[0]
    furthest = stored.furthest()
    assert furthest is not None
    assert furthest.snapshot is not None
    told = stored.told()
    assert told is not None
    assert stored.checkpoints["g/1/0"].aligned_offset < 38 < told.aligned_offset == 42
    log._partition(Position("aligned", 0))._drop_below(38)
    drain(shared(log))
    assert partials(log) == flat(truth)


def test_a_snapshot_beyond_what_was_told_is_passed_over_so_that_nothing_is_left_out() -> None:
    log = log_of()
    _, truth = unbroken(log)
    running = shared(log, max_records=2)
    for _ in range(15):
        running.step()
    running.close()
    written(log, at=40)
    drain(shared(log))
    assert partials(log) == flat(truth)


def test_what_somebody_still_writes_stays_and_what_was_left_half_goes() -> None:
    log = log_of(60)
    written(log)
    producer, partition = MemoryProducer(log), partition_of("g/1/0", 2)
    for key in ("g/1/0/3/job-0/0", "g/1/0/59/job-2/0", "g/1/1/3/job-0/0", "g/11/0/3/job-0/0"):
        producer.send("checkpoints", partition, {"chunk": b"x"}, key=key.encode())
    drain(shared(log))
    gone = {record.key for record in records(log) if record.value is None}
    assert b"g/1/0/3/job-0/0" in gone
    assert not gone & {b"g/1/0/59/job-2/0", b"g/1/1/3/job-0/0", b"g/11/0/3/job-0/0"}


@pytest.mark.parametrize("harm", ["missing", "damaged", "other"])
def test_a_snapshot_that_is_not_whole_stops_its_shard_and_says_what_to_do(harm: str) -> None:
    log = log_of(shards=2)
    _, truth = unbroken(log, 1)
    manifest = written(log)
    key = f"{snapshot_key(manifest)}/2".encode()
    chunk = next(record.value for record in records(log) if record.key == key)
    assert isinstance(chunk, dict)
    one_bit = chunk["chunk"][:-1] + bytes([chunk["chunk"][-1] ^ 1])
    harmed = {"missing": None, "damaged": one_bit, "other": b"short"}[harm]
    value = None if harmed is None else {**chunk, "chunk": harmed}
    producer, partition = MemoryProducer(log), partition_of("g/1/0", 2)
    producer.send("checkpoints", partition, value, key=key)
    stage = shared(log)
    drain(stage)
    why = {
        "missing": r"1 of \d+ chunks are missing \(2\); write it anew",
        "damaged": "a snapshot is damaged \\(its digest does not fit\\)",
        "other": "its chunks are not those of its manifest",
    }[harm]
    (number,), (error,) = stage.stopped.keys(), stage.stopped.values()
    assert number == 0
    assert re.search(
        f"shard 0 of group 'g' cannot go on from its snapshot: {why}.* begin with 'g/1/0/20/job-1'", str(error)
    )
    assert partials(log) == []
    assert partials(log, 1) == flat(truth)
    stage.close()
    # As it says: without the keys the shard reads its log from the beginning.
    stored = read_checkpoints(log, "checkpoints", "g", 1, {0})[0]
    for each in stored.of_snapshots:
        producer.send("checkpoints", partition, None, key=each.encode())
    drain(shared(log))
    assert partials(log) == flat(unbroken(log)[1])


def test_a_snapshot_of_another_shape_stops_its_shard() -> None:
    log = log_of(shards=2)
    manifest = written(log, number=1)
    other = unbroken(log_of(), 0, CUT)[0].snapshot(CUT)
    write_snapshot(MemoryProducer(log), "checkpoints", 2, other, "job-2")
    stage = shared(log)
    drain(stage)
    assert manifest.snapshot is not None
    assert list(stage.stopped) == [0]
    assert "was made with shards 1, the group has 2; delete the snapshot" in str(stage.stopped[0])


def test_a_writer_is_named_without_a_slash() -> None:
    snapshot = unbroken(log_of(3))[0].snapshot(3)
    for writer in ("", "a/b"):
        with pytest.raises(LogError, match=f"writer {writer!r} cannot be part of a key; name it without a slash"):
            write_snapshot(MemoryProducer(log_of(1)), "checkpoints", 2, snapshot, writer)


def test_chunks_are_joined_by_their_numbers() -> None:
    log = log_of(5)
    snapshot = unbroken(log)[0].snapshot(5)
    manifest = write_snapshot(MemoryProducer(log), "checkpoints", 2, snapshot, "w", chunk_bytes=999)
    data = snapshot.to_bytes()
    pieces = dict(reversed(list(enumerate(chunks(data, 999)))))
    assert join(manifest, pieces) == data
    assert {len(piece) for piece in pieces.values()} == {999, len(data) % 999}
    for number in (0, len(pieces) - 1):
        with pytest.raises(LogError, match=rf"1 of {len(pieces)} chunks are missing \({number}\)"):
            join(manifest, {each: piece for each, piece in pieces.items() if each != number})
    with pytest.raises(LogError, match="names no snapshot"):
        join(snapshot.checkpoint, pieces)
