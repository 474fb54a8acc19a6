"""What a new generation of a group stands on: its source topics, its aligned topic, and where align begins."""

from collections.abc import Sequence

from services.control.rebuilt import check_rebuilt, goes_on, holds_records
from services.runtime.kafka_log import KafkaLog
from services.runtime.topics import aligned_config
from skyband.align.stage import aligned_topic, consumer_group
from skyband.control.stage import CATALOG_TOPIC
from skyband.errors import ConflictError, LogError
from skyband.log.record_log import Position
from skyband.model.rebuild import Rebuild
from skyband.model.resources import GroupResource, SourceStart
from skyband.model.stream import Stream
from skyband.v1.begin import EARLIEST, Begin

__all__ = ["Sources"]


class Sources:
    """Finds and makes topics; any thread may ask."""

    def __init__(self, log: KafkaLog, create_topics: int) -> None:
        self._log = log
        self._create_topics = create_topics

    def resolve(self, streams: Sequence[Stream], begin: Begin) -> tuple[SourceStart, ...]:
        """Return every source partition of the streams with the offset to begin at.

        Raises ConflictError for a topic that does not exist.
        """
        return tuple(start for stream in streams for start in self._of(stream, begin))

    def prepare(self, resource: GroupResource) -> None:
        """Make the aligned topic of a new generation, and commit where its aligners begin."""
        group, topic = resource.group, aligned_topic(resource.group.name, resource.generation)
        if not self._log.is_missing(topic) and holds_records(self._log, topic):
            raise ConflictError(
                f"topic {topic!r} holds a rebuild of group {group.name!r}; go on from that with --from-rebuild, or "
                "delete the topic first"
            )
        self._log.create_topic(topic, group.shards, config=aligned_config(group))
        topics = {stream.name: stream.topic or stream.name for stream in group.streams}
        offsets = {Position(topics[start.stream], start.partition): start.offset for start in resource.sources}
        self._log.commit_starts(
            consumer_group(group.name, resource.generation), {**offsets, Position(CATALOG_TOPIC, 0): 0}
        )

    def check_rebuilt(self, rebuild: Rebuild) -> None:
        """Raise ConflictError unless the log has what a rebuilt generation needs to go on without a gap."""
        check_rebuilt(self._log, rebuild)

    def take_over(self, resource: GroupResource, rebuild: Rebuild) -> None:
        """Commit where the aligners of a rebuilt generation go on, with the times of the rows before."""
        offsets, notes = goes_on(rebuild)
        group = consumer_group(resource.group.name, resource.generation)
        self._log.commit_starts(group, offsets, notes)

    def _of(self, stream: Stream, begin: Begin) -> list[SourceStart]:
        topic = stream.topic or stream.name
        partitions = self._partitions(stream.name, topic)
        consumer = self._log.consumer()
        try:
            positions = [Position(topic, partition) for partition in range(partitions)]
            if begin == EARLIEST:
                offsets = consumer.begin_offsets(positions)
            elif isinstance(begin, int):
                offsets = consumer.offsets_at(positions, begin)
            else:
                offsets = consumer.end_offsets(positions)
        finally:
            consumer.close()
        topic_id = self._log.topic_id(topic)
        return [SourceStart(stream.name, at.partition, offsets[at], topic_id) for at in positions]

    def _partitions(self, stream: str, topic: str) -> int:
        try:
            return self._log.partitions(topic)
        except LogError as error:
            if not self._log.is_missing(topic):
                raise
            if self._create_topics == 0:
                raise ConflictError(
                    f"topic {topic!r} of stream {stream!r} does not exist; create it with as many partitions as its "
                    "producers need, then try again"
                ) from error
        self._log.create_topic(topic, self._create_topics)
        return self._create_topics
