"""Aligned logs as several aligners write them: repeats, overlaps, sections without rows, rows of many hours."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from services.runtime.codecs import Codecs
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.model.catalog import CATALOG_STREAM, QueryChange
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, QueryState, Window
from skyband.model.resources import GroupResource, SourceStart, Stamp
from skyband.model.stream import Attribute, Stream
from spark.archive_commits import CommitLog, State, archived
from spark.archive_files import ArchiveFiles
from spark.archive_tasks import AlignedRole, Plan, archive_records, read_report

CODECS = Codecs()
BEGIN_US = 1_784_376_000_000_000
HOUR_US = 3_600_000_000
PARTITIONS = 2


def group_of(streams: int = 2, name: str = "factory", shards: int = 1) -> Group:
    """Return a group of attribute streams and, last, an object stream of two attributes."""
    single = [Stream(name=f"s{i}", attributes=(Attribute(name=f"s{i}"),)) for i in range(streams - 1)]
    wide = Stream(name="wide", is_object_stream=True, attributes=(Attribute(name="a"), Attribute(name="b")))
    return Group(name=name, streams=(*single, wide), retention_us=60_000_000, shards=shards)


def resource_of(group: Group, generation: int) -> GroupResource:
    """Return the group as the catalog has it; its source partitions begin at offset 0."""
    starts = tuple(SourceStart(stream.name, number, 0) for stream in group.streams for number in range(PARTITIONS))
    return GroupResource(group=group, generation=generation, sources=starts, stamp=Stamp("u", 1, 0, 0))


def seeded_log(
    seed: int, group: Group, generation: int = 1, shard: int = 0, batches: int = 30, step: int = 12
) -> list[AlignedBatch]:
    """Return a shard's batches. What a source partition holds at an offset depends on the two alone."""
    rng = np.random.default_rng(seed)
    covered: dict[tuple[int, int], int] = {}
    log = []
    for number in range(batches):
        sections, catalog = [], []
        its: list[dict[str, Any]] = []
        for _ in range(rng.integers(1, 5)):
            place = (int(rng.integers(-1, len(group.streams))), int(rng.integers(0, PARTITIONS)))
            place = (CATALOG_STREAM, 0) if place[0] < 0 else place
            at = covered.get(place, 0)
            # A zombie, or who begins anew, goes back; most go on.
            begin = max(0, at - int(rng.integers(0, 2 * step))) if rng.random() < 0.4 else at
            end = begin + int(rng.integers(0, step)) if rng.random() < 0.85 else begin
            covered[place] = max(at, end)
            found = [] if place[0] < 0 else [_row(group, place, offset, shard) for offset in range(begin, end)]
            rows = [row for row in found if row is not None]
            times = [MIN_TIME_US, MAX_TIME_US, BEGIN_US + end]
            sections.append(
                Section(
                    stream=place[0],
                    partition=place[1],
                    from_offset=begin,
                    to_offset=end,
                    rows=len(rows),
                    watermark_us=int(rng.choice(times)),
                    newest_us=int(rng.choice(times)),
                    idle_until_us=int(rng.choice([0, BEGIN_US + number])),
                )
            )
            its += rows
            if place[0] < 0:
                catalog += [CatalogRecord(offset, _change(group, offset)) for offset in range(begin, end)]
        log.append(_batch(group, generation, shard, number, sections, its, catalog))
    return log


def _row(group: Group, place: tuple[int, int], offset: int, shard: int) -> dict[str, Any] | None:
    rng = np.random.default_rng([place[0], place[1], offset])
    if rng.random() < 0.2 or int(rng.integers(0, group.shards)) != shard:
        return None
    width = len(group.streams[place[0]].attributes)
    values = rng.normal(size=group.width) * (np.arange(group.width) < width)
    if rng.random() < 0.1:
        values[0] = rng.choice([-0.0, np.inf, np.nan])
    event_us = BEGIN_US + offset * 120_000_000 - int(rng.integers(0, 2)) * int(rng.integers(0, 3 * HOUR_US))
    return {
        "offset": offset,
        "event": event_us,
        "release": event_us + int(rng.integers(0, 1_000_000)),
        "id": ["", "ü", f"object-{rng.integers(0, 9)}"][int(rng.integers(0, 3))].encode(),
        "hash": int(rng.integers(0, 2**64, dtype=np.uint64)),
        "values": values,
    }


def _change(group: Group, offset: int) -> QueryChange | None:
    if offset % 3 == 0:
        return None
    query = Query(name=f"q{offset}", k=3, score="s0", window=Window(60_000_000, 10_000_000))
    return QueryChange(uid=f"u{offset}", revision=1, group=group.name, query=query, state=QueryState.ACTIVE)


def _batch(
    group: Group,
    generation: int,
    shard: int,
    number: int,
    sections: Sequence[Section],
    rows: Sequence[Mapping[str, Any]],
    catalog: Sequence[CatalogRecord],
) -> AlignedBatch:
    ids = [row["id"] for row in rows]
    return AlignedBatch(
        group=group.name,
        generation=generation,
        shard=shard,
        writer=f"align-{number % 3}",
        written_us=BEGIN_US + 1_000 * number,
        sections=tuple(sections),
        offset=np.array([row["offset"] for row in rows], np.int64),
        event_time_us=np.array([row["event"] for row in rows], np.int64),
        release_time_us=np.array([row["release"] for row in rows], np.int64),
        id_bytes=np.frombuffer(b"".join(ids), np.uint8).copy(),
        id_ends=np.cumsum([len(its) for its in ids], dtype=np.int64),
        id_hash=np.array([row["hash"] for row in rows], np.uint64),
        values=np.array([row["values"] for row in rows], np.float64).reshape(len(rows), group.width),
        catalog=tuple(catalog),
    )


# --- as Spark gives records to a task


def spark_batches(
    topic: str, partition: int, values: Sequence[bytes | None], first: int = 0, size: int = 4
) -> Iterator[pa.RecordBatch]:
    """Yield records of one partition, `size` at a time; `first` is the offset of the first."""
    for low in range(0, len(values), size):
        part = values[low : low + size]
        offsets = np.arange(first + low, first + low + len(part))
        yield pa.RecordBatch.from_pydict(
            {
                "topic": [topic] * len(part),
                "partition": pa.array([partition] * len(part), pa.int32()),
                "offset": offsets,
                "timestamp": pa.array(BEGIN_US + offsets * 1_000).view(pa.timestamp("us", tz="UTC")),
                "key": pa.array([None] * len(part), pa.binary()),
                "value": pa.array(part, pa.binary()),
            }
        )


def encoded(topic: str, batches: Iterable[AlignedBatch]) -> list[bytes | None]:
    """Return batches as their log has them."""
    return [CODECS.encode(topic, batch) for batch in batches]


class Archive:
    """Writes an archive task by task, as the job does, without Spark."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.log = CommitLog(ArchiveFiles(uri))

    @property
    def state(self) -> State:
        return self.log.load()

    def attempt(
        self, topic: str, partition: int, values: Sequence[bytes | None], first: int, *roles: Any, registry: Any = None
    ) -> list[dict[str, Any]]:
        """Run a task and return its reports; nothing is committed."""
        state = self.state
        plan = Plan(self.uri, {topic: roles}, state.shards, state.sources, registry)
        tables = list(archive_records(plan, spark_batches(topic, partition, values, first)))
        return [read_report(text) for table in tables for text in table.column("report").to_pylist()]

    def commit(self, reports: Iterable[dict[str, Any]], now_us: int = BEGIN_US, **notes: Any) -> None:
        """Commit what tasks reported."""
        state = self.state
        change = archived(state, reports, **notes)
        if change is not None:
            self.log.append(state, change, now_us)

    def write(self, log: Sequence[AlignedBatch], resource: GroupResource | None, first: int = 0) -> None:
        """Archive batches of one shard, the first of them at aligned offset `first`."""
        batch = log[0]
        topic = f"aligned.{batch.group}.{batch.generation}"
        role = AlignedRole(batch.group, batch.generation, resource)
        self.commit(self.attempt(topic, batch.shard, encoded(topic, log), first, role))
