"""What a rebuild reads of catalog and progress: group, streams, queries, and how far results are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.runtime.kafka_log import KafkaLog
from skyband.control.catalog_events import Removed, Stored, from_record
from skyband.control.stage import CATALOG_TOPIC, PROGRESS_TOPIC
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.errors import LogError, NotFoundError
from skyband.log.read_range import read_all
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.partials import MergeProgress
from skyband.model.query import QueryState
from skyband.model.resources import GroupResource, StreamResource
from skyband.model.stream import Stream

__all__ = ["CatalogView", "known_before", "read_catalog", "written_to"]

_RESOURCES = ("streams/", "groups/")


@dataclass(frozen=True, slots=True)
class CatalogView:
    """A group of the catalog, all streams by name, the changes of its queries that are still there, and its end."""

    resource: GroupResource
    streams: Mapping[str, Stream]
    changes: tuple[CatalogRecord, ...]
    end: int


def read_catalog(log: KafkaLog, name: str) -> CatalogView:
    """Return what the catalog says of a group. Raises NotFoundError if it has none of that name."""
    if log.is_missing(CATALOG_TOPIC):
        raise LogError(f"Kafka at {log.settings.bootstrap} has no topic {CATALOG_TOPIC!r}; Skyband has never run there")
    streams: dict[str, Stream] = {}
    groups: dict[str, GroupResource] = {}
    changes: list[CatalogRecord] = []
    end = 0
    for record in read_all(log, CATALOG_TOPIC):
        end, value, key = record.next_offset, record.value, (record.key or b"").decode()
        if isinstance(value, QueryChange):
            if value.group == name:
                changes.append(CatalogRecord(record.offset, value))
            continue
        if not key.startswith(_RESOURCES) or not (value is None or isinstance(value, Mapping)):
            continue
        match from_record(key, value):
            case Stored(StreamResource() as resource):
                streams[resource.stream.name] = resource.stream
            case Stored(GroupResource() as resource):
                groups[resource.group.name] = resource
            case Removed(key=gone):
                streams.pop(gone.removeprefix("streams/"), None)
                groups.pop(gone.removeprefix("groups/"), None)
    if name not in groups:
        raise NotFoundError(f"the catalog has no group {name!r}; it has {', '.join(sorted(groups)) or 'none'}")
    return CatalogView(groups[name], streams, tuple(changes), end)


def known_before(changes: Sequence[CatalogRecord], offset: int) -> tuple[CatalogRecord, ...]:
    """Return the queries as of an offset of the catalog, each as one record below it.

    What has been compacted away counts as active: its later revision, from `offset` on, says what else it is.
    """
    newest: dict[str, CatalogRecord] = {}
    for record in changes if offset else ():
        change = record.change
        if change is None:
            continue
        if record.offset < offset:
            newest[change.uid] = record
        elif change.uid not in newest and change.revision > 1:
            before = replace(change, revision=change.revision - 1, state=QueryState.ACTIVE)
            newest[change.uid] = CatalogRecord(offset - 1, before)
    found = [its for its in newest.values() if its.change is not None and its.change.state is not QueryState.DELETED]
    return tuple(sorted(found, key=lambda its: its.offset))


def written_to(log: KafkaLog, group: str, generation: int) -> int:
    """Return up to which window end all results of a generation are written, MIN_TIME_US if nobody tells."""
    found = MIN_TIME_US
    for record in read_all(log, PROGRESS_TOPIC):
        value = record.value
        if isinstance(value, MergeProgress) and (value.group, value.generation) == (group, generation):
            found = max(found, value.frontier_us)
    return found
