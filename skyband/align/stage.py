"""The loop of align: source topics and catalog in, aligned topic and dead letters out."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skyband.align.aligner import Aligner
from skyband.align.counts import StreamCounts
from skyband.align.source import CATALOG_KEY, SourceKey, SourceStart
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.errors import CapacityError, LogError
from skyband.log.clock import Clock
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.source_rows import DeadLetter, SourceRows
from skyband.model.status import SourceReport

__all__ = ["AlignSettings", "AlignStage", "AlignStatistics", "aligned_topic", "consumer_group"]


def aligned_topic(group: str, generation: int) -> str:
    """Return the name of a generation's aligned topic."""
    return f"aligned.{group}.{generation}"


def consumer_group(group: str, generation: int) -> str:
    """Return the name under which a generation's aligners commit source offsets."""
    return f"skyband.align.{group}.{generation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignSettings:
    """How an align stage batches and whom it writes as.

    It flushes when `batch_rows` rows or dead letters wait, or something waits for `flush_interval_us`; none of it
    changes a result. `poll_records` bounds one poll. Ends of partitions are asked for every `tick_interval_us`. How
    sources are doing is told to `progress_topic` (empty: nobody) every `report_interval_us`.
    """

    writer: str = "align"
    batch_rows: int = 10_000
    max_rows: int = 50_000
    flush_interval_us: int = 50_000
    tick_interval_us: int = 250_000
    poll_records: int = 5_000
    dead_letter_topic: str = "dead-letters"
    progress_topic: str = ""
    report_interval_us: int = 1_000_000


@dataclass(frozen=True, slots=True)
class AlignStatistics:
    """What an align stage did and holds."""

    counts: tuple[StreamCounts, ...]
    pending_rows: int
    undelivered: int
    peak_undelivered: int
    paused: frozenset[SourceKey]


@dataclass(frozen=True, slots=True)
class _Message:
    topic: str
    partition: int
    key: bytes
    value: object


class AlignStage:
    """Runs an `Aligner` over a record log, one `step` at a time; one thread owns it.

    Source records carry `SourceRows`, catalog records `QueryChange`; a record with the value None is offsets without
    content. Offsets that the log skips are covered by the record behind them: the log itself refuses to begin below a
    topic's first offset. Source offsets are committed only when batches and dead letters behind them are stored.

    `sources` has `CATALOG_KEY` if this stage reads the catalog; the catalog's records of before the first step are then
    read before any row, so that queries see the first rows.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        group: Group,
        generation: int,
        shards: int,
        sources: Mapping[SourceKey, Position],
        *,
        starts: Mapping[SourceKey, SourceStart] | None = None,
        settings: AlignSettings | None = None,
    ) -> None:
        """Begin to read every source at its start; one without is read from offset 0."""
        self._log = log
        self._clock = clock
        self._group = group
        self._generation = generation
        self._settings = settings or AlignSettings()
        self._topic = aligned_topic(group.name, generation)
        self._positions = dict(sources)
        self._keys = {position: key for key, position in sources.items()}
        begin = {key: (starts or {}).get(key, SourceStart()) for key in sources}
        self._aligner = Aligner(
            group,
            generation,
            shards,
            begin,
            writer=self._settings.writer,
            max_rows=self._settings.max_rows,
            positions=sources,
        )
        readers = consumer_group(group.name, generation)
        self._producer = log.producer()
        self._consumer = log.consumer(readers)
        self._consumer.assign({p: begin[key].offset for key, p in sources.items() if key != CATALOG_KEY})
        self._catalog = log.consumer(readers)
        self._catalog_end = 0
        if CATALOG_KEY in sources:
            position = sources[CATALOG_KEY]
            self._catalog.assign({position: begin[CATALOG_KEY].offset})
            self._catalog_end = self._catalog.end_offsets([position])[position]
        self._committed = {key: start.offset for key, start in begin.items()}
        self._to_commit: dict[SourceKey, int] = {}
        self._outbox: deque[_Message] = deque()
        self._peak_undelivered = 0
        self._letters: list[DeadLetter] = []
        self._ends: dict[SourceKey, int] = {}
        self._paused: set[SourceKey] = set()
        self._frontier_us: int | None = None
        self._pending_since_us: int | None = None
        self._ticked_us: int | None = None
        self._reported_us = clock.now_us()

    def step(self, timeout_s: float = 0.0) -> bool:
        """Deliver what waits, read once and flush if due; return whether anything was done.

        Waits at most `timeout_s` for records. While the aligned log is full it reads nothing.
        """
        undelivered = len(self._outbox)
        if not self._deliver():
            return len(self._outbox) < undelivered
        records = self._poll(timeout_s)
        for record in records:
            self._take(record)
        self._letters.extend(self._aligner.drain_dead_letters())
        now_us = self._clock.now_us()
        self._finish_ended()
        self._tick(now_us)
        self._pause()
        self._report(now_us)
        if self._is_due(now_us):
            self.flush()
            return True
        return bool(records) or undelivered > 0

    def flush(self) -> bool:
        """Write whatever waits now; return False if the log is too full to take all of it yet."""
        if not self._deliver():
            return False
        now_us = self._clock.now_us()
        self._outbox.extend(self._letter(letter) for letter in self._letters)
        self._letters = []
        for batch in self._aligner.flush(now_us):
            self._outbox.append(_Message(self._topic, batch.shard, b"%d" % batch.shard, batch))
        self._to_commit = {key: self._aligner.cursor(key) for key in self._aligner.keys}
        self._peak_undelivered = max(self._peak_undelivered, len(self._outbox))
        self._pending_since_us = None
        return self._deliver()

    def on_frontier(self, frontier_us: int) -> None:
        """Take note of how far the group's slowest shard is; partitions too far ahead of it are paused."""
        self._frontier_us = frontier_us

    def finish_at_end(self, keys: Iterable[SourceKey] | None = None) -> None:
        """Take source partitions (None: all) for finished once they are read to where their topics end now."""
        wanted = [key for key in (self._positions if keys is None else keys) if key != CATALOG_KEY]
        ends = self._consumer.end_offsets([self._positions[key] for key in wanted])
        self._ends.update({self._keys[position]: end for position, end in ends.items()})

    @property
    def is_finished(self) -> bool:
        """Whether every source partition has finished and everything is written."""
        return self._is_read() and not (self._outbox or self._letters or self._aligner.has_pending)

    def statistics(self) -> AlignStatistics:
        """Return counts, what waits, and which partitions are paused."""
        return AlignStatistics(
            counts=self._aligner.counts(),
            pending_rows=self._aligner.pending_rows,
            undelivered=len(self._outbox),
            peak_undelivered=self._peak_undelivered,
            paused=frozenset(self._paused),
        )

    def close(self) -> None:
        """Flush and leave; raises CapacityError if the log is too full to take what waits."""
        if not self.flush():
            raise CapacityError(f"topic {self._topic!r} is full; {len(self._outbox)} batches of it are not written")
        self._producer.close()
        self._consumer.close()
        self._catalog.close()

    def _is_read(self) -> bool:
        return all(self._aligner.is_finished(key) for key in self._aligner.keys if key != CATALOG_KEY)

    def _poll(self, timeout_s: float) -> Sequence[Record]:
        """Return new records of the catalog, then of the sources once the catalog of the beginning is read."""
        limit = self._settings.poll_records
        if CATALOG_KEY in self._positions:
            is_behind = self._aligner.cursor(CATALOG_KEY) < self._catalog_end
            changes = self._catalog.poll(limit, timeout_s if is_behind else 0.0)
            if changes or is_behind:
                return changes
        if self._pending_since_us is not None:
            due_us = self._pending_since_us + self._settings.flush_interval_us
            timeout_s = max(0.0, min(timeout_s, (due_us - self._clock.now_us()) / 1_000_000))
        return self._consumer.poll(limit, timeout_s)

    def _take(self, record: Record) -> None:
        key = self._keys[Position(record.topic, record.partition)]
        from_offset = min(record.offset, self._aligner.cursor(key))
        value = record.value
        if key == CATALOG_KEY:
            is_ours = isinstance(value, QueryChange) and value.group == self._group.name
            change = value if isinstance(value, QueryChange) and is_ours else None
            self._aligner.add_catalog(from_offset, record.next_offset, [CatalogRecord(record.offset, change)])
        elif value is None or isinstance(value, SourceRows):
            self._aligner.add(*key, from_offset, record.next_offset, _NO_ROWS if value is None else value)
        else:
            raise LogError(
                f"topic {record.topic!r}, partition {record.partition}, offset {record.offset} holds a "
                f"{type(value).__name__}, not source rows; check which topic the stream names"
            )

    def _finish_ended(self) -> None:
        for key, end in list(self._ends.items()):
            if self._aligner.cursor(key) >= end:
                self._aligner.finish(*key)
                del self._ends[key]

    def _tick(self, now_us: int) -> None:
        """Tell the aligner which partitions are at their end, if it is time to ask."""
        if self._ticked_us is not None and now_us - self._ticked_us < self._settings.tick_interval_us:
            return
        self._ticked_us = now_us
        asked = [self._positions[key] for key in self._aligner.keys if self._aligner.can_idle(key)]
        ends = self._consumer.end_offsets(asked) if asked else {}
        at_end = {self._keys[p] for p, end in ends.items() if self._aligner.cursor(self._keys[p]) >= end}
        self._aligner.tick(now_us, at_end)

    def _pause(self) -> None:
        if self._frontier_us is None:
            return
        wanted = self._aligner.paused(self._frontier_us)
        if begun := wanted - self._paused:
            self._consumer.pause([self._positions[key] for key in sorted(begun)])
        if ended := self._paused - wanted:
            self._consumer.resume([self._positions[key] for key in sorted(ended)])
        self._paused = wanted

    def _report(self, now_us: int) -> None:
        """Tell how each source partition is doing, if it is time; a stream's rejects go with its first partition."""
        topic = self._settings.progress_topic
        if not topic or now_us - self._reported_us < self._settings.report_interval_us:
            return
        self._reported_us = now_us
        sources = [key for key in self._aligner.keys if key != CATALOG_KEY]
        ends = self._consumer.end_offsets([self._positions[key] for key in sources])
        rejected = {counts.stream: counts.rejected for counts in self._aligner.counts()}
        for key in sources:
            stream = self._group.streams[key[0]].name
            report = SourceReport(
                group=self._group.name,
                generation=self._generation,
                stream=stream,
                partition=key[1],
                rejected=tuple((reason.label, count) for reason, count in rejected.pop(stream, {}).items()),
                paused=key in self._paused,
                unread_rows=ends[self._positions[key]] - self._aligner.cursor(key),
                reader=self._settings.writer,
            )
            self._producer.send(topic, 0, report, timestamp_us=now_us)

    def _is_due(self, now_us: int) -> bool:
        """Return whether to flush now; takes note of since when something waits."""
        if not self._letters and not self._aligner.has_pending:
            return False
        if self._pending_since_us is None:
            self._pending_since_us = now_us
        is_much = self._aligner.pending_rows + len(self._letters) >= self._settings.batch_rows
        return is_much or self._is_read() or now_us - self._pending_since_us >= self._settings.flush_interval_us

    def _letter(self, letter: DeadLetter) -> _Message:
        topic = self._settings.dead_letter_topic
        return _Message(topic, letter.partition % self._log.partitions(topic), letter.stream.encode(), letter)

    def _deliver(self) -> bool:
        """Send what waits; once all is stored, commit the offsets behind it. Return False if the log is full."""
        now_us = self._clock.now_us()
        while self._outbox:
            message = self._outbox[0]
            try:
                self._producer.send(
                    message.topic, message.partition, message.value, key=message.key, timestamp_us=now_us
                )
            except CapacityError:
                return False
            self._outbox.popleft()
        if self._to_commit:
            self._producer.flush()
            self._commit()
        return True

    def _commit(self) -> None:
        moved = {key: offset for key, offset in self._to_commit.items() if offset != self._committed[key]}
        self._to_commit = {}
        self._committed.update(moved)
        offsets = {self._positions[key]: offset for key, offset in moved.items() if key != CATALOG_KEY}
        if offsets:
            self._consumer.commit(offsets)
        if CATALOG_KEY in moved:
            self._catalog.commit({self._positions[CATALOG_KEY]: moved[CATALOG_KEY]})


_NO_ROWS = SourceRows(
    offset=np.zeros(0, np.int64),
    event_time_us=np.zeros(0, np.int64),
    id_bytes=np.zeros(0, np.uint8),
    id_ends=np.zeros(0, np.int64),
    values=np.zeros((0, 0), np.float64),
    reason=np.zeros(0, np.uint8),
)
