"""Sketch as stages to be kept running: one for each generation of a group, and one that clears away."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from services.runtime import topics
from services.runtime.keeper import Fleet, keep
from services.runtime.process import Process
from services.runtime.telemetry import get_logger
from services.sketch.events import SKETCH_RESTORED, SKETCH_STOPPED
from services.sketch.settings import SketchSettings
from services.sketch.sweep import Sweep
from skyband.align.source import CATALOG_KEY
from skyband.align.stage import aligned_topic
from skyband.log.clock import SystemClock
from skyband.log.record_log import Position
from skyband.model.resources import GroupResource
from skyband.sketch.stage import SketchStage, SketchTopics, SketchTuning

__all__ = ["sketch_loop", "sweep_loop"]


class ToldSketch(SketchStage):
    """The stage, which logs where its shards go on and why they stop."""

    _told: frozenset[int] = frozenset()

    def step(self, timeout_s: float = 0.0) -> bool:
        """See `SketchStage.step`."""
        has_read = super().step(timeout_s)
        if self.stopped.keys() != self._told:
            for number in self.stopped.keys() - self._told:
                self._log_event().warning(SKETCH_STOPPED, shard=number, why=str(self.stopped[number]))
            self._told = frozenset(self.stopped)
        return has_read

    def on_assigned(self, positions: Sequence[Position]) -> dict[Position, int]:
        """See `SketchStage.on_assigned`."""
        offsets = super().on_assigned(positions)
        for at, offset in offsets.items():
            if at.partition not in self.stopped:
                self._log_event().info(SKETCH_RESTORED, shard=at.partition, reads_from=offset)
        return offsets

    def _log_event(self) -> Any:
        return get_logger(group=self._group.name, generation=self._generation)


def sketch_loop(process: Process, settings: SketchSettings) -> Callable[[threading.Event], None]:
    """Return what sketches shards of all groups of the catalog, sharing them with other processes of this kind."""
    tuning = SketchTuning(
        publish_every_us=int(settings.publish_s * 1e6),
        bitmaps=settings.bitmaps,
        sample_bytes=settings.sample_bytes,
    )

    def build(resource: GroupResource) -> ToldSketch:
        group = resource.group
        streams = {stream.name: index for index, stream in enumerate(group.streams)}
        starts = {(streams[start.stream], start.partition): start.offset for start in resource.sources}
        return ToldSketch(
            process.log,
            group,
            resource.generation,
            {CATALOG_KEY: 0, **starts},
            SketchTopics(aligned=aligned_topic(group.name, resource.generation)),
            clock=SystemClock(),
            tuning=tuning,
        )

    return Fleet(process.log, build, process.health, key=_generation).run


def sweep_loop(process: Process) -> Callable[[threading.Event], None]:
    """Return what removes the statistics of groups and generations that are gone."""

    def build() -> Sweep:
        topics.apply(process.log)
        return Sweep(process.log)

    return lambda stop: keep("sweep", build, stop, process.health)


def _generation(resource: GroupResource) -> tuple[int, tuple[str, ...]]:
    """Return what another stage is needed for; a group that is deleted and made again has another generation."""
    return resource.generation, tuple(stream.name for stream in resource.group.streams)
