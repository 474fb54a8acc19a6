"""Full snapshots of rebuilt shards, for those that would be too long in reading their log again.

A snapshot stands at a *cut*: before the first batch that would let a window end be evaluated whose result is not
written yet. So an engine that goes on from it tells all that is still to be told, and fanout drops the rest.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from services.runtime.settings import KafkaSettings
from skyband.align.source import SourceKey
from skyband.align.topics import aligned_topic
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.coverage import CATALOG, Coverage
from skyband.coverage.frontier import Frontier
from skyband.coverage.sequencer import Sequencer
from skyband.coverage.source_partition import Place
from skyband.engine.settings import EngineTuning
from skyband.engine.shard import Shard
from skyband.engine.snapshot import Snapshot
from skyband.engine.snapshot_records import REBUILT, write_snapshot
from skyband.log.read_range import read_range
from skyband.log.record_log import Consumer, Position
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.rebuild import RebuiltShard
from spark.archive_accepted import check_place
from spark.rebuild_history import log_of
from spark.rebuild_tasks import Done, told

__all__ = ["REPLAY_ROWS_PER_S", "Cut", "SnapshotPlan", "snapshot_at_cut", "write_snapshot_of"]

# What an engine reads again in a second at the least: half of what a core does over Kafka.
REPLAY_ROWS_PER_S = 250_000
_CHECKPOINTS = "checkpoints"

Batches = Iterator[tuple[int, AlignedBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPlan:
    """What tasks are told: of which generation, with which it begins, and up to where results are written."""

    kafka: KafkaSettings
    group: Group
    generation: int
    starts: Mapping[SourceKey, int]
    written_us: int
    longest_slide_us: int
    rebuild_id: str
    ends: Mapping[int, int]


class Cut:
    """Finds the cut of a shard's log, batch by batch, without its rows. Initially nothing is read."""

    def __init__(self, plan: SnapshotPlan, shard: int) -> None:
        self._plan = plan
        self._coverage = Coverage(plan.group, plan.generation, shard)
        self._frontier = Frontier(plan.group.pane_us)
        self._known: set[Place] = {CATALOG}
        for key, offset in sorted(plan.starts.items()):
            self._add(Place(*key), offset)

    def is_before(self, batch: AlignedBatch) -> bool:
        """Return whether the cut lies before this batch, which is the next; it is taken in."""
        for section in batch.sections:
            place = Place(section.stream, section.partition)
            if place not in self._known:
                self._add(place, section.from_offset, self._frontier.frontier_us)
        for step in self._coverage.plan(batch).steps:
            step.source.cover(step.section, batch.written_us)
        its = self._frontier
        its.advance(self._coverage.sources, batch.written_us)
        # Where all is idle, window ends up to one slide behind the newest row are evaluated.
        settled_us = its.settled_us + self._plan.longest_slide_us if its.settled_us > MIN_TIME_US else MIN_TIME_US
        return max(its.frontier_us, settled_us) > self._plan.written_us

    def _add(self, place: Place, offset: int, watermark_us: int = MIN_TIME_US) -> None:
        self._coverage.add(place, offset, watermark_us)
        self._known.add(place)


def snapshot_at_cut(plan: SnapshotPlan, shard: int, batches: Batches) -> Snapshot | None:
    """Return what a shard holds at the cut of its log; None if that lies before the first row.

    Cost: what an engine takes for it. Raises what an engine raises.
    """
    cut = Cut(plan, shard)
    sequencer = Sequencer(plan.group, plan.generation, shard, plan.starts, EngineTuning().max_pending_bytes)
    its = Shard(plan.group, plan.generation, shard, sequencer)
    rows = end = 0
    for offset, batch in batches:
        if cut.is_before(batch):
            return its.snapshot(offset) if rows else None
        for section in batch.sections:
            if not sequencer.knows((section.stream, section.partition)):
                sequencer.add_partition((section.stream, section.partition), section.from_offset)
        its.offer(batch)
        its.advance()
        rows += batch.rows
        end = offset + 1
    return its.snapshot(end) if rows else None


def write_snapshot_of(plan: SnapshotPlan, its: RebuiltShard, attempt: str) -> Done:
    """Write the snapshot of a rebuilt shard, if it has a cut; return the shard with what was written.

    `attempt`: another text each time, which tells the records of one attempt from those of others.
    """

    def task() -> Done:
        log = log_of(plan.kafka)
        with closing(log.consumer()) as consumer:
            snapshot = snapshot_at_cut(plan, its.shard, _batches(plan, its.shard, consumer))
        if snapshot is None:
            return Done((its,))
        writer = f"{REBUILT}{plan.rebuild_id}-{attempt}"
        with closing(log.producer()) as producer:
            manifest = write_snapshot(producer, _CHECKPOINTS, log.partitions(_CHECKPOINTS), snapshot, writer)
        name = manifest.snapshot
        size = 0 if name is None else name.bytes
        return Done((replace(its, snapshot_at=manifest.aligned_offset, snapshot_bytes=size),))

    return told(task)


def _batches(plan: SnapshotPlan, shard: int, consumer: Consumer) -> Batches:
    at = Position(aligned_topic(plan.group.name, plan.generation), shard)
    for record in read_range(consumer, at, 0, plan.ends[shard]):
        if record.value is not None:
            yield record.offset, check_place(record.value, plan.group.name, plan.generation, shard, record.offset)
