"""The one failure of a commit that a reader survives."""

from skyband.errors import LogError

__all__ = ["CommitRefusedError"]


class CommitRefusedError(LogError):
    """A commit came after its group had shared the partitions out anew: nothing is stored.

    The reader goes on: its next poll tells which partitions it has lost, and who reads them now begins at what was
    committed before.
    """
