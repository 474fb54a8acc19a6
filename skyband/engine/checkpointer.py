"""When a shard may be restarted from where: its marks, and the checkpoint they allow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skyband.coverage.replay_horizon import ReplayHorizon
from skyband.engine.checkpoint import Checkpoint
from skyband.engine.shard import Shard

__all__ = ["Checkpointer"]


class Checkpointer:
    """Follows one shard. Initially there is no checkpoint: a restart reads the aligned log from its beginning.

    `snapshot`: the checkpoint of the snapshot that the shard has gone on from. A restart goes on from there, too, and
    is silent up to what is done by then, until there is a checkpoint that needs no snapshot.
    """

    def __init__(self, shard: Shard, snapshot: Checkpoint | None = None) -> None:
        self._shard = shard
        self._snapshot = snapshot
        self._horizon = ReplayHorizon(shard.group.retention_us, shard.group.retention_rows)

    def before(self, aligned_offset: int) -> None:
        """Note that the batch at this offset comes next. Cost: mostly one comparison."""
        sequencer = self._shard.sequencer
        self._horizon.mark(aligned_offset, sequencer.newest_us, sequencer.newest_release_us, self._standing)

    def checkpoint(self, aligned_offset: int) -> Checkpoint | None:
        """Return the newest checkpoint that is safe, None if there is none yet, or the shard still replays.

        `aligned_offset` is that of the next batch. All that the shard has told must be stored before the checkpoint is.
        """
        shard = self._shard
        if shard.is_replaying:
            return None
        mark = self._horizon.advance(shard.taken_until_us, shard.taken_rows, shard.passed_us)
        done = shard.done(aligned_offset)
        if mark is None:
            return None if self._snapshot is None else replace(self._snapshot, done=done)
        standing = mark.state["standing"]
        return Checkpoint(shard.group.name, shard.generation, shard.shard, mark.aligned_offset, standing, done)

    def _standing(self) -> Mapping[str, Any]:
        return {"standing": self._shard.standing()}
