"""How far a shard has been read, in event time."""

from collections.abc import Collection
from dataclasses import dataclass

from skyband.coverage.source_partition import SourcePartition
from skyband.model.duration import MIN_TIME_US

__all__ = ["Frontier", "Holder"]


@dataclass(frozen=True, slots=True)
class Holder:
    """The source partition that holds the frontier: its stream, partition and watermark, and whether it is idle."""

    stream: str
    partition: int
    watermark_us: int
    is_idle: bool


class Frontier:
    """The least time that the source partitions of a group let pass.

    A partition *counts* as its watermark; while its idle lease runs, as the group's newest event time less its
    max_delay, if that is more; a finished one does not count. When every partition is idle or finished, the group is
    *settled* up to its newest accepted event time, and the frontier stands at least at the first pane boundary above.

    Two partitions, max_delay 2, pane 1:

    ====================  =======  =======  ========  ====================================
    what happens          a        b        frontier  why
    ====================  =======  =======  ========  ====================================
    both read             5        3        3         the least watermark; the newest is 7
    b is idle             5        idle: 5  5         b counts as 7 - 2
    a is idle too         idle: 5  idle: 5  8         settled at 7
    b reads again         idle: 5  4        8         never back; rows below 8 are overtaken
    ====================  =======  =======  ========  ====================================

    `clock_us` is the newest writer's clock seen; leases are compared with it, never with the reader's own clock.
    Initially nothing is known. Invariant: frontier, settled, newest and clock never go back.
    """

    def __init__(self, pane_us: int) -> None:
        self._pane_us = pane_us
        self.frontier_us = MIN_TIME_US
        self.settled_us = MIN_TIME_US
        self.clock_us = MIN_TIME_US
        self.newest_us = MIN_TIME_US

    def advance(self, sources: Collection[SourcePartition], written_us: int) -> None:
        """Move on to what `sources` say at the writers' clock `written_us`. Cost: the number of partitions."""
        clock = self.clock_us = max(self.clock_us, written_us)
        newest = self.newest_us = max(self.newest_us, max((s.newest_us for s in sources), default=MIN_TIME_US))
        counting = [s for s in sources if not s.is_finished]
        if counting:
            self.frontier_us = max(self.frontier_us, min(s.counted_us(clock, newest) for s in counting))
        if newest > MIN_TIME_US and all(s.is_idle(clock) for s in counting):
            self.settled_us = max(self.settled_us, newest)
            self.frontier_us = max(self.frontier_us, (newest // self._pane_us + 1) * self._pane_us)

    def holder(self, sources: Collection[SourcePartition]) -> Holder | None:
        """Return which partition lets the frontier go least far (of several the first), or None if settled."""
        counting = [s for s in sources if not s.is_finished]
        if all(s.is_idle(self.clock_us) for s in counting):
            return None
        least = min(counting, key=lambda s: (s.counted_us(self.clock_us, self.newest_us), s.place))
        return Holder(least.stream_name, least.place.partition, least.watermark_us, least.is_idle(self.clock_us))
