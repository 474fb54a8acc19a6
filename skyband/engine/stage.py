"""The engine's loop over a record log: aligned batches of its shards in, partials out."""

from collections.abc import Mapping, Sequence

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.engine.report import Reporter
from skyband.engine.shard import Shard
from skyband.errors import CoverageGapError, LogError
from skyband.log.clock import Clock, SystemClock
from skyband.log.record_log import Position, RecordLog
from skyband.model.group import Group

__all__ = ["EngineStage"]

_MAX_PENDING_BYTES = 1 << 30


class EngineStage:
    """Runs some shards of one generation of a group.

    One aligned partition is one shard. Each batch is offered and evaluated before the next: when a query begins depends
    on the aligned log alone, not on how much was read at once. A shard that meets a gap stops, the others go on. With a
    `progress` topic, each shard reports there how it is doing.
    """

    def __init__(
        self,
        log: RecordLog,
        group: Group,
        generation: int,
        starts: Mapping[tuple[int, int], int],
        *,
        aligned: str,
        partials: str,
        progress: str | None = None,
        clock: Clock | None = None,
        report_every_us: int = 1_000_000,
        shards: Sequence[int] | None = None,
        partials_partition: int = 0,
        max_pending_bytes: int = _MAX_PENDING_BYTES,
        max_records: int = 64,
    ) -> None:
        self._aligned = aligned
        self._partials = partials
        self._partition = partials_partition
        self._max_records = max_records
        self.shards = {
            shard: Shard(group, generation, shard, Sequencer(group, generation, shard, starts, max_pending_bytes))
            for shard in (range(group.shards) if shards is None else shards)
        }
        self.stopped: dict[int, LogError] = {}
        self._progress = progress
        self._clock = clock or SystemClock()
        self._report_every_us = report_every_us
        self._reported_us = self._clock.now_us()
        self._reporters = {number: Reporter(shard) for number, shard in self.shards.items()}
        self._producer = log.producer()
        self._consumer = log.consumer(f"skyband.engine.{group.name}.{generation}")
        self._consumer.assign({Position(aligned, shard): 0 for shard in self.shards})

    def step(self, timeout_s: float = 0.0) -> bool:
        """Read what is there and evaluate what is due; return whether anything was read."""
        records = self._consumer.poll(self._max_records, timeout_s)
        for record in records:
            if record.partition not in self.stopped and isinstance(record.value, AlignedBatch):
                self._handle(record.partition, record.value)
        if records:
            self._producer.flush()
            # What a stopped shard has not evaluated stays readable for whoever mends it.
            read = [record for record in records if record.partition not in self.stopped]
            self._consumer.commit({Position(self._aligned, record.partition): record.next_offset for record in read})
        self._report()
        return bool(records)

    def _report(self) -> None:
        now_us = self._clock.now_us()
        if self._progress is None or now_us - self._reported_us < self._report_every_us:
            return
        self._reported_us = now_us
        for number, reporter in self._reporters.items():
            gap = self.stopped.get(number)
            self._producer.send(self._progress, 0, reporter.report(now_us, str(gap) if gap else ""))
        self._producer.flush()

    def close(self) -> None:
        """Flush and leave."""
        self._producer.close()
        self._consumer.close()

    def _handle(self, number: int, batch: AlignedBatch) -> None:
        shard = self.shards[number]
        try:
            shard.offer(batch)
        except CoverageGapError as gap:
            self.stopped[number] = gap
            return
        for value in shard.advance():
            self._producer.send(self._partials, self._partition, value)
