"""What an algorithm that forgets must know of its query. Whether it can serve it at all: `skyband.model.ability`.

Words: *once*: the producer promises that an object does not come twice on a stream within one window; *twice*: not
within two windows, so that what was seen before an instance's tick cannot come again while the instance lives.
Windows in rows have no length in time: there only a promise of `never` helps.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.model.ability import best_value, is_promised
from skyband.model.binding import BoundColumn, BoundQuery
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.score import Opcode
from skyband.model.stream import Aggregate

__all__ = ["BOTTOM", "ONLY", "TALLY", "TOP", "Ask", "ask"]

# How a column combines: larger wins, smaller wins, the first stays, the first stays and counts 1.
TOP, BOTTOM, ONLY, TALLY = 0, 1, 2, 3


class Ask(NamedTuple):
    """A bound query as the kernels of this package take it; a bit for each column it reads, in group order.

    Per column: its place in a row's values, how it combines, what it counts while unseen, and at its best. Per stream:
    its columns [first, last) and their bits (0: the query does not read it). `once`, `twice`, `never`, `required`,
    `every` are bits of columns. Size and slide are in ticks; `tick_us` 0: ticks are rows. `sign` -1: lowest first.
    """

    fields: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.int32]
    missing: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]
    first_column: npt.NDArray[np.int32]
    last_column: npt.NDArray[np.int32]
    stream_bits: npt.NDArray[np.int64]
    code: npt.NDArray[np.int32]
    constants: npt.NDArray[np.float64]
    sign: float
    once: int
    twice: int
    never: int
    required: int
    every: int
    size: int
    slide: int
    tick_us: int


def _kind(column: BoundColumn) -> int:
    match column.aggregate:
        case Aggregate.BEST:
            return BOTTOM if column.prefers_high is False else TOP
        case Aggregate.MAX:
            return TOP
        case Aggregate.MIN:
            return BOTTOM
        case Aggregate.COUNT:
            return TALLY
    return ONLY


def ask(bound: BoundQuery, group: Group) -> Ask:
    """Return `bound` as kernels take it; `why_not_forget` must have found nothing."""
    window, columns, streams = bound.query.window, bound.columns, len(group.streams)
    tick = 1 if window.in_rows else group.pane_us
    first, last, bits = np.zeros(streams, np.int32), np.zeros(streams, np.int32), np.zeros(streams, np.int64)
    for position, column in enumerate(columns):
        if not bits[column.stream]:
            first[column.stream] = position
        last[column.stream] = position + 1
        bits[column.stream] |= 1 << position
    code = bound.score.code.copy()
    place = dict(zip(bound.score.attribute_indexes, bound.score_positions, strict=True))
    for step in code:
        if step[0] == Opcode.ATTRIBUTE:
            step[1] = place[int(step[1])]

    def bits_of(chosen: Iterable[bool]) -> int:
        return sum(1 << position for position, is_one in enumerate(chosen) if is_one)

    best = [best_value(group, c) if c.in_score else c.missing for c in columns]
    return Ask(
        fields=np.array([c.value for c in columns], np.int32),
        kinds=np.array([_kind(c) for c in columns], np.int32),
        missing=np.array([c.missing for c in columns], np.float64),
        best=np.array(best, np.float64),
        first_column=first,
        last_column=last,
        stream_bits=bits,
        code=code,
        constants=bound.score.constants.copy(),
        sign=1.0 if bound.descending else -1.0,
        once=bits_of(is_promised(group, bound, c) for c in columns),
        twice=bits_of(is_promised(group, bound, c, 2) for c in columns),
        never=bits_of(group.streams[c.stream].repeat_after_us == MAX_TIME_US for c in columns),
        required=bits_of(c.stream in bound.required_streams for c in columns),
        every=bits_of(True for c in columns),
        size=window.size // tick,
        slide=window.slide // tick,
        tick_us=0 if window.in_rows else group.pane_us,
    )
