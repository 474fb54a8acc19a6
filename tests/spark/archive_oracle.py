"""What a reader of an aligned log accepts, row by row, and whether an archive holds just that."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.coverage.coverage import Coverage
from skyband.coverage.source_partition import Place
from skyband.model.group import Group
from spark.archive_store import ArchiveStore
from tests.services.runtime.values import assert_same

Kept = list[tuple[int, AlignedBatch]]


def slow_accepted(group: Group, log: Sequence[AlignedBatch]) -> Kept:
    """Row by row what a reader accepts of each batch, by what `Coverage` plans."""
    coverage = Coverage(group, log[0].generation, log[0].shard)
    for number in range(len(group.streams)):
        for partition in range(2):
            coverage.add(Place(number, partition), 0)
    found: Kept = []
    for offset, batch in enumerate(log):
        plan = coverage.plan(batch)
        rows = [row for step in plan.steps for row in range(step.lo, step.hi)]
        sections, changes = [], []
        nexts: dict[Place, int] = {}
        for step in plan.steps:
            begin = max(step.section.from_offset, nexts.get(step.source.place, step.source.next_offset))
            nexts[step.source.place] = step.section.to_offset
            sections.append(replace(step.section, from_offset=begin, rows=step.hi - step.lo))
            if step.section.stream == -1:
                changes += [its for its in batch.catalog if begin <= its.offset < step.section.to_offset]
        for step in plan.steps:
            step.source.cover(step.section, batch.written_us)
        if sections:
            found.append((offset, only_rows(batch, rows, sections, changes)))
    return found


def only_rows(
    batch: AlignedBatch, rows: Sequence[int], sections: Sequence[Section], catalog: Sequence[CatalogRecord]
) -> AlignedBatch:
    ids = [batch.id_bytes[(batch.id_ends[row - 1] if row else 0) : batch.id_ends[row]].tobytes() for row in rows]
    place = np.array(rows, np.int64)
    return replace(
        batch,
        sections=tuple(sections),
        catalog=tuple(catalog),
        offset=batch.offset[place],
        event_time_us=batch.event_time_us[place],
        release_time_us=batch.release_time_us[place],
        id_hash=batch.id_hash[place],
        values=batch.values[place],
        id_bytes=np.frombuffer(b"".join(ids), np.uint8).copy(),
        id_ends=np.cumsum([len(its) for its in ids], dtype=np.int64),
    )


def in_time(kept: Kept, from_us: int, to_us: int) -> Kept:
    """The same with the rows of a range of event times alone."""
    found: Kept = []
    for offset, batch in kept:
        inside = (batch.event_time_us >= from_us) & (batch.event_time_us < to_us)
        ends = np.cumsum([0, *(section.rows for section in batch.sections)])
        counts = [int(inside[low:high].sum()) for low, high in pairwise(ends)]
        sections = [replace(its, rows=count) for its, count in zip(batch.sections, counts, strict=True)]
        found.append((offset, only_rows(batch, np.flatnonzero(inside).tolist(), sections, batch.catalog)))
    return found


def assert_holds(store: ArchiveStore, group: Group, kept: Kept, shard: int = 0, **span: int) -> None:
    found = list(store.batches(group.name, 1, shard, **span))
    assert [offset for offset, _ in found] == [offset for offset, _ in kept]
    for (_, batch), (_, expected) in zip(found, kept, strict=True):
        assert_same(batch, expected)
        assert batch.values.flags.carray
        assert batch.id_bytes.flags.carray
