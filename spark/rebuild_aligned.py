"""Rebuilds from the aligned log of the generation that runs: the same rows and times, on other shards."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

from skyband.align.notes import start_of
from skyband.align.source import CATALOG_KEY, SourceKey, SourceStart
from skyband.align.topics import aligned_topic, consumer_group
from skyband.control.stage import CATALOG_TOPIC
from skyband.errors import ConflictError, LogError
from skyband.log.record_log import Position
from skyband.model.rebuild import Rebuild
from spark.archive_store import ArchiveStore
from spark.rebuild_catalog import known_before
from spark.rebuild_history import AlignedHistory
from spark.rebuild_job import RebuildJob, Writing
from spark.rebuild_plan import moved_of, sources_of
from spark.rebuild_rekey import NewShards, alike, readers_of
from spark.rebuild_survey import Survey, spans_of
from spark.rebuild_target import ends_of
from spark.rebuild_tasks import shards_of, survey_of, write_rekeyed

__all__ = ["write_from_aligned"]


def write_from_aligned(job: RebuildJob, its: Writing) -> Rebuild:
    """Write the new log out of the old one, whose rows it has, and return what was made."""
    old, group = its.view.resource, its.group
    # What is committed is in all logs whose ends are asked for afterwards.
    committed = _committed(job, its)
    history = AlignedHistory(
        kafka=job.log.settings,
        group=old.group,
        generation=old.generation,
        ends=_ends(job, its),
        archive=job.settings.archive,
        since_us=its.rebuild.since_us,
    )
    surveys = _surveys(job, history)
    spans = spans_of(surveys, committed)
    moved = moved_of(group, spans, its.topics)
    new = NewShards(
        group=group.name,
        generation=its.rebuild.generation,
        wanted=(0,),
        shards=group.shards,
        old_shards=old.group.shards,
        width=group.width,
        writer=its.writer,
        spans=spans,
        silent=frozenset(key for key in spans if key != CATALOG_KEY and not all(key in each.spans for each in surveys)),
        moved=moved,
        catalog=known_before(its.view.changes, spans[CATALOG_KEY].from_offset),
        since_us=its.rebuild.since_us,
    )
    task = partial(write_rekeyed, job.log.settings, its.topic, history)
    leads = [readers_of(shard, group.shards, old.group.shards)[0] for shard in range(group.shards)]
    expected = sum(surveys[lead].batches for lead in leads)
    parts = alike(group.shards, old.group.shards, job.session.sparkContext.defaultParallelism)
    tasks = [replace(new, wanted=wanted) for wanted in parts]
    done = job.run_tasks("writing", job.each(tasks, task), its.topic, expected)
    return replace(
        its.rebuild,
        sources=sources_of(old, group, spans, moved, its.topics),
        catalog_to=spans[CATALOG_KEY].to_offset,
        shards=shards_of(done),
    )


def _surveys(job: RebuildJob, history: AlignedHistory) -> list[Survey]:
    task = partial(survey_of, history)
    found: list[Survey] = []
    for each in job.run_tasks("surveying", job.each(sorted(history.ends), task)):
        if isinstance(each, str):
            raise LogError(each)
        found.append(each)
    return sorted(found, key=lambda each: each.shard)


def _ends(job: RebuildJob, its: Writing) -> Mapping[int, int]:
    """Return up to where the old log is read."""
    old = its.view.resource
    topic = aligned_topic(old.group.name, old.generation)
    if not job.log.is_missing(topic):
        return ends_of(job.log, topic)
    if job.settings.archive is None:
        raise LogError(f"topic {topic!r} is not there any more; rebuild from an archive of it, or --history sources")
    store = ArchiveStore(job.settings.archive)
    ends = {shard: store.next_offset(old.group.name, old.generation, shard) for shard in range(old.group.shards)}
    if not any(ends.values()):
        raise ConflictError(f"the archive has nothing of {topic!r}, which is gone; rebuild with --history sources")
    return ends


def _committed(job: RebuildJob, its: Writing) -> dict[SourceKey, SourceStart]:
    """Return how far aligners have committed each source partition and the catalog."""
    old = its.view.resource
    keys: dict[Position, SourceKey] = {Position(CATALOG_TOPIC, 0): CATALOG_KEY}
    for index, stream in enumerate(old.group.streams):
        for partition in its.topics[stream.name].begins:
            keys[Position(stream.topic or stream.name, partition)] = (index, partition)
    with closing(job.log.consumer(consumer_group(old.group.name, old.generation))) as consumer:
        found = consumer.committed(list(keys))
    return {keys[at]: start_of(at, committed) for at, committed in found.items()}
