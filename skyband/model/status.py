"""How a running group and its queries are doing: what stages report, and what it adds up to for one query.

Reports are absolute, not increments: the newest of each sender counts. Times of rows (`frontier_us`, `watermark_us`,
`newest_us`) are event time; `last_result_us` is when a result was written.
"""

from dataclasses import dataclass

from skyband.model.approximation import Approximation
from skyband.model.duration import MIN_TIME_US

__all__ = ["Holder", "QueryReport", "QueryStatus", "ShardReport", "ShardStatus", "SourceReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The source partition that holds a shard's frontier: the one with the least watermark.

    `watermark_us` MIN_TIME_US: it has brought no usable row yet. `unread_rows` and `rows_per_second` None: unknown.
    `stopped`: why it is not read, in words, or empty.
    """

    stream: str
    partition: int
    watermark_us: int = MIN_TIME_US
    unread_rows: int | None = None
    reader: str = ""
    rows_per_second: float | None = None
    stopped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReport:
    """One query in one shard. `hot` counts its rows or candidates in rank order; `evaluations` those done so far.

    `approximation` None: it is exact.
    """

    uid: str
    evaluations: int = 0
    last_result_us: int | None = None
    last_window_end: int | None = None
    hot: int = 0
    state_bytes: int = 0
    broken_promises: int = 0
    approximation: Approximation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReport:
    """One shard, as its engine sees it.

    `newest_us` is the newest accepted event time, `holder` None if nothing holds the frontier (all sources idle or
    finished), `stopped` the error that stopped the shard, in words, or empty. `rows_late` are part of `rows_in`.
    """

    group: str
    generation: int
    shard: int
    frontier_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US
    holder: Holder | None = None
    stopped: str = ""
    rows_in: int = 0
    rows_late: int = 0
    objects: int = 0
    state_bytes: int = 0
    queries: tuple[QueryReport, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """One source partition, as its reader sees it.

    `rejected` are (reason, records) that went to dead letters, `stopped` why it is not read, in words, or empty.
    """

    group: str
    generation: int
    stream: str
    partition: int
    rejected: tuple[tuple[str, int], ...] = ()
    paused: bool = False
    unread_rows: int | None = None
    rows_per_second: float | None = None
    reader: str = ""
    stopped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardStatus:
    """What holds up, or has stopped, one shard; fields as in ShardReport."""

    shard: int
    frontier_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US
    holder: Holder | None = None
    stopped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """All that is known about a running query, over its shards.

    `silent_shards` have not reported in this generation. `rows_in` None: unknown. `rejected` are (reason, records) of
    all sources, largest first; `paused` (stream, partitions) that wait for the others. Sums over shards otherwise.
    """

    shards: tuple[ShardStatus, ...] = ()
    silent_shards: tuple[int, ...] = ()
    rows_in: int | None = None
    rows_late: int = 0
    rejected: tuple[tuple[str, int], ...] = ()
    paused: tuple[tuple[str, int], ...] = ()
    evaluations: int = 0
    last_result_us: int | None = None
    last_window_end: int | None = None
    hot: int = 0
    objects: int = 0
    state_bytes: int = 0
    broken_promises: int = 0
    approximation: Approximation | None = None

    @property
    def rejected_rows(self) -> int:
        """Number of records that went to dead letters."""
        return sum(count for _, count in self.rejected)
