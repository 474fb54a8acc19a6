"""Reads an archive: what other jobs and people build on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.runtime.payloads import Payloads
from skyband.control.catalog_events import Stored, from_record
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import NotFoundError
from skyband.model.resources import GroupResource
from spark.archive_batches import ShardReader
from spark.archive_commits import CommitLog, State
from spark.archive_cursor import OffsetMerge
from spark.archive_files import ArchiveFiles
from spark.archive_layout import ROWS, SECTIONS, SOURCE_SCHEMA, SOURCES, ArchiveFile, aligned_folder, source_folder
from spark.archive_sources import payloads_of, times_of

__all__ = ["ArchiveStore", "SourceChunk"]

_OFFSETS = 65_536


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """Consecutive archived records of one source partition, as decoders take them."""

    offset: npt.NDArray[np.int64]
    timestamp_us: npt.NDArray[np.int64]
    values: Payloads


class ArchiveStore:
    """An archive as of its last commit when it was opened, or refreshed; it sees nothing else, and writes nothing.

    All of it is read in columns, and as a stream: memory holds a run of batches, never a shard.
    """

    def __init__(self, uri: str) -> None:
        """Open the archive at a local path or an address that pyarrow knows. One without commits is empty."""
        self._files = ArchiveFiles(uri)
        self._commits = CommitLog(self._files)
        self.state: State = State()
        self.refresh()

    def refresh(self) -> None:
        """See what has been committed since."""
        self.state = self._commits.load()

    def groups(self) -> tuple[str, ...]:
        """Return the groups of which anything is archived, sorted."""
        return tuple(sorted({_part(its, "group") for its in self.state.files.values()}))

    def generations(self, group: str) -> tuple[int, ...]:
        """Return the generations of a group's aligned log, ascending."""
        shelves = self._shelves(f"{SECTIONS}/group={group}/")
        return tuple(sorted({int(_part(its, "generation")) for its in shelves}))

    def shards(self, group: str, generation: int) -> tuple[int, ...]:
        """Return the shards of a generation that have brought anything, ascending."""
        shelves = self._shelves(f"{SECTIONS}/group={group}/generation={generation}/")
        return tuple(sorted({int(_part(its, "shard")) for its in shelves}))

    def streams(self, group: str) -> tuple[str, ...]:
        """Return the streams of a group whose source records are archived, sorted."""
        return tuple(sorted({_part(its, "stream") for its in self._shelves(f"{SOURCES}/group={group}/")}))

    def definition(self, group: str, generation: int) -> GroupResource | None:
        """Return a group as the catalog defined it in a generation, None if it was not to be had any more."""
        record = self.state.definitions.get(f"{group}/{generation}")
        event = None if record is None else from_record(f"groups/{group}", record)
        is_group = isinstance(event, Stored) and isinstance(event.resource, GroupResource)
        return event.resource if is_group else None  # type: ignore[union-attr, return-value]

    def span(self, group: str, generation: int) -> tuple[int, int]:
        """Return the oldest and the newest event time of a generation's rows. Raises NotFoundError without rows."""
        found = self._shelves(f"{ROWS}/group={group}/generation={generation}/")
        if not found:
            raise NotFoundError(
                f"the archive {self._files.uri} has no rows of group {group!r}, generation {generation}; it has "
                f"generations {', '.join(map(str, self.generations(group))) or 'of none'}"
            )
        return min(its.oldest_us for its in found), max(its.newest_us for its in found)

    def batches(
        self, group: str, generation: int, shard: int, *, from_us: int | None = None, to_us: int | None = None
    ) -> Iterator[tuple[int, AlignedBatch]]:
        """Yield the batches of a shard in aligned order, each with its aligned offset, without repeats.

        Rows with event times outside [from_us, to_us) are left out, their files not read; sections are all there, with
        as many rows as are left. Arrays of one batch share memory with those of its neighbours. Raises LogError if
        files are missing or damaged. Cost: about 1 us a row.
        """
        sections = self._shelves(f"{aligned_folder(SECTIONS, group, generation, shard)}")
        rows = self._shelves(f"{aligned_folder(ROWS, group, generation, shard)}/")
        return ShardReader(self._files, (group, generation, shard), sections, rows, from_us, to_us).batches()

    def next_offset(self, group: str, generation: int, shard: int) -> int:
        """Return the aligned offset up to which a shard is archived; 0 before anything is."""
        return int(self.state.shards.get(f"aligned.{group}.{generation}/{shard}", {"next": 0})["next"])

    def source_partitions(self, group: str, stream: str) -> tuple[int, ...]:
        """Return the source partitions of a stream that are archived, ascending."""
        shelves = self._shelves(f"{SOURCES}/group={group}/stream={stream}/")
        return tuple(sorted({int(_part(its, "partition")) for its in shelves}))

    def source_files(self, group: str, stream: str) -> dict[int, list[str]]:
        """Return the Parquet files of a stream's records by source partition, each list in order of first offset."""
        shelves = self._shelves(f"{SOURCES}/group={group}/stream={stream}/")
        found: dict[int, list[str]] = {}
        for its in sorted(shelves, key=lambda its: (its.first, its.path)):
            found.setdefault(int(_part(its, "partition")), []).append(self._files.address(its.path))
        return dict(sorted(found.items()))

    def source_records(self, group: str, stream: str, partition: int, *, from_offset: int = 0) -> Iterator[SourceChunk]:
        """Yield the records of a source partition in order of offset, for a decoder of any mapping.

        Cost: the bytes of the records; memory for some ten thousands of them.
        """
        shelf = [its for its in self._shelves(f"{source_folder(group, stream, partition)}/") if its.last >= from_offset]
        begin = min((its.first for its in shelf), default=0)
        end = max((its.last + 1 for its in shelf), default=0)
        merge = OffsetMerge(self._files, shelf, SOURCE_SCHEMA, "offset")
        try:
            # The first files may begin before, and are read a little at a time all the same.
            for at in range(begin, end, _OFFSETS):
                table = merge.take(at + _OFFSETS - 1)
                offset = table.column("offset").to_numpy().copy()
                low = int(np.searchsorted(offset, from_offset))
                if low < len(offset):
                    times, values = times_of(table.column("timestamp")), payloads_of(table.column("value"))
                    yield SourceChunk(offset[low:], times[low:], values[low:])
        finally:
            merge.close()

    def row_files(self, group: str, generation: int, from_us: int | None = None, to_us: int | None = None) -> list[str]:
        """Return the Parquet files of rows that may hold event times in [from_us, to_us), for Spark SQL and others."""
        found = self._shelves(f"{ROWS}/group={group}/generation={generation}/")
        return [
            self._files.address(its.path)
            for its in sorted(found, key=lambda its: its.path)
            if (from_us is None or its.newest_us >= from_us) and (to_us is None or its.oldest_us < to_us)
        ]

    def section_files(self, group: str, generation: int) -> list[str]:
        """Return the Parquet files of a generation's sections."""
        found = self._shelves(f"{SECTIONS}/group={group}/generation={generation}/")
        return sorted(self._files.address(its.path) for its in found)

    def _shelves(self, folder: str) -> Sequence[ArchiveFile]:
        """Return the files whose folder is `folder`, or, if it ends with a slash, lies below it."""
        if folder.endswith("/"):
            return [its for its in self.state.files.values() if f"{its.folder}/".startswith(folder)]
        return [its for its in self.state.files.values() if its.folder == folder]


def _part(file: ArchiveFile, name: str) -> str:
    """Return what a file's folder says of `name`, empty if nothing."""
    parts = (part.partition("=") for part in file.folder.split("/"))
    return next((value for key, _, value in parts if key == name), "")
