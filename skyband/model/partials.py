"""What a shard tells the merge: rows of one evaluation in columns, its progress, and which queries it has begun."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["Activated", "Contender", "Evaluation", "MergeProgress", "PartialBatch", "Progress"]


@dataclass(frozen=True, slots=True)
class Contender:
    """An object of a shard, ranked or not, by what it could reach.

    `score` None: it is not eligible now; `best_score` None: unbounded, or unknown. `lacks` are places in the batch's
    `attribute_names`; `until` is the last window end at which all that it has now still counts.
    """

    object_id: str
    score: float | None
    best_score: float | None
    lacks: tuple[int, ...]
    until: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One query's share of a PartialBatch: its ranked rows are `ranking[start:stop]`, indexes into the batch's rows.

    `contenders`: the first of the shard's objects by what they could reach, members among them, if the query asks what
    could still happen: as many as its k and its candidates together.
    """

    uid: str
    revision: int
    k: int
    window_start: int
    window_end: int
    start: int
    stop: int
    contenders: tuple[Contender, ...] = ()


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """The rankings of one shard at one instant, for all queries that share one score.

    Columns, for n rows that the queries share: `id_bytes` uint8 arena with `id_ends` int64[n], `score` float64[n],
    `event_time_us` int64[n] (empty unless each record is an object), `sequence` int64[n] (place in the shard's total
    order, the last tie-break where each record is an object; else zeros), `attributes` float64[n, len(names)] and
    `present` bool of the same shape. `ranking` int32: row indexes, best first, evaluation after evaluation. A score is
    the user's score also where the lowest is best. `best` float64[n] is what each row could reach (NaN: unbounded, or
    unknown); it is empty if that is not known of any.
    """

    group: str
    generation: int
    shard: int
    descending: bool
    attribute_names: tuple[str, ...]
    evaluations: Sequence[Evaluation]
    ranking: npt.NDArray[np.int32]
    id_bytes: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    event_time_us: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]
    best: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0, np.float64))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a shard has evaluated.

    Every window end T of a query with slide s is done if T <= `frontier_us`, or if T - s <= `settled_us`: when all
    sources are idle or finished, `settled_us` is the newest accepted event time, and what is known has been shown.
    """

    group: str
    generation: int
    shard: int
    frontier_us: int
    settled_us: int

    def covers(self, window_end: int, slide: int) -> bool:
        """Return whether the evaluation at `window_end` of a query with this slide is done."""
        return window_end <= self.frontier_us or window_end - slide <= self.settled_us


@dataclass(frozen=True, slots=True)
class Activated:
    """A shard has begun (or changed, or ended) a query: its first window end under `revision` is `first_us`."""

    group: str
    generation: int
    shard: int
    uid: str
    revision: int
    first_us: int


@dataclass(frozen=True, slots=True)
class MergeProgress:
    """How far the merge of a group has come: all results with a window end up to `frontier_us` are written.

    Each of them lies below the offset that `results_to` names for its partition of the results.
    """

    group: str
    generation: int
    frontier_us: int
    results_to: Mapping[int, int]
