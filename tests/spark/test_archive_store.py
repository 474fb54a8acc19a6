"""What is archived comes back, bit for bit, without what the aligned log holds twice."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import ConflictError, CoverageGapError, LogError, NotFoundError
from skyband.model.group import Group
from skyband.model.stream import Attribute, Format, Stream
from spark.archive_accepted import AcceptedBatches
from spark.archive_commits import ARCHIVED, Change
from spark.archive_compact import Compaction
from spark.archive_store import ArchiveStore
from spark.archive_tasks import AlignedRole, SourceRole
from tests.services.runtime.values import assert_same
from tests.spark.archive_logs import BEGIN_US, HOUR_US, Archive, encoded, group_of, resource_of, seeded_log
from tests.spark.archive_oracle import assert_holds, in_time, only_rows, slow_accepted
from tests.spark.archive_schemas import framed, next_release, source_schema

SEEDS = st.integers(0, 2**32 - 1)


def write_in_pieces(archive: Archive, log: Sequence[AlignedBatch], group: Group, seed: int) -> None:
    """Archive a log in random commits, some of them read from further back, some tried in vain before."""
    rng = np.random.default_rng(seed)
    topic = f"aligned.{group.name}.1"
    values = encoded(topic, log)
    role = AlignedRole(group.name, 1, resource_of(group, 1))
    done = 0
    while done < len(log):
        begin = int(rng.integers(0, done + 1)) if rng.random() < 0.5 else done
        end = min(len(log), done + int(rng.integers(1, 9)))
        if rng.random() < 0.3:
            archive.attempt(topic, 0, values[begin:end], begin, role)
        archive.commit(archive.attempt(topic, 0, values[begin:end], begin, role))
        done = end


@settings(max_examples=6)
@given(SEEDS)
def test_batches_are_what_readers_accept_bit_for_bit_also_in_a_range_of_time_and_compacted(seed: int) -> None:
    group = group_of(3)
    log = seeded_log(seed, group)
    kept = slow_accepted(group, log)
    middle = BEGIN_US + seed % 7 * 1_000_000_000
    span = {"from_us": middle - 2 * HOUR_US, "to_us": middle + HOUR_US // 3}
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(folder)
        write_in_pieces(archive, log, group, seed)
        for _ in range(2):
            store = ArchiveStore(folder)
            assert_holds(store, group, kept)
            assert_holds(store, group, in_time(kept, **span), **span)
            Compaction(folder, least_files=2).run(BEGIN_US)
        assert len(ArchiveStore(folder).section_files(group.name, 1)) == 1


@settings(max_examples=20)
@given(SEEDS)
def test_a_reader_of_the_archive_is_told_what_a_reader_of_the_log_is_told(seed: int) -> None:
    group = group_of(2)
    log = seeded_log(seed, group)
    archived, read = (AcceptedBatches(group, 1, 0) for _ in range(2))
    once = [its for batch in log if (its := archived.offer(batch)) is not None]
    again = [read.offer(batch) for batch in once]
    for batch, expected in zip(again, once, strict=True):
        assert_same(batch, expected)
    assert read.covered == archived.covered


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(str(tmp_path / "archive"))


def test_files_of_a_run_that_was_killed_are_not_read(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(1, group)
    topic = f"aligned.{group.name}.1"
    role = AlignedRole(group.name, 1, resource_of(group, 1))
    archive.attempt(topic, 0, encoded(topic, log[:20]), 0, role)
    assert list(ArchiveStore(archive.uri).batches(group.name, 1, 0)) == []
    archive.write(log, resource_of(group, 1))
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log))


def test_a_store_sees_a_commit_only_when_it_looks_again(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(2, group)
    archive.write(log[:10], resource_of(group, 1))
    store = ArchiveStore(archive.uri)
    archive.write(log[10:], resource_of(group, 1), first=10)
    assert_holds(store, group, slow_accepted(group, log[:10]))
    store.refresh()
    assert_holds(store, group, slow_accepted(group, log))


def test_a_log_that_begins_in_its_middle_is_archived_from_there(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(3, group)
    archive.write(log[12:], resource_of(group, 1), first=12)
    accepted = AcceptedBatches(group, 1, 0)
    kept = [(offset, its) for offset, b in enumerate(log[12:], 12) if (its := accepted.offer(b)) is not None]
    assert_holds(ArchiveStore(archive.uri), group, kept)


def test_a_generation_whose_definition_is_lost_is_archived_all_the_same(archive: Archive) -> None:
    group = group_of(3)
    log = seeded_log(4, group)
    archive.write(log, None)
    accepted = AcceptedBatches(group, 1, 0)
    kept = [(offset, its) for offset, b in enumerate(log) if (its := accepted.offer(b)) is not None]
    assert_holds(ArchiveStore(archive.uri), group, kept)


def test_a_store_lists_what_is_there(archive: Archive) -> None:
    group = group_of(3, shards=2)
    logs = [seeded_log(5, group, shard=shard) for shard in range(2)]
    for log in logs:
        archive.write(log, resource_of(group, 1))
    wider = group_of(4, shards=2)
    archive.write(seeded_log(6, wider, generation=2), resource_of(wider, 2))
    store = ArchiveStore(archive.uri)
    times = np.concatenate([batch.event_time_us for log in logs for batch in log])
    assert (store.groups(), store.generations("factory")) == (("factory",), (1, 2))
    assert (store.shards("factory", 1), store.shards("factory", 2)) == ((0, 1), (0,))
    assert store.span("factory", 1) == (times.min(), times.max())
    assert store.next_offset("factory", 1, 1) == len(logs[1])
    assert store.definition("factory", 1) is None
    with pytest.raises(NotFoundError, match="no rows of group 'factory', generation 7; it has generations 1, 2"):
        store.span("factory", 7)


def test_the_files_of_a_range_of_time_hold_all_its_rows_and_not_all_hours(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(7, group, batches=60)
    archive.write(log, resource_of(group, 1))
    store = ArchiveStore(archive.uri)
    from_us, to_us = BEGIN_US + 2 * HOUR_US, BEGIN_US + 3 * HOUR_US
    few, every = store.row_files(group.name, 1, from_us, to_us), store.row_files(group.name, 1)
    assert 0 < len(few) < len(every)
    wanted = sum(b.rows for _, b in in_time(slow_accepted(group, log), from_us, to_us))
    times = ds.dataset(few).to_table(columns=["event_time"]).column(0).to_numpy().astype("datetime64[us]").astype(int)
    assert ((times >= from_us) & (times < to_us)).sum() == wanted > 0


# --- what goes wrong


def test_missing_source_offsets_stop_the_archive_and_are_named(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(8, group)
    archive.write(log[:15], resource_of(group, 1))
    section = replace(log[0].sections[0], stream=0, partition=1, from_offset=900, to_offset=910, rows=0)
    lost = replace(only_rows(log[0], [], [section], []))
    with pytest.raises(CoverageGapError, match=r"stream 's0' partition 1: offsets \[\d+, 900\) are missing"):
        archive.write([lost], resource_of(group, 1), first=15)
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log[:15]))


def test_missing_aligned_offsets_stop_the_archive_and_are_named(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(9, group)
    archive.write(log[:15], resource_of(group, 1))
    expected = r"topic 'aligned.factory.1' partition 0: aligned offsets \[15, 17\) are gone"
    with pytest.raises(LogError, match=expected):
        archive.write(log[17:], resource_of(group, 1), first=17)


def test_a_damaged_record_stops_the_archive(archive: Archive) -> None:
    role = AlignedRole("factory", 1, None)
    with pytest.raises(LogError, match="is damaged"):
        archive.attempt("aligned.factory.1", 0, [b"\x01nonsense"], 0, role)


def test_a_missing_file_is_told(archive: Archive) -> None:
    group = group_of()
    archive.write(seeded_log(1, group), resource_of(group, 1))
    store = ArchiveStore(archive.uri)
    Path(store.row_files(group.name, 1)[0]).unlink()
    with pytest.raises(LogError, match="which its commits name; restore it"):
        list(store.batches(group.name, 1, 0))


def test_two_archivers_of_one_place_do_not_mix(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(10, group)
    topic, role = "aligned.factory.1", AlignedRole("factory", 1, resource_of(group, 1))
    theirs = archive.state
    archive.write(log, resource_of(group, 1))
    with pytest.raises(ConflictError, match="another process archives"):
        archive.log.append(theirs, Change(kind=ARCHIVED), BEGIN_US)
    assert archive.attempt(topic, 0, encoded(topic, log), 0, role)[0]["files"] == []
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log))


def test_many_commits_are_read_from_a_whole_and_old_ones_go(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(11, group, batches=110, step=3)
    for offset, batch in enumerate(log):
        archive.write([batch], resource_of(group, 1), first=offset)
    commits = sorted(path.name for path in (Path(archive.uri) / "commits").iterdir())
    assert archive.state.number == 110
    assert len(commits) < 70
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log))


def test_a_commit_of_a_newer_release_is_refused(archive: Archive) -> None:
    group = group_of()
    archive.write(seeded_log(1, group), resource_of(group, 1))
    path = next((Path(archive.uri) / "commits").iterdir())
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    with pytest.raises(LogError, match="has version 2, this release reads 1"):
        ArchiveStore(archive.uri)


# --- schema evolution


def test_records_of_an_older_schema_and_of_a_newer_one_lie_beside_each_other(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_of()
    log = seeded_log(12, group)
    topic, role = "aligned.factory.1", AlignedRole("factory", 1, resource_of(group, 1))
    old = encoded(topic, log[:15])
    archive.commit(archive.attempt(topic, 0, old[:9], 0, role))
    newer = next_release(tmp_path / "schemas")
    monkeypatch.setattr("spark.archive_tasks._codecs", lambda: newer)
    new = [newer.encode(topic, batch) for batch in log[15:]]
    assert {data[0] for data in old if data} == {1}
    assert {data[0] for data in new if data} == {2}
    archive.commit(archive.attempt(topic, 0, [*old[9:], *new], 9, role))
    monkeypatch.setattr("spark.archive_batches.Codecs", lambda: newer)
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log))


def source_stream(schemas: dict[int, object], attributes: int = 1) -> Stream:
    return Stream(
        name="wide",
        is_object_stream=True,
        attributes=tuple(Attribute(name=name) for name in "ab"[:attributes]),
        format=Format.CONFLUENT_AVRO,
        schema=json.dumps(schemas),
    )


def test_a_source_whose_schema_has_grown_is_archived_and_read_as_one(archive: Archive) -> None:
    one, two = source_schema("a"), source_schema("a", "b")
    old = [framed(1, one, object_id=f"o{i}", event_time=BEGIN_US + i * HOUR_US // 4, a=1.5) for i in range(8)]
    new = [framed(2, two, object_id=f"n{i}", event_time=BEGIN_US + i * HOUR_US // 4, a=2.5, b=3.5) for i in range(8)]
    first = SourceRole("factory", source_stream({1: one}))
    archive.commit(archive.attempt("wide", 0, old, 0, first))
    second = SourceRole("factory", source_stream({1: one, 2: two}, attributes=2))
    archive.commit(archive.attempt("wide", 0, [*old[4:], None, *new, b"?"], 4, second))
    store = ArchiveStore(archive.uri)
    files = store.source_files("factory", "wide")[0]
    table = ds.dataset(files).to_table().sort_by("offset")
    assert table.column("offset").to_pylist() == list(range(18))
    assert table.column("values").to_pylist() == [*[[1.5]] * 8, None, *[[2.5, 3.5]] * 8, None]
    assert table.column("reason").to_pylist() == [*[None] * 8, "undecodable", *[None] * 8, "undecodable"]
    assert table.column("object_id").to_pylist()[7:10] == ["o7", None, "n0"]
    for _ in range(2):
        store.refresh()
        chunks = list(store.source_records("factory", "wide", 0))
        assert [offset for chunk in chunks for offset in chunk.offset.tolist()] == list(range(18))
        assert [value for chunk in chunks for value in chunk.values] == [*old, None, *new, b"?"]
        assert [list(chunk.offset) for chunk in store.source_records("factory", "wide", 0, from_offset=15)] == [
            [15, 16, 17]
        ]
        Compaction(archive.uri, least_files=2).run(BEGIN_US)


def test_a_source_without_a_decoder_is_kept_as_bytes(archive: Archive) -> None:
    stream = replace(source_stream({}), schema="")
    archive.commit(archive.attempt("wide", 0, [b"a", b"b"], 5, SourceRole("factory", stream)))
    chunks = list(ArchiveStore(archive.uri).source_records("factory", "wide", 0))
    assert [list(chunk.values) for chunk in chunks] == [[b"a", b"b"]]
