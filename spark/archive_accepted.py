"""What of an aligned log is new, batch by batch: what readers accept, and nothing twice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.coverage.coverage import Coverage, Plan, Step
from skyband.coverage.source_partition import Place
from skyband.errors import LogError
from skyband.model.catalog import CATALOG_STREAM
from skyband.model.group import MAX_STREAMS, Group
from skyband.model.stream import Attribute, Stream

__all__ = ["AcceptedBatches", "accepted", "check_place", "stand_in"]


class AcceptedBatches:
    """One shard's batches without what was there before.

    Initially covered is what `covered` says, (stream, partition, next offset) each; a source partition that it does not
    name begins where the log first speaks of it. Invariant: the batches offered and those returned bring the same rows,
    times and catalog changes to any reader that begins where this one began.
    """

    def __init__(self, group: Group, generation: int, shard: int, covered: Iterable[Sequence[int]] = ()) -> None:
        self._coverage = Coverage(group, generation, shard)
        self._known: set[Place] = set()
        for stream, partition, next_offset in covered:
            self._add(Place(stream, partition), next_offset)

    @property
    def covered(self) -> list[list[int]]:
        """How far each source partition is covered: stream, partition, next offset."""
        sources = [its for its in (self._coverage.catalog, *self._coverage.sources) if its.place in self._known]
        return sorted([*its.place, its.next_offset] for its in sources)

    def offer(self, batch: AlignedBatch) -> AlignedBatch | None:
        """Return what of `batch` is new, None for nothing at all. Cost: a copy of the rows if not all of them are.

        Raises CoverageGapError at a gap, LogError for a batch of another shard or a damaged one.
        """
        for section in batch.sections:
            place = Place(section.stream, section.partition)
            if place not in self._known:
                self._add(place, section.from_offset)
        plan = self._coverage.plan(batch)
        found = accepted(batch, plan)
        for step in plan.steps:
            step.source.cover(step.section, batch.written_us)
        return found

    def _add(self, place: Place, next_offset: int) -> None:
        self._coverage.add(place, next_offset)
        self._known.add(place)


def accepted(batch: AlignedBatch, plan: Plan) -> AlignedBatch | None:
    """Return `batch` as `plan` takes it, before its steps cover anything; None if no section is left.

    Sections begin where their source partition was covered to; one that only moves time on stays, as ``[n, n)``.
    """
    if not plan.steps:
        return None
    sections = []
    cursors: dict[Place, int] = {}
    for step in plan.steps:
        place, its = step.source.place, step.section
        begin = max(its.from_offset, cursors.get(place, step.source.next_offset))
        cursors[place] = its.to_offset
        sections.append(replace(its, from_offset=begin, rows=step.hi - step.lo))
    catalog = _catalog(batch, sections)
    if sum(section.rows for section in sections) == batch.rows:
        return replace(batch, sections=tuple(sections), catalog=catalog)
    return replace(batch, sections=tuple(sections), catalog=catalog, **_rows(batch, plan.steps))


def stand_in(name: str, width: int) -> Group:
    """Return a group for an aligned log of which no definition is left; its streams are called by their numbers."""
    streams = tuple(
        Stream(
            name=f"number-{number}",
            is_object_stream=True,
            attributes=tuple(Attribute(name=f"value_{number}_{value}") for value in range(1 if number else width)),
        )
        for number in range(MAX_STREAMS)
    )
    return Group(name=name, streams=streams, retention_us=1_000_000)


def _catalog(batch: AlignedBatch, sections: Sequence[Section]) -> tuple[CatalogRecord, ...]:
    spans = [(its.from_offset, its.to_offset) for its in sections if its.stream == CATALOG_STREAM]
    return tuple(record for low, high in spans for record in batch.catalog if low <= record.offset < high)


def _rows(batch: AlignedBatch, steps: Sequence[Step]) -> Mapping[str, Any]:
    spans = [(step.lo, step.hi) for step in steps if step.hi > step.lo]

    def taken(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([column[:0], *(column[low:high] for low, high in spans)])

    begins = [int(batch.id_ends[low - 1]) if low else 0 for low, _ in spans]
    arenas = [batch.id_bytes[begin : batch.id_ends[high - 1]] for begin, (_, high) in zip(begins, spans, strict=True)]
    lengths = taken(np.diff(batch.id_ends, prepend=0))
    return {
        "offset": taken(batch.offset),
        "event_time_us": taken(batch.event_time_us),
        "release_time_us": taken(batch.release_time_us),
        "id_bytes": np.concatenate([batch.id_bytes[:0], *arenas]),
        "id_ends": np.cumsum(lengths),
        "id_hash": taken(batch.id_hash),
        "values": taken(batch.values),
    }


def check_place(batch: object, group: str, generation: int, shard: int, offset: int) -> AlignedBatch:
    """Return `batch` if it belongs into this shard's log. Raises LogError if it does not."""
    if isinstance(batch, AlignedBatch) and (batch.group, batch.generation, batch.shard) == (group, generation, shard):
        return batch
    raise LogError(
        f"the record at aligned offset {offset} of group {group!r}, generation {generation}, shard {shard} is of "
        "another log; see what else writes to the topic"
    )
