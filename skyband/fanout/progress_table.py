"""How far every shard has told, in every partition read."""

from collections.abc import Iterable, Sequence

import numpy as np

from skyband.fanout.activation import ShardProgress
from skyband.model.duration import MIN_TIME_US
from skyband.model.partials import Progress

__all__ = ["ProgressTable"]


class ProgressTable:
    """The furthest frontier and settled time by (partition, shard); initially the beginning of time.

    Entries only grow: a shard that restarts repeats what it said before.
    """

    __slots__ = ("_frontier", "_frontier_us", "_offset", "_row_of", "_settled", "_shards")

    def __init__(self, partitions: Sequence[int], shards: int) -> None:
        self._shards = shards
        self._row_of = {partition: row for row, partition in enumerate(partitions)}
        self._frontier = np.full((len(self._row_of), shards), MIN_TIME_US, np.int64)
        self._settled = self._frontier.copy()
        self._offset = np.full((len(self._row_of), shards), -1, np.int64)
        self._frontier_us = MIN_TIME_US

    @property
    def frontier_us(self) -> int | None:
        """The least frontier, None while some shard has told nothing."""
        return None if self._frontier_us == MIN_TIME_US else self._frontier_us

    def update(self, progress: Progress, partition: int, offset: int) -> None:
        """Take a shard's progress. Cost: the size of the table, in numpy."""
        self._raise(ShardProgress(partition, progress.shard, progress.frontier_us, progress.settled_us, offset))
        self._frontier_us = int(self._frontier.min())

    def limit_us(self, slide: int) -> int:
        """Return the largest T that all cover: T <= frontier or T - slide <= settled, as in Progress.covers."""
        return int(np.maximum(self._frontier, self._settled + slide).min())

    def covered_by(self, partition: int, shard: int, slide: int) -> int:
        """Return the largest T that one shard's progress in one partition covers for this slide."""
        place = self._row_of[partition], shard
        return max(int(self._frontier[place]), int(self._settled[place]) + slide)

    def told_since(self, partition: int, shard: int, offset: int) -> bool:
        """Return whether a shard told its progress behind `offset`; always so for a partition not read here."""
        row = self._row_of.get(partition)
        return row is None or bool(self._offset[row, shard] > offset)

    def hindmost(self) -> int:
        """Return the shard with the least frontier."""
        return int(self._frontier.min(axis=0).argmin())

    def entries(self) -> tuple[ShardProgress, ...]:
        """Return the table as values."""
        tables = (self._frontier, self._settled, self._offset)
        return tuple(
            ShardProgress(partition, shard, *(int(table[row, shard]) for table in tables))
            for partition, row in self._row_of.items()
            for shard in range(self._shards)
            if self._offset[row, shard] >= 0
        )

    def restore(self, entries: Iterable[ShardProgress]) -> None:
        """Take stored values; those of partitions not read here are left out."""
        for entry in entries:
            if entry.partition in self._row_of:
                self._raise(entry)
        self._frontier_us = int(self._frontier.min())

    def _raise(self, told: ShardProgress) -> None:
        place = self._row_of[told.partition], told.shard
        self._frontier[place] = max(int(self._frontier[place]), told.frontier_us)
        self._settled[place] = max(int(self._settled[place]), told.settled_us)
        self._offset[place] = max(int(self._offset[place]), told.offset)
