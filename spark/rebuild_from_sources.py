"""Rebuilds from source records, aligned anew as the streams are defined now."""

from contextlib import closing
from dataclasses import replace
from functools import partial

from skyband.align.source import SourceKey
from skyband.errors import ConflictError
from skyband.log.record_log import Position
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import QueryState
from skyband.model.rebuild import Rebuild, RebuiltSource
from skyband.model.stream import IdleThen, Stream
from spark.archive_store import ArchiveStore
from spark.rebuild_catalog import known_before
from spark.rebuild_job import RebuildJob, Writing
from spark.rebuild_pieces import Source
from spark.rebuild_tasks import Done, Pieces, shards_of, write_pieces

__all__ = ["write_from_sources"]


def write_from_sources(job: RebuildJob, its: Writing) -> Rebuild:
    """Write the new log out of archived records and source topics, and return what was made."""
    group = its.group
    found = [each for index in range(len(group.streams)) for each in _sources(job, its, index)]
    changes = its.view.changes
    plan = Pieces(
        kafka=job.log.settings,
        topic=its.topic,
        group=group,
        generation=its.rebuild.generation,
        writer=its.writer,
        now_us=its.rebuild.made_us,
        archive=job.settings.archive,
        registry=job.settings.registry,
        since_us=its.rebuild.since_us,
        until_us=_until_us(its),
        catalog=known_before(changes, its.view.end),
        catalog_to=its.view.end,
        keys=tuple(source.key for source, _ in found),
    )

    def run() -> list[Done]:
        return list(
            job.session.sparkContext.parallelize(found, len(found))
            .flatMap(lambda each: plan.of(*each))
            .repartitionAndSortWithinPartitions(group.shards, lambda order: order[0])
            .mapPartitions(partial(write_pieces, plan))
            .collect()
        )

    done = job.run_tasks("writing", run, its.topic)
    spans = done[0].spans
    sources = [_rebuilt(its, key, spans) for key in plan.keys]
    return replace(its.rebuild, sources=tuple(sources), catalog_to=its.view.end, shards=shards_of(done))


def _rebuilt(its: Writing, key: SourceKey, spans: object) -> RebuiltSource:
    stream, span = its.group.streams[key[0]], spans[key]  # type: ignore[index]
    return RebuiltSource(
        stream=stream.name,
        partition=key[1],
        topic_id=its.topics[stream.name].topic_id,
        from_offset=span.from_offset,
        to_offset=span.to_offset,
        watermark_us=span.watermark_us,
        newest_us=span.newest_us,
    )


def _until_us(its: Writing) -> int:
    """Return up to which time queries need not be known: their results are written; MIN_TIME_US: from the beginning."""
    active = [each.change.query for each in its.view.changes if each.change and each.change.state is QueryState.ACTIVE]
    # What counts rows, or sees each row but once, must have seen all of them.
    if any(query.window.in_rows or query.algorithm.forgets for query in active):
        return MIN_TIME_US
    return its.written_us


def _sources(job: RebuildJob, its: Writing, index: int) -> list[tuple[Source, bool]]:
    """Return the source partitions of a stream, and of each whether it is read from the archive first."""
    stream = its.group.streams[index]
    topic, live = stream.topic or stream.name, its.topics[stream.name]
    places = [Position(topic, partition) for partition in sorted(live.begins)]
    since_us, now_us = its.rebuild.since_us, its.rebuild.made_us
    with closing(job.log.consumer()) as consumer:
        ends = consumer.end_offsets(places)
        lately = consumer.offsets_at(places, now_us - stream.idle_after_us)
        begins = {Position(topic, partition): offset for partition, offset in live.begins.items()}
        if since_us is not None:
            # A record stored earlier has no event time from then on, or lies further ahead than is allowed.
            begins = consumer.offsets_at(places, max(0, since_us - stream.max_ahead_us))
    archived = _archived(job, its, stream)
    found = []
    for at in places:
        begin, is_archived = begins[at], False
        if at.partition in archived and begin == live.begins[at.partition]:
            begin, is_archived = min(begin, archived[at.partition]), archived[at.partition] < begin
        is_idle = stream.idle_then is IdleThen.FLUSH and lately[at] >= ends[at]
        source = Source(key=(index, at.partition), begin=begin, end=max(begin, ends[at]), is_idle=is_idle)
        found.append((source, is_archived))
    return found


def _archived(job: RebuildJob, its: Writing, stream: Stream) -> dict[int, int]:
    """Return the first archived offset of each partition of a stream."""
    if job.settings.archive is None:
        return {}
    store = ArchiveStore(job.settings.archive)
    topic = stream.topic or stream.name
    if store.state.topics.get(topic, its.topics[stream.name].topic_id) != its.topics[stream.name].topic_id:
        raise ConflictError(
            f"topic {topic!r} was made anew since it was archived: its offsets mean other records; rebuild with "
            "--history aligned"
        )
    folder = f"sources/group={its.group.name}/stream={stream.name}/partition="
    found: dict[int, int] = {}
    for file in store.state.files.values():
        if file.folder.startswith(folder):
            partition = int(file.folder.removeprefix(folder).split("/")[0])
            found[partition] = min(found.get(partition, file.first), file.first)
    return found
