"""What the catalog says of a group and its queries, and what the aligned log says of how these changed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from skyband.align.topics import aligned_topic
from skyband.control.catalog_events import Removed, Stored, from_record
from skyband.control.stage import CATALOG_TOPIC
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import LogError, NotFoundError
from skyband.log.read_range import read_all
from skyband.model.binding import BoundQuery, bind
from skyband.model.catalog import QueryChange
from skyband.model.resources import GroupResource
from spark.audit_activity import Activity, Passed, from_before, zones_of

__all__ = ["Asked", "Catalog", "changes_in", "queries_of", "read_catalog"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """A group as it is now, and the newest change of each of its queries that is not deleted, by uid."""

    group: GroupResource
    changes: dict[str, QueryChange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that is audited."""

    uid: str
    bound: BoundQuery
    activity: Activity

    @property
    def name(self) -> str:
        """Its name, which a later one may have too."""
        return self.bound.query.name


def read_catalog(log: KafkaLog, group: str) -> Catalog:
    """Read the catalog to its end. Raises LogError if there is none, NotFoundError for an unknown group."""
    if log.is_missing(CATALOG_TOPIC):
        raise LogError(
            f"Kafka at {log.settings.bootstrap} has no topic {CATALOG_TOPIC!r}: Skyband has never run there; see "
            "SKYBAND_KAFKA_BOOTSTRAP and SKYBAND_KAFKA_TOPIC_PREFIX"
        )
    groups: dict[str, GroupResource] = {}
    changes: dict[str, QueryChange] = {}
    for record in read_all(log, CATALOG_TOPIC):
        key = (record.key or b"").decode()
        if key.startswith("changes/"):
            changes.pop(key.removeprefix("changes/"), None)
            if isinstance(record.value, QueryChange):
                changes[record.value.uid] = record.value
        elif key.startswith("groups/") and key.count("/") == 1:
            match from_record(key, record.value):  # type: ignore[arg-type]
                case Stored(GroupResource() as resource):
                    groups[resource.group.name] = resource
                case Removed(key=name):
                    groups.pop(name.removeprefix("groups/"), None)
    if group not in groups:
        raise NotFoundError(
            f"there is no group {group!r} in the catalog; groups are {', '.join(sorted(groups)) or 'none'}"
        )
    return Catalog(groups[group], {uid: change for uid, change in changes.items() if change.group == group})


def changes_in(codecs: Codecs, group: str, generation: int, value: bytes) -> list[QueryChange]:
    """Return the changes of queries in the bytes of an aligned batch."""
    batch = codecs.decode(aligned_topic(group, generation), value)
    if not isinstance(batch, AlignedBatch):
        return []
    return [record.change for record in batch.catalog if record.change is not None]


def queries_of(
    catalog: Catalog, seen: Iterable[Passed], names: Iterable[str] = (), *, is_whole: bool = True
) -> list[Asked]:
    """Return the queries that were there at some time, of these names (none: all), in order of name and uid.

    `is_whole`: the aligned log is there from its beginning, so nothing was evaluated before what it tells. Raises
    NotFoundError for a name that none had, DefinitionError for a query that does not fit the group.
    """
    group = catalog.group.group
    of: dict[str, list[Passed]] = {}
    for its in seen:
        of.setdefault(its.change.uid, []).append(its)
    newest = {uid: max(told, key=lambda its: its.change.revision).change for uid, told in of.items()}
    newest = catalog.changes | newest
    wanted = set(names)
    known = {change.query.name for change in newest.values()}
    if missing := sorted(wanted - known):
        raise NotFoundError(
            f"group {group.name!r} had no query {missing[0]!r}; queries are {', '.join(sorted(known)) or 'none'}"
        )
    may_wait = any(change.query.algorithm.forgets for change in newest.values())
    found = [
        Asked(uid, bind(group, change.query), _activity(change, of.get(uid, []), group.shards, may_wait, is_whole))
        for uid, change in newest.items()
        if not wanted or change.query.name in wanted
    ]
    return sorted(found, key=lambda asked: (asked.name, asked.uid))


def _activity(newest: QueryChange, told: list[Passed], shards: int, may_wait: bool, is_whole: bool) -> Activity:
    if not told:
        return Activity(() if is_whole else from_before(newest), is_whole=True)
    # A repeat of an aligner tells the same again, later.
    first = {(its.shard, its.change.revision): its for its in reversed(told)}
    zones = zones_of(first.values(), shards, may_wait=may_wait)
    return Activity(zones, is_whole=is_whole or zones[0].revision <= 1)
