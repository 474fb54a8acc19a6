"""Rows that wait for time: kept in columns, given out in total order."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.pending_columns import ID_SLACK, Bytes, Hashes, Values, pack_rows, take_rows
from skyband.coverage.pending_runs import END, HEAD, LEVEL, MAX_RUNS, Ints, Sources
from skyband.coverage.sequenced_rows import SequencedRows
from skyband.errors import LogError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.saved_arrays import SavedArrays, array_of

__all__ = ["PendingRows", "Span"]

MIN_ROWS = 1024
MIN_ID_BYTES = 16 * MIN_ROWS
# So many appends in a row must have found the columns three quarters empty before half of them is given back.
SHRINK_AFTER = 256
# order, release, event, offset, id_hash and id_ends take 8 bytes each, source takes 4.
FIXED_ROW_BYTES = 6 * 8 + 4


class Span(NamedTuple):
    """Rows [lo, hi) of a batch, all of one source."""

    source: int
    lo: int
    hi: int


class _Columns:
    """Memory for `capacity` rows and `id_capacity` bytes of ids; `id_ends[i]` is where the id of slot i begins."""

    def __init__(self, capacity: int, id_capacity: int, width: int) -> None:
        self.capacity, self.id_capacity = capacity, id_capacity
        self.order: Ints = np.empty(capacity, np.int64)
        self.release: Ints = np.empty(capacity, np.int64)
        self.event: Ints = np.empty(capacity, np.int64)
        self.offset: Ints = np.empty(capacity, np.int64)
        self.source: Sources = np.empty(capacity, np.int32)
        self.id_bytes: Bytes = np.zeros(id_capacity + ID_SLACK, np.uint8)
        self.id_ends: Ints = np.zeros(capacity + 1, np.int64)
        self.id_hash: Hashes = np.empty(capacity, np.uint64)
        self.values: Values = np.empty((capacity, width), np.float64)

    def payload(self) -> tuple[Ints, Ints, Ints, Ints, Sources, Bytes, Ints, Hashes, Values]:
        """Return the columns in the order in which the kernels take them, `order` first."""
        return (
            self.order,
            self.release,
            self.event,
            self.offset,
            self.source,
            self.id_bytes,
            self.id_ends,
            self.id_hash,
            self.values,
        )


class PendingRows:
    """A bounded pool of rows that gives out those below a release time, in total order.

    Words: a *source* is a source partition by the number `add_source` gave it, its *rank* the place in (stream,
    partition) order. A row lies in a *slot*; slots are filled upwards to the *tail*, so rows of one source lie in
    offset order. *Fresh* slots [fresh, tail) have not been looked at. A *run* is a piece [head, end) of `order`: slots
    in total order. Once a fresh row is due, all fresh ones become a run of level 0; a take then cuts the due rows off
    the heads of the runs and merges them; 16 runs of one level become one of the next.

    Initially empty. Invariant: every pending row is in exactly one run or fresh; runs follow each other in the order
    of their slots, and their levels never rise; slots of rows that were taken are garbage until the next packing,
    which happens only once half of the columns is garbage.

    Cost, amortised: constant time a row, whatever waits beside it, but for log16(takes while it waits) sorts of its
    index. Memory: at most four times the most rows that ever waited at once, given back slowly.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._columns = _Columns(MIN_ROWS, MIN_ID_BYTES, width)
        self._runs = np.zeros((3, MAX_RUNS), np.int64)
        self._run_count = 0
        self._fresh = 0
        self._tail = 0
        self._fresh_low_us = MAX_TIME_US
        self._roomy_appends = 0
        self._empty = SequencedRows.empty(width)
        self._sources: list[tuple[int, int]] = []
        self._rank = np.zeros(0, np.int64)
        self._stream_of = np.zeros(0, np.int32)
        self._partition_of = np.zeros(0, np.int32)
        self._id_bytes = 0
        self.row_bytes = FIXED_ROW_BYTES + 8 * width
        self.rows = 0
        self.peak_rows = 0
        self.peak_bytes = 0
        self.next_release_us = MAX_TIME_US
        self.newest_release_us = MIN_TIME_US

    @property
    def bytes(self) -> int:
        """Bytes that the pending rows need, without the garbage between them."""
        return self.rows * self.row_bytes + self._id_bytes

    def add_source(self, stream: int, partition: int) -> int:
        """Make a source known and return its number; the ranks of others keep their order."""
        self._sources.append((stream, partition))
        ranks = {source: rank for rank, source in enumerate(sorted(self._sources))}
        self._rank = np.array([ranks[source] for source in self._sources], np.int64)
        self._stream_of = np.array([source[0] for source in self._sources], np.int32)
        self._partition_of = np.array([source[1] for source in self._sources], np.int32)
        return len(self._sources) - 1

    def needed_bytes(self, batch: AlignedBatch, spans: Sequence[Span]) -> int:
        """Return how many bytes `append` would add to `bytes`."""
        return sum((span.hi - span.lo) * self.row_bytes + _ids(batch, span.lo, span.hi)[2] for span in spans)

    def append(self, batch: AlignedBatch, spans: Sequence[Span], floor_us: int) -> int:
        """Copy rows of `batch` behind the others; release times below `floor_us` become it.

        `spans` of one source ascend by offset. Return how many rows were below the floor. Raises LogError,
        before anything changed, if a release time is outside the time line. Cost: a copy.
        """
        rows = sum(span.hi - span.lo for span in spans)
        if not rows:
            return 0
        pieces = _joined(spans)
        low, high = self._range_of(batch, pieces)
        id_bytes = sum(_ids(batch, lo, hi)[2] for lo, hi in pieces)
        self._make_room(rows, id_bytes)
        columns, at = self._columns, self._tail
        for span in spans:
            columns.source[at : at + span.hi - span.lo] = span.source
            at += span.hi - span.lo
        at = self._tail
        for lo, hi in pieces:
            self._copy(batch, lo, hi, at)
            at += hi - lo
        overtaken = self._raise_to(floor_us, at) if low < floor_us else 0
        self._tail = at
        self.rows += rows
        self._id_bytes += id_bytes
        self._fresh_low_us = min(self._fresh_low_us, max(low, floor_us))
        self.next_release_us = min(self.next_release_us, self._fresh_low_us)
        self.newest_release_us = max(self.newest_release_us, high, floor_us if overtaken else MIN_TIME_US)
        self.peak_rows = max(self.peak_rows, self.rows)
        self.peak_bytes = max(self.peak_bytes, self.bytes)
        return overtaken

    def take(self, until_us: int) -> SequencedRows:
        """Remove and return the rows with release time below `until_us`, in total order.

        Cost: nothing if none is due, else a gather and, where sources interleave, a linear sort.
        """
        if until_us <= self.next_release_us:
            return self._empty
        with_fresh = self._fresh_low_us < until_us
        self._run_count, stream, partition, offset, event, release, arena, ends, id_hash, values = take_rows(
            until_us,
            self._runs,
            self._run_count,
            self._fresh,
            self._tail,
            with_fresh,
            *self._columns.payload(),
            self._rank,
            self._stream_of,
            self._partition_of,
        )
        self.rows -= len(offset)
        self._id_bytes -= len(arena)
        if with_fresh:
            self._fresh, self._fresh_low_us = self._tail, MAX_TIME_US
        if not self.rows:
            self._run_count = self._fresh = self._tail = 0
        self.next_release_us = min(self._fresh_low_us, self._lowest_head())
        return SequencedRows(
            stream=stream,
            partition=partition,
            offset=offset,
            event_time_us=event,
            release_time_us=release,
            id_bytes=arena,
            id_ends=ends,
            id_hash=id_hash,
            values=values,
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the rows that wait, in the order in which they came. Cost: a copy; garbage is packed away before."""
        if self._tail > self.rows:
            self._pack(self._columns.capacity, self._columns.id_capacity)
        columns, rows = self._columns, self.rows
        return {
            "release": columns.release[:rows].copy(),
            "event": columns.event[:rows].copy(),
            "offset": columns.offset[:rows].copy(),
            "source": columns.source[:rows].copy(),
            "id_hash": columns.id_hash[:rows].copy(),
            "values": columns.values[:rows].copy(),
            "id_bytes": columns.id_bytes[: self._id_bytes].copy(),
            "id_ends": columns.id_ends[: rows + 1].copy(),
            "numbers": np.array([self.newest_release_us, self.peak_rows, self.peak_bytes], np.int64),
        }

    def restore(self, state: SavedArrays) -> None:
        """Let the rows of another pool with the same sources wait here; this one must be empty. Cost: a copy.

        Raises LogError for columns that do not fit each other.
        """
        release = array_of(state, "release", np.int64, (-1,))
        rows, width = len(release), self._width
        id_ends = array_of(state, "id_ends", np.int64, (rows + 1,))
        id_bytes = array_of(state, "id_bytes", np.uint8, (int(id_ends[-1]),))
        self._make_room(rows, len(id_bytes))
        columns = self._columns
        columns.release[:rows] = release
        columns.event[:rows] = array_of(state, "event", np.int64, (rows,))
        columns.offset[:rows] = array_of(state, "offset", np.int64, (rows,))
        columns.source[:rows] = array_of(state, "source", np.int32, (rows,))
        columns.id_hash[:rows] = array_of(state, "id_hash", np.uint64, (rows,))
        columns.values[:rows] = array_of(state, "values", np.float64, (rows, width))
        columns.id_bytes[: len(id_bytes)] = id_bytes
        columns.id_ends[: rows + 1] = id_ends
        self._tail = self.rows = rows
        self._id_bytes = len(id_bytes)
        self._fresh_low_us = self.next_release_us = int(release.min()) if rows else MAX_TIME_US
        self.newest_release_us, self.peak_rows, self.peak_bytes = map(
            int, array_of(state, "numbers", np.int64, (3,)).tolist()
        )

    def _lowest_head(self) -> int:
        if not self._run_count:
            return MAX_TIME_US
        columns = self._columns
        return int(columns.release[columns.order[self._runs[HEAD, : self._run_count]]].min())

    @staticmethod
    def _range_of(batch: AlignedBatch, pieces: Sequence[tuple[int, int]]) -> tuple[int, int]:
        low = min(int(batch.release_time_us[lo:hi].min()) for lo, hi in pieces)
        high = max(int(batch.release_time_us[lo:hi].max()) for lo, hi in pieces)
        if low <= MIN_TIME_US or high >= MAX_TIME_US:
            raise LogError(
                f"a row of writer {batch.writer!r} has release time {low if low <= MIN_TIME_US else high} us, which is "
                "no time; the aligned log is damaged, begin a new generation"
            )
        return low, high

    def _copy(self, batch: AlignedBatch, lo: int, hi: int, at: int) -> None:
        columns, end = self._columns, at + hi - lo
        columns.release[at:end] = batch.release_time_us[lo:hi]
        columns.event[at:end] = batch.event_time_us[lo:hi]
        columns.offset[at:end] = batch.offset[lo:hi]
        columns.id_hash[at:end] = batch.id_hash[lo:hi]
        columns.values[at:end] = batch.values[lo:hi]
        start, stop, size = _ids(batch, lo, hi)
        first = int(columns.id_ends[at])
        columns.id_bytes[first : first + size] = batch.id_bytes[start:stop]
        np.add(batch.id_ends[lo:hi], first - start, out=columns.id_ends[at + 1 : end + 1])

    def _raise_to(self, floor_us: int, end: int) -> int:
        release = self._columns.release[self._tail : end]
        below = int(np.count_nonzero(release < floor_us))
        np.maximum(release, floor_us, out=release)
        return below

    def _make_room(self, rows: int, id_bytes: int) -> None:
        """See to it that so many more rows and bytes of ids fit behind the tail.

        If they do not, garbage below the first pending row is cut off by sliding the rest down, where that frees half
        of the columns; else the pending rows are packed.
        """
        columns = self._columns
        need_rows, need_bytes = self.rows + rows, self._id_bytes + id_bytes
        roomy = 8 * need_rows <= columns.capacity and 8 * need_bytes <= columns.id_capacity
        self._roomy_appends = self._roomy_appends + 1 if roomy else 0
        shrinks = self._roomy_appends > SHRINK_AFTER and columns.capacity > MIN_ROWS
        if not shrinks and self._fits(0, rows, id_bytes, 1):
            return
        first = self._first_pending()
        if not shrinks and self._fits(first, rows, id_bytes, 2):
            self._slide(first)
        else:
            self._pack(
                _fitting(columns.capacity, need_rows, MIN_ROWS, shrinks),
                _fitting(columns.id_capacity, need_bytes, MIN_ID_BYTES, shrinks),
            )

    def _fits(self, first: int, rows: int, id_bytes: int, times: int) -> bool:
        """Return whether the slots from `first` on, and so much more, fit so many times."""
        columns = self._columns
        used_bytes = int(columns.id_ends[self._tail] - columns.id_ends[first])
        return (
            times * (self._tail - first + rows) <= columns.capacity
            and times * (used_bytes + id_bytes) <= columns.id_capacity
        )

    def _first_pending(self) -> int:
        """Return the lowest slot that holds a pending row, or is fresh, or the tail."""
        runs, order = self._runs, self._columns.order
        # Runs follow each other in the order of their slots: only the first can hold the lowest.
        return int(order[runs[HEAD, 0] : runs[END, 0]].min()) if self._run_count else self._fresh

    def _slide(self, first: int) -> None:
        columns, rows = self._columns, self._tail - first
        start, stop = int(columns.id_ends[first]), int(columns.id_ends[self._tail])
        for column in (columns.release, columns.event, columns.offset, columns.source, columns.id_hash, columns.values):
            column[:rows] = column[first : self._tail]
        columns.id_bytes[: stop - start] = columns.id_bytes[start:stop]
        np.subtract(columns.id_ends[first : self._tail + 1], start, out=columns.id_ends[: rows + 1])
        np.subtract(columns.order[first : self._tail], first, out=columns.order[:rows])
        self._runs[HEAD : END + 1, : self._run_count] -= first
        self._fresh -= first
        self._tail = rows

    def _pack(self, capacity: int, id_capacity: int) -> None:
        columns = self._columns
        in_place = (capacity, id_capacity) == (columns.capacity, columns.id_capacity)
        target = columns if in_place else _Columns(capacity, id_capacity, self._width)
        self._fresh = pack_rows(
            in_place, self._runs, self._run_count, self._fresh, self._tail, *columns.payload(), *target.payload()
        )
        self._tail = self.rows
        self._columns = target
        self._roomy_appends = 0

    def _check(self) -> None:
        """Assert the invariants. Cost: a sort of all pending rows."""
        columns, seen = self._columns, list(range(self._fresh, self._tail))
        assert 0 <= self._fresh <= self._tail <= columns.capacity
        previous_top = -1
        for r in range(self._run_count):
            head, end = int(self._runs[HEAD, r]), int(self._runs[END, r])
            assert 0 <= head < end <= self._fresh
            slots = columns.order[head:end]
            source = columns.source[slots]
            keys = list(zip(columns.release[slots], self._rank[source], columns.offset[slots], strict=True))
            assert keys == sorted(keys)
            assert previous_top < int(slots.min())
            assert r == 0 or self._runs[LEVEL, r - 1] >= self._runs[LEVEL, r]
            previous_top = int(slots.max())
            seen.extend(slots.tolist())
        assert len(seen) == len(set(seen)) == self.rows
        assert sum(int(columns.id_ends[s + 1] - columns.id_ends[s]) for s in seen) == self._id_bytes
        assert self.next_release_us == min((int(columns.release[s]) for s in seen), default=MAX_TIME_US)
        assert self.peak_rows >= self.rows
        assert self.peak_bytes >= self.bytes


def _ids(batch: AlignedBatch, lo: int, hi: int) -> tuple[int, int, int]:
    """Return where the ids of rows [lo, hi) start and stop in the batch's arena, and their bytes."""
    if lo == hi:
        return 0, 0, 0
    start = int(batch.id_ends[lo - 1]) if lo else 0
    stop = int(batch.id_ends[hi - 1])
    return start, stop, stop - start


def _joined(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Return the spans as row ranges, with neighbours joined: whole batches are then copied at once."""
    pieces: list[tuple[int, int]] = []
    for _, lo, hi in spans:
        if lo == hi:
            continue
        if pieces and pieces[-1][1] == lo:
            pieces[-1] = (pieces[-1][0], hi)
        else:
            pieces.append((lo, hi))
    return pieces


def _fitting(capacity: int, needed: int, least: int, shrinks: bool) -> int:
    """Return a capacity for `needed`: four times as much when it has to grow, so that garbage is cut off rarely."""
    if 2 * needed > capacity:
        return max(least, 4 * needed)
    return max(least, capacity // 2) if shrinks else capacity
