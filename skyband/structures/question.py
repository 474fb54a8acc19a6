"""What a kernel must know of a question, and how it reads one object out of the window store."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.model.binding import BoundQuery
from skyband.model.score import Opcode
from skyband.model.stream import Aggregate
from skyband.structures.array_types import Floats, Indexes
from skyband.structures.prefetch import prefetch
from skyband.structures.store_arrays import StoreArrays
from skyband.structures.window_kernels import BEST, COUNT, FIRST, LATEST, MAX, MIN, SUM
from skyband.structures.window_store import Layout

__all__ = ["FETCHED_TOGETHER", "Question", "fetch_entries", "fetch_objects", "pose", "read_object"]

# Objects whose cache misses overlap.
FETCHED_TOGETHER = 64

# Of the narrowest cells; of wider ones each is fetched at most a few times.
_CELLS_A_LINE = 4


class Question(NamedTuple):
    """A bound query in arrays; one entry per column that it reads, in group order.

    `streams`, `fields` say where a column's values lie in a cell, `kinds` how they combine (`max` and `min` stand for
    `best` too), `missing` what counts while none is there. `code` and `constants` are the score's program over these
    columns. An object is eligible only with an entry in each stream of `required`. `sign` -1: lowest first.
    """

    streams: npt.NDArray[np.int32]
    fields: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.int32]
    missing: npt.NDArray[np.float64]
    code: npt.NDArray[np.int32]
    constants: npt.NDArray[np.float64]
    required: npt.NDArray[np.int32]
    sign: float


def pose(bound: BoundQuery, layout: Layout) -> Question:
    """Return `bound` as kernels take it."""
    fields, kinds = [], []
    for column in bound.columns:
        kind = int(layout.kinds[column.stream])
        wide = kind == BEST
        lowest = wide and column.prefers_high is False
        fields.append(layout.first_field + column.value * (2 if wide else 1) + int(lowest))
        kinds.append((MIN if lowest else MAX) if wide else kind)
    code = bound.score.code.copy()
    place = dict(zip(bound.score.attribute_indexes, bound.score_positions, strict=True))
    for step in code:
        if step[0] == Opcode.ATTRIBUTE:
            step[1] = place[int(step[1])]
    return Question(
        streams=np.array([column.stream for column in bound.columns], np.int32),
        fields=np.array(fields, np.int32),
        kinds=np.array(kinds, np.int32),
        missing=np.array([column.missing for column in bound.columns], np.float64),
        code=code,
        constants=bound.score.constants.copy(),
        required=np.array(bound.required_streams, np.int32),
        sign=1.0 if bound.descending else -1.0,
    )


assert list(range(len(Aggregate))) == [BEST, LATEST, FIRST, SUM, COUNT, MAX, MIN]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def read_object(store: StoreArrays, question: Question, slot: int, low: int, values: Floats) -> int:
    """Combine what object `slot` has in ticks >= `low` into `values`; return the bits of the columns present.

    0 if the object is not valid or lacks a required stream. Panes are added oldest first, left to right. Cost: the
    entries of the object in the window, and the logarithm of those before it.
    """
    chains = store.chains
    for r in range(len(question.required)):
        chain = chains[slot, question.required[r]]
        if chain[2] == 0 or store.ticks[chain[0] + ((chain[1] + chain[2] - 1) & (chain[3] - 1)), 0] < low:
            return 0
    bits = 0
    for column in range(len(question.streams)):
        chain = chains[slot, question.streams[column]]
        block, head, length, mask = chain[0], chain[1], chain[2], chain[3] - 1
        at = 0
        if length > 0 and store.ticks[block + (head & mask), 0] < low:
            at = _first_from(store, block, head, length, mask, low)
        if at == length:
            values[column] = question.missing[column]
            continue
        bits |= 1 << column
        values[column] = _combine(store, question.kinds[column], question.fields[column], block, head, at, length, mask)
    return bits


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _first_from(store: StoreArrays, block: int, head: int, length: int, mask: int, low: int) -> int:
    """Return the place of the first entry with tick >= `low` in a chain whose first is older."""
    before, after = 0, length
    while after - before > 1:
        middle = (before + after) >> 1
        if store.ticks[block + ((head + middle) & mask), 0] < low:
            before = middle
        else:
            after = middle
    return after


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _combine(
    store: StoreArrays, kind: int, field: int, block: int, head: int, at: int, length: int, mask: int
) -> float:
    cell = block + ((head + at) & mask)
    value = store.cells[cell, field]
    if kind in (SUM, COUNT):
        # The ring is one stretch of cells, or two: no mask between additions, which wait for each other already.
        wraps = min(length, mask + 1 - (head & mask))
        for j in range(at + 1, wraps):
            value += store.cells[block + (head & mask) + j, field]
        for j in range(max(at + 1, wraps), length):
            value += store.cells[block + (head & mask) + j - mask - 1, field]
    elif kind == MAX:
        for j in range(at + 1, length):
            value = max(value, store.cells[block + ((head + j) & mask), field])
    elif kind == MIN:
        for j in range(at + 1, length):
            value = min(value, store.cells[block + ((head + j) & mask), field])
    else:
        # Ticks that are rows do not ascend in event time when rows are late, so times are compared, not places.
        time = store.ticks[cell, 1]
        for j in range(at + 1, length):
            cell = block + ((head + j) & mask)
            other = store.ticks[cell, 1]
            if (kind == LATEST and other >= time) or (kind == FIRST and other < time):
                value, time = store.cells[cell, field], other
    return value


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def fetch_objects(store: StoreArrays, question: Question, slots: Indexes, first: int, last: int) -> None:
    """Fetch what reading slots [first, last) will need: one miss after another would cost 40 ns each."""
    for column in range(len(question.streams)):
        stream = question.streams[column]
        for i in range(first, last):
            prefetch(store.chains, (slots[i], stream, 0))
    for column in range(len(question.streams)):
        stream = question.streams[column]
        for i in range(first, last):
            slot = slots[i]
            block, head, mask = (
                store.chains[slot, stream, 0],
                store.chains[slot, stream, 1],
                store.chains[slot, stream, 3] - 1,
            )
            prefetch(store.ticks, (block + (head & mask), 0))


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def fetch_entries(store: StoreArrays, question: Question, slot: int) -> None:
    """Fetch all that reading `slot` will need of chains longer than a cache line; its chains must be there."""
    for column in range(len(question.streams)):
        chain = store.chains[slot, question.streams[column]]
        mask = chain[3] - 1
        for j in range(_CELLS_A_LINE, chain[2], _CELLS_A_LINE):
            prefetch(store.ticks, (chain[0] + ((chain[1] + j) & mask), 0))
