"""What a merge stores at once, and reads back after a restart: the seam to the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.model.result import Result

__all__ = ["Commit", "Committed", "Committer", "GroupKey", "MarkKey"]

GroupKey = tuple[str, int]  # group, generation
MarkKey = tuple[str, int, str]  # group, generation, query uid


@dataclass(frozen=True, slots=True)
class Commit:
    """What becomes visible at once: results in order, changed marks and checkpoints (None: forget it)."""

    results: Sequence[Result]
    marks: Mapping[MarkKey, Mark | None]
    checkpoints: Mapping[GroupKey, MergeCheckpoint | None]


@dataclass(slots=True)
class Committed:
    """All that was committed so far: initially nothing."""

    marks: dict[MarkKey, Mark] = field(default_factory=dict)
    checkpoints: dict[GroupKey, MergeCheckpoint] = field(default_factory=dict)

    def marks_of(self, key: GroupKey) -> dict[str, Mark]:
        """Return the marks of one generation of a group, by query uid."""
        return {uid: mark for (*owner, uid), mark in self.marks.items() if tuple(owner) == key}


class Committer(Protocol):
    """Stores a commit entirely or not at all.

    If a call raises, the outcome is unknown: whoever uses it is discarded, and built anew from `load`.
    """

    def load(self) -> Committed:
        """Shut out whoever wrote before, and return what is committed; called once, before anything is read."""

    def commit(self, commit: Commit) -> None:
        """Store results, marks and checkpoints."""

    def tell(self, frontiers: Mapping[GroupKey, int]) -> None:
        """Tell all replicas that every result up to these frontiers is committed."""

    def close(self) -> None:
        """Give up what it holds."""
