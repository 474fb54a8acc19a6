"""Kernels of the window store: apply rows, expire buckets. What the arrays mean is told in `window_store`.

What Python calls takes plain tuples of arrays: a dispatch spends 3 us (in cache) on working out the type of named ones.
"""

from typing import Any

from numba import njit

from skyband.structures.array_types import Floats, Indexes
from skyband.structures.object_table import ObjectArrays, add_object, remove_object, seek_hash, seek_object
from skyband.structures.prefetch import prefetch
from skyband.structures.store_arrays import Layout, Rows, StoreArrays

__all__ = ["apply_rows", "expire_buckets"]

# Places in the store's `counts`.
CELLS, NODES, FREE_NODE, CHANGES, NEWEST, EXPIRED, BROKEN, ENTRIES, COUNTS = 0, 1, 2, 3, 4, 5, 6, 7, 8

# A pair of object and stream is `slot << PAIR_BITS | stream` in an int32.
PAIR_BITS, PAIR_MASK = 6, 63

# By how many cells a ring's first entry is turned against that of the block before: more than a cache line holds.
_TURN = 5

# Numbers of the aggregates: the order of skyband.model.stream.Aggregate.
BEST, LATEST, FIRST, SUM, COUNT, MAX, MIN = 0, 1, 2, 3, 4, 5, 6


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def apply_rows(
    object_arrays: tuple[Any, ...],
    store_arrays: tuple[Any, ...],
    shape: tuple[Any, ...],
    columns: tuple[Any, ...],
    first: int,
    last: int,
    low: int,
    row_number: int,
) -> int:
    """Apply rows [first, last); return the first row not applied (`last`, or where the cells ran out).

    `row_number` + i is the number of row i where ticks are rows. Everything that a group of rows will need is fetched
    first, level by level, so that its cache misses overlap. Cost: O(1) a row; a late one O(its chain).
    """
    objects, store = ObjectArrays(*object_arrays), StoreArrays(*store_arrays)
    layout, rows = Layout(*shape), Rows(*columns)
    at = first
    while at < last:
        end = min(at + len(store.scratch), last)
        if not layout.by_row:
            _look_ahead(objects, store, rows, at, end)
        at = _apply_group(objects, store, layout, rows, at, end, low, row_number)
        if at < end:
            return at
    return last


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _look_ahead(objects: ObjectArrays, store: StoreArrays, rows: Rows, first: int, last: int) -> None:
    """Find the hashes of rows [first, last) in the index, and fetch what these rows will most likely need.

    Each step fetches for all rows what the next step reads; the scratch gets where `seek_object` is to go on.
    """
    mask = len(objects.table) - 1
    for i in range(first, last):
        prefetch(objects.table, (rows.id_hash[i] & mask, 0))
    for i in range(first, last):
        tag = rows.id_hash[i]
        at = seek_hash(objects, tag & mask, tag)
        store.scratch[i - first] = at
        slot = objects.table[at, 1]
        prefetch(objects.records, (slot, 0))
        prefetch(store.chains, (slot, rows.stream[i], 0))
    for i in range(first, last):
        slot = objects.table[store.scratch[i - first], 1]
        if slot >= 0:
            stream = rows.stream[i]
            block, head = store.chains[slot, stream, 0], store.chains[slot, stream, 1]
            length, mask = store.chains[slot, stream, 2], store.chains[slot, stream, 3] - 1
            prefetch(store.ticks, (block + ((head + length - 1) & mask), 0))


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _apply_group(
    objects: ObjectArrays,
    store: StoreArrays,
    layout: Layout,
    rows: Rows,
    first: int,
    last: int,
    low: int,
    row_number: int,
) -> int:
    streams = store.chains.shape[1]
    counts = store.counts
    tick = 0
    tick_start = 0
    for i in range(first, last):
        if counts[CELLS] + 4 > len(store.cells):
            return i
        if layout.tick_us == 0:
            tick = row_number + i
        elif not tick_start <= rows.event_time_us[i] < tick_start + layout.tick_us:
            # Most rows fall into the tick of the row before, and a division costs as much as a cache miss.
            tick = rows.event_time_us[i] // layout.tick_us
            tick_start = tick * layout.tick_us
        if tick < low:
            counts[EXPIRED] += 1
            continue
        start = rows.id_ends[i - 1] if i > 0 else 0
        stop = rows.id_ends[i]
        tag = row_number + i if layout.by_row else rows.id_hash[i]
        slot = at = -1
        if not layout.by_row:
            at = seek_object(objects, store.scratch[i - first], tag, rows.id_bytes, start, stop)
            slot = objects.table[at, 1]
        if slot < 0:
            slot = add_object(objects, tag, rows.id_bytes, start, stop, at)
            for stream in range(streams):
                for j in range(4):
                    store.chains[slot, stream, j] = 0
        if not _observe(store, layout, rows, i, slot, rows.stream[i], tick):
            # A chain's next block did not fit: undo nothing, the caller grows and comes again with this row.
            return i
        if tick > counts[NEWEST]:
            counts[NEWEST] = tick
        store.changes[counts[CHANGES]] = slot
        counts[CHANGES] += 1
    return last


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _copy_cell(cells: Floats, source: int, target: int) -> None:
    for j in range(cells.shape[1]):
        cells[target, j] = cells[source, j]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _observe(store: StoreArrays, layout: Layout, rows: Rows, i: int, slot: int, stream: int, tick: int) -> bool:
    chain = store.chains[slot, stream]
    length, mask = chain[2], chain[3] - 1
    at = length
    cell = 0
    while at > 0:
        cell = chain[0] + ((chain[1] + at - 1) & mask)
        if store.ticks[cell, 0] <= tick:
            break
        at -= 1
    known = at > 0 and store.ticks[cell, 0] == tick
    if not known and length == chain[3] and not _grow_chain(store, chain):
        return False
    if layout.repeat_after_us[stream] > 0:
        _watch_promise(store, layout, rows.event_time_us[i], chain, at, stream)
    if known:
        _merge(store, layout, rows, i, cell, stream)
        return True
    mask = chain[3] - 1
    for j in range(length, at, -1):
        _copy_cell(store.cells, chain[0] + ((chain[1] + j - 1) & mask), chain[0] + ((chain[1] + j) & mask))
    chain[2] = length + 1
    _begin(store, layout, rows, i, chain[0] + ((chain[1] + at) & mask), stream, tick)
    _list_in_bucket(store, tick, (slot << PAIR_BITS) | stream)
    return True


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _watch_promise(
    store: StoreArrays, layout: Layout, event_time_us: int, chain: Indexes, at: int, stream: int
) -> None:
    """Count an observation that comes within `repeat_after` of the object's neighbouring ones."""
    mask = chain[3] - 1
    for j in range(max(at - 1, 0), min(at + 1, chain[2])):
        seen = store.ticks[chain[0] + ((chain[1] + j) & mask), 1]
        if abs(event_time_us - seen) < layout.repeat_after_us[stream]:
            store.counts[BROKEN] += 1
            return


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _begin(store: StoreArrays, layout: Layout, rows: Rows, i: int, cell: int, stream: int, tick: int) -> None:
    kind, base = layout.kinds[stream], layout.first_field
    store.ticks[cell, 0] = tick
    if base == 2:
        store.ticks[cell, 1] = rows.event_time_us[i]
    for j in range(layout.widths[stream]):
        value = rows.values[i, j]
        if kind == BEST:
            store.cells[cell, base + 2 * j] = value
            store.cells[cell, base + 2 * j + 1] = value
        else:
            store.cells[cell, base + j] = 1.0 if kind == COUNT else value


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _merge(store: StoreArrays, layout: Layout, rows: Rows, i: int, cell: int, stream: int) -> None:
    kind, base = layout.kinds[stream], layout.first_field
    if base == 2:
        time, seen = rows.event_time_us[i], store.ticks[cell, 1]
        if (kind == LATEST and time < seen) or (kind == FIRST and time >= seen):
            return
        store.ticks[cell, 1] = time
    for j in range(layout.widths[stream]):
        value = rows.values[i, j]
        if kind == BEST:
            store.cells[cell, base + 2 * j] = max(store.cells[cell, base + 2 * j], value)
            store.cells[cell, base + 2 * j + 1] = min(store.cells[cell, base + 2 * j + 1], value)
        elif kind == SUM:
            store.cells[cell, base + j] += value
        elif kind == COUNT:
            store.cells[cell, base + j] += 1.0
        elif kind == MAX:
            store.cells[cell, base + j] = max(store.cells[cell, base + j], value)
        elif kind == MIN:
            store.cells[cell, base + j] = min(store.cells[cell, base + j], value)
        else:
            store.cells[cell, base + j] = value


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _grow_chain(store: StoreArrays, chain: Indexes) -> bool:
    """Move a full chain into a block of twice its size; return False if the cells do not suffice."""
    old, capacity = chain[0], chain[3]
    size, size_class = 1, 0
    while size < 2 * capacity:
        size, size_class = 2 * size, size_class + 1
    if capacity == 0:
        size, size_class = 1, 0
    block = store.free_blocks[size_class]
    if block >= 0:
        store.free_blocks[size_class] = store.ticks[block, 0]
    elif store.counts[CELLS] + size <= len(store.cells):
        block = store.counts[CELLS]
        store.counts[CELLS] += size
    else:
        return False
    # Rings begin at different places: objects seen in the same ticks would else want the same few places of the caches.
    head = ((block >> size_class) * _TURN) & (size - 1)
    for j in range(chain[2]):
        _copy_cell(store.cells, old + ((chain[1] + j) & (capacity - 1)), block + ((head + j) & (size - 1)))
    if capacity > 0:
        _free_block(store, old, capacity)
    chain[0], chain[1], chain[3] = block, head, size
    return True


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _free_block(store: StoreArrays, block: int, capacity: int) -> None:
    size_class = 0
    while (1 << size_class) < capacity:
        size_class += 1
    store.ticks[block, 0] = store.free_blocks[size_class]
    store.free_blocks[size_class] = block


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _list_in_bucket(store: StoreArrays, tick: int, pair: int) -> None:
    counts = store.counts
    node = counts[FREE_NODE] - 1  # stored plus one, so that zeroed counts mean none
    if node >= 0:
        counts[FREE_NODE] = store.nodes[node, 0] + 1
    else:
        node = counts[NODES]
        counts[NODES] += 1
    at = tick & (len(store.buckets) - 1)
    store.nodes[node, 0] = store.buckets[at]
    store.nodes[node, 1] = pair
    store.buckets[at] = node
    counts[ENTRIES] += 1


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def expire_buckets(
    object_arrays: tuple[Any, ...], store_arrays: tuple[Any, ...], shape: tuple[Any, ...], low: int, new_low: int
) -> None:
    """Drop the entries of ticks [low, new_low), and objects without any. Cost O(entries dropped + ticks passed)."""
    objects, store, layout = ObjectArrays(*object_arrays), StoreArrays(*store_arrays), Layout(*shape)
    streams = store.chains.shape[1]
    mask = len(store.buckets) - 1
    for tick in range(low, min(new_low, low + len(store.buckets), store.counts[NEWEST] + 1)):
        node = store.buckets[tick & mask]
        store.buckets[tick & mask] = -1
        while node >= 0:
            node, count = _unlist(store, node)
            _fetch_expired(objects, store, count)
            for i in range(count):
                _expire_entry(objects, store, layout, streams, store.scratch[i])


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _unlist(store: StoreArrays, node: int) -> tuple[int, int]:
    """Free nodes from `node` on, as many as the scratch holds pairs; return the next node and how many pairs."""
    counts = store.counts
    count = 0
    while node >= 0 and count < len(store.scratch):
        store.scratch[count] = store.nodes[node, 1]
        count += 1
        after = store.nodes[node, 0]
        store.nodes[node, 0] = counts[FREE_NODE] - 1
        counts[FREE_NODE] = node + 1
        node = after
    counts[ENTRIES] -= count
    return node, count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _fetch_expired(objects: ObjectArrays, store: StoreArrays, count: int) -> None:
    """Fetch what the pairs in the scratch will need: their records and chains, then blocks and places in the index."""
    for i in range(count):
        pair = store.scratch[i]
        slot = pair >> PAIR_BITS
        prefetch(objects.records, (slot, 0))
        prefetch(store.chains, (slot, pair & PAIR_MASK, 0))
    mask = len(objects.table) - 1
    for i in range(count):
        pair = store.scratch[i]
        slot = pair >> PAIR_BITS
        prefetch(objects.table, (objects.records[slot, 3] & mask, 0))
        prefetch(store.ticks, (store.chains[slot, pair & PAIR_MASK, 0], 0))


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _expire_entry(objects: ObjectArrays, store: StoreArrays, layout: Layout, streams: int, pair: int) -> None:
    slot = pair >> PAIR_BITS
    chain = store.chains[slot, pair & PAIR_MASK]
    chain[1] = (chain[1] + 1) & (chain[3] - 1)
    chain[2] -= 1
    if chain[2] == 0:
        _free_block(store, chain[0], chain[3])
        chain[3] = 0
        if _is_gone(store, slot, streams):
            remove_object(objects, slot, not layout.by_row)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _is_gone(store: StoreArrays, slot: int, streams: int) -> bool:
    for stream in range(streams):
        if store.chains[slot, stream, 2] > 0:
            return False
    return True
