"""The engine's loop over a record log: aligned batches of its shards in, partials out."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.engine.activations import activations_of
from skyband.engine.checkpoint import Checkpoint
from skyband.engine.checkpointer import Checkpointer
from skyband.engine.report import Reporter
from skyband.engine.settings import EngineTopics, EngineTuning
from skyband.engine.shard import Shard
from skyband.engine.snapshot_records import REBUILT, done_key
from skyband.engine.stored_checkpoints import (
    StoredCheckpoints,
    read_checkpoints,
    read_snapshot_of,
    remove_superseded,
)
from skyband.errors import CapacityError, CoverageGapError, LogError
from skyband.log.clock import Clock, SystemClock
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.group import Group

__all__ = ["EngineStage", "EngineTopics", "EngineTuning"]


# A report speaks of every query of its shard; with more than this many it comes less often.
_QUERIES_A_REPORT = 100


class EngineStage:
    """Runs some shards of one generation of a group; one aligned partition is one shard.

    Shards are *fixed* (`shards` says which; each begins at the beginning of its partition) or *shared*: the stage is
    then a member of the generation's consumer group, which deals out the aligned partitions. A shared shard goes on
    from its furthest checkpoint, at once if that names a snapshot; without one it needs the aligned log from its
    beginning. It is *stopped* if what it needs is gone, or the snapshot is not whole.

    Each batch is offered and evaluated before the next: when a query begins depends on the aligned log alone, not on
    how much was read at once. A shard that meets a gap, or has more rows waiting than it may, stops; the others go on.
    With a `progress` topic, each shard reports there how it is doing.

    A shard that two stages run for a while, because one of them has not noticed that it was taken over, does no harm:
    both say the same of each window end.
    """

    def __init__(
        self,
        log: RecordLog,
        group: Group,
        generation: int,
        starts: Mapping[tuple[int, int], int],
        topics: EngineTopics,
        *,
        clock: Clock | None = None,
        tuning: EngineTuning | None = None,
        shards: Sequence[int] | None = None,
    ) -> None:
        """Begin with every source partition at its start. `shards`: the fixed ones, None: shared."""
        self._log = log
        self._group = group
        self._generation = generation
        self._starts = dict(starts)
        self._topics = topics
        self._tuning = tuning or EngineTuning()
        self._clock = clock or SystemClock()
        self._is_shared = shards is None
        self.shards: dict[int, Shard] = {}
        self.stopped: dict[int, LogError] = {}
        self._reporters: dict[int, Reporter] = {}
        self._checkpointers: dict[int, Checkpointer] = {}
        self._read: dict[int, int] = {}
        self._resumes: dict[int, int] = {}
        self._stored: dict[int, StoredCheckpoints] = {}
        self._reported_us = self._checkpointed_us = self._clock.now_us()
        self._producer = log.producer()
        self._consumer = log.consumer(f"skyband.engine.{group.name}.{generation}")
        if shards is None:
            self._consumer.subscribe([topics.aligned], self)
        else:
            for number in shards:
                self._begin(number)
            self._consumer.assign({Position(topics.aligned, number): 0 for number in shards})

    def step(self, timeout_s: float = 0.0) -> bool:
        """Read what is there and evaluate what is due; return whether anything was read."""
        records = self._consumer.poll(self._tuning.max_records, timeout_s)
        for record in records:
            if record.partition in self.shards and record.partition not in self.stopped:
                self._handle(record)
        now_us = self._clock.now_us()
        is_due = now_us - self._checkpointed_us >= self._tuning.checkpoint_every_us
        if is_due if self._is_shared else records:
            self._checkpointed_us = now_us
            self._store(list(self.shards))
        self._report(now_us)
        return bool(records)

    def on_assigned(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Take these shards, and read each from where its furthest checkpoint says."""
        if not positions:
            return {}
        if self._topics.checkpoints:
            numbers = [at.partition for at in positions]
            topic, name = self._topics.checkpoints, self._group.name
            self._stored |= read_checkpoints(self._log, topic, name, self._generation, numbers)
        begins = self._consumer.begin_offsets(positions)
        offsets = {}
        for at in positions:
            offset = self._take_up(at.partition)
            if offset < begins[at]:
                self.stopped.setdefault(at.partition, self._lost(at, offset, begins[at]))
                offset = begins[at]
            offsets[at] = offset
        return offsets

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        """Give these shards up; unless they are `lost`, leave a checkpoint for whoever takes them."""
        numbers = [at.partition for at in positions if at.partition in self.shards]
        if not lost:
            self._store(numbers)
        for number in numbers:
            for table in (self.shards, self.stopped, self._reporters, self._checkpointers, self._read, self._resumes):
                table.pop(number, None)
            self._stored.pop(number, None)

    def close(self) -> None:
        """Leave checkpoints, and the group."""
        try:
            self._store(list(self.shards))
        finally:
            self._producer.close()
            self._consumer.close()

    def abandon(self) -> None:
        """Leave without a checkpoint after an error: a shard may have gone further than what it told is stored."""
        for part in (self._consumer, self._producer):
            with suppress(LogError):
                part.close()

    def _begin(self, number: int) -> Shard:
        tuning = self._tuning
        sequencer = Sequencer(self._group, self._generation, number, self._starts, tuning.max_pending_bytes)
        shard = Shard(self._group, self._generation, number, sequencer)
        self.shards[number] = shard
        self._reporters[number] = Reporter(shard)
        self._checkpointers[number] = Checkpointer(shard)
        return shard

    def _take_up(self, number: int) -> int:
        """Begin a shard where its furthest checkpoint says; return the offset of its next batch."""
        shard = self._begin(number)
        stored = self._stored.get(number)
        found = None if stored is None else stored.furthest()
        if stored is None or found is None:
            return 0
        done = stored.told() or found.done
        if found.snapshot is None:
            shard.restore(replace(found, done=done))
        else:
            try:
                shard.restore_snapshot(read_snapshot_of(self._log, self._topics.checkpoints, stored, found), done)
            except LogError as error:
                self._begin(number)
                self.stopped[number] = error
                return found.aligned_offset
            self._checkpointers[number] = Checkpointer(shard, found)
            self._tell_begun(found)
        if shard.is_replaying:
            self._resumes[number] = done.aligned_offset
        return found.aligned_offset

    def _tell_begun(self, found: Checkpoint) -> None:
        """Tell which queries run, if the snapshot is of a time when nobody listened; told again, it changes nothing."""
        if found.snapshot is None or not found.snapshot.writer.startswith(REBUILT):
            return
        for value in activations_of(found):
            partition, key = self._topics.partials_partition, self._group.name.encode()
            self._producer.send(self._topics.partials, partition, value, key=key)

    def _handle(self, record: Record) -> None:
        number, batch = record.partition, record.value
        shard = self.shards[number]
        if number in self._resumes and record.offset >= self._resumes[number]:
            del self._resumes[number]
            shard.resume()
        if isinstance(batch, AlignedBatch):
            if self._topics.checkpoints:
                self._checkpointers[number].before(record.offset)
            try:
                self._join_new_partitions(shard, batch)
                shard.offer(batch)
            except (CoverageGapError, CapacityError) as error:
                # What a stopped shard has not evaluated stays readable for whoever mends it.
                self.stopped[number] = error
                return
            for value in shard.advance():
                self._producer.send(
                    self._topics.partials, self._topics.partials_partition, value, key=self._group.name.encode()
                )
        self._read[number] = record.next_offset

    def _join_new_partitions(self, shard: Shard, batch: AlignedBatch) -> None:
        """Let source partitions join that the generation did not begin with, where the log first speaks of them."""
        for section in batch.sections:
            place = (section.stream, section.partition)
            if not shard.sequencer.knows(place):
                shard.sequencer.add_partition(place, section.from_offset)

    def _store(self, numbers: Sequence[int]) -> None:
        """Have stored what was told; then write checkpoints, and commit what was read."""
        self._producer.flush()
        if self._topics.checkpoints:
            self._store_checkpoints(numbers)
        aligned = self._topics.aligned
        read = {Position(aligned, number): self._read[number] for number in numbers if number in self._read}
        if read:
            # For whoever looks at the lag; where a shard goes on is in its checkpoint.
            with suppress(CommitRefusedError):
                self._consumer.commit(read)

    def _store_checkpoints(self, numbers: Sequence[int]) -> None:
        """Write checkpoints; once they are stored, delete the snapshots that they make useless."""
        topic, partitions, small = self._topics.checkpoints, self._log.partitions(self._topics.checkpoints), []
        for number in numbers:
            checkpoint = None
            if number in self._read and number not in self.stopped:
                checkpoint = self._checkpointers[number].checkpoint(self._read[number])
            if checkpoint is None:
                continue
            partition, key = partition_of(checkpoint.key, partitions), done_key(checkpoint)
            self._producer.send(topic, partition, checkpoint.document(), key=key.encode())
            stored = self._stored.get(number)
            if stored is not None and checkpoint.snapshot is not None:
                stored.note(checkpoint, key, partition)
            elif stored is not None and stored.of_snapshots:
                small.append((stored, checkpoint))
        self._producer.flush()
        for stored, checkpoint in small:
            remove_superseded(self._producer, topic, stored, checkpoint)
        if small:
            self._producer.flush()

    def _report(self, now_us: int) -> None:
        since_us = now_us - self._reported_us
        if not self._topics.progress or since_us < self._tuning.report_every_us:
            return
        queries = sum(len(shard.uids()) for shard in self.shards.values())
        if since_us < self._tuning.report_every_us * (queries // _QUERIES_A_REPORT):
            return
        self._reported_us = now_us
        for number, reporter in self._reporters.items():
            stopped = self.stopped.get(number)
            report = reporter.report(now_us, str(stopped) if stopped else "")
            self._producer.send(self._topics.progress, 0, report)

    def _lost(self, at: Position, offset: int, begin: int) -> CoverageGapError:
        name = self._group.name
        return CoverageGapError(
            f"shard {at.partition} of group {name!r}: offsets {offset} to {begin - 1} of {at.topic} are gone, and no "
            f"checkpoint lies behind them; begin anew with `skyband groups regenerate {name}`",
            stream=at.topic,
            partition=at.partition,
            expected=offset,
            found=begin,
        )
