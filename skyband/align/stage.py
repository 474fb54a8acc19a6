"""The loop of align: source topics and catalog in, aligned topic and dead letters out."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from skyband.align.aligner import Aligner
from skyband.align.batch_writer import BatchWriter
from skyband.align.counts import StreamCounts
from skyband.align.frontier_reader import FrontierReader
from skyband.align.notes import start_of
from skyband.align.pauses import Pauses
from skyband.align.settings import AlignSettings
from skyband.align.source import CATALOG_KEY, SourceKey, SourceStart
from skyband.align.source_reports import SourceReports
from skyband.align.topics import aligned_topic, consumer_group, streams_by_topic
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.errors import CapacityError, CoverageGapError, DefinitionError, LogError
from skyband.log.clock import Clock
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.source_rows import SourceRows

__all__ = ["AlignSettings", "AlignStage", "AlignStatistics", "aligned_topic", "consumer_group"]


@dataclass(frozen=True, slots=True)
class AlignStatistics:
    """What an align stage did and holds.

    `sources` are the source partitions it reads, `paused` those of them that wait for the others, `gaps` says of those
    that it cannot read why. `refused_commits`: commits that the log did not take, `refusal` why the last was not.
    """

    counts: tuple[StreamCounts, ...]
    pending_rows: int
    undelivered: int
    peak_undelivered: int
    paused: frozenset[SourceKey]
    sources: tuple[SourceKey, ...]
    gaps: Mapping[SourceKey, CoverageGapError]
    refused_commits: int
    refusal: str


class AlignStage:
    """Runs an `Aligner` over a record log, one `step` at a time; one thread owns it.

    Source records carry `SourceRows`, catalog records `QueryChange`; a record with the value None is offsets without
    content. Offsets that the log skips are covered by the record behind them: the log itself refuses to begin below a
    topic's first offset.

    Source partitions are *fixed* (`sources` says which) or *shared*: the stage is then a member of its generation's
    consumer group, which deals out the partitions of all source topics and of the catalog. A shared one resumes at its
    committed offset, with the times in the note beside it (see `notes`); one without a commit is new and begins at its
    lowest offset. If offsets from there on are gone, it is a *gap*: the partition is not read, and `statistics` says
    so; the frontier, which it holds, shows the rest.

    A stage that holds the catalog reads it as far as it went when the stage got it before any row, so that queries see
    the first rows.

    Invariant: what is committed of a source partition, offset and times, is true of it, and every shard's log has all
    below it. So any number of stages may read the same partition, at any points behind a commit: each shard gets every
    offset in order from each of them, with equal times, and readers drop what comes again. That holds for the one that
    was stopped in the middle of a flush, taken over, and wakes up: its late batches are repeats, its commits are
    refused, or, should one be taken, true. A refused commit is therefore no failure of a member; the partitions that it
    lost are taken away by a later poll, without a commit.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        group: Group,
        generation: int,
        shards: int,
        sources: Mapping[SourceKey, Position] | None = None,
        *,
        starts: Mapping[SourceKey, SourceStart] | None = None,
        settings: AlignSettings | None = None,
    ) -> None:
        """Read `sources` from `starts` on (offset 0 if it has none), or, with None, join the group's aligners.

        Raises DefinitionError if two streams are read from the same topic (of `sources`: partition).
        """
        self._clock = clock
        self._group = group
        self._settings = its = settings or AlignSettings()
        self._topic = aligned_topic(group.name, generation)
        self._is_shared = sources is None
        self._streams = streams_by_topic(group, its.catalog_topic) if sources is None else {}
        self._aligner = Aligner(group, generation, shards, {}, writer=its.writer, max_rows=its.max_rows)
        self._producer = log.producer()
        self._consumer = log.consumer(consumer_group(group.name, generation))
        self._writer = BatchWriter(
            log, self._producer, self._consumer, self._topic, its.dead_letter_topic, its.commit_interval_us
        )
        self._pauses = Pauses(self._consumer)
        self._reports = SourceReports(group, generation, its.writer)
        self._frontiers: FrontierReader | None = None
        self._positions: dict[SourceKey, Position] = {}
        self._keys: dict[Position, SourceKey] = {}
        self._gaps: dict[SourceKey, CoverageGapError] = {}
        self._held: list[Record] = []
        self._catalog_end = 0
        self._ends: dict[SourceKey, int] = {}
        self._paused: set[SourceKey] = set()
        self._frontier_us: int | None = None
        self._pending_since_us: int | None = None
        self._ticked_us: int | None = None
        self._reported_us = clock.now_us()
        self._is_abandoned = False
        if sources is not None:
            self._fix(sources, starts or {})
            return
        if its.progress_topic:
            self._frontiers = FrontierReader(log, its.progress_topic, group.name, generation, shards)
        self._consumer.subscribe(list(self._streams), self)

    # --- the loop

    def step(self, timeout_s: float = 0.0) -> bool:
        """Deliver what waits, read once and flush if due; return whether anything was done.

        Waits at most `timeout_s` for records. While the aligned log is full it reads nothing.
        """
        undelivered = len(self._writer.outbox)
        if not self._writer.deliver(self._clock.now_us()):
            return len(self._writer.outbox) < undelivered
        records = self._poll(timeout_s)
        self._take(records)
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
        if not self._writer.deliver(self._clock.now_us()):
            return False
        self._make_batches()
        return self._writer.deliver(self._clock.now_us())

    def on_frontier(self, frontier_us: int) -> None:
        """Take note of how far the group's slowest shard is; partitions too far ahead of it are paused."""
        self._frontier_us = frontier_us

    def finish_at_end(self, keys: Iterable[SourceKey] | None = None) -> None:
        """Take source partitions (None: all) for finished once they are read to where their topics end now."""
        wanted = [key for key in (self._aligner.keys if keys is None else keys) if key != CATALOG_KEY]
        ends = self._consumer.end_offsets([self._positions[key] for key in wanted])
        self._ends.update({self._keys[position]: end for position, end in ends.items()})

    @property
    def is_finished(self) -> bool:
        """Whether every source partition has finished and everything is written; never, if they are shared."""
        its = self._aligner
        return self._is_read() and not (self._writer.outbox or its.pending_letters or its.has_pending)

    def statistics(self) -> AlignStatistics:
        """Return counts, what waits, and which partitions are read, paused or cannot be read."""
        return AlignStatistics(
            counts=self._aligner.counts(),
            pending_rows=self._aligner.pending_rows,
            undelivered=len(self._writer.outbox),
            peak_undelivered=self._writer.outbox.peak,
            paused=frozenset(self._paused),
            sources=self._aligner.keys,
            gaps=dict(self._gaps),
            refused_commits=self._writer.commits.refused,
            refusal=self._writer.commits.refusal,
        )

    def close(self) -> None:
        """Flush and leave; raises CapacityError if the log is too full to take what waits."""
        self._make_batches()
        if not self._writer.deliver_patiently(self._clock.now_us()):
            waiting = len(self._writer.outbox)
            raise CapacityError(f"topic {self._topic!r} is full; {waiting} batches of it are not written")
        self._consumer.close()
        self._producer.close()
        if self._frontiers is not None:
            self._frontiers.close()

    def abandon(self) -> None:
        """Leave without another word after an error: what was not committed is for the next owner to read again."""
        self._is_abandoned = True
        for part in (self._consumer, self._frontiers, self._producer):
            if part is not None:
                with suppress(LogError):
                    part.close()

    # --- partitions that come and go

    def on_assigned(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Take these source partitions too, and return at which offset to read each (see `Member`)."""
        committed = self._consumer.committed(positions)
        lowest = self._consumer.begin_offsets(positions)
        offsets = {}
        for position in positions:
            its = committed.get(position)
            start = SourceStart(lowest[position]) if its is None else start_of(position, its)
            key = self._key_of(position)
            if lowest[position] > start.offset:
                self._gaps[key] = self._aligner.gap(key, start.offset, lowest[position])
                self._keys[position], self._positions[key] = key, position
            else:
                self._begin(key, position, start, is_committed=its is not None)
            offsets[position] = max(start.offset, lowest[position])
        self._pauses.add(positions)
        return offsets

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        """Write and commit what these source partitions brought, unless they are lost, and forget them (see `Member`).

        If the log is too full to take everything nothing is committed, and what is left is written later, as repeats.
        """
        is_lost = lost or self._is_abandoned
        if not is_lost:
            self._make_batches()
            self._writer.deliver_patiently(self._clock.now_us())
        self._pauses.remove(positions, lost=is_lost)
        gone = set(positions)
        self._held = [record for record in self._held if Position(record.topic, record.partition) not in gone]
        for position in positions:
            if (key := self._keys.pop(position, None)) is not None:
                self._forget(key, position, is_lost)

    def _fix(self, sources: Mapping[SourceKey, Position], starts: Mapping[SourceKey, SourceStart]) -> None:
        begin = {key: starts.get(key, SourceStart()) for key in sources}
        for key, position in sources.items():
            self._begin(key, position, begin[key], is_committed=True)
        self._consumer.assign({position: begin[key].offset for key, position in sources.items()})
        self._pause()

    def _begin(self, key: SourceKey, position: Position, start: SourceStart, *, is_committed: bool) -> None:
        if position in self._keys:
            both = (self._keys[position], key)
            names = ["catalog" if its == CATALOG_KEY else self._group.streams[its[0]].name for its in both]
            raise DefinitionError(
                f"streams {names[0]!r} and {names[1]!r} of group {self._group.name!r} both read topic "
                f"{position.topic!r}, partition {position.partition}; give each its own",
                field="sources",
            )
        self._aligner.add_source(key, start, position)
        self._keys[position], self._positions[key] = key, position
        self._writer.commits.begin(position, start, is_committed=is_committed)
        if key == CATALOG_KEY:
            self._catalog_end = self._consumer.end_offsets([position])[position]

    def _forget(self, key: SourceKey, position: Position, lost: bool) -> None:
        del self._positions[key]
        self._writer.commits.forget(position)
        self._ends.pop(key, None)
        if self._gaps.pop(key, None) is not None:
            return
        if lost:
            self._aligner.discard_source(key)
        else:
            self._aligner.remove_source(key)

    def _key_of(self, position: Position) -> SourceKey:
        key = (self._streams[position.topic], position.partition)
        if position.topic == self._settings.catalog_topic and key != CATALOG_KEY:
            raise LogError(f"topic {position.topic!r} has more than one partition; the catalog must have one only")
        return key

    # --- reading

    def _is_read(self) -> bool:
        finished = (self._aligner.is_finished(key) for key in self._aligner.keys if key != CATALOG_KEY)
        return not self._is_shared and all(finished)

    def _is_catalog_behind(self) -> bool:
        return CATALOG_KEY in self._aligner.keys and self._aligner.cursor(CATALOG_KEY) < self._catalog_end

    def _poll(self, timeout_s: float) -> Sequence[Record]:
        if self._pending_since_us is not None:
            due_us = self._pending_since_us + self._settings.flush_interval_us
            timeout_s = max(0.0, min(timeout_s, (due_us - self._clock.now_us()) / 1_000_000))
        return self._consumer.poll(self._settings.poll_records, timeout_s)

    def _take(self, records: Sequence[Record]) -> None:
        """Take changes of queries, then rows; rows that came with a catalog that is still to be read are held."""
        rows, self._held = [*self._held], []
        for record in records:
            key = self._keys.get(Position(record.topic, record.partition))
            if key == CATALOG_KEY:
                self._take_change(record)
            elif key is not None:
                rows.append(record)
        if self._is_catalog_behind():
            self._held = rows
            return
        for record in rows:
            self._take_rows(record)

    def _take_change(self, record: Record) -> None:
        if CATALOG_KEY in self._gaps:
            return
        value = record.value
        is_ours = isinstance(value, QueryChange) and value.group == self._group.name
        change = value if isinstance(value, QueryChange) and is_ours else None
        from_offset = min(record.offset, self._aligner.cursor(CATALOG_KEY))
        self._aligner.add_catalog(from_offset, record.next_offset, [CatalogRecord(record.offset, change)])

    def _take_rows(self, record: Record) -> None:
        key = self._keys[Position(record.topic, record.partition)]
        if key in self._gaps:
            return
        value = record.value
        if value is not None and not isinstance(value, SourceRows):
            raise LogError(
                f"topic {record.topic!r}, partition {record.partition}, offset {record.offset} holds a "
                f"{type(value).__name__}, not source rows; check which topic the stream names"
            )
        from_offset = min(record.offset, self._aligner.cursor(key))
        self._aligner.add(*key, from_offset, record.next_offset, _NO_ROWS if value is None else value)

    def _finish_ended(self) -> None:
        for key, end in list(self._ends.items()):
            if self._aligner.cursor(key) >= end:
                self._aligner.finish(*key)
                del self._ends[key]

    def _tick(self, now_us: int) -> None:
        """Tell the aligner which partitions are at their end, if it is time to ask; try refused commits again."""
        if self._ticked_us is not None and now_us - self._ticked_us < self._settings.tick_interval_us:
            return
        self._ticked_us = now_us
        self._writer.commits.retry()
        asked = [self._positions[key] for key in self._aligner.keys if self._aligner.can_idle(key)]
        ends = self._consumer.end_offsets(asked) if asked else {}
        at_end = {self._keys[p] for p, end in ends.items() if self._aligner.cursor(self._keys[p]) >= end}
        self._aligner.tick(now_us, at_end)

    def _pause(self) -> None:
        """Pause what is too far ahead, what has a gap, and, until the catalog is read, all rows."""
        if self._frontiers is not None and (frontier_us := self._frontiers.poll()) is not None:
            self.on_frontier(frontier_us)
        if self._frontier_us is not None:
            self._paused = self._aligner.paused(self._frontier_us)
        wanted = self._paused | self._gaps.keys()
        if self._is_catalog_behind():
            wanted = self._positions.keys() - {CATALOG_KEY}
        self._pauses.become({self._positions[key] for key in wanted})

    def _report(self, now_us: int) -> None:
        """Tell how each source partition is doing, if it is time."""
        topic = self._settings.progress_topic
        if not topic or now_us - self._reported_us < self._settings.report_interval_us:
            return
        self._reported_us = now_us
        cursors = {key: self._aligner.cursor(key) for key in self._aligner.keys if key != CATALOG_KEY}
        cursors |= {key: gap.expected for key, gap in self._gaps.items() if key != CATALOG_KEY}
        positions = self._consumer.end_offsets([self._positions[key] for key in cursors])
        ends = {self._keys[position]: end for position, end in positions.items()}
        stopped = {key: str(gap) for key, gap in self._gaps.items()}
        for report in self._reports.reports(now_us, cursors, ends, self._paused, self._aligner.counts(), stopped):
            self._writer.report(topic, report, now_us)

    def _make_batches(self) -> None:
        self._writer.make(self._aligner, self._positions, self._clock.now_us())
        self._pending_since_us = None

    def _is_due(self, now_us: int) -> bool:
        """Return whether to flush now; takes note of since when something waits."""
        waiting = self._aligner.pending_letters
        if not waiting and not self._aligner.has_pending:
            return False
        if self._pending_since_us is None:
            self._pending_since_us = now_us
        waiting += self._aligner.pending_rows
        # What fills so fast that it is soon full may wait for that: an engine pays for each batch.
        intervals = 2 if 2 * waiting >= self._settings.batch_rows else 1
        is_late = now_us - self._pending_since_us >= intervals * self._settings.flush_interval_us
        return is_late or self._is_read() or waiting >= self._settings.batch_rows


_NO_ROWS = SourceRows(
    offset=np.zeros(0, np.int64),
    event_time_us=np.zeros(0, np.int64),
    id_bytes=np.zeros(0, np.uint8),
    id_ends=np.zeros(0, np.int64),
    values=np.zeros((0, 0), np.float64),
    reason=np.zeros(0, np.uint8),
)
