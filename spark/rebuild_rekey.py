"""Re-keying an aligned log: the logs of old shards in, those of new shards out, as if align had written them.

One old shard leads: its sections, in its order, are those of the new shards, with the same offsets, times and leases.
The others bring what rows of these offsets they have. Their logs tell the same of each source partition, only cut and
interleaved otherwise, so that each is read as far as the leader has come, and few rows wait here.

Only old shards can have rows of a new one whose numbers are equal modulo what divides both counts: `readers_of`. New
shards with the same readers are made in one reading.
"""

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.errors import CoverageGapError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.structures.hashing import shards_of
from spark.rebuild_batches import BatchCutter, Output
from spark.rebuild_rows import Rows, rows_of, together
from spark.rebuild_survey import Span

__all__ = ["Moved", "NewShards", "alike", "readers_of", "rekeyed"]


_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a source partition of a topic that was made anew goes: its history, and who reads the new topic."""

    to: SourceKey
    live: SourceKey
    live_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewShards:
    """What becomes of a log: shards `wanted`, which have the same readers, of `shards`, out of a log of `old_shards`.

    `spans`: what is taken of each source partition; of `silent` ones not all logs speak. `moved`: the partitions of
    topics that were made anew. `catalog`: what stands for the offsets of the catalog before its span. `since_us`: rows
    of earlier event times are left out.
    """

    group: str
    generation: int
    wanted: tuple[int, ...]
    shards: int
    old_shards: int
    width: int
    writer: str
    spans: Mapping[SourceKey, Span]
    silent: Collection[SourceKey] = ()
    moved: Mapping[SourceKey, Moved] = field(default_factory=dict)
    catalog: tuple[CatalogRecord, ...] = ()
    since_us: int | None = None


def readers_of(shard: int, shards: int, old_shards: int) -> list[int]:
    """Return the old shards that may have rows of a new one; the first leads.

    >>> readers_of(3, 4, 2), readers_of(1, 2, 4), readers_of(0, 5, 2)
    ([1], [1, 3], [0, 1])
    """
    step = math.gcd(shards, old_shards)
    return list(range(shard % step, old_shards, step))


def alike(shards: int, old_shards: int, tasks: int) -> list[tuple[int, ...]]:
    """Return all new shards in groups that have the same readers, in at least `tasks` groups if there are so many.

    >>> alike(5, 2, 2), alike(4, 2, 1), alike(2, 4, 8)
    ([(0, 2, 4), (1, 3)], [(0, 2), (1, 3)], [(0,), (1,)])
    """
    step = math.gcd(shards, old_shards)
    parts = min(shards // step, -(-tasks // step))
    return [tuple(range(first, shards, step * parts)) for first in range(step * parts)]


def rekeyed(new: NewShards, logs: Mapping[int, Iterable[AlignedBatch]]) -> Iterator[AlignedBatch]:
    """Yield the batches of new shards, of each in its order; `logs` are those of `readers_of`, in its order.

    Logs are without repeats. Cost: a third of a microsecond a row, and ten a section, old shard and new one; memory for
    what the logs differ in. Raises CoverageGapError if a log ends before its span does.
    """
    readers = [_Reader(new, log) for log in logs.values()]
    is_late = new.since_us is not None
    cutters = {
        shard: BatchCutter((new.group, new.generation, shard), new.writer, new.width, is_late=is_late)
        for shard in new.wanted
    }
    for shard, output in _Leader(new, readers).outputs():
        yield from cutters[shard].take(output)
    for cutter in cutters.values():
        yield from cutter.rest()


class _Reader:
    """One old shard's log: how far each source partition was read, and the rows of new shards that wait."""

    def __init__(self, new: NewShards, log: Iterable[AlignedBatch]) -> None:
        self._new = new
        self._log = iter(log)
        self._is_all = new.old_shards % new.shards == 0
        self.reached: dict[SourceKey, int] = {}
        self._held: dict[tuple[int, SourceKey], deque[Rows]] = {}

    def next(self) -> AlignedBatch | None:
        """Read one batch on, and hold its rows; None at the end."""
        batch = next(self._log, None)
        if batch is None:
            return None
        keys = [(section.stream, section.partition) for section in batch.sections]
        ends = np.cumsum([section.rows for section in batch.sections])
        self.reached.update(zip(keys, (section.to_offset for section in batch.sections), strict=True))
        for shard, kept in self._kept(batch):
            rows = rows_of(batch) if len(kept) == batch.rows else rows_of(batch).take(kept)
            low = 0
            for key, high in zip(keys, np.searchsorted(kept, ends).tolist(), strict=True):
                if high > low and key in self._new.spans:
                    self._held.setdefault((shard, key), deque()).append(rows.part(low, high))
                low = high
        return batch

    def read_to(self, key: SourceKey, offset: int) -> None:
        """Read until a source partition is read up to `offset`."""
        while self.reached.get(key, -1) < offset:
            if self.next() is None:
                at = self.reached.get(key, 0)
                raise CoverageGapError(
                    f"source partition {key} of group {self._new.group!r}: a shard's log ends at offset {at}, before "
                    f"{offset}; start the rebuild again",
                    stream=str(key[0]),
                    partition=key[1],
                    expected=at,
                    found=offset,
                )

    def take(self, shard: int, key: SourceKey, low: int, high: int) -> list[Rows]:
        """Return a new shard's rows that wait of offsets [low, high), and forget all below."""
        held = self._held.get((shard, key))
        found: list[Rows] = []
        while held and held[0].offset[0] < high:
            rows = held.popleft()
            stop = int(np.searchsorted(rows.offset, high))
            if stop < len(rows):
                held.appendleft(rows.part(stop, len(rows)))
            start = int(np.searchsorted(rows.offset, low))
            if stop > start:
                found.append(rows.part(start, stop))
        return found

    def _kept(self, batch: AlignedBatch) -> Iterator[tuple[int, _Places]]:
        """Yield the places of each new shard's rows, unless they are too old."""
        if not batch.rows:
            return
        its = np.ones(batch.rows, np.bool_)
        if self._new.since_us is not None:
            its = batch.event_time_us >= self._new.since_us
        if self._is_all:
            # Of old counts that the new one divides, all rows of what is read belong to one shard.
            yield self._new.wanted[0], np.flatnonzero(its)
            return
        shards = shards_of(batch.id_bytes, batch.id_ends, self._new.shards)
        for shard in self._new.wanted:
            yield shard, np.flatnonzero(its & (shards == shard))


class _Leader:
    """Turns the leader's batches into outputs."""

    def __init__(self, new: NewShards, readers: list[_Reader]) -> None:
        self._new = new
        self._readers = readers
        self._catalog_at = new.spans[CATALOG_KEY].from_offset

    def outputs(self) -> Iterator[tuple[int, Output]]:
        """Yield what each new shard gets of each batch."""
        opened = self._openers()
        while (batch := self._readers[0].next()) is not None:
            if opened:
                yield from self._opening(opened, batch.written_us)
                opened = []
            outputs = {shard: Output([], [], (), batch.written_us) for shard in self._new.wanted}
            catalog: list[CatalogRecord] = []
            for section in batch.sections:
                self._add(section, batch, outputs, catalog)
            for shard, output in outputs.items():
                if output.sections:
                    yield shard, replace(output, catalog=tuple(catalog))
        if opened:
            yield from self._opening(opened, MIN_TIME_US)

    def _opening(self, opened: list[Section], written_us: int) -> Iterator[tuple[int, Output]]:
        for shard in self._new.wanted:
            yield shard, Output(opened, [], self._new.catalog, written_us)

    def _openers(self) -> list[Section]:
        """Return what is said before all else: what the log says no more, and partitions that are moved."""
        found = [_section(CATALOG_KEY, 0, self._catalog_at)] if self._catalog_at else []
        for key, span in self._new.spans.items():
            if (moved := self._new.moved.get(key)) is not None:
                # What a new topic will bring is released after all that the old one brought.
                found.append(_section(moved.to, span.from_offset, span.from_offset))
                found.append(_section(moved.live, moved.live_offset, moved.live_offset, span.watermark_us))
            elif key in self._new.silent:
                found.append(_section(key, span.from_offset, span.to_offset, span.watermark_us, span.newest_us))
        return sorted(found, key=lambda section: (section.stream, section.partition))

    def _add(
        self, section: Section, batch: AlignedBatch, outputs: Mapping[int, Output], catalog: list[CatalogRecord]
    ) -> None:
        """Add what becomes of one section of the leader."""
        key = (section.stream, section.partition)
        span = self._new.spans.get(key)
        if key == CATALOG_KEY:
            self._add_catalog(section, batch, outputs, catalog)
            return
        if span is None or section.to_offset < span.from_offset:
            return
        low, high = max(section.from_offset, span.from_offset), min(section.to_offset, span.to_offset)
        if low > high or (section.from_offset == span.to_offset < section.to_offset):
            return
        cut = replace(section, from_offset=low, to_offset=high)
        if high < section.to_offset:
            cut = replace(cut, watermark_us=span.watermark_us, newest_us=span.newest_us, idle_until_us=0)
        moved = self._new.moved.get(key)
        for shard, output in outputs.items():
            rows = self._rows(shard, key, low, high)
            its = replace(cut, rows=len(rows))
            output.sections.extend([its] if moved is None else _of_moved(moved, span, its))
            output.rows.append(rows)

    def _rows(self, shard: int, key: SourceKey, low: int, high: int) -> Rows:
        parts = self._readers[0].take(shard, key, low, high)
        for reader in self._readers[1:]:
            if high > low:
                reader.read_to(key, high)
            parts += reader.take(shard, key, low, high)
        found = together(parts, self._new.width)
        if len(parts) > 1:
            found = found.take(np.argsort(found.offset, kind="stable"))
        return found

    def _add_catalog(
        self, section: Section, batch: AlignedBatch, outputs: Mapping[int, Output], catalog: list[CatalogRecord]
    ) -> None:
        """Add what a section of the catalog goes on by."""
        low, high = self._catalog_at, min(section.to_offset, self._new.spans[CATALOG_KEY].to_offset)
        if high > low:
            catalog += [its for its in batch.catalog if low <= its.offset < high]
            for output in outputs.values():
                output.sections.append(replace(section, from_offset=low, to_offset=high))
            self._catalog_at = high


def _section(
    key: SourceKey, low: int, high: int, watermark_us: int = MIN_TIME_US, newest_us: int = MIN_TIME_US
) -> Section:
    stream, partition = key
    return Section(
        stream=stream,
        partition=partition,
        from_offset=low,
        to_offset=high,
        rows=0,
        watermark_us=watermark_us,
        newest_us=newest_us,
    )


def _of_moved(moved: Moved, span: Span, section: Section) -> list[Section]:
    """Return a section under the partition of the history; at its end the new topic's partition takes over."""
    stream, partition = moved.to
    its = replace(section, stream=stream, partition=partition)
    if section.to_offset < span.to_offset:
        return [its]
    stream, partition = moved.live
    at = moved.live_offset
    live = replace(section, stream=stream, partition=partition, from_offset=at, to_offset=at, rows=0)
    return [replace(its, watermark_us=MAX_TIME_US, idle_until_us=0), live]
