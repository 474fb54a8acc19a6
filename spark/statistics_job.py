"""Sketches a range of an archive or of the live aligned topic, one task a shard, and publishes what that gives."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from services.runtime import topics
from services.runtime.groups import GroupWatch
from services.runtime.kafka_log import KafkaLog
from services.runtime.kafka_names import KafkaNames
from skyband.align.topics import aligned_topic
from skyband.control.stage import CATALOG_TOPIC
from skyband.errors import ConflictError, LogError, NotFoundError
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position
from skyband.model.resources import GroupResource
from skyband.sketch.publication import Publication
from spark.archive_store import ArchiveStore
from spark.failures import stopped
from spark.kafka_frames import read_topic
from spark.progress import tasks_watched
from spark.statistics_plan import StatisticsPlan
from spark.statistics_shards import REPORT_SCHEMA, STATISTICS_TOPIC, codecs, sketch_archived, sketch_records

__all__ = [
    "SESSION",
    "Sketched",
    "archived_group",
    "check_current",
    "dated",
    "live_group",
    "log_edges",
    "publish",
    "sketch_archive",
    "sketch_live",
]

# An aligned record may have megabytes.
SESSION: Mapping[str, str] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
_WAIT_S = 0.2

# Is told how many shards are done, and of how many.
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketched:
    """What a run has found: a publication of each shard that had anything, the rows in them and how long it took.

    `repeats` counts rows that the log holds more than once; `longest_s` is the slowest shard's time.
    """

    publications: tuple[Publication, ...]
    rows: int
    repeats: int
    seconds: float
    longest_s: float


def live_group(log: KafkaLog, name: str) -> GroupResource:
    """Return a group as the catalog has it now. Raises LogError without a catalog, NotFoundError for no such group."""
    if log.is_missing(CATALOG_TOPIC):
        raise LogError(
            f"Kafka at {log.settings.bootstrap} has no topic {CATALOG_TOPIC!r}: Skyband has never run there; see "
            "SKYBAND_KAFKA_BOOTSTRAP and SKYBAND_KAFKA_TOPIC_PREFIX"
        )
    with closing(GroupWatch(log)) as watch:
        while not watch.is_current:
            watch.poll(_WAIT_S)
        found = watch.groups.get(name)
        if found is None:
            known = ", ".join(sorted(watch.groups)) or "none"
            raise NotFoundError(f"there is no group {name!r} in the catalog; groups are {known}")
        return found


def archived_group(store: ArchiveStore, uri: str, name: str, generation: int | None) -> GroupResource:
    """Return a group as it was in a generation, by default the newest that is archived. Raises NotFoundError."""
    generations = store.generations(name)
    if not generations:
        known = ", ".join(store.groups())
        what = f"groups are {known}" if known else "it has no commits"
        raise NotFoundError(
            f"the archive {uri} has nothing of group {name!r}: {what}; archive it with `python -m spark.archive "
            f"--archive {uri} --group {name} --available-now`"
        )
    chosen = generations[-1] if generation is None else generation
    if chosen not in generations:
        known = ", ".join(map(str, generations))
        raise NotFoundError(f"the archive {uri} has no generation {chosen} of group {name!r}; it has {known}")
    found = store.definition(name, chosen)
    if found is None:
        raise NotFoundError(
            f"the archive {uri} does not know how group {name!r} was defined in generation {chosen}; only generations "
            "that were archived while they ran can be sketched"
        )
    return found


def sketch_archive(
    session: SparkSession, plan: StatisticsPlan, uri: str, told: Told = lambda done, of: None
) -> Sketched:
    """Sketch what an archive holds of a plan. Raises NotFoundError if that is nothing, LogError for damage."""
    shards = ArchiveStore(uri).shards(plan.group.name, plan.generation)
    # A partition, and so a task, for each shard.
    numbers = session.range(0, plan.group.shards, 1, plan.group.shards)
    frame = numbers.where(numbers.id.isin(list(shards))).mapInArrow(partial(sketch_archived, plan, uri), REPORT_SCHEMA)
    return _sketched(session, frame, plan, f"the archive {uri}", told)


def sketch_live(
    session: SparkSession, log: KafkaLog, plan: StatisticsPlan, told: Told = lambda done, of: None
) -> Sketched:
    """Sketch what the aligned topic of a plan holds. Raises NotFoundError if that is nothing, LogError for a gap."""
    begins, ends = log_edges(log, plan)
    topic = aligned_topic(plan.group.name, plan.generation)
    kafka = log.settings
    name = KafkaNames(kafka.topic_prefix).topic(topic)
    records = read_topic(session, kafka.bootstrap, name, begins, ends, kafka=kafka)
    frame = records.select("partition", "offset", "value").mapInArrow(
        partial(sketch_records, plan, begins), REPORT_SCHEMA
    )
    return _sketched(session, frame, plan, f"topic {topic!r}", told)


def log_edges(log: KafkaLog, plan: StatisticsPlan) -> tuple[dict[int, int], dict[int, int]]:
    """Return by shard where the aligned log of a plan begins and ends now."""
    topic = aligned_topic(plan.group.name, plan.generation)
    if log.is_missing(topic):
        raise LogError(
            f"topic {topic!r} of group {plan.group.name!r} does not exist; begin a new generation with `skyband groups "
            f"regenerate {plan.group.name}`"
        )
    places = [Position(topic, shard) for shard in range(log.partitions(topic))]
    with closing(log.consumer()) as consumer:
        begins, ends = consumer.begin_offsets(places), consumer.end_offsets(places)
    return {at.partition: begins[at] for at in places}, {at.partition: ends[at] for at in places}


def check_current(resource: GroupResource, current: GroupResource) -> None:
    """Raise ConflictError if statistics of this generation would be removed as soon as they were published."""
    if resource.generation != current.generation:
        raise ConflictError(
            f"group {resource.group.name!r} is in generation {current.generation}, and statistics of generation "
            f"{resource.generation} would be removed at once; ask for the report alone, with --no-publish"
        )


def dated(publications: Iterable[Publication], now_us: int) -> list[Publication]:
    """Return publications as made at `now_us`."""
    return [replace(made, published_us=now_us) for made in publications]


def publish(log: KafkaLog, publications: Sequence[Publication]) -> None:
    """Write publications to the topic of the statistics, which is made if it is missing."""
    if log.is_missing(STATISTICS_TOPIC):
        topics.apply(log)
    partitions = log.partitions(STATISTICS_TOPIC)
    with closing(log.producer()) as producer:
        for made in publications:
            producer.send(STATISTICS_TOPIC, partition_of(made.key, partitions), made, key=made.key.encode())
        producer.flush()


def _sketched(session: SparkSession, frame: DataFrame, plan: StatisticsPlan, where: str, told: Told) -> Sketched:
    began_s = time.monotonic()
    try:
        with tasks_watched(session, told):
            reports = frame.collect()
    except PySparkException as error:
        raise stopped(error, "start it again") from error
    for report in sorted(reports):
        if report.error is not None:
            raise LogError(report.error)
    rows = sum(report.rows for report in reports)
    if not rows:
        what = "no rows" if plan.range is None else f"no row with an event time in {plan.range}"
        raise NotFoundError(f"{where} has {what} of group {plan.group.name!r}, generation {plan.generation}")
    found = [
        codecs().decode(STATISTICS_TOPIC, bytes(its.publication))
        for its in sorted(reports)
        if its.publication is not None
    ]
    return Sketched(
        publications=tuple(its for its in found if isinstance(its, Publication)),
        rows=rows,
        repeats=sum(report.repeats for report in reports),
        seconds=time.monotonic() - began_s,
        longest_s=max(report.seconds for report in reports),
    )
