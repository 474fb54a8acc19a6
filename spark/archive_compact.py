"""Makes few files of many, and deletes what no commit names.

A *finished* hour is one that ended before the newest event time of its generation, or stream, less `grace_us`: rows for
it are rare from then on. Files of a shelf follow each other in offsets, so that several become one by being written one
after the other; which of them are merged is decided by their bytes, so that nothing is written more than a few times.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark.archive_commits import COMPACTED, Change, CommitLog, State
from spark.archive_cursor import chunks
from spark.archive_files import ArchiveFiles
from spark.archive_layout import (
    HOUR_US,
    ROW_SCHEMA,
    ROWS,
    SECTION_SCHEMA,
    SECTIONS,
    SOURCE_SCHEMA,
    SOURCES,
    ArchiveFile,
)
from spark.archive_parquet import FileWriter

__all__ = ["Compacted", "Compaction"]

_SCHEMAS: Mapping[str, pa.Schema] = {ROWS: ROW_SCHEMA, SECTIONS: SECTION_SCHEMA, SOURCES: SOURCE_SCHEMA}
_ORDER = {ROWS: "aligned_offset", SECTIONS: "aligned_offset", SOURCES: "offset"}
_GROUP_ROWS = 131_072
_GENERATION = re.compile(r"\w+/group=[^/]+/(?:generation|stream)=[^/]+")


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a run has done: `merged` files became `made`; `deleted` belonged to nobody."""

    merged: int
    made: int
    deleted: int


class Compaction:
    """One run over an archive; another process may archive meanwhile.

    `target_bytes`: files from half of this on are left alone. `least_files`: fewer are not worth it. `keep_us`: for so
    long readers that began before find what was merged. Killed anywhere, it has merged a shelf or not; nothing is lost
    or doubled, and what it wrote in vain is deleted by a later run.
    """

    def __init__(
        self,
        uri: str,
        *,
        target_bytes: int = 256 << 20,
        least_files: int = 4,
        grace_us: int = HOUR_US,
        keep_us: int = 24 * HOUR_US,
    ) -> None:
        self._files = ArchiveFiles(uri)
        self._log = CommitLog(self._files)
        self._target_bytes, self._least_files = target_bytes, least_files
        self._grace_us, self._keep_us = grace_us, keep_us

    def run(self, now_us: int) -> Compacted:
        """Merge what can be merged, then delete what nobody needs as of `now_us`. Cost: a copy of the small files.

        Raises ConflictError if another process compacts too.
        """
        state = self._log.load()
        merged = made = 0
        for run in list(self._runs(state)):
            new = self._merge(run)
            change = Change(kind=COMPACTED, added=[new], removed=[its.path for its in run])
            state = self._log.append(state, change, now_us)
            merged, made = merged + len(run), made + 1
        return Compacted(merged, made, self._sweep(state, now_us))

    def _runs(self, state: State) -> Iterator[list[ArchiveFile]]:
        """Yield the files that are to become one, in order."""
        folders: dict[str, list[ArchiveFile]] = {}
        for its in state.files.values():
            folders.setdefault(its.folder, []).append(its)
        newest = _newest(state.files.values())
        for folder, listed in sorted(folders.items()):
            before_us = newest[_of(folder)] - self._grace_us
            oldest_us = max(its.oldest_us for its in listed)
            if listed[0].kind == SECTIONS or (oldest_us // HOUR_US + 1) * HOUR_US <= before_us:
                yield from self._small(sorted(listed, key=lambda its: (its.first, its.path)))

    def _small(self, files: Sequence[ArchiveFile]) -> Iterator[list[ArchiveFile]]:
        """Yield runs of neighbours that together are no larger than the target."""
        run: list[ArchiveFile] = []
        for its in [*files, None]:
            size = sum(file.bytes for file in run)
            if its is None or its.bytes * 2 >= self._target_bytes or size + its.bytes > self._target_bytes:
                if len(run) >= self._least_files:
                    yield run
                run = []
            if its is not None and its.bytes * 2 < self._target_bytes:
                run.append(its)

    def _merge(self, run: Sequence[ArchiveFile]) -> ArchiveFile:
        first = run[0]
        schema = _SCHEMAS[first.kind]
        writer = FileWriter(self._files, first.kind, first.folder, schema, first.first)
        for its in run:
            for table in _groups(chunks(self._files, its, schema)):
                offsets = table.column(_ORDER[first.kind])
                writer.write(table, offsets[table.num_rows - 1].as_py(), np.array([its.oldest_us, its.newest_us]))
        return writer.close()

    def _sweep(self, state: State, now_us: int) -> int:
        """Delete files that no commit names any more, or never did, and return how many."""
        before_us = now_us - self._keep_us
        gone = [path for path, removed_us in state.removed.items() if removed_us < before_us]
        for path in gone:
            self._files.delete(path)
        strays = [
            its.path
            for kind in (ROWS, SECTIONS, SOURCES)
            for its in self._files.list(kind)
            if its.path not in state.files and its.path not in state.removed and 0 < its.written_us < before_us
        ]
        for path in strays:
            self._files.delete(path)
        if gone:
            self._log.append(state, Change(kind=COMPACTED, forgotten=gone), now_us)
        return len(gone) + len(strays)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of tables in as many as make good row groups."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(its.num_rows for its in waiting) >= _GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _of(folder: str) -> str:
    """Return the part of a folder that names the generation, or the stream."""
    match = _GENERATION.match(folder)
    return match.group() if match else folder


def _newest(files: Iterable[ArchiveFile]) -> dict[str, int]:
    """Return the newest time of each generation and stream."""
    newest: dict[str, int] = {}
    for its in files:
        key = _of(its.folder)
        newest[key] = max(newest.get(key, its.newest_us), its.newest_us)
    return newest
