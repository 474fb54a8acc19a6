"""Names that align shares with others, and which topic brings which stream of a group."""

from skyband.errors import DefinitionError
from skyband.model.catalog import CATALOG_STREAM
from skyband.model.group import Group

__all__ = ["aligned_topic", "consumer_group", "streams_by_topic"]


def aligned_topic(group: str, generation: int) -> str:
    """Return the name of a generation's aligned topic."""
    return f"aligned.{group}.{generation}"


def consumer_group(group: str, generation: int) -> str:
    """Return the name under which a generation's aligners share sources and commit offsets."""
    return f"skyband.align.{group}.{generation}"


def streams_by_topic(group: Group, catalog_topic: str) -> dict[str, int]:
    """Return the index of the stream that each topic brings, the catalog's topic first.

    A stream without a topic is read from the topic of its name. Raises DefinitionError for one that is read from the
    catalog's: a partition of a topic is one source partition, with one cursor and one watermark.
    """
    streams = {catalog_topic: CATALOG_STREAM}
    for index, stream in enumerate(group.streams):
        topic = stream.topic or stream.name
        if topic == catalog_topic:
            raise DefinitionError(
                f"stream {stream.name!r} of group {group.name!r} reads topic {topic!r}, which is the catalog's; "
                "name another topic",
                field="topic",
            )
        streams[topic] = index
    return streams
