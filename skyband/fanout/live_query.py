"""What a replica keeps of the results of one query."""

from array import array
from bisect import bisect_left

from skyband.fanout.resume_token import ResultPosition
from skyband.model.result import Result

__all__ = ["LiveQuery"]

_KEPT = 1_024


class LiveQuery:
    """The latest result of a query, and where those before it lie.

    Words: `seen_from` is the offset from which on everything of the query was seen; what lies below may be in the log.
    The *index* has the last results by window end, at least 1,024 of them once there are as many, at most twice that,
    16 bytes each. Initially there is no result. Invariant: window ends and offsets of the index both ascend.
    """

    __slots__ = ("_ends", "_offsets", "latest", "partition", "seen_from")

    def __init__(self, partition: int, seen_from: int) -> None:
        self.partition = partition
        self.seen_from = seen_from
        self.latest: tuple[Result, ResultPosition] | None = None
        self._ends = array("q")
        self._offsets = array("q")

    def is_unknown(self) -> bool:
        """Whether no result was seen, though one may lie further back in the log."""
        return self.latest is None and self.seen_from > 0

    @property
    def indexed_from(self) -> int:
        """The offset below which results of the query are not in the index."""
        return self._offsets[0] if self._offsets else self.seen_from

    def take(self, result: Result, offset: int) -> None:
        """Make `result` the latest. Cost: constant, amortised."""
        self.latest = result, ResultPosition(self.partition, offset)
        if self._ends and result.window_end <= self._ends[-1]:
            return
        self._ends.append(result.window_end)
        self._offsets.append(offset)
        if len(self._ends) > 2 * _KEPT:
            del self._ends[:_KEPT], self._offsets[:_KEPT]

    def offset_of(self, window_end: int) -> int | None:
        """Return where the result of a window end lies, None if it is not in the index. Cost: a binary search."""
        place = bisect_left(self._ends, window_end)
        if place == len(self._ends) or self._ends[place] != window_end:
            return None
        return self._offsets[place]

    def spans(self, window_end: int) -> bool:
        """Return whether the index would have the result of this window end, if there was one."""
        return bool(self._ends) and window_end >= self._ends[0]
