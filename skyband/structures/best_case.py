"""What objects could still reach: the score with each attribute at its best, where it is not settled.

Words: a column is *settled* in an object if its value stays as it is: it is present, and its stream promises that the
object does not come again meanwhile. All others may become what ranks the object best. The *best score* is the score of
that; where it is infinite or not a number, it is unbounded or unknown, and counts as better than any other. An object
of which every column of the score is settled can reach what it scores, and no more.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.structures.array_types import Floats, Indexes, Ints
from skyband.structures.instance_kernels import NEVER
from skyband.structures.object_table import ObjectArrays
from skyband.structures.question import Question, read_object
from skyband.structures.rank_order import heap_offer
from skyband.structures.score_kernel import evaluate_one
from skyband.structures.store_arrays import StoreArrays

__all__ = ["BestCase", "Cases", "best_scores", "first_cases", "read_cases"]


class BestCase(NamedTuple):
    """What a question promises of its columns.

    Per column the value that ranks best (infinite: unbounded; NaN: unknown). `final` has the bits of the columns that
    are settled once they are present, `scored` those of the score's columns, `required` those of the required streams.
    """

    best: npt.NDArray[np.float64]
    final: int
    scored: int
    required: int


class Cases(NamedTuple):
    """Objects in columns: slot; tick of the oldest that it has in the window; bits of the columns present.

    `rank`: its rank score now, -inf if it is not eligible; `best`: the best one, inf if unbounded or unknown.
    """

    slot: npt.NDArray[np.int32]
    tick: npt.NDArray[np.int64]
    present: npt.NDArray[np.int64]
    rank: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _best_score(
    code: Ints, constants: Floats, stack: Floats, values: Floats, best: Floats, settled: int, trial: Floats
) -> float:
    for column in range(len(best)):
        trial[column] = values[column] if (settled >> column) & 1 != 0 else best[column]
    return evaluate_one(code, constants, stack, trial)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def best_scores(
    code: Ints,
    constants: Floats,
    stack: Floats,
    values: Floats,
    best: Floats,
    bits: Ints,
    settling: int,
    trial: Floats,
    out: Floats,
) -> None:
    """Write the best score of each row of `values` to `out`, NaN where it is not finite. Cost: a score a row.

    Of a row's columns those stay as they are that are both in its `bits` and in `settling`; `trial` is room for a row.
    """
    for i in range(len(bits)):
        score = _best_score(code, constants, stack, values[i], best, bits[i] & settling, trial)
        out[i] = score if np.isfinite(score) else np.nan


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _oldest(store: StoreArrays, question: Question, slot: int, low: int) -> int:
    """Return the oldest tick from `low` on in which the object has an entry that the question reads."""
    oldest = -NEVER
    for column in range(len(question.streams)):
        chain = store.chains[slot, question.streams[column]]
        block, head, mask = chain[0], chain[1], chain[3] - 1
        before, after = -1, chain[2]
        while after - before > 1:
            middle = (before + after) >> 1
            if store.ticks[block + ((head + middle) & mask), 0] < low:
                before = middle
            else:
                after = middle
        if after < chain[2]:
            oldest = min(oldest, store.ticks[block + ((head + after) & mask), 0])
    return oldest


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def read_cases(
    objects: ObjectArrays,
    store: StoreArrays,
    question: Question,
    case: BestCase,
    low: int,
    stack: Floats,
    scratch: Floats,
    out: Cases,
) -> int:
    """Read what every live object has in ticks >= `low`, and could reach; return how many have anything.

    `question` must require nothing, for those that lack a required stream are read, too; `scratch` has two rows of
    values. Left out are those that are settled with a score that is not finite. Cost: the entries of all objects.
    """
    count = 0
    for slot in range(objects.counts[1]):
        if objects.records[slot, 2] < 0:
            continue
        bits = read_object(store, question, slot, low, scratch[0])
        if bits == 0:
            continue
        rank = question.sign * evaluate_one(question.code, question.constants, stack, scratch[0])
        settled = bits & case.final
        best = question.sign * _best_score(
            question.code, question.constants, stack, scratch[0], case.best, settled, scratch[1]
        )
        if not np.isfinite(best):
            if settled & case.scored == case.scored:
                continue
            best = np.inf
        out.slot[count] = slot
        out.tick[count] = _oldest(store, question, slot, low)
        out.present[count] = bits
        out.rank[count] = rank if bits & case.required == case.required and np.isfinite(rank) else -np.inf
        out.best[count] = best
        count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def first_cases(objects: ObjectArrays, best: Floats, slot: Indexes, heap: Indexes, where: Indexes) -> int:
    """Put the first cases by best score and id into `heap`, as many as it has places, in no order; return how many.

    `where` has a place per slot, all -1 before and after. Cost: a comparison a case, log n for those that enter.
    """
    size = 0
    for case in range(len(best)):
        size = heap_offer(objects, False, best, slot, heap, size, where, case)
    for place in range(size):
        where[slot[heap[place]]] = -1
    return size
