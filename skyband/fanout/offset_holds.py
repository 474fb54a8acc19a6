"""How far a partition has been read, and from where it must be read again."""

from collections import deque

__all__ = ["Hold", "ReadPosition"]


class Hold:
    """A record that is still needed: `count` of its parts are not in a decided result yet."""

    __slots__ = ("count", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.count = 0


class ReadPosition:
    """One partition: the next offset to read, and the records read that are still needed.

    Holds lie in offset order; those let go are taken off the front when somebody asks. Invariant: a hold with count
    above 0 is in the queue, so `needed` is never past it.
    """

    __slots__ = ("_holds", "next_offset")

    def __init__(self, next_offset: int = 0) -> None:
        self.next_offset = next_offset
        self._holds: deque[Hold] = deque()

    def hold(self, hold: Hold) -> None:
        """Keep a record; its offset is not below those kept before."""
        self._holds.append(hold)

    def needed(self) -> int:
        """Return the least offset still needed: where a restart must begin. Amortised constant cost."""
        holds = self._holds
        while holds and holds[0].count == 0:
            holds.popleft()
        return holds[0].offset if holds else self.next_offset
