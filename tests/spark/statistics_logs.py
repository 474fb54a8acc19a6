"""Aligned logs for statistics: objects on several streams, late and again; repeats, and what a service makes of them.

The oracle is slow and by hand: rows are chosen one by one, and a shard of the service is fed with what is left.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.align.topics import aligned_topic
from skyband.control.catalog_events import Stored, to_record
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.record_log import RecordLog
from skyband.model.group import Group
from skyband.model.resources import GroupResource, Stamp
from skyband.model.resources import SourceStart as CatalogStart
from skyband.model.stream import Attribute, Stream
from skyband.sketch.publication import Publication, newest_publications
from skyband.sketch.settings import SketchTuning
from skyband.sketch.stage import SketchStage, SketchTopics
from spark.statistics_plan import Range, StatisticsPlan
from tests.oracle import Row
from tests.spark.archive_logs import Archive
from tests.workloads import source_rows

S = 1_000_000
BEGIN_US = 1_784_376_000 * S
SHARDS = 2
GROUP = Group(
    name="factory",
    streams=(
        Stream(name="heat", attributes=(Attribute(name="heat"),)),
        Stream(name="noise", attributes=(Attribute(name="noise"),)),
        Stream(name="spots", is_object_stream=True, attributes=(Attribute(name="x"), Attribute(name="y"))),
    ),
    retention_us=60 * S,
    shards=SHARDS,
)
PLACES = ((0, 0), (0, 1), (1, 0), (2, 0))
# Small, so that thresholds are halved and objects fall out of the sample.
TUNING = SketchTuning(bitmaps=16, sample_bytes=2_000)
RESOURCE = GroupResource(
    group=GROUP,
    generation=1,
    sources=tuple(CatalogStart(GROUP.streams[stream].name, partition, 0) for stream, partition in PLACES),
    stamp=Stamp("u", 1, 0, 0),
)


def aligned_logs(seed: int = 1, steps: int = 30, rows: int = 40, objects: int = 300) -> list[list[AlignedBatch]]:
    """Return the logs of all shards, as aligners write them: four seconds of event time a batch, now and then again."""
    random = np.random.default_rng(seed)
    places = (CATALOG_KEY, *PLACES)
    aligner = Aligner(GROUP, 1, SHARDS, {place: SourceStart() for place in places})
    logs: list[list[AlignedBatch]] = [[] for _ in range(SHARDS)]
    for step in range(steps):
        # The first batches say of sources that they are there, and have no rows.
        for place in PLACES if step > 1 else ():
            begin_us = BEGIN_US + 4 * step * S + place[0] * S // 2
            times = np.sort(begin_us + (random.random(rows) * 4 * S).astype(np.int64)) - S * (random.random(rows) < 0.1)
            width = len(GROUP.streams[place[0]].attributes)
            found = [
                Row(f"o{random.integers(objects)}", int(time), tuple(random.integers(0, 9, width).astype(float)))
                for time in times
            ]
            first = aligner.cursor(place)
            aligner.add(*place, first, first + rows, source_rows(found, width, first))
        if step <= 1:
            aligner.add_catalog(aligner.cursor(CATALOG_KEY), aligner.cursor(CATALOG_KEY) + 1, [])
        for batch in aligner.flush(BEGIN_US + step * S):
            log = logs[batch.shard]
            log.append(batch)
            if step % 5 == 3:
                # Who was taken for dead writes what another wrote, and some of what went before.
                log += [replace(its, writer="zombie") for its in log[-2:]]
    return logs


def sketched_by_service(
    logs: Sequence[Sequence[AlignedBatch]], tuning: SketchTuning = TUNING
) -> dict[int, Publication]:
    """Return what the service publishes of whole logs."""
    log = MemoryLog(ManualClock())
    log.create_topic(aligned_topic("factory", 1), SHARDS)
    log.create_topic("statistics", 3)
    producer = log.producer()
    for batches in logs:
        for batch in batches:
            producer.send(aligned_topic("factory", 1), batch.shard, batch)
    producer.flush()
    run_service(log, tuning)
    return dict(sorted(newest_publications(log, "statistics", "factory", 1, range(SHARDS)).items()))


def run_service(log: RecordLog, tuning: SketchTuning = TUNING) -> None:
    """Let the sketch stage read an aligned log to its end, and publish."""
    starts = {CATALOG_KEY: 0, **dict.fromkeys(PLACES, 0)}
    topics = SketchTopics(aligned=aligned_topic("factory", 1))
    stage = SketchStage(log, GROUP, 1, starts, topics, tuning=tuning, shards=range(SHARDS))
    quiet = 0
    while quiet < 3:
        quiet = 0 if stage.step(0.2 if not isinstance(log, MemoryLog) else 0.0) else quiet + 1
    stage.close()


def sketched_by_hand(plan: StatisticsPlan, log: Sequence[AlignedBatch], span: Range) -> Publication:
    """Return what a shard of the service publishes that was fed the rows of a range, chosen one by one."""
    shard = plan.shard(log[0].shard, 0)
    for batch in log:
        shard.offer(_only(batch, span))
    made = shard.publication(len(log), 0)
    assert made is not None
    return replace(made, source=plan.source)


def _only(batch: AlignedBatch, span: Range) -> AlignedBatch:
    keep = [row for row in range(batch.rows) if span.from_us <= int(batch.event_time_us[row]) < span.to_us]
    sections, low = [], 0
    for its in batch.sections:
        rows = sum(low <= row < low + its.rows for row in keep)
        sections.append(replace(its, rows=rows, newest_us=min(its.newest_us, span.to_us - 1)))
        low += its.rows
    ids = [batch.id_bytes[(batch.id_ends[row - 1] if row else 0) : batch.id_ends[row]].tobytes() for row in keep]
    place = np.array(keep, np.int64)
    return replace(
        batch,
        sections=tuple(sections),
        offset=batch.offset[place],
        event_time_us=batch.event_time_us[place],
        release_time_us=batch.release_time_us[place],
        id_hash=batch.id_hash[place],
        values=batch.values[place],
        id_bytes=np.frombuffer(b"".join(ids), np.uint8).copy(),
        id_ends=np.cumsum([len(its) for its in ids], dtype=np.int64),
    )


def as_published(found: Publication, source: str) -> Publication:
    """Return a publication of the service as a job has it before it is sent."""
    return replace(found, source=source, published_us=0)


def archived(folder: str, logs: Sequence[Sequence[AlignedBatch]], *, commits: int = 3) -> str:
    """Archive logs in some commits, and return where."""
    archive = Archive(folder)
    for log in logs:
        size = -(-len(log) // commits)
        for first in range(0, len(log), size):
            archive.write(log[first : first + size], RESOURCE, first)
    archive.commit([], definitions={"factory/1": to_record(Stored(RESOURCE))})
    return folder


def rows_within(logs: Sequence[Sequence[AlignedBatch]], span: Range) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Return the rows of a range, each once, by source partition and offset: hash and event time."""
    found = {}
    for log in logs:
        for batch in log:
            low = 0
            for its in batch.sections:
                for row in range(low, low + its.rows):
                    if span.from_us <= batch.event_time_us[row] < span.to_us:
                        key = (its.stream, its.partition, int(batch.offset[row]))
                        found[key] = int(batch.id_hash[row]), int(batch.event_time_us[row])
                low += its.rows
    return found


def shard_numbers(*shards: int) -> list[pa.RecordBatch]:
    """Return shards as Spark names them to tasks."""
    return [pa.RecordBatch.from_pydict({"id": pa.array(shards, pa.int64())})]
