"""Compaction changes no answer, also if it is killed, and deletes only what nobody needs."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from skyband.errors import ConflictError
from spark.archive_commits import COMPACTED, Change, CommitLog
from spark.archive_compact import Compaction
from spark.archive_layout import ArchiveFile
from spark.archive_store import ArchiveStore
from spark.archive_tasks import AlignedRole
from tests.spark.archive_logs import BEGIN_US, HOUR_US, Archive, encoded, group_of, resource_of, seeded_log
from tests.spark.archive_oracle import assert_holds, slow_accepted


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(str(tmp_path / "archive"))


def count_of(archive: Archive) -> int:
    return len(list(Path(archive.uri).rglob("*.parquet")))


def test_a_compaction_that_is_killed_before_it_commits_changes_nothing(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_of()
    log = seeded_log(13, group)
    for offset in range(0, 30, 6):
        archive.write(log[offset : offset + 6], resource_of(group, 1), first=offset)
    files = archive.state.files
    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            Compaction(archive.uri, least_files=2).run(BEGIN_US)
    assert count_of(archive) == len(files) + 1
    assert archive.state.files == files
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log))


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_was_merged_or_written_in_vain_stays_a_day_and_then_goes(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(14, group)
    topic, role = "aligned.factory.1", AlignedRole("factory", 1, resource_of(group, 1))
    archive.attempt(topic, 0, encoded(topic, log), 0, role)
    for offset in range(0, 30, 6):
        archive.write(log[offset : offset + 6], resource_of(group, 1), first=offset)
    before, now_us = count_of(archive), int(time.time() * 1e6)
    store = ArchiveStore(archive.uri)
    done = Compaction(archive.uri, least_files=2).run(now_us)
    assert (done.merged > done.made > 1, done.deleted, count_of(archive)) == (True, 0, before + done.made)
    assert_holds(store, group, slow_accepted(group, log))
    later = Compaction(archive.uri, least_files=2).run(now_us + 25 * HOUR_US)
    assert (later.merged, later.deleted) == (0, before + done.made - len(archive.state.files))
    assert count_of(archive) == len(archive.state.files)
    assert not archive.state.removed
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log))


def test_an_hour_that_may_still_get_rows_is_not_compacted(archive: Archive) -> None:
    group = group_of()
    log = seeded_log(15, group)
    for offset in range(0, 30, 3):
        archive.write(log[offset : offset + 3], resource_of(group, 1), first=offset)
    newest_us = ArchiveStore(archive.uri).span("factory", 1)[1]
    Compaction(archive.uri, least_files=2).run(BEGIN_US)
    hours: dict[str, list[int]] = {}
    for its in archive.state.files.values():
        if its.kind == "rows":
            hours.setdefault(its.folder, []).append(its.oldest_us // HOUR_US)
    merged = {its[0] for its in hours.values() if len(its) == 1}
    left = {its[0] for its in hours.values() if len(its) > 1}
    assert (min(merged) + 2) * HOUR_US <= newest_us
    assert left
    assert all((hour + 2) * HOUR_US > newest_us for hour in left)


def test_compaction_beside_archiving_loses_neither(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    group = group_of()
    log = seeded_log(16, group)
    for offset in range(0, 20, 5):
        archive.write(log[offset : offset + 5], resource_of(group, 1), first=offset)
    merge = Compaction._merge

    def beside(self: Compaction, run: Sequence[ArchiveFile]) -> ArchiveFile:
        if archive.state.number == 4:
            archive.write(log[20:], resource_of(group, 1), first=20)
        return merge(self, run)

    monkeypatch.setattr(Compaction, "_merge", beside)
    assert Compaction(archive.uri, least_files=2).run(BEGIN_US).made > 0
    assert_holds(ArchiveStore(archive.uri), group, slow_accepted(group, log))


def test_two_compactions_at_once_are_told(archive: Archive) -> None:
    group = group_of()
    archive.write(seeded_log(17, group), resource_of(group, 1))
    theirs = archive.state
    path = next(iter(theirs.files))
    archive.log.append(archive.state, Change(kind=COMPACTED, removed=[path]), BEGIN_US)
    with pytest.raises(ConflictError, match="another process compacts"):
        archive.log.append(theirs, Change(kind=COMPACTED, removed=[path]), BEGIN_US)
