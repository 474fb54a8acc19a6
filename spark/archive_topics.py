"""Which topics are to be archived, from where on, and whether that is still there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.runtime.groups import GroupWatch
from services.runtime.kafka_log import KafkaLog
from services.runtime.kafka_names import KafkaNames
from skyband.align.topics import aligned_topic
from skyband.control.catalog_events import Stored, from_record, to_record
from skyband.control.stage import CATALOG_TOPIC
from skyband.errors import LogError, NotFoundError
from skyband.log.record_log import Consumer, Position
from skyband.model.resources import GroupResource
from spark.archive_commits import State
from spark.archive_tasks import AlignedRole, Role, SourceRole

__all__ = ["ArchivedTopics", "Subscription"]

_WAIT_S = 0.2


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one query reads: `roles` by topic, `partitions` and `ids` of each, and definitions to remember."""

    roles: Mapping[str, tuple[Role, ...]]
    partitions: Mapping[str, int]
    ids: Mapping[str, str]
    definitions: Mapping[str, Any]


class ArchivedTopics:
    """The topics of some groups of the catalog (none named: of all), as it changes; one thread owns it."""

    def __init__(self, log: KafkaLog, groups: Sequence[str], *, with_sources: bool) -> None:
        """Read the catalog to its end. Raises LogError if there is none."""
        self._log = log
        self._wanted = tuple(groups)
        self._with_sources = with_sources
        self._names = KafkaNames(log.settings.topic_prefix)
        if log.is_missing(CATALOG_TOPIC):
            raise LogError(
                f"Kafka at {log.settings.bootstrap} has no topic {CATALOG_TOPIC!r}: Skyband has never run there; see "
                "SKYBAND_KAFKA_BOOTSTRAP and SKYBAND_KAFKA_TOPIC_PREFIX"
            )
        self._watch = GroupWatch(log)
        self._reader: Consumer = log.consumer()
        while not self._watch.is_current:
            self._watch.poll(_WAIT_S)

    def close(self) -> None:
        """Stop reading."""
        self._watch.close()
        self._reader.close()

    def has_changed(self) -> bool:
        """Return whether a group has come, changed or gone since the last question."""
        return self._watch.poll(0.0)

    def find(self, state: State) -> Subscription:
        """Return what there is to read now. Raises LogError for a topic that is missing, NotFoundError for a group."""
        roles: dict[str, tuple[Role, ...]] = {}
        definitions = {}
        for resource in self._resources():
            group = resource.group
            definitions[f"{group.name}/{resource.generation}"] = to_record(Stored(resource))
            for generation in self._generations(resource):
                of = resource if generation == resource.generation else _remembered(state, group.name, generation)
                roles[aligned_topic(group.name, generation)] = (AlignedRole(group.name, generation, of),)
            for stream in group.streams if self._with_sources else ():
                topic = stream.topic or stream.name
                roles[topic] = (*roles.get(topic, ()), SourceRole(group.name, stream))
        partitions = {topic: self._log.partitions(topic) for topic in roles}
        ids = {topic: self._log.topic_id(topic) for topic in roles}
        return Subscription(roles, partitions, ids, definitions)

    def check(self, subscription: Subscription, state: State) -> None:
        """Raise LogError if a topic is not the one that was archived, or has lost offsets that were not."""
        for topic, its in subscription.ids.items():
            if state.topics.get(topic, its) != its:
                raise LogError(
                    f"topic {topic!r} was deleted and made anew since it was archived, so that its offsets mean other "
                    "records; archive to a new place from here on"
                )
        nexts = {at: offset for at in positions(subscription) if (offset := self._next(subscription, at, state)) >= 0}
        begins = self._reader.begin_offsets(list(nexts))
        for at, offset in nexts.items():
            if begins[at] > offset:
                names = [role.stream.name for role in subscription.roles[at.topic] if isinstance(role, SourceRole)]
                of = f" (stream {', '.join(map(repr, names))})" if names else ""
                raise LogError(
                    f"topic {at.topic!r}{of} partition {at.partition}: offsets [{offset}, {begins[at]}) are gone and "
                    "were not archived; archive to a new place from here on, and run the archive within the retention "
                    "of its topics"
                )

    def starts(self, subscription: Subscription, state: State) -> dict[str, dict[int, int]]:
        """Return by topic and partition where to go on; -2 means from its beginning."""
        found: dict[str, dict[int, int]] = {topic: {} for topic in subscription.roles}
        for at in positions(subscription):
            found[at.topic][at.partition] = self._next(subscription, at, state)
        return found

    def left(self, subscription: Subscription, state: State) -> int:
        """Return how many offsets are not archived yet."""
        at_once = positions(subscription)
        ends, begins = self._reader.end_offsets(at_once), self._reader.begin_offsets(at_once)
        return sum(max(0, ends[at] - max(begins[at], self._next(subscription, at, state))) for at in at_once)

    def name(self, topic: str) -> str:
        """Return what a topic is called on the cluster."""
        return self._names.topic(topic)

    def _resources(self) -> list[GroupResource]:
        groups = self._watch.groups
        for name in self._wanted:
            if name not in groups:
                known = ", ".join(sorted(groups)) or "none"
                raise NotFoundError(f"there is no group {name!r} in the catalog; groups are {known}")
        if not groups:
            raise NotFoundError("the catalog has no groups; make one with `skyband apply`")
        return [groups[name] for name in sorted(self._wanted or groups)]

    def _generations(self, resource: GroupResource) -> list[int]:
        """Return the generations whose aligned logs are there: the newest, and those before it without a hole."""
        group, newest = resource.group.name, resource.generation
        if self._log.is_missing(aligned_topic(group, newest)):
            raise LogError(
                f"topic {aligned_topic(group, newest)!r} of group {group!r} does not exist; begin a new generation "
                f"with `skyband groups regenerate {group}`"
            )
        oldest = newest
        while oldest > 1 and not self._log.is_missing(aligned_topic(group, oldest - 1)):
            oldest -= 1
        return list(range(oldest, newest + 1))

    def _next(self, subscription: Subscription, at: Position, state: State) -> int:
        """Return the least offset that one of a partition's roles still needs; -2 for its beginning."""
        nexts = []
        for role in subscription.roles[at.topic]:
            if isinstance(role, AlignedRole):
                nexts.append(state.shards.get(f"{at.topic}/{at.partition}", {"next": -2})["next"])
            else:
                key = f"{role.group}/{role.stream.name}/{at.partition}"
                nexts.append(state.sources.get(key, {"next": -2})["next"])
        return int(min(nexts))


def positions(subscription: Subscription) -> list[Position]:
    """Return all partitions that are read."""
    return [Position(topic, number) for topic, count in subscription.partitions.items() for number in range(count)]


def _remembered(state: State, group: str, generation: int) -> GroupResource | None:
    record = state.definitions.get(f"{group}/{generation}")
    event = None if record is None else from_record(f"groups/{group}", record)
    if isinstance(event, Stored) and isinstance(event.resource, GroupResource):
        return event.resource
    return None
