"""Which window ends of which queries wait for time to pass them."""

import heapq

from skyband.fanout.tracked_query import TrackedQuery

__all__ = ["Due", "Schedule"]

# Window end, query name, uid, query: compared by the first three.
Due = tuple[int, str, str, TrackedQuery]


class Schedule:
    """Undecided slots of all queries with one slide; initially none.

    Invariant: the heap of window ends and the dict of slots have the same keys.
    """

    __slots__ = ("_ends", "_slots")

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._slots: dict[int, list[Due]] = {}

    def add(self, due: Due) -> None:
        """Add a slot. Cost: constant, but for the first at a window end (log of their number)."""
        slots = self._slots.get(due[0])
        if slots is None:
            slots = self._slots[due[0]] = []
            heapq.heappush(self._ends, due[0])
        slots.append(due)

    def pending(self) -> list[Due]:
        """Return all slots."""
        return [due for slots in self._slots.values() for due in slots]

    def take(self, limit_us: int, into: list[Due]) -> None:
        """Move the slots with a window end of at most `limit_us` to `into`."""
        while self._ends and self._ends[0] <= limit_us:
            into += self._slots.pop(heapq.heappop(self._ends))
