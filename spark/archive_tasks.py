"""What a task does with its part of a batch: records of one Kafka partition in, files and a report out.

A task reads nothing but its records and the plan, and commits nothing: files that its report does not name, since it
died or was run twice, belong to nobody.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from services.runtime.codecs import Codecs
from services.runtime.registry_settings import RegistrySettings
from services.runtime.source_decoder import SourceDecoder, make_decoder
from skyband.align.topics import aligned_topic
from skyband.errors import CoverageGapError, DefinitionError, LogError, SkybandError
from skyband.model.resources import GroupResource
from skyband.model.stream import Stream
from spark.archive_accepted import AcceptedBatches, check_place, stand_in
from spark.archive_aligned import AlignedWriter
from spark.archive_files import ArchiveFiles
from spark.archive_layout import ArchiveFile
from spark.archive_registry import registry_of
from spark.archive_sources import SourceRecords, SourceWriter, times_of

__all__ = ["REPORT_SCHEMA", "AlignedRole", "Plan", "SourceRole", "Task", "archive_records", "read_report"]

REPORT_SCHEMA = "report string"


@dataclass(frozen=True, slots=True)
class AlignedRole:
    """A topic that is the aligned log of a group's generation; `resource` None: its definition is lost."""

    group: str
    generation: int
    resource: GroupResource | None = None


@dataclass(frozen=True, slots=True)
class SourceRole:
    """A topic that brings a stream of a group."""

    group: str
    stream: Stream


Role = AlignedRole | SourceRole


@dataclass(frozen=True, slots=True)
class Plan:
    """What tasks of one batch are told.

    `roles` by topic as the cluster calls it; `shards` and `sources` as in the archive's state, what is archived so far;
    `registry` says where schemas are asked for by id.
    """

    uri: str
    roles: Mapping[str, tuple[Role, ...]]
    shards: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    registry: RegistrySettings | None = None


class _Part(Protocol):
    """What archives one partition of a topic."""

    def add(self, records: SourceRecords) -> None: ...

    def report(self) -> dict[str, Any]: ...

    def abandon(self) -> None: ...


class _AlignedPart:
    """One shard of an aligned log. Initially as far as the archive is."""

    def __init__(self, plan: Plan, role: AlignedRole, partition: int, files: ArchiveFiles) -> None:
        self._role, self._shard = role, partition
        self._topic = aligned_topic(role.group, role.generation)
        self._key = f"{self._topic}/{partition}"
        known = plan.shards.get(self._key, {})
        self._next: int | None = known.get("next")
        self._covered: Sequence[Sequence[int]] = known.get("covered", ())
        self._accepted: AcceptedBatches | None = None
        self._codecs = _codecs()
        self._writer = AlignedWriter(files, role.group, role.generation, partition, self._codecs)
        self._repeats = 0

    def add(self, records: SourceRecords) -> None:
        for place, offset in enumerate(records.offset.tolist()):
            if self._next is not None and offset < self._next:
                continue
            self._add(offset, records.value[place].as_py())

    def report(self) -> dict[str, Any]:
        files = self._writer.close()
        covered = self._covered if self._accepted is None else self._accepted.covered
        state = {"next": self._next, "covered": covered}
        return _report("shards", self._key, files, state, self._writer.rows, self._repeats)

    def abandon(self) -> None:
        self._writer.abandon()

    def _add(self, offset: int, data: bytes | None) -> None:
        if self._next is not None and offset > self._next:
            raise LogError(
                f"topic {self._topic!r} partition {self._shard}: aligned offsets [{self._next}, {offset}) are gone "
                "and were not archived; archive to a new place from here on, or begin a new generation with "
                f"`skyband groups regenerate {self._role.group}`"
            )
        decoded = self._codecs.decode(self._topic, data)
        batch = check_place(decoded, self._role.group, self._role.generation, self._shard, offset)
        if self._accepted is None:
            self._accepted = self._begin(offset, batch.values.shape[1])
        found = self._accepted.offer(batch)
        self._repeats += batch.rows - (found.rows if found else 0)
        if found is not None:
            self._writer.add(offset, found)
        self._next = offset + 1

    def _begin(self, offset: int, width: int) -> AcceptedBatches:
        resource, covered = self._role.resource, self._covered
        group = stand_in(self._role.group, width) if resource is None else resource.group
        if resource is not None and offset == 0:
            # From its very beginning the log must cover what the generation begins with; later, what it speaks of.
            starts = [[group.stream_index(its.stream), its.partition, its.offset] for its in resource.sources]
            covered = [[-1, 0, 0], *starts]
        return AcceptedBatches(group, self._role.generation, self._shard, covered)


class _SourcePart:
    """One source partition. Initially as far as the archive is."""

    def __init__(self, plan: Plan, role: SourceRole, partition: int, files: ArchiveFiles) -> None:
        self._key = f"{role.group}/{role.stream.name}/{partition}"
        self._next: int = plan.sources.get(self._key, {"next": 0})["next"]
        self._writer = SourceWriter(
            files, role.group, role.stream.name, partition, _decoder(role.stream, plan.registry)
        )

    def add(self, records: SourceRecords) -> None:
        first = int(np.searchsorted(records.offset, self._next))
        if first:
            its = records
            records = SourceRecords(its.offset[first:], its.timestamp_us[first:], its.key[first:], its.value[first:])
        if len(records.offset):
            self._writer.add(records)
            self._next = int(records.offset[-1]) + 1

    def report(self) -> dict[str, Any]:
        return _report("sources", self._key, self._writer.close(), {"next": self._next}, self._writer.rows, 0)

    def abandon(self) -> None:
        self._writer.abandon()


class Task:
    """Archives records of any partitions, those of each in order; one thread owns it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._files = ArchiveFiles(plan.uri)
        self._parts: dict[tuple[str, int], list[_Part]] = {}

    def add(self, topic: str, partition: int, records: SourceRecords) -> None:
        """Archive records of a partition of a topic."""
        parts = self._parts.get((topic, partition))
        if parts is None:
            parts = [self._part(role, partition) for role in self._plan.roles.get(topic, ())]
            self._parts[topic, partition] = parts
        for part in parts:
            part.add(records)

    def finish(self) -> list[dict[str, Any]]:
        """Complete all files and return a report of each part."""
        return [part.report() for parts in self._parts.values() for part in parts]

    def abandon(self) -> None:
        """Close all files without telling of them."""
        for parts in self._parts.values():
            for part in parts:
                part.abandon()

    def _part(self, role: Role, partition: int) -> _Part:
        kind = _AlignedPart if isinstance(role, AlignedRole) else _SourcePart
        return kind(self._plan, role, partition, self._files)  # type: ignore[arg-type]


def archive_records(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Archive Spark's records, columns topic, partition, offset, timestamp, key and value, and yield the reports.

    What is wrong with the records is reported, not raised: Spark would try again, and tell it as a trace.
    """
    task = Task(plan)
    try:
        for batch in batches:
            for topic, partition, records in _by_partition(batch):
                task.add(topic, partition, records)
        reports = task.finish()
    except SkybandError as error:
        task.abandon()
        reports = [_failure(error)]
    yield pa.RecordBatch.from_pydict({"report": [json.dumps(report) for report in reports]})


def read_report(text: str) -> dict[str, Any]:
    """Return a task's report, with its files as ArchiveFile. Raises the error that it tells of."""
    report: dict[str, Any] = json.loads(text)
    if "gap" in report:
        raise CoverageGapError(report["error"], **report["gap"])
    if "error" in report:
        raise LogError(report["error"])
    return {**report, "files": [ArchiveFile(**its) for its in report["files"]]}


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[str, int, SourceRecords]]:
    """Yield the records of each partition; Spark gives a task one, so that this is one pass."""
    if not batch.num_rows:
        return
    topics = batch.column("topic").dictionary_encode()
    names = topics.dictionary.to_pylist()
    keys = topics.indices.to_numpy().astype(np.int64) << 32 | batch.column("partition").to_numpy()
    offset = batch.column("offset").to_numpy()
    time_us = times_of(pa.chunked_array([batch.column("timestamp")]))
    edges = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    for low, high in pairwise(edges):
        length = high - low
        records = SourceRecords(
            offset[low:high],
            time_us[low:high],
            batch.column("key").slice(low, length),
            batch.column("value").slice(low, length),
        )
        yield names[int(keys[low]) >> 32], int(keys[low]) & 0xFFFF_FFFF, records


def _report(
    kind: str, key: str, files: Sequence[ArchiveFile], state: Mapping[str, Any], rows: int, repeats: int
) -> dict[str, Any]:
    listed = [its.to_json() for its in files]
    return {"kind": kind, "key": key, "files": listed, "state": dict(state), "rows": rows, "repeats": repeats}


def _failure(error: SkybandError) -> dict[str, Any]:
    if isinstance(error, CoverageGapError):
        its = {"stream": error.stream, "partition": error.partition, "expected": error.expected, "found": error.found}
        return {"error": str(error), "gap": its}
    return {"error": str(error)}


@lru_cache(maxsize=1)
def _codecs() -> Codecs:
    # A worker serves many tasks; reading the schemas takes some milliseconds.
    return Codecs()


def _decoder(stream: Stream, registry: RegistrySettings | None) -> SourceDecoder | None:
    schemas = None if registry is None else registry_of(registry)
    try:
        return make_decoder(stream, schemas)
    except DefinitionError:
        # The records are kept all the same, and can be decoded later.
        return None
