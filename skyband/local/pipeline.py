"""All stages of one group in one process, over one record log.

::

    feed ─► source.<stream> ─► align ─► aligned.<group>.1 ─► engine ─► partials ─► fanout ─► results
                    control ─► catalog ───┘                     └─► progress ─► control
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.align.stage import AlignSettings, AlignStage, AlignStatistics, aligned_topic
from skyband.control.commands import Command, CreateGroup, CreateQuery, CreateStream
from skyband.control.stage import CATALOG_TOPIC, PROGRESS_TOPIC, ControlStage
from skyband.engine.shard_statistics import ShardStatistics
from skyband.engine.stage import EngineStage, EngineTopics
from skyband.fanout.merge_stage import ServedGroup
from skyband.fanout.stage import FanoutStage
from skyband.log.clock import Clock
from skyband.log.record_log import Position, RecordLog
from skyband.model.approximation import Approximation
from skyband.model.definitions import Definitions
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query
from skyband.model.resources import GroupSpec
from skyband.model.result import Result
from skyband.model.source_rows import DeadLetter, SourceRows
from skyband.model.stream import IdleThen

__all__ = ["LocalPipeline", "finished_input", "topics_of"]

_GENERATION = 1
_MARKS = Position("marks", 0)
_MAX_RECORDS = 10_000
_TEN_YEARS_US = 3_650 * 86_400_000_000


class LocalPipeline:
    """Runs control, align, engine and fanout one after the other; one thread owns it.

    `places` are the source partitions: (stream index, partition). Nothing here waits: `step` until it returns False,
    and what was fed has become results. Topics that exist already stay as they are.
    """

    def __init__(
        self,
        definitions: Definitions,
        log: RecordLog,
        clock: Clock,
        places: Sequence[SourceKey],
        *,
        align: AlignSettings | None = None,
    ) -> None:
        self.group = definitions.group
        for name, partitions in topics_of(self.group, places).items():
            log.create_topic(name, partitions)
        uids = itertools.count(1)
        self.control = ControlStage(log, clock, lambda: f"{next(uids):08d}")
        self._define(definitions)
        self._positions = {place: Position(f"source.{self.group.streams[place[0]].name}", place[1]) for place in places}
        sources = {**self._positions, CATALOG_KEY: Position(CATALOG_TOPIC, 0)}
        settings = replace(align or AlignSettings(), progress_topic=PROGRESS_TOPIC)
        self.align = AlignStage(log, clock, self.group, _GENERATION, self.group.shards, sources, settings=settings)
        topics = EngineTopics(aligned=aligned_topic(self.group.name, _GENERATION), progress=PROGRESS_TOPIC)
        self.engine = EngineStage(
            log,
            self.group,
            _GENERATION,
            dict.fromkeys(sources, 0),
            topics,
            clock=clock,
            shards=range(self.group.shards),
        )
        self.fanout = FanoutStage(log, clock, [ServedGroup(self.group.name, _GENERATION, self.group.shards)])
        self._marks = log.consumer("skyband.local.marks")
        self._marks.assign({_MARKS: 0})
        self._producer = log.producer()
        self._results = log.consumer("skyband.local.results")
        self._results.assign({Position("results", 0): 0})
        self._letters = log.consumer("skyband.local.dead-letters")
        self._letters.assign({Position("dead-letters", 0): 0})

    def _define(self, definitions: Definitions) -> None:
        commands: list[Command] = [CreateStream(stream) for stream in self.group.streams]
        commands.append(CreateGroup(GroupSpec.of(self.group)))
        commands += [CreateQuery(self.group.name, query) for query in definitions.queries]
        for command in commands:
            self.control.execute(command)

    def create_query(self, query: Query) -> None:
        """Add a query while rows flow."""
        self.control.execute(CreateQuery(self.group.name, query))

    def feed(self, place: SourceKey, from_offset: int, to_offset: int, rows: SourceRows) -> None:
        """Append rows of offsets [from_offset, to_offset) to a source partition."""
        position = self._positions[place]
        self._producer.send(position.topic, position.partition, rows, span=to_offset - from_offset)

    def finish(self, places: Iterable[SourceKey] | None = None) -> None:
        """Promise that these source partitions (None: all) get no more rows."""
        self.align.finish_at_end(places)

    def step(self) -> bool:
        """Let every stage take what is there; return whether any had something to do."""
        worked = self.align.step(0.0)
        worked |= self.engine.step(0.0)
        frontier_us = min(shard.sequencer.frontier_us for shard in self.engine.shards.values())
        if frontier_us > MIN_TIME_US:
            self.align.on_frontier(frontier_us)
        worked |= self.fanout.step(0.0)
        worked |= self.control.poll(_MAX_RECORDS, 0.0) > 0
        return worked

    def results(self) -> list[Result]:
        """Return the results since the last call, in order of (window end, query)."""
        records = self._results.poll(_MAX_RECORDS, 0.0)
        if records:
            self._results.commit({Position("results", 0): records[-1].next_offset})
            # For a restart of fanout alone, which there is none of here: a log that may drop them, may drop them all.
            self._marks.commit(self._marks.end_offsets([_MARKS]))
        return [record.value for record in records if isinstance(record.value, Result)]

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters since the last call."""
        records = self._letters.poll(_MAX_RECORDS, 0.0)
        if records:
            self._letters.commit({Position("dead-letters", 0): records[-1].next_offset})
        return [record.value for record in records if isinstance(record.value, DeadLetter)]

    @property
    def newest_us(self) -> int:
        """Newest accepted event time that the shards know of (MIN_TIME_US: none)."""
        return max((shard.sequencer.newest_us for shard in self.engine.shards.values()), default=MIN_TIME_US)

    def statistics(self) -> tuple[AlignStatistics, list[ShardStatistics]]:
        """Return what align and each shard have done."""
        return self.align.statistics(), [shard.statistics() for shard in self.engine.shards.values()]

    def approximations(self) -> dict[str, Approximation]:
        """Return how well each approximate query does, by its name."""
        found: dict[str, Approximation] = {}
        for resource in self.control.catalog.queries_of(self.group.name):
            uid = resource.stamp.uid
            of_shards = [s.query_statistics(uid) for s in self.engine.shards.values() if uid in s.uids()]
            parts = [part.approximation for part in of_shards if part.approximation is not None]
            together = Approximation.of(parts)
            if together is not None:
                found[resource.query.name] = together
        return found

    def close(self) -> None:
        """Close all stages."""
        for stage in (self.align, self.engine, self.fanout, self.control):
            stage.close()
        self._producer.close()
        self._results.close()
        self._marks.close()
        self._letters.close()


def topics_of(group: Group, places: Iterable[SourceKey]) -> dict[str, int]:
    """Return the names of a pipeline's topics with their numbers of partitions."""
    topics = {f"source.{stream.name}": 1 for stream in group.streams}
    for stream, partition in places:
        name = f"source.{group.streams[stream].name}"
        topics[name] = max(topics[name], partition + 1)
    topics[aligned_topic(group.name, _GENERATION)] = group.shards
    return topics | {CATALOG_TOPIC: 1, PROGRESS_TOPIC: 1, "partials": 1, "results": 1, "marks": 1, "dead-letters": 1}


def finished_input(definitions: Definitions) -> Definitions:
    """Return the definitions for input that ends: nothing is idle there, but finished, and none waits for another."""
    streams = tuple(replace(stream, idle_then=IdleThen.HOLD) for stream in definitions.group.streams)
    return replace(definitions, group=replace(definitions.group, streams=streams, max_drift_us=_TEN_YEARS_US))
