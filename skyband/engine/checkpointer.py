"""When a shard may be restarted from where: its marks, and the checkpoint they allow."""

from collections.abc import Mapping
from typing import Any

from skyband.coverage.replay_horizon import ReplayHorizon
from skyband.engine.checkpoint import Checkpoint
from skyband.engine.shard import Shard

__all__ = ["Checkpointer"]


class Checkpointer:
    """Follows one shard. Initially there is no checkpoint: a restart reads the aligned log from its beginning."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
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
        if mark is None:
            return None
        standing, done = mark.state["standing"], shard.done(aligned_offset)
        return Checkpoint(shard.group.name, shard.generation, shard.shard, mark.aligned_offset, standing, done)

    def _standing(self) -> Mapping[str, Any]:
        return {"standing": self._shard.standing()}
