"""The window store: every valid observation of every object of a shard, compact, shared by all queries of the group.

Words: a *tick* is the unit in which windows begin and end: a pane of event time, or one row for count windows. An
*entry* is what one object saw on one stream in one tick, already combined (its sum, its extremes, its first or latest
values); since windows begin and end on ticks, no query can see inside an entry. A *chain* is the entries of one
(object, stream), oldest first, in a ring that may begin anywhere; its capacity is a power of two. A *bucket* lists the
(object, stream) pairs that have an entry in one tick: it drives expiry, here and in the views.

::

    tick        41    42    43    44    45      low = 42: bucket 41 has been expired
    o1, s0            [7.0]       [2.5]         chain (o1, s0) = 42, 44
    o1, s1                  [1.0]               bucket 44 = {(o1, s0), (o2, s0)}
    o2, s0                        [9.1]

Initial state: empty, `low` at the beginning of time. Invariant: an object has a slot iff it has an entry; every entry's
tick lies in [low, low + buckets) and is listed once in its bucket; chains ascend strictly in tick.

Cell of an entry: ``[tick, (event time,) fields…]``: `best` keeps (max, min) per attribute, all others one field each.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.saved_arrays import SavedArrays, array_of, part_of, prefixed
from skyband.model.stream import Aggregate
from skyband.structures.object_table import ObjectTable
from skyband.structures.store_arrays import Layout, Rows, StoreArrays
from skyband.structures.window_kernels import (
    BROKEN,
    CELLS,
    CHANGES,
    COUNTS,
    ENTRIES,
    EXPIRED,
    NEWEST,
    NODES,
    PAIR_BITS,
    apply_rows,
    expire_buckets,
)

__all__ = ["Layout", "Rows", "StoreArrays", "WindowStore"]

_KINDS = {kind: number for number, kind in enumerate(Aggregate)}
_SIZE_CLASSES = 32
# Rows handled together: enough for their cache misses to overlap, few enough to stay in the first cache.
_GROUP_ROWS = 64


def _layout(group: Group, in_rows: bool) -> tuple[Layout, int]:
    by_row = group.is_row_identity
    aggregates = [stream.aggregate for stream in group.streams]
    timed = by_row or any(a in (Aggregate.FIRST, Aggregate.LATEST) for a in aggregates)
    timed = timed or any(stream.repeat_after_us is not None for stream in group.streams)
    first_field = 2 if timed else 1
    fields = max(
        len(stream.attributes) * (2 if aggregate is Aggregate.BEST else 1)
        for stream, aggregate in zip(group.streams, aggregates, strict=True)
    )
    layout = Layout(
        kinds=np.array([_KINDS[aggregate] for aggregate in aggregates], np.int32),
        widths=np.array([len(stream.attributes) for stream in group.streams], np.int32),
        repeat_after_us=np.array([stream.repeat_after_us or 0 for stream in group.streams], np.int64),
        first_field=first_field,
        by_row=by_row,
        tick_us=0 if in_rows else group.pane_us,
    )
    return layout, first_field + fields


class WindowStore:
    """Observations of all objects within the retention, by tick. `in_rows`: ticks are rows, for count windows."""

    def __init__(self, group: Group, *, in_rows: bool = False) -> None:
        self._group = group
        self.layout, self._width = _layout(group, in_rows)
        self.in_rows = in_rows
        self.retention_ticks = group.retention_rows if in_rows else group.retention_us // group.pane_us
        # A chain's ends lie beside the object's record: one cache line for both, with up to two streams.
        self.objects = ObjectTable(indexed=not group.is_row_identity, words=2 * len(group.streams))
        self.low = MIN_TIME_US
        self.rows_applied = 0
        cells = np.zeros((1024, self._width))
        self._arrays = StoreArrays(
            cells=cells,
            ticks=cells.view(np.int64),
            chains=self._chains(),
            buckets=np.full(1 << (self.retention_ticks + 1).bit_length(), -1, np.int32),
            nodes=np.zeros((1024, 2), np.int32),
            free_blocks=np.full(_SIZE_CLASSES + 1, -1, np.int32),
            changes=np.zeros(1024, np.int32),
            counts=np.zeros(COUNTS, np.int64),
            scratch=np.zeros(_GROUP_ROWS, np.int64),
        )
        self._arrays.counts[NEWEST] = MIN_TIME_US

    @property
    def arrays(self) -> StoreArrays:
        """The current arrays; invalid after the next `apply`."""
        return self._arrays

    @property
    def newest(self) -> int:
        """Newest tick ever applied (MIN_TIME_US: none)."""
        return int(self._arrays.counts[NEWEST])

    @property
    def entries(self) -> int:
        """Number of live entries."""
        return int(self._arrays.counts[ENTRIES])

    @property
    def expired_rows(self) -> int:
        """Rows that came too late for any window: older than the retention when their turn came."""
        return int(self._arrays.counts[EXPIRED])

    @property
    def broken_promises(self) -> int:
        """Observations that came again within their stream's `repeat_after`."""
        return int(self._arrays.counts[BROKEN])

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self.objects.state_bytes + sum(a.nbytes for name, a in self._arrays._asdict().items() if name != "ticks")

    @property
    def changes(self) -> npt.NDArray[np.int32]:
        """Slots of the objects that rows were applied to since `forget_changes`, with repetitions."""
        return self._arrays.changes[: int(self._arrays.counts[CHANGES])]

    def event_times(self, slots: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the event time of each slot's record, where each record is an object."""
        return self._arrays.ticks[self._arrays.chains[slots, 0, 0], 1]

    def forget_changes(self) -> None:
        """Empty the list of changes."""
        self._arrays.counts[CHANGES] = 0

    def apply(self, rows: Rows, first: int, last: int) -> None:
        """Apply rows [first, last), in total order after all rows before.

        `expire` must have been called with the low tick of the next evaluation: no row's tick may be more than the
        retention above it, and one below it can no longer count and is dropped. Cost: O(1) per row, one hash probe and
        one chain; a late row moves the entries of its chain after it.
        """
        if first >= last:
            return
        ends = rows.id_ends
        id_bytes = int(ends[last - 1]) - (int(ends[first - 1]) if first else 0)
        self.objects.reserve(last - first, id_bytes)
        self._reserve(last - first)
        at = first
        while True:
            at = apply_rows(
                tuple(self.objects.arrays),
                tuple(self._arrays),
                tuple(self.layout),
                tuple(rows),
                at,
                last,
                self.low,
                self.rows_applied - first,
            )
            if at == last:
                break
            self._grow_cells()
        self.rows_applied += last - first

    def pass_by(self, rows: Rows, first: int, last: int) -> None:
        """Count rows [first, last) as `apply` does, and keep none of them."""
        if first >= last:
            return
        if self.in_rows:
            ticks = np.arange(self.rows_applied, self.rows_applied + last - first)
        else:
            ticks = rows.event_time_us[first:last] // self.layout.tick_us
        kept = ticks[ticks >= self.low]
        self._arrays.counts[EXPIRED] += last - first - len(kept)
        if len(kept):
            self._arrays.counts[NEWEST] = max(self.newest, int(kept.max()))
        self.rows_applied += last - first

    def emptied(self) -> "WindowStore":
        """Return a new store that has counted what this one has, and holds nothing."""
        other = WindowStore(self._group, in_rows=self.in_rows)
        other.low, other.rows_applied = self.low, self.rows_applied
        for count in (NEWEST, EXPIRED, BROKEN):
            other._arrays.counts[count] = self._arrays.counts[count]
        return other

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return its arrays; the list of changes is no part of them. Cost: a copy."""
        arrays = self._arrays
        counts = arrays.counts.copy()
        counts[CHANGES] = 0
        return {
            "counts": counts,
            "place": np.array([self.low, self.rows_applied], np.int64),
            "cells": arrays.cells[: int(counts[CELLS])].copy(),
            "buckets": arrays.buckets.copy(),
            "nodes": arrays.nodes[: int(counts[NODES])].copy(),
            "free_blocks": arrays.free_blocks.copy(),
            **prefixed("objects", self.objects.state()),
        }

    def restore(self, state: SavedArrays) -> None:
        """Hold what another store of the group held; all objects have changed for whoever reads them.

        Raises LogError for arrays that do not fit the group or each other. Cost: a copy, and an index of the objects.
        """
        counts = array_of(state, "counts", np.int64, (COUNTS,)).copy()
        cells = array_of(state, "cells", np.float64, (int(counts[CELLS]), self._width))
        nodes = array_of(state, "nodes", np.int32, (int(counts[NODES]), 2))
        buckets = array_of(state, "buckets", np.int32, self._arrays.buckets.shape)
        free_blocks = array_of(state, "free_blocks", np.int32, self._arrays.free_blocks.shape)
        self.low, self.rows_applied = map(int, array_of(state, "place", np.int64, (2,)))
        self.objects.restore(part_of(state, "objects"))
        room = _longer(cells, 1024 + len(cells) + len(cells) // 4)
        self._arrays = self._arrays._replace(
            cells=room,
            ticks=room.view(np.int64),
            chains=self._chains(),
            buckets=buckets.copy(),
            nodes=_longer(nodes, 1024 + len(nodes) + len(nodes) // 4),
            free_blocks=free_blocks.copy(),
            counts=counts,
        )

    def expire(self, low: int) -> None:
        """Drop all entries with a tick below `low`, and the objects that have none left. Cost O(entries dropped)."""
        if low <= self.low:
            return
        expire_buckets(tuple(self.objects.arrays), tuple(self._arrays), tuple(self.layout), self.low, low)
        self.low = low

    def _reserve(self, rows: int) -> None:
        arrays = self._arrays
        counts = arrays.counts
        if len(arrays.chains) < self.objects.capacity:
            arrays = arrays._replace(chains=self._chains())
        if int(counts[NODES]) + rows > len(arrays.nodes):
            arrays = arrays._replace(nodes=_longer(arrays.nodes, 2 * (int(counts[NODES]) + rows)))
        if int(counts[CHANGES]) + rows > len(arrays.changes):
            arrays = arrays._replace(changes=_longer(arrays.changes, 2 * (int(counts[CHANGES]) + rows)))
        self._arrays = arrays
        if int(counts[CELLS]) + 2 * rows > len(arrays.cells):
            self._grow_cells()

    def _chains(self) -> npt.NDArray[np.int32]:
        """Return the objects' own words as (object, stream, [block, head, length, capacity])."""
        words = self.objects.own_words
        return words.view(np.int32).reshape(len(words), -1, 4)

    def _grow_cells(self) -> None:
        cells = _longer(self._arrays.cells, 2 * len(self._arrays.cells))
        self._arrays = self._arrays._replace(cells=cells, ticks=cells.view(np.int64))

    def _check(self) -> None:
        self.objects._check()
        arrays, listed = self._arrays, set()
        for tick in range(self.low, self.newest + 1) if self.newest != MIN_TIME_US else ():
            node = int(arrays.buckets[tick & (len(arrays.buckets) - 1)])
            while node >= 0:
                assert (tick, int(arrays.nodes[node, 1])) not in listed
                listed.add((tick, int(arrays.nodes[node, 1])))
                node = int(arrays.nodes[node, 0])
        found = set()
        streams = arrays.chains.shape[1]
        for slot in np.flatnonzero(self.objects.arrays.records[: self.objects.top, 2] >= 0):
            for stream in range(streams):
                block, head, length, capacity = (int(x) for x in arrays.chains[slot, stream])
                ticks = [int(arrays.ticks[block + ((head + j) & (capacity - 1)), 0]) for j in range(length)]
                assert ticks == sorted(set(ticks))
                found |= {(tick, (int(slot) << PAIR_BITS) | stream) for tick in ticks}
        assert found == listed
        assert len(found) == self.entries


def _longer(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    grown = np.zeros((length, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
