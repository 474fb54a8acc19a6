"""What a subscriber sees: results, and how they differ from the one before."""

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Change", "Delta", "Result", "ResultRow"]


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One ranked object. `attributes` holds only those present; `event_time_us` only where each record is an object."""

    rank: int
    object_id: str
    score: float
    attributes: dict[str, float] = field(default_factory=dict)
    event_time_us: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of one query for one window [window_start, window_end).

    Times in microseconds; row numbers for count windows. `frontier_us` is how far the group had been read.
    """

    query: str
    uid: str
    window_start: int
    window_end: int
    rows: tuple[ResultRow, ...]
    frontier_us: int | None = None
    revision: int = 0


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
