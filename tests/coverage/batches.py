"""What align would write: batches of rows given one by one."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.coverage.sequenced_rows import SequencedRows
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, QueryState, Window
from skyband.model.stream import Attribute, IdleThen, Stream


class Row(NamedTuple):
    """A row of an aligned batch, before or behind the sequencer, which only changes release times."""

    release_us: int
    stream: int
    partition: int
    offset: int
    event_us: int
    object_id: bytes
    id_hash: int
    values: tuple[float, ...]


def group(*delays_us: int, pane_us: int = 10, holds: bool = False, width: int = 1) -> Group:
    """A group with one stream a delay; the first is an object stream, if it is to have more than one value."""
    streams = []
    for index, delay in enumerate(delays_us):
        names = [f"s{index}"] if width == 1 or index else [f"s0_{v}" for v in range(width)]
        streams.append(
            Stream(
                name=f"s{index}",
                attributes=tuple(Attribute(name=name) for name in names),
                is_object_stream=len(names) > 1,
                max_delay_us=delay,
                idle_then=IdleThen.HOLD if holds and index == len(delays_us) - 1 else IdleThen.FLUSH,
            )
        )
    return Group(name="factory", streams=tuple(streams), retention_us=100 * pane_us, pane_us=pane_us)


class Partition:
    """One source partition as align reads it: gives every row its release time."""

    def __init__(self, stream: int, partition: int, max_delay_us: int, start: int = 0, width: int = 1) -> None:
        self.stream, self.partition, self.max_delay_us, self.width = stream, partition, max_delay_us, width
        self.start = self.cursor = start
        self.rows: list[Row] = []
        self.times = [(start, MIN_TIME_US, MIN_TIME_US)]  # (end offset, watermark, newest) behind each row

    def read(self, event_us: int, object_id: bytes | None = None, skip: int = 0) -> Row:
        """Read one row, after `skip` offsets that went to other shards."""
        _, watermark, newest = self.times[-1]
        offset = self.cursor + skip
        name = b"object %d" % (offset % 7 * 10 ** (offset % 12)) if object_id is None else object_id
        values = tuple(offset + v / 8 for v in range(self.width))
        release = max(event_us, watermark)
        row = Row(release, self.stream, self.partition, offset, event_us, name, hash_of(name), values)
        self.rows.append(row)
        self.cursor = offset + 1
        self.times.append((self.cursor, max(watermark, event_us - self.max_delay_us), max(newest, event_us)))
        return row

    def section(self, low: int, high: int, **changes: int) -> tuple[Section, list[Row]]:
        """Return what covers offsets [low, high), as of then."""
        first, last = (bisect_left(self.rows, bound, key=lambda row: row.offset) for bound in (low, high))
        rows = self.rows[first:last]
        _, watermark, newest = self.times[last]
        section = Section(
            stream=self.stream,
            partition=self.partition,
            from_offset=low,
            to_offset=high,
            rows=len(rows),
            watermark_us=watermark,
            newest_us=newest,
        )
        return replace(section, **changes), rows


def hash_of(object_id: bytes) -> int:
    """Some 64 bits of an id."""
    return int.from_bytes(object_id[-8:].ljust(8, b"\xff"), "little")


def make_batch(
    parts: Sequence[tuple[Section, list[Row]]],
    written_us: int = 0,
    catalog: Sequence[CatalogRecord] = (),
    width: int = 1,
    **address: int | str,
) -> AlignedBatch:
    """Put sections and their rows into one batch."""
    rows = [row for _, section_rows in parts for row in section_rows]
    return AlignedBatch(
        **{"group": "factory", "generation": 1, "shard": 0, "writer": "align-0"} | address,
        written_us=written_us,
        sections=tuple(section for section, _ in parts),
        offset=np.array([row.offset for row in rows], np.int64),
        event_time_us=np.array([row.event_us for row in rows], np.int64),
        release_time_us=np.array([row.release_us for row in rows], np.int64),
        id_bytes=np.frombuffer(b"".join(row.object_id for row in rows), np.uint8),
        id_ends=np.cumsum([len(row.object_id) for row in rows], dtype=np.int64),
        id_hash=np.array([row.id_hash for row in rows], np.uint64),
        values=np.array([row.values for row in rows], np.float64).reshape(len(rows), width),
        catalog=tuple(catalog),
    )


def rows_of(batch: AlignedBatch) -> list[tuple[Section, list[Row]]]:
    """Take a batch apart again."""
    parts, at = [], 0
    for section in batch.sections:
        rows = []
        for i in range(at, at + section.rows):
            name = batch.id_bytes[batch.id_ends[i - 1] if i else 0 : batch.id_ends[i]].tobytes()
            rows.append(
                Row(
                    int(batch.release_time_us[i]),
                    section.stream,
                    section.partition,
                    int(batch.offset[i]),
                    int(batch.event_time_us[i]),
                    name,
                    int(batch.id_hash[i]),
                    tuple(batch.values[i].tolist()),
                )
            )
        at += section.rows
        parts.append((section, rows))
    return parts


def listed(rows: SequencedRows) -> list[Row]:
    """Return sequenced rows one by one."""
    ends = [0, *rows.id_ends.tolist()]
    names = [rows.id_bytes[start:end].tobytes() for start, end in pairwise(ends)]
    columns = (
        rows.release_time_us.tolist(),
        rows.stream.tolist(),
        rows.partition.tolist(),
        rows.offset.tolist(),
        rows.event_time_us.tolist(),
        names,
        rows.id_hash.tolist(),
        map(tuple, rows.values.tolist()),
    )
    return [Row(*cells) for cells in zip(*columns, strict=True)]


def query_change(revision: int) -> QueryChange:
    """A change of the only query."""
    query = Query(name="hottest", k=1, score="s0", window=Window(20, 10))
    return QueryChange(uid="q", revision=revision, group="factory", query=query, state=QueryState.ACTIVE)
