"""What a rebuilt generation goes on from: whether the log still has it, and what its aligners find committed."""

from services.runtime.kafka_log import KafkaLog
from skyband.align.notes import note_of
from skyband.align.source import SourceStart
from skyband.align.topics import aligned_topic
from skyband.control.stage import CATALOG_TOPIC
from skyband.errors import ConflictError
from skyband.log.record_log import Position
from skyband.model.rebuild import Rebuild

__all__ = ["check_rebuilt", "goes_on", "holds_records"]


def goes_on(rebuild: Rebuild) -> tuple[dict[Position, int], dict[Position, str]]:
    """Return at which offset reading goes on of each source partition and the catalog, and the notes beside."""
    topics = _topics(rebuild)
    offsets, notes = {Position(CATALOG_TOPIC, 0): rebuild.catalog_to}, {Position(CATALOG_TOPIC, 0): ""}
    for source in rebuild.sources:
        if not source.is_history:
            at = Position(topics[source.stream], source.partition)
            offsets[at] = source.to_offset
            notes[at] = note_of(SourceStart(source.to_offset, source.watermark_us, source.newest_us))
    return offsets, notes


def check_rebuilt(log: KafkaLog, rebuild: Rebuild) -> None:
    """Raise ConflictError if the rebuilt log, a source topic, or an offset to go on from is not there (any more)."""
    group, topic = rebuild.group, aligned_topic(rebuild.group.name, rebuild.generation)
    again = f"rebuild group {group.name!r} again"
    if log.is_missing(topic) or log.partitions(topic) != group.shards or not holds_records(log, topic):
        raise ConflictError(f"topic {topic!r} is not the rebuilt log of {group.shards} shards (any more); {again}")
    topics = _topics(rebuild)
    ids = {source.stream: source.topic_id for source in rebuild.sources if not source.is_history}
    for stream, asked in ids.items():
        if log.is_missing(topics[stream]) or log.topic_id(topics[stream]) != asked:
            raise ConflictError(
                f"topic {topics[stream]!r} of stream {stream!r} was deleted, or made anew, since the rebuild; {again}"
            )
    offsets, _ = goes_on(rebuild)
    consumer = log.consumer()
    try:
        begins, ends = consumer.begin_offsets(list(offsets)), consumer.end_offsets(list(offsets))
    finally:
        consumer.close()
    for at, offset in offsets.items():
        if not begins[at] <= offset <= ends[at]:
            raise ConflictError(
                f"topic {at.topic!r} partition {at.partition} has offsets {begins[at]} to {ends[at]}, but the rebuild "
                f"goes on at {offset}; {again}, sooner before the switch"
            )


def holds_records(log: KafkaLog, topic: str) -> bool:
    """Return whether anything was ever written to a topic."""
    consumer = log.consumer()
    try:
        ends = consumer.end_offsets([Position(topic, partition) for partition in range(log.partitions(topic))])
    finally:
        consumer.close()
    return any(ends.values())


def _topics(rebuild: Rebuild) -> dict[str, str]:
    return {stream.name: stream.topic or stream.name for stream in rebuild.group.streams}
