"""The engine as stages to be kept running: one for each generation of a group."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from services.engine.events import SHARD_RESTORED, SHARD_STOPPED
from services.engine.settings import EngineSettings
from services.runtime.keeper import Fleet
from services.runtime.process import Process
from services.runtime.telemetry import get_logger
from skyband.align.source import CATALOG_KEY
from skyband.align.stage import aligned_topic
from skyband.control.stage import PROGRESS_TOPIC
from skyband.engine.stage import EngineStage, EngineTopics, EngineTuning
from skyband.log.clock import SystemClock
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position
from skyband.model.resources import GroupResource

__all__ = ["engine_loop"]

PARTIALS_TOPIC = "partials"
CHECKPOINTS_TOPIC = "checkpoints"


class ToldEngine(EngineStage):
    """The stage, which logs where its shards go on and why they stop."""

    _told: frozenset[int] = frozenset()

    def step(self, timeout_s: float = 0.0) -> bool:
        """See `EngineStage.step`."""
        has_read = super().step(timeout_s)
        self._tell_stopped()
        return has_read

    def on_assigned(self, positions: Sequence[Position]) -> dict[Position, int]:
        """See `EngineStage.on_assigned`."""
        offsets = super().on_assigned(positions)
        ends = self._consumer.end_offsets(list(offsets))
        for at, offset in offsets.items():
            if at.partition not in self.stopped:
                self._log_event().info(SHARD_RESTORED, shard=at.partition, reads_from=offset, log_end=ends[at])
        return offsets

    def _tell_stopped(self) -> None:
        if self.stopped.keys() != self._told:
            for number in self.stopped.keys() - self._told:
                self._log_event().warning(SHARD_STOPPED, shard=number, why=str(self.stopped[number]))
            self._told = frozenset(self.stopped)

    def _log_event(self) -> Any:
        return get_logger(group=self._group.name, generation=self._generation)


def engine_loop(process: Process, settings: EngineSettings) -> Callable[[threading.Event], None]:
    """Return what runs shards of all groups of the catalog, sharing them with other processes of this kind."""
    tuning = EngineTuning(
        report_every_us=settings.report_ms * 1_000,
        checkpoint_every_us=int(settings.checkpoint_s * 1e6),
        max_pending_bytes=settings.max_pending_mb << 20,
    )

    def build(resource: GroupResource) -> "ToldEngine":
        group = resource.group
        streams = {stream.name: index for index, stream in enumerate(group.streams)}
        starts = {(streams[start.stream], start.partition): start.offset for start in resource.sources}
        topics = EngineTopics(
            aligned=aligned_topic(group.name, resource.generation),
            partials=PARTIALS_TOPIC,
            partials_partition=partition_of(group.name, process.log.partitions(PARTIALS_TOPIC)),
            progress=PROGRESS_TOPIC,
            checkpoints=CHECKPOINTS_TOPIC,
        )
        return ToldEngine(
            process.log,
            group,
            resource.generation,
            {CATALOG_KEY: 0, **starts},
            topics,
            clock=SystemClock(),
            tuning=tuning,
        )

    return Fleet(process.log, build, process.health, key=_generation).run


def _generation(resource: GroupResource) -> tuple[int, tuple[str, ...]]:
    """Return what another stage is needed for; a group that is deleted and made again has another generation."""
    return resource.generation, tuple(stream.name for stream in resource.group.streams)
