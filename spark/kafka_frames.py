"""Topics as Spark frames: of an exact range of offsets, or followed as they grow; committed records alone.

A frame has the columns key, value (binary), topic, partition, offset, timestamp, timestampType, and with headers also
headers. Offsets that are gone are an error, never skipped.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from services.runtime.kafka_admin import KafkaAdmin
from services.runtime.kafka_errors import lost_offset, too_few_partitions
from services.runtime.kafka_names import KafkaNames
from services.runtime.kafka_reach import KafkaReach
from services.runtime.settings import KafkaSettings, read_kafka_settings
from skyband.errors import DefinitionError, SkybandError
from skyband.log.record_log import Position
from spark.kafka_security import java_client

__all__ = ["follow_topics", "read_topic"]

# Spark asks for a partition's bounds after each fetch, on the connection on which Kafka's client has already sent the
# next one. A broker answers in order, so for a fetch at the end of a log each task waited Kafka's 500 ms.
_FETCH_WAIT_MS = "20"
_READER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def read_topic(
    session: SparkSession,
    bootstrap: str,
    topic: str,
    begins: Mapping[int, int] | Literal["earliest"] = "earliest",
    ends: Mapping[int, int] | Literal["latest"] = "latest",
    *,
    has_headers: bool = False,
    kafka: KafkaSettings | None = None,
) -> DataFrame:
    """Return the records of a topic with offsets in [begin, end) of each partition, read when the frame is used.

    A mapping gives offsets by partition, and only its partitions are read; two must have the same ones. "latest" is
    where committed records end when a query on the frame is planned. `topic` is its full name; `kafka` are the
    settings beside `bootstrap`, those of the environment if None. Raises LogError if Kafka does not answer, or has no
    such topic, partition or offset.
    """
    chosen = _partitions(begins, ends)
    named = [offsets for offsets in (begins, ends) if not isinstance(offsets, str)]
    options = _options(session, bootstrap, {topic: named}, chosen, kafka)
    options |= {"includeHeaders": str(has_headers).lower()}
    for name, offsets in (("startingOffsets", begins), ("endingOffsets", ends)):
        options[name] = offsets if isinstance(offsets, str) else _as_json({topic: offsets})
    return session.read.format("kafka").options(**options).load()


def follow_topics(
    session: SparkSession,
    bootstrap: str,
    topics: Sequence[str],
    starting: Mapping[str, Mapping[int, int]] | Literal["earliest", "latest"],
    max_offsets_per_trigger: int | None = None,
    *,
    has_headers: bool = False,
    kafka: KafkaSettings | None = None,
) -> DataFrame:
    """Return the records of topics as one stream, from `starting` on, which a query's checkpoint overrides.

    A mapping gives the offset of every partition by topic; partitions that are added later are read from their
    beginnings. `max_offsets_per_trigger` is for all topics together. Raises as `read_topic` does, but for offsets that
    are gone: with those the query fails.
    """
    options = _options(session, bootstrap, dict.fromkeys(topics, ()), None, kafka)
    options |= {"includeHeaders": str(has_headers).lower()}
    options |= {"startingOffsets": starting if isinstance(starting, str) else _as_json(starting)}
    if max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(max_offsets_per_trigger)
    return session.readStream.format("kafka").options(**options).load()


def _partitions(begins: Mapping[int, int] | str, ends: Mapping[int, int] | str) -> frozenset[int] | None:
    """Return the partitions that are to be read, None for all."""
    named = [frozenset(offsets) for offsets in (begins, ends) if not isinstance(offsets, str)]
    if not named:
        return None
    if not named[0]:
        raise DefinitionError("no partition is named to be read; name one, or give 'earliest' and 'latest'")
    if named[0] != named[-1]:
        raise DefinitionError(
            f"begins are of partitions {sorted(named[0])} and ends of {sorted(named[-1])}; give both for the same ones"
        )
    return named[0]


def _as_json(offsets: Mapping[str, Mapping[int, int]]) -> str:
    return json.dumps({topic: {str(partition): at for partition, at in its.items()} for topic, its in offsets.items()})


def _options(
    session: SparkSession,
    bootstrap: str,
    topics: Mapping[str, Sequence[Mapping[int, int]]],
    chosen: frozenset[int] | None,
    kafka: KafkaSettings | None,
) -> dict[str, str]:
    """Return what both kinds of frames are told; `topics` with offsets such as must be there to be read."""
    settings = (kafka or read_kafka_settings()).model_copy(update={"bootstrap": bootstrap})
    _check_reader(session)
    for topic, named in topics.items():
        _check_topic(settings, topic, named)
    place = {"subscribe": ",".join(topics)}
    if chosen is not None:
        place = {"assign": json.dumps({topic: sorted(chosen) for topic in topics})}
    timeout_ms = str(int(settings.unreachable_after_s * 1000))
    return {
        **{f"kafka.{name}": value for name, value in java_client(settings).items()},
        **place,
        "kafka.isolation.level": "read_committed",
        "kafka.fetch.max.wait.ms": _FETCH_WAIT_MS,
        "kafka.default.api.timeout.ms": timeout_ms,
        "kafka.request.timeout.ms": timeout_ms,
        "failOnDataLoss": "true",
    }


def _check_reader(session: SparkSession) -> None:
    """Fail if the session has no reader for Kafka, which only a `spark-submit` can have forgotten."""
    java = session._jvm
    assert java is not None
    loader = java.Thread.currentThread().getContextClassLoader()
    if loader.getResource(f"{_READER.replace('.', '/')}.class") is None:
        raise SkybandError(
            "this Spark cannot read Kafka: its jars are missing; start it with "
            'spark-submit --jars "$(python -m spark.jars)", or without spark-submit'
        )


def _check_topic(settings: KafkaSettings, topic: str, named: Sequence[Mapping[int, int]]) -> None:
    """Fail in words where Spark would try for minutes, and then show the inside of Kafka's client."""
    reach = KafkaReach(settings.bootstrap, settings.unreachable_after_s)
    # The topic is named in full, so no prefix is put before it.
    admin = KafkaAdmin(settings, KafkaNames(""), reach)
    partitions = admin.facts(topic).partitions
    positions = [Position(topic, partition) for partition in sorted({each for offsets in named for each in offsets})]
    for position in positions:
        if position.partition >= partitions:
            raise too_few_partitions(topic, position.partition, partitions)
    begins = admin.begin_offsets(positions) if positions else {}
    ends = admin.end_offsets(positions) if positions else {}
    for offsets in named:
        for partition, offset in sorted(offsets.items()):
            begin, end = begins[Position(topic, partition)], ends[Position(topic, partition)]
            if not begin <= offset <= end:
                raise lost_offset(topic, partition, offset, (begin, end))
