"""What a rebuild is to make of a group: its next generation, and which offsets of each source partition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.errors import ConflictError, DefinitionError
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.rebuild import HISTORY_PARTITIONS, RebuiltSource
from skyband.model.resources import GroupResource
from skyband.model.stream import Aggregate, Stream
from spark.rebuild_catalog import CatalogView
from spark.rebuild_rekey import Moved
from spark.rebuild_survey import Span

__all__ = ["LiveTopic", "Wish", "check_same_rows", "live_topics", "moved_of", "new_group", "since_of", "sources_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants of the new generation; None: as it is. `definitions`: the group of a file."""

    group: str
    shards: int | None = None
    retention_us: int | None = None
    definitions: Group | None = None


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A source topic as it is now: its id, and the first offset of each partition; `is_new`: made anew since."""

    topic_id: str
    begins: Mapping[int, int] = field(default_factory=dict)
    is_new: bool = False


def new_group(view: CatalogView, wish: Wish) -> Group:
    """Return the group of the new generation: its streams as the file says, or the catalog now.

    Raises DefinitionError for a wish that cannot be.
    """
    old = view.resource.group
    if wish.definitions is None:
        streams = tuple(view.streams.get(stream.name, stream) for stream in old.streams)
        group = replace(old, streams=streams)
    else:
        group = wish.definitions
        if group.name != wish.group:
            raise DefinitionError(f"the file defines group {group.name!r}, not {wish.group!r}", field="definitions")
    names = [stream.name for stream in old.streams]
    if [stream.name for stream in group.streams[: len(names)]] != names:
        raise DefinitionError(
            f"group {old.name!r} has streams {', '.join(names)}; others can only be added behind them",
            field="definitions",
        )
    changes = {"shards": wish.shards, "retention_us": wish.retention_us}
    return replace(group, **{name: value for name, value in changes.items() if value is not None})  # type: ignore[arg-type]


def check_same_rows(old: Group, new: Group) -> None:
    """Raise ConflictError unless both generations would make the same aligned rows of the same records."""
    for stream in new.streams:
        before = next((its for its in old.streams if its.name == stream.name), None)
        if before is None:
            raise ConflictError(
                f"stream {stream.name!r} is new in group {new.name!r}: its rows are not in the aligned log; rebuild "
                "with --history sources"
            )
        if _rows_of(before) != _rows_of(stream):
            raise ConflictError(
                f"stream {stream.name!r} is defined otherwise than in the generation that runs, so that its records "
                "make other rows; rebuild with --history sources"
            )


def since_of(asked_us: int | None, has_archive: bool, written_us: int, group: Group) -> int | None:
    """Return the event time before which rows are left out, None: none are.

    By default, and only with an archive, which may hold years: what no window of a result still to be written needs.
    """
    if asked_us is not None and group.retention_rows:
        raise DefinitionError(
            f"group {group.name!r} has count windows, whose ends are numbers of rows: none can be left out",
            field="since",
        )
    if asked_us is not None or not has_archive or written_us == MIN_TIME_US or group.retention_rows:
        return asked_us
    return written_us - group.retention_us


def live_topics(resource: GroupResource, found: Mapping[str, LiveTopic]) -> dict[str, LiveTopic]:
    """Return the topics of streams, by stream, saying which were made anew since the generation began."""
    begun = {start.stream: start.topic_id for start in resource.sources if start.topic_id}
    return {
        name: replace(topic, is_new=begun.get(name, topic.topic_id) != topic.topic_id) for name, topic in found.items()
    }


def moved_of(group: Group, spans: Iterable[SourceKey], topics: Mapping[str, LiveTopic]) -> dict[SourceKey, Moved]:
    """Return where the partitions of topics that were made anew go; raises ConflictError if the new one has fewer."""
    found: dict[SourceKey, Moved] = {}
    keys = [key for key in spans if key != CATALOG_KEY]
    for stream, partition in keys:
        topic = topics[group.streams[stream].name]
        if not topic.is_new or partition >= HISTORY_PARTITIONS:
            continue
        if partition not in topic.begins:
            name = group.streams[stream].topic or group.streams[stream].name
            raise ConflictError(
                f"topic {name!r} has {len(topic.begins)} partitions since it was made anew, fewer than before; add "
                "partitions, then rebuild"
            )
        layers = [its // HISTORY_PARTITIONS for of, its in keys if of == stream]
        gone = partition + HISTORY_PARTITIONS * (max(layers) + 1)
        found[stream, partition] = Moved((stream, gone), (stream, partition), topic.begins[partition])
    return found


def sources_of(
    resource: GroupResource,
    group: Group,
    spans: Mapping[SourceKey, Span],
    moved: Mapping[SourceKey, Moved],
    topics: Mapping[str, LiveTopic],
) -> tuple[RebuiltSource, ...]:
    """Return the source partitions of a rebuild from the aligned log, as its document says them."""
    begun = {(start.stream, start.partition): start.topic_id for start in resource.sources}
    found = []
    for (stream, partition), span in spans.items():
        if (stream, partition) == CATALOG_KEY:
            continue
        name = group.streams[stream].name
        its = RebuiltSource(
            stream=name,
            partition=partition,
            topic_id=topics[name].topic_id,
            from_offset=span.from_offset,
            to_offset=span.to_offset,
            watermark_us=span.watermark_us,
            newest_us=span.newest_us,
            joins=(name, partition) not in begun,
        )
        if (place := moved.get((stream, partition))) is not None:
            found.append(replace(its, partition=place.to[1], topic_id=begun.get((name, partition), ""), joins=True))
            its = replace(its, from_offset=place.live_offset, to_offset=place.live_offset)
        found.append(its)
    return tuple(sorted(found, key=lambda its: (group.stream_index(its.stream), its.partition)))


def _rows_of(stream: Stream) -> Stream:
    """Return a stream without what only engines look at."""
    attributes = tuple(replace(its, missing=None) for its in stream.attributes)
    return replace(stream, aggregate=Aggregate.LATEST, repeat_after_us=None, attributes=attributes)
