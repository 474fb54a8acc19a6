"""Where a rebuild reads from: the archive as far as it goes, Kafka from there on."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.registry_settings import RegistrySettings
from services.runtime.settings import KafkaSettings
from services.runtime.source_decoder import make_decoder
from skyband.align.topics import aligned_topic
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import CoverageGapError
from skyband.log.read_range import read_range
from skyband.log.record_log import Position
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.source_rows import SourceRows
from skyband.model.stream import Stream
from spark.archive_accepted import AcceptedBatches, check_place
from spark.archive_registry import registry_of
from spark.archive_store import ArchiveStore

__all__ = ["AlignedHistory", "Chunk", "SourceHistory", "log_of"]

Chunk = tuple[int, SourceRows]
"""Rows of a source partition, and the offset up to which they go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedHistory:
    """The aligned log of one generation of a group, up to `ends`, the aligned offset of each shard.

    `archive`: its address, None for none. Rows of event times before `since_us` may be left out.
    """

    kafka: KafkaSettings
    group: Group
    generation: int
    ends: Mapping[int, int]
    archive: str | None = None
    since_us: int | None = None

    def batches(self, shard: int, *, with_rows: bool = True) -> Iterator[AlignedBatch]:
        """Yield the batches of a shard without repeats; `with_rows`: archived ones may otherwise be without theirs.

        Raises CoverageGapError if archive and topic do not meet.
        """
        accepted = AcceptedBatches(self.group, self.generation, shard)
        for batch in self._all(shard, with_rows):
            found = accepted.offer(batch)
            if found is not None:
                yield found

    def _all(self, shard: int, with_rows: bool) -> Iterator[AlignedBatch]:
        name, end, begin = self.group.name, self.ends[shard], 0
        store = None if self.archive is None else ArchiveStore(self.archive)
        if store is not None and self.generation in store.generations(name):
            begin = min(end, store.next_offset(name, self.generation, shard))
            since_us = self.since_us if with_rows else MAX_TIME_US
            for offset, batch in store.batches(name, self.generation, shard, from_us=since_us):
                if offset >= end:
                    return
                yield batch
        at = Position(aligned_topic(name, self.generation), shard)
        if begin >= end:
            return
        with closing(log_of(self.kafka).consumer()) as consumer:
            lowest = consumer.begin_offsets([at])[at]
            # Without an archive the log is taken from where it is left.
            begin = lowest if begin == 0 else _there(at, begin, lowest, name)
            for record in read_range(consumer, at, begin, end):
                if record.value is not None:
                    yield check_place(record.value, name, self.generation, shard, record.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHistory:
    """One source partition of a stream, offsets [begin, end), decoded as the stream says now."""

    kafka: KafkaSettings
    group: str
    stream: Stream
    partition: int
    begin: int
    end: int
    archive: str | None = None
    registry: RegistrySettings | None = None

    def chunks(self) -> Iterator[Chunk]:
        """Yield its rows in order. Raises CoverageGapError if archive and topic do not meet."""
        schemas = None if self.registry is None else registry_of(self.registry)
        decoder = make_decoder(self.stream, schemas)
        topic, at = self.stream.topic or self.stream.name, self.begin
        if self.archive is not None:
            store = ArchiveStore(self.archive)
            for chunk in store.source_records(self.group, self.stream.name, self.partition, from_offset=at):
                rows = decoder.decode(chunk.offset, chunk.timestamp_us, chunk.values)
                at = int(chunk.offset[-1]) + 1
                yield from _cut(min(at, self.end), rows)
                if at >= self.end:
                    return
        if at >= self.end:
            return
        with closing(log_of(self.kafka).reading({topic: decoder}).consumer()) as consumer:
            place = Position(topic, self.partition)
            _there(place, at, consumer.begin_offsets([place])[place], self.group)
            for record in read_range(consumer, place, at, self.end):
                # Offsets without a record, such as marks of transactions, count as read.
                rows = record.value if isinstance(record.value, SourceRows) else _NO_ROWS
                yield from _cut(min(record.next_offset, self.end), rows)


def log_of(kafka: KafkaSettings) -> KafkaLog:
    """Return the log of a cluster, as tasks reach it."""
    return KafkaLog(kafka, _codecs())


@lru_cache(maxsize=1)
def _codecs() -> Codecs:
    # A worker serves many tasks; reading the schemas takes some milliseconds.
    return Codecs()


def _there(at: Position, begin: int, lowest: int, group: str) -> int:
    """Return `begin`. Raises CoverageGapError if offsets from there on are gone."""
    if lowest > begin:
        raise CoverageGapError(
            f"topic {at.topic!r} partition {at.partition}: offsets {begin} to {lowest - 1} are neither there nor in "
            f"the archive; rebuild group {group!r} without the archive, or with --since behind them",
            stream=at.topic,
            partition=at.partition,
            expected=begin,
            found=lowest,
        )
    return begin


def _cut(end: int, rows: SourceRows) -> Iterator[Chunk]:
    """Yield rows below `end`."""
    stop = int(np.searchsorted(rows.offset, end))
    if stop < rows.rows:
        timestamp_us = rows.timestamp_us[:stop] if len(rows.timestamp_us) else rows.timestamp_us
        rows = replace(
            rows,
            offset=rows.offset[:stop],
            event_time_us=rows.event_time_us[:stop],
            id_ends=rows.id_ends[:stop],
            values=rows.values[:stop],
            reason=rows.reason[:stop],
            timestamp_us=timestamp_us,
        )
    yield end, rows


_NO_ROWS = SourceRows(
    offset=np.zeros(0, np.int64),
    event_time_us=np.zeros(0, np.int64),
    id_bytes=np.zeros(0, np.uint8),
    id_ends=np.zeros(0, np.int64),
    values=np.zeros((0, 0), np.float64),
    reason=np.zeros(0, np.uint8),
)
