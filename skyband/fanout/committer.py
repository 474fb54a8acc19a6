"""How results, marks and offsets are stored together: the seam for a log with transactions."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.log.clock import Clock
from skyband.log.record_log import Position, RecordLog
from skyband.model.catalog import QueryChange
from skyband.model.result import Result

__all__ = ["Commit", "Committed", "Committer", "GroupKey", "MarkKey", "PlainCommitter", "partition_of"]

GroupKey = tuple[str, int]  # group, generation
MarkKey = tuple[str, int, str]  # group, generation, query uid


@dataclass(frozen=True, slots=True)
class Commit:
    """What becomes visible at once: results in order, next offsets, changed marks (None: forget it), checkpoints."""

    results: Sequence[Result]
    offsets: Mapping[Position, int]
    marks: Mapping[MarkKey, Mark | None]
    checkpoints: Mapping[GroupKey, MergeCheckpoint]


@dataclass(slots=True)
class Committed:
    """All that was committed so far, and the queries known as of the committed catalog offset; initially nothing."""

    offsets: dict[Position, int] = field(default_factory=dict)
    marks: dict[MarkKey, Mark] = field(default_factory=dict)
    checkpoints: dict[GroupKey, MergeCheckpoint] = field(default_factory=dict)

    def apply(self, commit: Commit) -> None:
        """Take a commit."""
        self.offsets.update(commit.offsets)
        self.checkpoints.update(commit.checkpoints)
        for key, mark in commit.marks.items():
            if mark is None:
                self.marks.pop(key, None)
            else:
                self.marks[key] = mark

    def queries(self) -> list[QueryChange]:
        """Return the newest known revision of each query that has a mark."""
        return [mark.change for mark in self.marks.values()]


class Committer(Protocol):
    """Stores a commit entirely or not at all.

    If `commit` raises, the outcome is unknown: the stage is discarded, and a new one starts from `load`.
    """

    def load(self) -> Committed:
        """Return what is committed; called once, before anything is read."""

    def commit(self, commit: Commit) -> None:
        """Store results, offsets, marks and checkpoints."""

    def close(self) -> None:
        """Give up what it holds."""


class PlainCommitter:
    """Commits on a log without transactions: sends results, flushes, commits offsets, in this order.

    Marks and checkpoints live in this object, which is given to the next stage after a restart. They share the fate of
    a log in the same process; on a log that outlives the process, a crash would repeat results.
    """

    def __init__(
        self, log: RecordLog, clock: Clock, *, results: str = "results", reader: str = "skyband.fanout"
    ) -> None:
        self._clock = clock
        self._topic = results
        self._partitions = log.partitions(results)
        self._producer = log.producer()
        self._consumer = log.consumer(reader)
        self._committed = Committed()

    def load(self) -> Committed:
        """Return what is committed."""
        return self._committed

    def commit(self, commit: Commit) -> None:
        """Send the results, flush, commit the offsets, remember the rest."""
        now_us = self._clock.now_us()
        for result in commit.results:
            partition = partition_of(result.uid, self._partitions)
            self._producer.send(self._topic, partition, result, key=result.uid.encode(), timestamp_us=now_us)
        self._producer.flush()
        self._consumer.commit(commit.offsets)
        self._committed.apply(commit)

    def close(self) -> None:
        """Close producer and consumer; `load` still works."""
        self._producer.close()
        self._consumer.close()


def partition_of(uid: str, partitions: int) -> int:
    """Return the partition of `results` that holds a query's results, the same for ever."""
    return zlib.crc32(uid.encode()) % partitions
