"""Instances in columns, and the kernel that takes rows into them. Words as in `instance_set`.

What Python calls takes plain tuples of arrays: a dispatch spends 3 us (in cache) on working out the type of named ones.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.engine.incomplete.bounds import BOTTOM, TALLY, TOP, Ask
from skyband.engine.incomplete.foresight import Foresight, foreseen_best
from skyband.structures.array_types import Floats
from skyband.structures.object_table import ObjectArrays, add_object, remove_object, seek_hash, seek_object
from skyband.structures.prefetch import prefetch
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.store_arrays import Rows

__all__ = ["Instances", "Workplace", "rescore_all", "take_rows", "unlink"]

# Columns of `scores`, `links` and `bits`; the word of an object's record that holds its newest instance.
CURRENT, BEST = 0, 1
SLOT, NEWER, OLDER = 0, 1, 2
COVERED, SEEN = 0, 1
HEAD = 4

# The tick of a place that holds no instance (any more): below every tick.
DEAD = -(3 << 61)
# Above every tick.
LATER = 1 << 62

# Places of a set's `counts`: places used, the first that may live, instances alive and how many may be before the next
# sweep; how many of the places are known to ascend, the newest tick, the oldest that came behind a newer one; the
# lowest tick that still counts and the end of the window that decides it; promises broken; rows too old.
PLACES, START, LIVE, ROOM, SORTED, NEWEST, LATE, LOW, TURN, BROKEN, EXPIRED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
COUNTS = 11


class Instances(NamedTuple):
    """Places of instances: tick; scores [current, best]; links [slot, newer, older]; bits [covered, seen]; values."""

    tick: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    links: npt.NDArray[np.int32]
    bits: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class Workplace(NamedTuple):
    """What the kernels need beside the instances.

    `scratch` is of a group of rows, `stack` the score's, `trial` one object's values, `ranks` of representatives,
    `asked` of patterns. `heap` has k + 1 places, `where` one per slot (-1 between calls), `fallen` one per instance.
    """

    counts: npt.NDArray[np.int64]
    scratch: npt.NDArray[np.int64]
    stack: npt.NDArray[np.float64]
    trial: npt.NDArray[np.float64]
    ranks: npt.NDArray[np.float64]
    asked: npt.NDArray[np.int64]
    heap: npt.NDArray[np.int32]
    where: npt.NDArray[np.int32]
    fallen: npt.NDArray[np.int32]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def take_rows(
    object_arrays: tuple[Any, ...],
    held: tuple[Any, ...],
    asked: tuple[Any, ...],
    foresight: tuple[Any, ...],
    workplace: tuple[Any, ...],
    columns: tuple[Any, ...],
    first: int,
    last: int,
    row_number: int,
) -> int:
    """Take rows [first, last); return the first not taken (`last`, or where a sweep is due or no place is left).

    `row_number` + i is the tick of row i where ticks are rows. Cost: O(instances of the object) a row;
    what a group of rows needs is fetched first, level by level.
    """
    objects, instances, ask = ObjectArrays(*object_arrays), Instances(*held), Ask(*asked)
    sight, work, rows = Foresight(*foresight), Workplace(*workplace), Rows(*columns)
    at = first
    while at < last:
        end = min(at + len(work.scratch), last)
        _look_ahead(objects, instances, work, rows, at, end)
        stop: int = _take_group(objects, instances, ask, sight, work, rows, at, end, row_number)
        if stop < end:
            return stop
        at = end
    return last


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _look_ahead(
    objects: ObjectArrays, instances: Instances, work: Workplace, rows: Rows, first: int, last: int
) -> None:
    """Find the hashes of rows [first, last) in the index, and fetch what these rows will most likely need."""
    mask = len(objects.table) - 1
    for i in range(first, last):
        prefetch(objects.table, (rows.id_hash[i] & mask, 0))
    for i in range(first, last):
        tag = rows.id_hash[i]
        at = seek_hash(objects, tag & mask, tag)
        work.scratch[i - first] = at
        prefetch(objects.records, (objects.table[at, 1], 0))
    for i in range(first, last):
        slot = objects.table[work.scratch[i - first], 1]
        if slot >= 0:
            head = objects.records[slot, HEAD]
            prefetch(instances.tick, (head,))
            prefetch(instances.links, (head, 0))
            prefetch(instances.bits, (head, 0))
            prefetch(instances.values, (head, 0))
            prefetch(instances.scores, (head, 0))


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _take_group(
    objects: ObjectArrays,
    instances: Instances,
    ask: Ask,
    sight: Foresight,
    work: Workplace,
    rows: Rows,
    first: int,
    last: int,
    row_number: int,
) -> int:
    counts = work.counts
    for i in range(first, last):
        if counts[PLACES] == len(instances.tick) or counts[LIVE] >= counts[ROOM]:
            return i
        stream, tag = rows.stream[i], rows.id_hash[i]
        if ask.stream_bits[stream] == 0:
            continue
        tick = row_number + i if ask.tick_us == 0 else rows.event_time_us[i] // ask.tick_us
        if tick >= counts[TURN]:
            # The row will first be seen by the window that ends next: what is older than that one's begin is over.
            counts[TURN] = (tick // ask.slide + 1) * ask.slide
            counts[LOW] = max(counts[LOW], counts[TURN] - ask.size)
        if tick < counts[LOW]:
            counts[EXPIRED] += 1
            continue
        if ask.slide > ask.size and (tick + ask.size) // ask.slide * ask.slide <= tick:
            # Between two windows.
            continue
        start = rows.id_ends[i - 1] if i > 0 else 0
        at = seek_object(objects, work.scratch[i - first], tag, rows.id_bytes, start, rows.id_ends[i])
        slot = objects.table[at, 1]
        if slot < 0:
            slot = add_object(objects, tag, rows.id_bytes, start, rows.id_ends[i], at)
            objects.records[slot, HEAD] = -1
        _observe(objects, instances, ask, sight, work, rows, i, slot, tick)
    return last


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _observe(
    objects: ObjectArrays,
    instances: Instances,
    ask: Ask,
    sight: Foresight,
    work: Workplace,
    rows: Rows,
    i: int,
    slot: int,
    tick: int,
) -> None:
    """Update the object's instances that the row belongs to, and add one at its tick if there is none."""
    links, bits, counts = instances.links, instances.bits, work.counts
    low, own = counts[LOW], ask.stream_bits[rows.stream[i]]
    is_broken = False
    newer, at = -1, objects.records[slot, HEAD]
    while at >= 0 and instances.tick[at] > tick:
        # Younger instances: the row is late.
        is_broken |= (((bits[at, COVERED] & ask.once) | (bits[at, SEEN] & ask.twice)) & own) != 0
        if bits[at, SEEN] & own != own:
            bits[at, SEEN] |= own
            _rescore(instances, ask, sight, work, at)
        newer, at = at, links[at, OLDER]
    known = at >= 0 and instances.tick[at] == tick
    oldest, seen, j = at, 0, at
    while j >= 0 and instances.tick[j] >= low:
        is_broken |= (((bits[j, COVERED] & ask.once) | (bits[j, SEEN] & ask.twice)) & own) != 0
        if instances.tick[j] < tick:
            seen |= bits[j, COVERED] | (bits[j, SEEN] & ask.never)
        _merge(instances, ask, rows, i, j)
        _rescore(instances, ask, sight, work, j)
        j = links[j, OLDER]
    counts[BROKEN] += is_broken
    if not known:
        at = counts[PLACES]
        _begin(objects, instances, ask, counts, at, slot, tick, newer, oldest, seen)
        _merge(instances, ask, rows, i, at)
        _rescore(instances, ask, sight, work, at)
    _drop_repeats(objects, instances, counts, newer if newer >= 0 else at, low)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _begin(
    objects: ObjectArrays,
    instances: Instances,
    ask: Ask,
    counts: Any,
    at: int,
    slot: int,
    tick: int,
    newer: int,
    older: int,
    seen: int,
) -> None:
    """Make an instance at place `at` between its object's next newer and next older; it covers what the newer does."""
    links, bits = instances.links, instances.bits
    counts[PLACES] = at + 1
    counts[LIVE] += 1
    if tick < counts[NEWEST]:
        counts[LATE] = min(counts[LATE], tick)
    else:
        counts[NEWEST] = tick
    instances.tick[at] = tick
    links[at, SLOT], links[at, NEWER], links[at, OLDER] = slot, newer, older
    bits[at, COVERED] = bits[newer, COVERED] if newer >= 0 else 0
    bits[at, SEEN] = seen
    for column in range(len(ask.missing)):
        instances.values[at, column] = instances.values[newer, column] if newer >= 0 else ask.missing[column]
    if newer >= 0:
        links[newer, OLDER] = at
    else:
        objects.records[slot, HEAD] = at
    if older >= 0:
        links[older, NEWER] = at


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _merge(instances: Instances, ask: Ask, rows: Rows, i: int, at: int) -> None:
    """Combine row i with what the instance at place `at` covers of its stream."""
    stream = rows.stream[i]
    covered = instances.bits[at, COVERED]
    for column in range(ask.first_column[stream], ask.last_column[stream]):
        kind = ask.kinds[column]
        value = rows.values[i, ask.fields[column]]
        if (covered >> column) & 1 == 0:
            instances.values[at, column] = 1.0 if kind == TALLY else value
        elif kind == TOP:
            instances.values[at, column] = max(instances.values[at, column], value)
        elif kind == BOTTOM:
            instances.values[at, column] = min(instances.values[at, column], value)
    instances.bits[at, COVERED] = covered | ask.stream_bits[stream]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _rescore(instances: Instances, ask: Ask, sight: Foresight, work: Workplace, at: int) -> None:
    covered = instances.bits[at, COVERED]
    current = -np.inf
    if covered & ask.required == ask.required:
        current = ask.sign * evaluate_one(ask.code, ask.constants, work.stack, instances.values[at])
    instances.scores[at, CURRENT] = current
    instances.scores[at, BEST] = _best(instances, ask, sight, work, at, current)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _best(instances: Instances, ask: Ask, sight: Foresight, work: Workplace, at: int, current: float) -> float:
    """Return the best score that the instance may still reach: of each column its value, its best, or its worst."""
    covered, seen, trial = instances.bits[at, COVERED], instances.bits[at, SEEN], work.trial
    gone = seen & ask.twice & ~covered
    if gone & ask.required != 0:
        return -np.inf
    settled = (covered & ask.once) | gone
    if settled == ask.every:
        return current
    for column in range(len(trial)):
        if (settled >> column) & 1 == 0:
            trial[column] = ask.best[column]
        else:
            trial[column] = instances.values[at, column]
    best: float = ask.sign * evaluate_one(ask.code, ask.constants, work.stack, trial)
    if sight.kind == 0:
        return best
    bound: float = foreseen_best(
        ask,
        sight,
        instances.values[at],
        covered,
        seen,
        gone,
        work.counts[NEWEST] - instances.tick[at],
        trial,
        work.stack,
        work.ranks,
        work.asked,
        current,
        best,
    )
    return bound


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _drop_repeats(objects: ObjectArrays, instances: Instances, counts: Any, at: int, low: int) -> None:
    """From place `at` on drop instances that show nothing that the object's next newer one does not show for longer."""
    older = instances.links[at, OLDER]
    while older >= 0 and instances.tick[older] >= low:
        is_same = instances.bits[at, COVERED] == instances.bits[older, COVERED]
        for column in range(instances.values.shape[1]):
            is_same = is_same and instances.values[at, column] == instances.values[older, column]
        if is_same:
            unlink(objects, instances, counts, older)
        else:
            at = older
        older = instances.links[at, OLDER]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def unlink(objects: ObjectArrays, instances: Instances, counts: Any, at: int) -> None:
    """Give up the instance at a place, and its object if it was the last. Cost O(1) expected."""
    slot, newer, older = instances.links[at, SLOT], instances.links[at, NEWER], instances.links[at, OLDER]
    instances.tick[at] = DEAD
    counts[LIVE] -= 1
    if newer >= 0:
        instances.links[newer, OLDER] = older
    else:
        objects.records[slot, HEAD] = older
    if older >= 0:
        instances.links[older, NEWER] = newer
    elif newer < 0:
        remove_object(objects, slot, True)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def rescore_all(
    held: tuple[Any, ...], asked: tuple[Any, ...], foresight: tuple[Any, ...], workplace: tuple[Any, ...]
) -> None:
    """Work out the best of every instance again, by another foresight than before. Cost O(instances)."""
    instances, ask, sight, work = Instances(*held), Ask(*asked), Foresight(*foresight), Workplace(*workplace)
    for at in range(work.counts[START], work.counts[PLACES]):
        if instances.tick[at] != DEAD:
            current: Floats = instances.scores[at, CURRENT]
            instances.scores[at, BEST] = _best(instances, ask, sight, work, at, current)
