"""A standing question over one group."""

from dataclasses import dataclass
from enum import StrEnum

from skyband.errors import DefinitionError
from skyband.model.duration import format_duration
from skyband.model.stream import check_name

__all__ = ["MAX_K", "Algorithm", "Kind", "Order", "Query", "QueryState", "Window"]

MAX_K = 1_000_000


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
    whatever `require` says.
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

    def __post_init__(self) -> None:
        check_name(self.name, "query")
        if self.k < 1:
            raise DefinitionError("k must be at least 1", field="k")
        if self.k > MAX_K:
            raise DefinitionError(f"k must be at most {MAX_K:,}", field="k")
        if self.require_all:
            object.__setattr__(self, "require", ())
        if self.kind is not Kind.RANK:
            raise DefinitionError(f"queries of kind {self.kind} are not served by this version; use rank", field="kind")
