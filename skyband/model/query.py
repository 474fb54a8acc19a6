"""A standing question over one group."""

from dataclasses import dataclass
from enum import StrEnum

from skyband.errors import DefinitionError
from skyband.model.duration import format_duration
from skyband.model.stream import check_name

__all__ = ["MAX_CANDIDATES", "MAX_K", "MIN_BUDGET_BYTES", "Algorithm", "Kind", "Order", "Query", "QueryState", "Window"]

MAX_K = 1_000_000
MAX_CANDIDATES = 1_000
MIN_BUDGET_BYTES = 64 * 1024


class Kind(StrEnum):
    """What a query asks for."""

    RANK = "rank"
    DOMINATING = "dominating"
    JOIN = "join"


class Order(StrEnum):
    """Which end of the scores is on top."""

    HIGHEST = "highest"
    LOWEST = "lowest"


class Algorithm(StrEnum):
    """How a rank query is kept up to date; `auto` lets the planner choose."""

    AUTO = "auto"
    TWO_TIER = "two-tier"
    VIEW = "view"
    SKYBAND = "skyband"
    SLA = "sla"
    EAA = "eaa"
    EAA_RELAXED = "eaa-relaxed"
    EAA_EXPECTED = "eaa-expected"
    EAA_TAIL = "eaa-tail"

    @property
    def forgets(self) -> bool:
        """Whether it keeps no window, but only what can still matter."""
        return self in (Algorithm.EAA, Algorithm.EAA_RELAXED, Algorithm.EAA_EXPECTED, Algorithm.EAA_TAIL)

    @property
    def is_approximate(self) -> bool:
        """Whether it may miss objects of the exact result."""
        return self in (Algorithm.EAA_EXPECTED, Algorithm.EAA_TAIL)


class QueryState(StrEnum):
    """Where a query is in its life."""

    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window: `size` and `slide` in microseconds, or in rows if `in_rows`.

    At time T it holds the rows with event time in [T - size, T); T is a multiple of slide::

        size 5, slide 2:   |-----T=5..  no: T = 2, 4, 6 …
        T = 4              [-1 ······· 4)
        T = 6                  [1 ······· 6)
    """

    size: int
    slide: int
    in_rows: bool = False

    def __post_init__(self) -> None:
        for name in ("size", "slide"):
            if getattr(self, name) < 1:
                raise DefinitionError(f"window {name} must be above 0", field=f"window.{name}")

    def describe(self) -> str:
        """Return the window in words."""
        if self.in_rows:
            return f"last {self.size:,} rows, every {self.slide:,} rows"
        return f"last {format_duration(self.size)}, every {format_duration(self.slide)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The `k` best objects of a window by a score.

    `require` names the streams in which an object must be valid to be eligible; empty: any. `require_all`: all streams,
    whatever `require` says. What an approximate algorithm may do (None: nothing said): `max_error` is the probability
    with which an object that it forgets may come into the result after all, `target_precision` the share of the exact
    result that it is steered to show, `memory_budget` bytes of state for each shard. `candidates`: how many objects
    outside each result are told that could still come into it.
    """

    name: str
    k: int
    score: str
    window: Window
    order: Order = Order.HIGHEST
    kind: Kind = Kind.RANK
    require: tuple[str, ...] = ()
    require_all: bool = False
    algorithm: Algorithm = Algorithm.AUTO
    max_error: float | None = None
    target_precision: float | None = None
    memory_budget: int | None = None
    candidates: int = 0

    def __post_init__(self) -> None:
        check_name(self.name, "query")
        self._check_limits()
        if self.k < 1:
            raise DefinitionError("k must be at least 1", field="k")
        if self.k > MAX_K:
            raise DefinitionError(f"k must be at most {MAX_K:,}", field="k")
        if self.require_all:
            object.__setattr__(self, "require", ())
        if self.kind is not Kind.RANK:
            raise DefinitionError(f"queries of kind {self.kind} are not served by this version; use rank", field="kind")

    @property
    def is_bounded(self) -> bool:
        """Whether it says how much an answer may err, or how much state it may take."""
        return (self.max_error, self.target_precision, self.memory_budget) != (None, None, None)

    def _check_limits(self) -> None:
        if self.max_error is not None and not 0.0 <= self.max_error <= 0.5:
            raise DefinitionError(
                f"max_error must be a probability from 0 to 0.5, not {self.max_error:g}", field="max_error"
            )
        if self.target_precision is not None and not 0.5 <= self.target_precision < 1.0:
            raise DefinitionError(
                f"target_precision must be at least 0.5 and below 1, not {self.target_precision:g}; for an exact "
                "result leave it away",
                field="target_precision",
            )
        if self.max_error is not None and self.target_precision is not None:
            raise DefinitionError(
                "max_error and target_precision both say how much may be missed; keep one", field="target_precision"
            )
        if self.memory_budget is not None and self.memory_budget < MIN_BUDGET_BYTES:
            raise DefinitionError(
                f"memory_budget must be at least {MIN_BUDGET_BYTES:,} bytes, not {self.memory_budget:,}",
                field="memory_budget",
            )
        if not 0 <= self.candidates <= MAX_CANDIDATES:
            raise DefinitionError(
                f"candidates must be from 0 to {MAX_CANDIDATES:,}, not {self.candidates:,}", field="candidates"
            )
