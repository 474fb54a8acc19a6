"""The sequencer of one shard: from an aligned log, in which anything may come twice, to rows in total order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.coverage import CATALOG, Coverage
from skyband.coverage.frontier import Frontier, Holder
from skyband.coverage.pending import PendingRows, Span
from skyband.coverage.sequenced_rows import SequencedRows
from skyband.coverage.source_partition import Place, SourcePartition
from skyband.errors import CapacityError, CoverageGapError, LogError
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US, format_duration
from skyband.model.group import Group
from skyband.model.saved_arrays import SavedArrays, array_of

__all__ = ["Sequencer", "SequencerStatistics"]

_STATE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencerStatistics:
    """Counts since the start or the last restore, and where the shard stands.

    `rows`: accepted; `repeats`: rows dropped because they were covered before; `overtaken`: rows that came after the
    frontier had passed them; `next_offsets`: by (stream name, partition).
    """

    rows: int
    repeats: int
    overtaken: int
    pending_rows: int
    pending_bytes: int
    peak_pending_rows: int
    peak_pending_bytes: int
    frontier_us: int
    settled_us: int
    next_offsets: dict[tuple[str, int], int]


class Sequencer:
    """Reads one shard's aligned batches in log order; checks coverage, keeps time, and orders rows.

    Words: the *next offset* of a source partition is the first not covered yet; rows below it are *repeats*; a section
    that begins above it is a *gap*. The *frontier* is how far the shard has been read in event time (`Frontier`); rows
    wait (`PendingRows`) until they are taken. A row is *overtaken* if the frontier had passed its release time before
    its batch came, which takes an idle partition that wakes up; it then has the frontier as release time.

    Everything is a function of the sequence of batches (and of added partitions): neither the reader's clock nor the
    takes between them count. Without idle partitions it is even a function of the rows alone, however they are cut
    into batches.

    Initially every partition is at its start offset and no time is known. Invariant: next offsets, watermarks, frontier
    and settled never go back, and a batch is accepted whole or, if an error is raised, not at all.
    """

    def __init__(
        self,
        group: Group,
        generation: int,
        shard: int,
        starts: Mapping[tuple[int, int], int],
        max_pending_bytes: int,
    ) -> None:
        self._group = group
        self._generation = generation
        self._shard = shard
        self._max_pending_bytes = max_pending_bytes
        self._changes: list[QueryChange] = []
        self._stopped: CoverageGapError | None = None
        self._begin()
        for place in sorted(Place(*key) for key in starts):
            self._add(place, starts[place], MIN_TIME_US)

    def _begin(self) -> None:
        """Forget all rows, partitions and counts."""
        self._coverage = Coverage(self._group, self._generation, self._shard)
        self._frontier = Frontier(self._group.pane_us)
        self._pending = PendingRows(self._group.width)
        self._numbers: dict[Place, int] = {}
        self._rows = self._repeats = self._overtaken = 0

    def _add(self, place: Place, start_offset: int, watermark_us: int) -> SourcePartition:
        source = self._coverage.add(place, start_offset, watermark_us)
        if place != CATALOG:
            self._numbers[place] = self._pending.add_source(*place)
        return source

    @property
    def stopped(self) -> CoverageGapError | None:
        """The gap at which the shard stopped, or None."""
        return self._stopped

    @property
    def frontier_us(self) -> int:
        """Every row with a release time below has been offered (MIN_TIME_US: nothing is known yet)."""
        return self._frontier.frontier_us

    @property
    def settled_us(self) -> int:
        """Newest event time accepted when all partitions were last idle or finished (MIN_TIME_US: never)."""
        return self._frontier.settled_us

    @property
    def newest_us(self) -> int:
        """Newest accepted event time of the group, in any shard."""
        return self._frontier.newest_us

    @property
    def newest_release_us(self) -> int:
        """Largest release time accepted since the start or the last restore."""
        return self._pending.newest_release_us

    @property
    def pending_rows(self) -> int:
        """Number of rows that wait."""
        return self._pending.rows

    @property
    def pending_bytes(self) -> int:
        """Bytes that the waiting rows need; the memory behind them is at most four times the peak, plus a batch."""
        return self._pending.bytes

    @property
    def next_release_us(self) -> int:
        """Smallest release time that waits, or MAX_TIME_US."""
        return self._pending.next_release_us

    def knows(self, place: tuple[int, int]) -> bool:
        """Return whether a source partition, or the catalog, is read here."""
        return place == CATALOG or place in self._numbers

    def add_partition(self, place: tuple[int, int], start_offset: int) -> None:
        """Let a new source partition join at the current frontier.

        It holds the frontier there until its first section. Raises LogError if it is read already or has no stream.
        """
        if place == CATALOG:
            raise LogError(f"the catalog is read already by group {self._group.name!r}; add partitions of streams")
        self._add(Place(*place), start_offset, self.frontier_us)

    def offer(self, batch: AlignedBatch) -> None:
        """Accept the next batch of the aligned log.

        Raises CoverageGapError at a gap, and again for all later batches; LogError for a batch of another shard, an
        unknown partition or a damaged batch; CapacityError if its rows do not fit, until rows have been taken. No
        error changes anything else. Cost: a copy of the new rows, and a pass over the group's source partitions.
        """
        if self._stopped is not None:
            raise self._stopped
        try:
            plan = self._coverage.plan(batch)
        except CoverageGapError as gap:
            self._stopped = gap
            raise
        spans = [Span(self._numbers[step.source.place], step.lo, step.hi) for step in plan.steps if step.hi > step.lo]
        self._check_capacity(batch, spans)
        self._overtaken += self._pending.append(batch, spans, self.frontier_us)
        self._rows += sum(span.hi - span.lo for span in spans)
        self._repeats += plan.repeats
        self._changes.extend(plan.changes)
        for step in plan.steps:
            step.source.cover(step.section, batch.written_us)
        self._frontier.advance(self._coverage.sources, batch.written_us)

    def take(self, until_us: int) -> SequencedRows:
        """Remove and return all waiting rows with release time below `until_us`, in total order.

        Up to the frontier the rows of successive takes continue the total order. A take beyond it (to the last window
        end of a settled group) may be followed by rows that come before what it returned.
        Cost: a gather and a linear sort of these rows; nothing if there are none.
        """
        return self._pending.take(until_us)

    def drain_catalog(self) -> list[QueryChange]:
        """Return, once, the changes of queries that came since the last call, in catalog order."""
        changes, self._changes = self._changes, []
        return changes

    def holder(self) -> Holder | None:
        """Return which source partition holds the frontier; None if all are idle or finished."""
        return self._frontier.holder(self._coverage.sources)

    def statistics(self) -> SequencerStatistics:
        """Return counts and positions. Cost: the number of source partitions."""
        return SequencerStatistics(
            rows=self._rows,
            repeats=self._repeats,
            overtaken=self._overtaken,
            pending_rows=self.pending_rows,
            pending_bytes=self.pending_bytes,
            peak_pending_rows=self._pending.peak_rows,
            peak_pending_bytes=self._pending.peak_bytes,
            frontier_us=self.frontier_us,
            settled_us=self.settled_us,
            next_offsets=self._coverage.next_offsets(),
        )

    def state(self) -> dict[str, Any]:
        """Return coverage and time behind the last batch, as plain values for a checkpoint.

        Waiting rows are no part of it: see `ReplayHorizon` for when a checkpoint may be used.
        Raises LogError while changes of the catalog wait to be drained: they would be lost.
        """
        if self._changes:
            raise LogError("changes of the catalog wait to be drained; call drain_catalog before state")
        return {
            "version": _STATE_VERSION,
            "group": self._group.name,
            "generation": self._generation,
            "shard": self._shard,
            "clock_us": self._frontier.clock_us,
            "frontier_us": self._frontier.frontier_us,
            "settled_us": self._frontier.settled_us,
            "newest_us": self._frontier.newest_us,
            "catalog_next_offset": self._coverage.catalog.next_offset,
            "partitions": [
                {
                    "stream": source.place.stream,
                    "partition": source.place.partition,
                    "next_offset": source.next_offset,
                    "watermark_us": source.watermark_us,
                    "newest_us": source.newest_us,
                    "idle_until_us": source.idle_until_us,
                    "lease_written_us": source.lease_written_us,
                }
                for source in self._coverage.sources
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where `state` was taken, without rows; the next batch is the one behind it in the log.

        Raises LogError for the state of another group, generation, shard or version.
        """
        mine = (_STATE_VERSION, self._group.name, self._generation, self._shard)
        theirs = tuple(state.get(name) for name in ("version", "group", "generation", "shard"))
        if theirs != mine:
            raise LogError(
                f"the checkpoint is of (version, group, generation, shard) {theirs}, but {mine} is being restored; "
                "delete the checkpoint, or start the release that wrote it"
            )
        self._begin()
        self._changes, self._stopped = [], None
        self._coverage.catalog.next_offset = state["catalog_next_offset"]
        for saved in state["partitions"]:
            source = self._add(Place(saved["stream"], saved["partition"]), saved["next_offset"], saved["watermark_us"])
            source.newest_us = saved["newest_us"]
            source.idle_until_us = saved["idle_until_us"]
            source.lease_written_us = saved["lease_written_us"]
        for name in ("clock_us", "frontier_us", "settled_us", "newest_us"):
            setattr(self._frontier, name, state[name])

    def waiting(self) -> dict[str, npt.NDArray[Any]]:
        """Return the rows that wait, and the counts: with `state`, all that a snapshot needs. Cost: a copy."""
        counts = np.array([self._rows, self._repeats, self._overtaken], np.int64)
        return {**self._pending.state(), "counts": counts}

    def restore_waiting(self, waiting: SavedArrays) -> None:
        """Take back what `waiting` returned, directly after `restore`; raises LogError if it does not fit."""
        counts = array_of(waiting, "counts", np.int64, (3,))
        self._rows, self._repeats, self._overtaken = map(int, counts.tolist())
        self._pending.restore(waiting)

    def _check_capacity(self, batch: AlignedBatch, spans: list[Span]) -> None:
        if not spans:
            return
        bytes_then = self.pending_bytes + self._pending.needed_bytes(batch, spans)
        if bytes_then <= self._max_pending_bytes:
            return
        holder = self.holder()
        who = "no source partition holds the frontier"
        if holder is not None:
            known = "not read yet" if holder.watermark_us == MIN_TIME_US else f"watermark {holder.watermark_us} us"
            behind = self.newest_us - holder.watermark_us
            lag = f", {format_duration(behind)} behind" if MIN_TIME_US < holder.watermark_us < self.newest_us else ""
            who = f"source partition {holder.stream}/{holder.partition} ({known}{lag}) holds the frontier"
        group, cap = self._group.name, self._max_pending_bytes
        raise CapacityError(
            f"shard {self._shard} of group {group!r} would keep {bytes_then:,} bytes of rows that wait for time, above "
            f"its cap of {cap:,}: {who}; let it catch up, lower max_drift, or raise the cap"
        )

    def _check(self) -> None:
        """Assert the invariants. Cost: a sort of all pending rows."""
        self._pending._check()
        frontier, sources = self._frontier, self._coverage.sources
        assert list(self._numbers.values()) == list(range(len(sources)))
        assert frontier.newest_us == max((s.newest_us for s in sources), default=MIN_TIME_US)
        assert frontier.settled_us <= frontier.newest_us
        assert frontier.settled_us == MIN_TIME_US or frontier.frontier_us > frontier.settled_us
        assert self._rows >= self._pending.rows
        assert self._overtaken <= self._rows
        counting = [s for s in sources if not s.is_finished]
        if counting:
            least = min(s.counted_us(frontier.clock_us, frontier.newest_us) for s in counting)
            assert frontier.frontier_us >= least
