"""What a subscriber sees: results, and how they differ from the one before."""

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Candidate", "Change", "Delta", "Result", "ResultRow"]


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One ranked object. `attributes` holds only those present; `event_time_us` only where each record is an object.

    `best_score`: what it could reach while all that is known of it counts (None: unbounded, or unknown). `safe_until`:
    the last window end up to which no object known now can take its place (None: some could, or it was not asked for).
    """

    rank: int
    object_id: str
    score: float
    attributes: dict[str, float] = field(default_factory=dict)
    event_time_us: int | None = None
    best_score: float | None = None
    safe_until: int | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object outside a result that could still come into it.

    `score` is its score now (None: not eligible now), `best_score` what it could reach (None: unbounded, or unknown),
    `lacks` the attributes that were not seen of it, `until` the last window end at which all that it has now still
    counts: in microseconds, or a row number for count windows.
    """

    object_id: str
    score: float | None
    best_score: float | None
    lacks: tuple[str, ...]
    until: int


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of one query for one window [window_start, window_end).

    Times in microseconds; row numbers for count windows. `frontier_us` is how far the group had been read. `candidates`
    are the first of those that could still come in, by what they could reach, as many as the query asks for.
    """

    query: str
    uid: str
    window_start: int
    window_end: int
    rows: tuple[ResultRow, ...]
    frontier_us: int | None = None
    revision: int = 0
    candidates: tuple[Candidate, ...] = ()


class Change(StrEnum):
    """How an object's place differs from the result before."""

    LEFT = "left"
    ENTERED = "entered"
    MOVED = "moved"
    RESCORED = "rescored"


@dataclass(frozen=True, slots=True)
class Delta:
    """One object's change; `row` is its new row (the old one if it left), `old_rank` its rank before."""

    change: Change
    row: ResultRow
    old_rank: int | None = None
