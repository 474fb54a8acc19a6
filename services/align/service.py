"""Align as stages to be kept running: one for each group."""

import os
import socket
import threading
from collections.abc import Callable

from services.align.events import SOURCE_GAP
from services.align.settings import AlignServiceSettings
from services.runtime.kafka_log import KafkaLog
from services.runtime.keeper import Fleet
from services.runtime.process import Process
from services.runtime.source_decoder import make_decoder
from services.runtime.telemetry import get_logger
from skyband.align.source import SourceKey
from skyband.align.stage import AlignSettings, AlignStage
from skyband.control.stage import PROGRESS_TOPIC
from skyband.errors import LogError
from skyband.log.clock import SystemClock
from skyband.model.resources import GroupResource

__all__ = ["align_loop"]


class ToldAlign(AlignStage):
    """The stage, which logs what it cannot read."""

    _told: frozenset[SourceKey] = frozenset()

    def step(self, timeout_s: float = 0.0) -> bool:
        """See `AlignStage.step`."""
        was_done = super().step(timeout_s)
        if self._gaps.keys() != self._told:
            for key in self._gaps.keys() - self._told:
                get_logger(group=self._group.name).warning(SOURCE_GAP, why=str(self._gaps[key]))
            self._told = frozenset(self._gaps)
        return was_done


def align_loop(process: Process, settings: AlignServiceSettings) -> Callable[[threading.Event], None]:
    """Return what aligns all groups of the catalog, sharing them with other processes of this kind."""
    schemas = settings.schemas()
    writer = process.settings.member or f"align-{socket.gethostname()}-{os.getpid()}"

    def build(resource: GroupResource) -> "ToldAlign":
        group = resource.group
        _check_topics(process.log, resource)
        decoders = {stream.topic or stream.name: make_decoder(stream, schemas) for stream in group.streams}
        return ToldAlign(
            process.log.reading(decoders),
            SystemClock(),
            group,
            resource.generation,
            group.shards,
            settings=AlignSettings(
                writer=writer,
                batch_rows=settings.batch_rows,
                flush_interval_us=settings.flush_ms * 1_000,
                commit_interval_us=settings.commit_ms * 1_000,
                poll_records=settings.poll_records,
                progress_topic=PROGRESS_TOPIC,
            ),
        )

    # All of the group is the key: a change of max_drift needs another stage too, and costs no more than a flush.
    fleet = Fleet(process.log, build, process.health, key=lambda resource: (resource.generation, resource.group))
    return fleet.run


def _check_topics(log: KafkaLog, resource: GroupResource) -> None:
    """Refuse a topic that was deleted and made anew: its offsets mean other records, and would pass for repeats."""
    begun = {start.stream: start.topic_id for start in resource.sources}
    for stream in resource.group.streams:
        topic = stream.topic or stream.name
        if log.topic_id(topic) != begun.get(stream.name, log.topic_id(topic)):
            raise LogError(
                f"topic {topic!r} of stream {stream.name!r} was deleted and made anew; read the new one with "
                f"`skyband groups regenerate {resource.group.name}`"
            )
