"""What of an aligned batch is new: repeats dropped, gaps found."""

from typing import NamedTuple

import numpy as np

from skyband.coverage.aligned_batch import AlignedBatch, Section
from skyband.coverage.source_partition import Place, SourcePartition
from skyband.errors import CoverageGapError, LogError
from skyband.model.catalog import CATALOG_STREAM, QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.stream import IdleThen

__all__ = ["CATALOG", "Coverage", "Plan", "Step"]

CATALOG = Place(CATALOG_STREAM, 0)


class Step(NamedTuple):
    """One section that brings something: its source, and which rows [lo, hi) of the batch are new."""

    source: SourcePartition
    section: Section
    lo: int
    hi: int


class Plan(NamedTuple):
    """What accepting a batch would do.

    `steps` of one source partition ascend by offset; `repeats` counts rows that are not new.
    """

    steps: list[Step]
    repeats: int
    changes: list[QueryChange]


class Coverage:
    """The source partitions of one shard, and how far each is covered.

    Words: the *next offset* of a source partition is the first not covered yet. Of a section [from, to), what is below
    the next offset is a *repeat*; a `from` above it is a *gap*; one that ends below it is *old* and says nothing::

        next offset            10
        section [4, 8)   ····   |            old
        section [4, 10)  ······ |            repeat; its times may still count
        section [6, 14)     ····+++++        rows 10 to 13 are new
        section [12, 14)        |  ++        gap: 10 and 11 are missing

    Initially there is only the catalog, from offset 0. This class only decides; `SourcePartition.cover` acts.
    """

    def __init__(self, group: Group, generation: int, shard: int) -> None:
        self._group = group
        self._generation = generation
        self._shard = shard
        self._sources: dict[Place, SourcePartition] = {}
        self.catalog = SourcePartition(
            place=CATALOG, stream_name="catalog", max_delay_us=0, holds_when_idle=False, next_offset=0
        )

    @property
    def sources(self) -> tuple[SourcePartition, ...]:
        """All source partitions but the catalog, in the order they were added."""
        return tuple(self._sources.values())

    def next_offsets(self) -> dict[tuple[str, int], int]:
        """Return the next offset by stream name and partition, the catalog's first."""
        return {(s.stream_name, s.place.partition): s.next_offset for s in (self.catalog, *self.sources)}

    def add(self, place: Place, start_offset: int, watermark_us: int = MIN_TIME_US) -> SourcePartition:
        """Make a source partition known, or set where the catalog starts.

        Raises LogError if it is known already or its stream is not one of the group.
        """
        if place == CATALOG:
            self.catalog.next_offset = start_offset
            return self.catalog
        if not 0 <= place.stream < len(self._group.streams):
            raise LogError(
                f"group {self._group.name!r} has streams 0 to {len(self._group.streams) - 1}, so a source partition of "
                f"stream {place.stream} cannot be read; check the start offsets of generation {self._generation}"
            )
        if place in self._sources:
            raise LogError(f"{self._name(place)} is read already by group {self._group.name!r}; add it once")
        stream = self._group.streams[place.stream]
        self._sources[place] = SourcePartition(
            place=place,
            stream_name=stream.name,
            max_delay_us=stream.max_delay_us,
            holds_when_idle=stream.idle_then is IdleThen.HOLD,
            next_offset=start_offset,
            watermark_us=watermark_us,
        )
        return self._sources[place]

    def plan(self, batch: AlignedBatch) -> Plan:
        """Return what of `batch` is new; change nothing.

        Raises CoverageGapError at a gap; LogError for a batch of another shard, an unknown source partition, or
        sections that do not fit the rows. Cost: the number of sections.
        """
        self._check(batch)
        plan = Plan([], 0, [])
        next_offsets: dict[Place, int] = {}
        repeats = hi = 0
        for section in batch.sections:
            lo, hi = hi, hi + section.rows
            source = self._source(section)
            expected = next_offsets.get(source.place, source.next_offset)
            if section.from_offset > expected:
                raise self._gap(source, expected, section.from_offset)
            if section.to_offset < expected:
                repeats += hi - lo
                continue
            new = lo
            if section.from_offset < expected:
                new += int(np.searchsorted(batch.offset[lo:hi], expected))
            repeats += new - lo
            next_offsets[source.place] = section.to_offset
            plan.steps.append(Step(source, section, new, hi))
            if source is self.catalog:
                plan.changes.extend(_changes(batch, max(section.from_offset, expected), section.to_offset))
        return plan._replace(repeats=repeats)

    def _check(self, batch: AlignedBatch) -> None:
        theirs, mine = (batch.group, batch.generation, batch.shard), (self._group.name, self._generation, self._shard)
        if theirs != mine:
            raise LogError(
                f"a batch of (group, generation, shard) {theirs} stands in the aligned log of {mine}; check its writer "
                f"{batch.writer!r}"
            )
        rows = sum(section.rows for section in batch.sections)
        if rows != batch.rows or batch.values.shape != (rows, self._group.width):
            raise LogError(
                f"a batch of writer {batch.writer!r} has {batch.rows} rows of {batch.values.shape[-1]} values, but its "
                f"sections name {rows} rows and group {self._group.name!r} has {self._group.width} values a row; begin "
                "a new generation"
            )

    def _source(self, section: Section) -> SourcePartition:
        place = Place(section.stream, section.partition)
        source = self.catalog if place == CATALOG else self._sources.get(place)
        if source is None:
            raise LogError(
                f"the aligned log of group {self._group.name!r} covers {self._name(place)}, which generation "
                f"{self._generation} does not read; add the partition to the stream, or begin a new generation"
            )
        most = 0 if source is self.catalog else section.to_offset - section.from_offset
        if section.to_offset < section.from_offset or not 0 <= section.rows <= most:
            raise LogError(
                f"a section of {self._name(place)} has {section.rows} rows in offsets [{section.from_offset}, "
                f"{section.to_offset}); the aligned log is damaged, begin a new generation"
            )
        return source

    def _gap(self, source: SourcePartition, expected: int, found: int) -> CoverageGapError:
        group, partition = self._group.name, source.place.partition
        return CoverageGapError(
            f"stream {source.stream_name!r} partition {partition}: offsets [{expected}, {found}) are missing from the "
            f"aligned log of group {group!r} (generation {self._generation}, shard {self._shard}), so the shard stops; "
            f"if the loss is acceptable, begin a new generation with `skyband groups regenerate {group}`",
            stream=source.stream_name,
            partition=partition,
            expected=expected,
            found=found,
        )

    def _name(self, place: Place) -> str:
        if place == CATALOG:
            return "the catalog"
        known = 0 <= place.stream < len(self._group.streams)
        stream = repr(self._group.streams[place.stream].name) if known else f"number {place.stream}"
        return f"partition {place.partition} of stream {stream}"


def _changes(batch: AlignedBatch, low: int, high: int) -> list[QueryChange]:
    """Return the changes of queries at catalog offsets [low, high)."""
    return [r.change for r in batch.catalog if low <= r.offset < high and r.change is not None]
