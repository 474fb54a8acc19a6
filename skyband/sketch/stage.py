"""The sketch's loop over a record log: aligned batches of its shards in, statistics out."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import CoverageGapError, DefinitionError, LogError
from skyband.log.clock import Clock, SystemClock
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.group import Group
from skyband.sketch.publication import Publication, newest_publications, publication_key
from skyband.sketch.settings import SketchTopics, SketchTuning
from skyband.sketch.shard import SketchShard

__all__ = ["SketchStage", "SketchTopics", "SketchTuning"]


class SketchStage:
    """Keeps the sketches of some shards of one generation of a group; one aligned partition is one shard.

    Shards are *fixed* (`shards` says which) or *shared*: the stage is then a member of the generation's consumer group,
    which deals out the aligned partitions. Either way a shard goes on from its newest publication, and is *stopped* if
    the aligned log behind that is gone. One that was never published begins where the aligned log begins; where that is
    not the log's first record, its statistics are of what came since, and say so.

    A shard that meets a gap stops; the others go on. What a stopped shard knew stays published. A shard that two stages
    run for a while does no harm: at each aligned offset both publish the same.
    """

    def __init__(
        self,
        log: RecordLog,
        group: Group,
        generation: int,
        starts: Mapping[tuple[int, int], int],
        topics: SketchTopics,
        *,
        clock: Clock | None = None,
        tuning: SketchTuning | None = None,
        shards: Sequence[int] | None = None,
    ) -> None:
        """Begin with every source partition at its start. `shards`: the fixed ones, None: shared."""
        self._log = log
        self._group = group
        self._generation = generation
        self._starts = dict(starts)
        self._topics = topics
        self._tuning = tuning or SketchTuning()
        self._clock = clock or SystemClock()
        self.shards: dict[int, SketchShard] = {}
        self.stopped: dict[int, LogError] = {}
        self._read: dict[int, int] = {}
        self._published: dict[int, int] = {}
        self._published_us = self._clock.now_us()
        self._producer = log.producer()
        self._consumer = log.consumer(f"skyband.sketch.{group.name}.{generation}")
        if shards is None:
            self._consumer.subscribe([topics.aligned], self)
        else:
            self._consumer.assign(self.on_assigned([Position(topics.aligned, number) for number in shards]))

    def step(self, timeout_s: float = 0.0) -> bool:
        """Read what is there, and publish if it is time; return whether anything was read."""
        records = self._consumer.poll(self._tuning.max_records, timeout_s)
        for record in records:
            if record.partition in self.shards and record.partition not in self.stopped:
                self._handle(record)
        now_us = self._clock.now_us()
        if now_us - self._published_us >= self._tuning.publish_every_us:
            self._published_us = now_us
            self._publish(list(self.shards))
        return bool(records)

    def on_assigned(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Take these shards, and read each from where its newest publication says."""
        if not positions:
            return {}
        known = newest_publications(
            self._log,
            self._topics.statistics,
            self._group.name,
            self._generation,
            [at.partition for at in positions],
        )
        begins = self._consumer.begin_offsets(positions)
        return {at: self._begin(at, known.get(at.partition), begins[at]) for at in positions}

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        """Give these shards up; unless they are `lost`, publish for whoever takes them."""
        numbers = [at.partition for at in positions if at.partition in self.shards]
        if not lost:
            self._publish(numbers)
        for at in positions:
            for table in (self.shards, self.stopped, self._read, self._published):
                table.pop(at.partition, None)

    def close(self) -> None:
        """Publish, and leave the group."""
        try:
            self._publish(list(self.shards))
        finally:
            self._producer.close()
            self._consumer.close()

    def abandon(self) -> None:
        """Leave without publishing, after an error."""
        for part in (self._consumer, self._producer):
            with suppress(LogError):
                part.close()

    def _begin(self, at: Position, found: Publication | None, begin: int) -> int:
        """Take one shard, and return the offset from which on it is read; a shard that cannot be taken is stopped."""
        number = at.partition
        starts = self._starts if begin == 0 else None
        try:
            shard = SketchShard(self._group, self._generation, number, starts, self._tuning)
            if found is not None:
                shard.restore(found)
        except (DefinitionError, LogError) as error:
            self.stopped[number] = LogError(f"shard {number} of group {self._group.name!r} is not sketched: {error}")
            return begin
        self.shards[number] = shard
        if found is None:
            return begin
        self._published[number] = found.aligned_offset
        if found.aligned_offset < begin:
            self.stopped[number] = self._lost(at, found.aligned_offset, begin)
            return begin
        return found.aligned_offset

    def _handle(self, record: Record) -> None:
        number, batch = record.partition, record.value
        if isinstance(batch, AlignedBatch):
            try:
                self.shards[number].offer(batch)
            except CoverageGapError as error:
                self.stopped[number] = error
                return
        self._read[number] = record.next_offset

    def _publish(self, numbers: Sequence[int]) -> None:
        """Write what has changed since it was last published; then commit what was read."""
        topic, now_us = self._topics.statistics, self._clock.now_us()
        partitions = self._log.partitions(topic)
        news = {number: self._read[number] for number in numbers if number in self._read}
        for number, offset in news.items():
            if offset == self._published.get(number):
                continue
            publication = self.shards[number].publication(offset, now_us)
            if publication is not None:
                partition = partition_of(publication.key, partitions)
                self._producer.send(topic, partition, publication, key=publication.key.encode())
        self._producer.flush()
        self._published.update(news)
        if news:
            # For whoever looks at the lag; where a shard goes on is in its publication.
            with suppress(CommitRefusedError):
                self._consumer.commit({Position(self._topics.aligned, number): at for number, at in news.items()})

    def _lost(self, at: Position, offset: int, begin: int) -> CoverageGapError:
        name = self._group.name
        key = publication_key(name, self._generation, at.partition)
        return CoverageGapError(
            f"shard {at.partition} of group {name!r}: offsets {offset} to {begin - 1} of {at.topic} are gone, and its "
            f"sketch lacks them; send the key {key!r} without a value to topic {self._topics.statistics!r} and start "
            f"again, and it begins with what is left, or begin anew with `skyband groups regenerate {name}`",
            stream=at.topic,
            partition=at.partition,
            expected=offset,
            found=begin,
        )
