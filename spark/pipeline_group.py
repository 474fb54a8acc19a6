"""What a pipeline runs: a group of the catalog, or one of a file of definitions."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from services.runtime.groups import GroupWatch
from services.runtime.kafka_log import KafkaLog
from services.runtime.registry_settings import RegistrySettings
from skyband.align.source import SourceKey
from skyband.errors import CoverageGapError, DefinitionError, LogError, NotFoundError
from skyband.files.definitions import load_definitions
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.planner import plan
from skyband.model.query import Query, QueryState
from skyband.model.resources import GroupResource
from spark.pipeline_plan import PipelinePlan

__all__ = ["Begins", "check_queries", "find_begins", "find_group", "plan_of_definitions", "plan_of_group", "topic_of"]

_FIRST_GENERATION = 1
_LOOK_S = 0.5

Begins = Mapping[str, Mapping[int, int]]


def find_group(log: KafkaLog, name: str) -> GroupResource:
    """Return a group as the catalog has it now. Raises NotFoundError if it has none of that name."""
    watch = GroupWatch(log)
    try:
        while not watch.is_current:
            watch.poll(_LOOK_S)
        found = watch.groups.get(name)
        if found is None:
            known = ", ".join(sorted(watch.groups)) or "none"
            raise NotFoundError(f"the catalog has no group {name!r}; it has {known}")
        return found
    finally:
        watch.close()


def plan_of_group(log: KafkaLog, resource: GroupResource) -> PipelinePlan:
    """Return how to run the generation that the catalog names.

    Raises LogError for a source topic that was deleted and made anew: its offsets mean other records.
    """
    group = resource.group
    begun = {start.stream: start.topic_id for start in resource.sources}
    for stream in group.streams:
        topic, asked = topic_of(group, stream.name), begun.get(stream.name)
        if asked and log.topic_id(topic) != asked:
            raise LogError(
                f"topic {topic!r} of stream {stream.name!r} was deleted and made anew; read the new one with "
                f"`skyband groups regenerate {group.name}`"
            )
    listed = {(group.stream_index(its.stream), its.partition): its.offset for its in resource.sources}
    return _plan(group, resource.generation, {**_all_lowest(log, group), **listed}, ())


def plan_of_definitions(log: KafkaLog, path: Path) -> PipelinePlan:
    """Return how to run what a file defines, from where its topics begin now.

    A query's uid is ``<group>.<query>``.
    """
    found = load_definitions(path)
    group = found.group
    queries = tuple(_change(group, query) for query in found.queries)
    return _plan(group, _FIRST_GENERATION, _all_lowest(log, group), queries)


def topic_of(group: Group, stream: str) -> str:
    """Return the topic that brings a stream."""
    its = group.streams[group.stream_index(stream)]
    return its.topic or its.name


def find_begins(log: KafkaLog, plan: PipelinePlan) -> Begins:
    """Return at which offset to begin to read each partition of each source topic.

    Raises CoverageGapError if offsets that the generation begins with are gone.
    """
    begins: dict[str, dict[int, int]] = {}
    for index, stream in enumerate(plan.group.streams):
        topic = topic_of(plan.group, stream.name)
        begins[topic] = {}
        for partition, lowest in _lowest(log, topic).items():
            start = plan.starts.get((index, partition), lowest)
            if start < lowest:
                raise _gap(plan, stream.name, Position(topic, partition), start, lowest)
            begins[topic][partition] = start
    return begins


def check_queries(plan: PipelinePlan) -> None:
    """Raise DefinitionError if a pipeline that goes on has other queries of its file than it began with.

    They came before the catalog's changes, and count in its offsets.
    """
    known = {uid: mark.change.query for uid, mark in plan.carried.items() if uid.startswith(f"{plan.group.name}.")}
    asked = {change.uid: change.query for change in plan.queries}
    if asked and known and asked != known:
        differ = sorted({uid for uid in asked.keys() | known.keys() if asked.get(uid) != known.get(uid)})
        raise DefinitionError(
            f"the file has other queries than this pipeline began with: {', '.join(differ)}; give it another "
            "checkpoint folder and these queries other names, or use the catalog"
        )


def _all_lowest(log: KafkaLog, group: Group) -> dict[SourceKey, int]:
    """Return the first offset that is left of each source partition."""
    lowest = {index: _lowest(log, topic_of(group, stream.name)) for index, stream in enumerate(group.streams)}
    return {(index, partition): offset for index, each in lowest.items() for partition, offset in each.items()}


def _lowest(log: KafkaLog, topic: str) -> dict[int, int]:
    consumer = log.consumer()
    try:
        found = consumer.begin_offsets([Position(topic, partition) for partition in range(log.partitions(topic))])
    finally:
        consumer.close()
    return {position.partition: offset for position, offset in found.items()}


def _gap(plan: PipelinePlan, stream: str, place: Position, start: int, lowest: int) -> CoverageGapError:
    name, generation = plan.group.name, plan.generation
    return CoverageGapError(
        f"stream {stream!r}, partition {place.partition}: offsets {start} to {lowest - 1} of topic {place.topic!r}, "
        f"with which generation {generation} begins, are gone; accept the loss with `skyband groups regenerate {name}`",
        stream=stream,
        partition=place.partition,
        expected=start,
        found=lowest,
    )


def _plan(
    group: Group, generation: int, starts: Mapping[SourceKey, int], queries: tuple[QueryChange, ...]
) -> PipelinePlan:
    return PipelinePlan(
        run=uuid.uuid4().hex,
        group=group,
        generation=generation,
        starts=starts,
        queries=queries,
        registry=RegistrySettings(),
    )


def _change(group: Group, query: Query) -> QueryChange:
    return QueryChange(
        uid=f"{group.name}.{query.name}",
        revision=1,
        group=group.name,
        query=replace(query, algorithm=plan(group, query).algorithm),
        state=QueryState.ACTIVE,
    )
