"""What Spark's tasks of a rebuild do: survey an old shard, write a new one. What they meet is returned, not raised.

A task that is run again writes its shard again: readers drop by coverage what they have seen.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from services.runtime.registry_settings import RegistrySettings
from services.runtime.settings import KafkaSettings
from skyband.align.source import SourceKey
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord
from skyband.errors import LogError, SkybandError
from skyband.model.group import Group
from skyband.model.rebuild import RebuiltShard
from spark.rebuild_history import AlignedHistory, SourceHistory, log_of
from spark.rebuild_pieces import Order, Source, catalog_batch, pieces, with_catalog
from spark.rebuild_rekey import NewShards, readers_of, rekeyed
from spark.rebuild_survey import Span, Survey, survey

__all__ = ["Done", "Pieces", "shards_of", "survey_of", "told", "write_pieces", "write_rekeyed"]


@dataclass(frozen=True, slots=True)
class Done:
    """What a task has written, or why it could not; `spans`: how far, and the times there."""

    shards: tuple[RebuiltShard, ...] = ()
    error: str = ""
    spans: Mapping[SourceKey, Span] = field(default_factory=dict)


def shards_of(done: Iterable[Done]) -> tuple[RebuiltShard, ...]:
    """Return all that tasks have written, by shard."""
    return tuple(sorted((shard for each in done for shard in each.shards), key=lambda its: its.shard))


def told(task: Callable[[], Done]) -> Done:
    """Return what a task does, or the sentence of its error: Spark would try again, and tell it as a trace."""
    try:
        return task()
    except SkybandError as error:
        return Done(error=str(error))


def survey_of(history: AlignedHistory, shard: int) -> Survey | str:
    """Return what an old shard covers, or why that cannot be said."""
    try:
        return survey(shard, history.batches(shard, with_rows=False))
    except SkybandError as error:
        return str(error)


def write_rekeyed(kafka: KafkaSettings, topic: str, history: AlignedHistory, new: NewShards) -> Done:
    """Write new shards out of the aligned log."""

    def task() -> Done:
        logs = {old: history.batches(old) for old in readers_of(new.wanted[0], new.shards, new.old_shards)}
        return Done(_write(kafka, topic, new.wanted, rekeyed(new, logs)))

    return told(task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What tasks are told that align sources anew. `catalog`: records for offsets [0, catalog_to)."""

    kafka: KafkaSettings
    topic: str
    group: Group
    generation: int
    writer: str
    now_us: int
    archive: str | None
    registry: RegistrySettings
    since_us: int | None
    until_us: int
    catalog: tuple[CatalogRecord, ...]
    catalog_to: int
    keys: Sequence[SourceKey]

    def of(self, source: Source, is_archived: bool) -> Iterator[tuple[Order, AlignedBatch | str]]:
        """Yield the pieces of a source partition, or, at last, why it has no more."""
        history = SourceHistory(
            kafka=self.kafka,
            group=self.group.name,
            stream=self.group.streams[source.key[0]],
            partition=source.key[1],
            begin=source.begin,
            end=source.end,
            archive=self.archive if is_archived else None,
            registry=self.registry,
        )
        try:
            yield from pieces(
                self.group,
                self.generation,
                source,
                history.chunks(),
                now_us=self.now_us,
                writer=self.writer,
                since_us=self.since_us,
            )
        except SkybandError as error:
            for shard in range(self.group.shards):
                # Before all pieces, so that no shard is written.
                yield (shard, -(2**63), *source.key, -1), str(error)


def write_pieces(plan: Pieces, ordered: Iterable[tuple[Order, AlignedBatch | str]]) -> Iterator[Done]:
    """Write one new shard out of pieces in order, and yield what was written."""
    spans: dict[SourceKey, Span] = {}

    def batches(first: AlignedBatch, rest: Iterator[tuple[Order, AlignedBatch | str]]) -> Iterator[AlignedBatch]:
        batch: AlignedBatch | str | None = first
        while batch is not None:
            if isinstance(batch, str):
                raise LogError(batch)
            for section in batch.sections:
                key = (section.stream, section.partition)
                begin = spans[key].from_offset if key in spans else section.from_offset
                spans[key] = Span(begin, section.to_offset, section.watermark_us, section.newest_us)
            yield batch
            batch = next(rest, (None, None))[1]

    def task() -> Done:
        pairs = iter(ordered)
        order, first = next(pairs)
        if isinstance(first, str):
            raise LogError(first)
        shard = order[0]
        catalog = catalog_batch(
            plan.group, plan.generation, shard, plan.writer, plan.now_us, plan.catalog_to, plan.catalog
        )
        log = with_catalog(batches(first, pairs), catalog, plan.keys, plan.until_us)
        return Done(_write(plan.kafka, plan.topic, (shard,), log), spans=spans)

    yield told(task)


def _write(
    kafka: KafkaSettings, topic: str, shards: Sequence[int], batches: Iterable[AlignedBatch]
) -> tuple[RebuiltShard, ...]:
    """Write batches into their shards' partitions, as of now: what is rebuilt is kept as long as what is live."""
    rows, count = dict.fromkeys(shards, 0), dict.fromkeys(shards, 0)
    with closing(log_of(kafka).producer()) as producer:
        for batch in batches:
            producer.send(topic, batch.shard, batch, key=b"%d" % batch.shard)
            rows[batch.shard] += batch.rows
            count[batch.shard] += 1
        producer.flush()
    return tuple(RebuiltShard(shard=shard, rows=rows[shard], batches=count[shard]) for shard in shards)
