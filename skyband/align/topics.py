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

    A stream without a topic is read from the topic of its name. Raises DefinitionError if two streams name one topic:
    a partition of a topic is one source partition, with one cursor and one watermark.
    """
    streams = {catalog_topic: CATALOG_STREAM}
    for index, stream in enumerate(group.streams):
        topic = stream.topic or stream.name
        if topic in streams:
            other = streams[topic]
            who = "the catalog" if other == CATALOG_STREAM else f"stream {group.streams[other].name!r}"
            raise DefinitionError(
                f"stream {stream.name!r} of group {group.name!r} reads topic {topic!r}, which {who} reads already; "
                "make it one object stream with an attribute for each, or put one of them into another group",
                field="topic",
            )
        streams[topic] = index
    return streams
