"""Gathers the facts: asks Kafka, and reads the catalog and the newest reports."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from services.doctor.facts import GroupFacts, Lag, Reported, Reports, SourceTopic, TopicFacts
from services.runtime.groups import GroupWatch
from services.runtime.kafka_log import KafkaLog
from services.runtime.topics import Topics
from skyband.align.topics import consumer_group
from skyband.errors import LogError
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.partials import MergeProgress
from skyband.model.resources import GroupResource
from skyband.model.status import ShardReport, SourceReport
from skyband.model.stream import Stream

__all__ = ["groups", "newest_report_us", "read_progress", "topics"]

_PROGRESS = "progress"
# Reports come about once a second from each shard and source: this reaches back at least a few seconds.
_REPORTS_READ = 10_000
_READ_S = 15.0
_BATCH = 1_000


def topics(log: KafkaLog) -> list[TopicFacts]:
    """Return what there is of Skyband's topics, but those of groups. Raises LogError if Kafka cannot be reached."""
    known = Topics()
    found = []
    for name, partitions in known.partitions().items():
        wanted = known.topic_of(name).cleanup
        if log.is_missing(name):
            found.append(TopicFacts(name, None, "", partitions, wanted))
        else:
            cleanup = log.topic_config(name).get("cleanup.policy", wanted)
            found.append(TopicFacts(name, log.partitions(name), cleanup, partitions, wanted))
    return found


def groups(log: KafkaLog, progress: Sequence[Record]) -> list[GroupFacts]:
    """Return all groups of the catalog with what there is to know of them; `progress` is what `read_progress` read."""
    reports = _reports(progress)
    found = []
    for resource in _catalog(log):
        told = reports.get((resource.group.name, resource.generation), Reports())
        found.append(GroupFacts(resource, tuple(_sources(log, resource)), told))
    return found


def read_progress(log: RecordLog) -> list[Record]:
    """Return the newest records of the progress topic. Raises LogError if they do not come in time."""
    consumer = log.consumer()
    try:
        places = [Position(_PROGRESS, partition) for partition in range(log.partitions(_PROGRESS))]
        begins, ends = consumer.begin_offsets(places), consumer.end_offsets(places)
        cursors = {at: max(begins[at], ends[at] - _REPORTS_READ) for at in places}
        consumer.assign(dict(cursors))
        records: list[Record] = []
        give_up_s = time.monotonic() + _READ_S
        while any(cursors[at] < ends[at] for at in places):
            if time.monotonic() > give_up_s:
                raise LogError(
                    f"the reports of topic {_PROGRESS!r} cannot be read within {_READ_S:g} s; see the broker"
                )
            for record in consumer.poll(_BATCH, 0.2):
                cursors[Position(record.topic, record.partition)] = record.next_offset
                records.append(record)
        return records
    finally:
        consumer.close()


def newest_report_us(progress: Sequence[Record]) -> int | None:
    """Return when the newest report was written, on its writer's clock; None if there is none."""
    return max((record.timestamp_us for record in progress if record.value is not None), default=None)


def _reports(progress: Sequence[Record]) -> dict[tuple[str, int], Reports]:
    shards: defaultdict[tuple[str, int], dict[int, Reported[ShardReport]]] = defaultdict(dict)
    sources: defaultdict[tuple[str, int], dict[tuple[str, int], Reported[SourceReport]]] = defaultdict(dict)
    merges: dict[tuple[str, int], Reported[MergeProgress]] = {}
    for record in progress:
        value, at_us = record.value, record.timestamp_us
        match value:
            case ShardReport():
                shards[value.group, value.generation][value.shard] = Reported(value, at_us)
            case SourceReport():
                key = value.stream, value.partition
                sources[value.group, value.generation][key] = Reported(value, at_us)
            case MergeProgress():
                merges[value.group, value.generation] = Reported(value, at_us)
    keys = shards.keys() | sources.keys() | merges.keys()
    return {key: Reports(shards[key], sources[key], merges.get(key)) for key in keys}


def _catalog(log: RecordLog) -> list[GroupResource]:
    watch = GroupWatch(log)
    try:
        give_up_s = time.monotonic() + _READ_S
        while not watch.is_current:
            if time.monotonic() > give_up_s:
                raise LogError(f"the catalog cannot be read within {_READ_S:g} s; see the broker")
            watch.poll(0.2)
        return [watch.groups[name] for name in sorted(watch.groups)]
    finally:
        watch.close()


def _sources(log: KafkaLog, resource: GroupResource) -> Iterator[SourceTopic]:
    consumer = log.consumer(consumer_group(resource.group.name, resource.generation))
    try:
        for stream in resource.group.streams:
            found = _topic(log, stream)
            if found.topic_id is not None:
                places = [Position(found.topic, partition) for partition in range(log.partitions(found.topic))]
                begins, ends = consumer.begin_offsets(places), consumer.end_offsets(places)
                stored = consumer.committed(places)
                lags = [Lag(begins[at], ends[at], stored[at].offset if at in stored else None) for at in places]
                found = replace(found, lags=tuple(lags))
            yield found
    finally:
        consumer.close()


def _topic(log: KafkaLog, stream: Stream) -> SourceTopic:
    topic = stream.topic or stream.name
    return SourceTopic(stream.name, topic, None if log.is_missing(topic) else log.topic_id(topic))
