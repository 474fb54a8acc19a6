"""Questions to the cluster, and changes of it; every call waits for its answer."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from services.runtime.kafka_clients import new_admin
from services.runtime.kafka_errors import (
    MISSING,
    UNREACHABLE,
    Doing,
    cause_of,
    explain,
    missing_topic,
    too_few_partitions,
    unreachable,
)
from services.runtime.kafka_names import KafkaNames
from services.runtime.kafka_reach import KafkaReach
from services.runtime.settings import KafkaSettings
from skyband.errors import LogError
from skyband.log.record_log import Committed, Position

__all__ = ["KafkaAdmin", "TopicFacts"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

# What passes while leaders change; asked again.
_PASSING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._NOENT,
    }
)
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a cluster says of one topic: its id, unique for ever, and its number of partitions."""

    topic_id: str
    partitions: int


class KafkaAdmin:
    """One AdminClient, for any number of threads. Topic names are Skyband's; every failure is a LogError.

    A question is asked again until `unreachable_after_s` while Kafka is out of reach or a leader changes, where
    `patient` is said; else it fails after `request_timeout_s`.
    """

    def __init__(self, settings: KafkaSettings, names: KafkaNames, reach: KafkaReach) -> None:
        self._settings = settings
        self._names = names
        self._reach = reach
        self._client = new_admin(settings, reach.note)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Make a topic, and wait until it can be used; an existing one with as many partitions stays as it is.

        Where it exists, no right to create topics is needed.
        """
        facts = self.find(name) or self._create(name, partitions, config)
        if facts.partitions != partitions:
            raise LogError(f"topic {name!r} has {facts.partitions} partitions, not {partitions}; ask for as many")

    def _create(self, name: str, partitions: int, config: Mapping[str, str]) -> TopicFacts:
        copies = {"min.insync.replicas": str(self._settings.min_insync_replicas)}
        topic = NewTopic(
            self._names.topic(name),
            partitions,
            self._settings.replication_factor,
            config={**(copies if self._settings.min_insync_replicas else {}), **config},
        )
        doing = self._doing(f"create the topic with {partitions} partitions", topic=name)
        try:
            self._answers(lambda timeout_s: self._client.create_topics([topic], request_timeout=timeout_s))
        except KafkaException as error:
            if cause_of(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._explained(error, doing) from error
        deadline = time.monotonic() + self._settings.request_timeout_s
        while (facts := self.find(name)) is None:
            if time.monotonic() > deadline:
                raise missing_topic(name)
            time.sleep(_PAUSE_S)
        return facts

    def facts(self, name: str) -> TopicFacts:
        """Return the facts of a topic. Raises LogError if it does not exist."""
        found = self.find(name)
        if found is None:
            raise missing_topic(name)
        return found

    def find(self, name: str) -> TopicFacts | None:
        """Return the facts of a topic, None if it does not exist."""
        topics = TopicCollection([self._names.topic(name)])
        try:
            answers = self._answers(lambda timeout_s: self._client.describe_topics(topics, request_timeout=timeout_s))
        except KafkaException as error:
            if cause_of(error).code() in MISSING:
                return None
            raise self._explained(error, self._doing("describe the topic", topic=name)) from error
        return _facts(next(iter(answers.values())))

    def ask_facts(self, names: Sequence[str]) -> "dict[str, Future[TopicDescription]]":
        """Ask for topics without waiting; see `told_facts`."""
        self._client.poll(0)
        topics = [self._names.topic(name) for name in names]
        asked: dict[str, Future[TopicDescription]] = self._client.describe_topics(
            TopicCollection(topics), request_timeout=self._settings.request_timeout_s
        )
        return {name: asked[topic] for name, topic in zip(names, topics, strict=True)}

    def told_facts(self, answer: "Future[TopicDescription]") -> TopicFacts | LogError | None:
        """Return what an answer that has come says: facts, None if there is no such topic, or what went wrong."""
        try:
            facts = _facts(answer.result(0))
        except KafkaException as error:
            cause = cause_of(error)
            if cause.code() in MISSING:
                return None
            self._reach.note(cause)
            return self._explained(error, self._doing("describe a topic"))
        self._reach.well()
        return facts

    def topic_config(self, name: str) -> dict[str, str]:
        """Return the settings of a topic, by Kafka's names."""
        resource = ConfigResource(ResourceType.TOPIC, self._names.topic(name))
        try:
            answers = self._answers(
                lambda timeout_s: self._client.describe_configs([resource], request_timeout=timeout_s)
            )
        except KafkaException as error:
            raise self._explained(error, self._doing("describe the topic's settings", topic=name)) from error
        return {key: entry.value for key, entry in next(iter(answers.values())).items() if entry.value is not None}

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the lowest offset of each partition; patient."""
        return self._offsets(positions, OffsetSpec.earliest())

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the high watermark of each partition, also if transactions are open before it; patient."""
        return self._offsets(positions, OffsetSpec.latest())

    def offsets_at(self, positions: Sequence[Position], time_us: int) -> dict[Position, int]:
        """Return the first offset of each partition not older than a time, or its end; patient."""
        found = self._offsets(positions, OffsetSpec.for_timestamp(-(-time_us // 1_000)))
        ends = self.end_offsets([position for position, offset in found.items() if offset < 0])
        return {**found, **ends}

    def committed(self, group: str, positions: Sequence[Position]) -> dict[Position, Committed]:
        """Return what a group has committed of each partition, if anything; patient."""
        if not positions:
            return {}
        wanted = {(self._names.topic(p.topic), p.partition): p for p in positions}
        request = ConsumerGroupTopicPartitions(self._names.group(group), [TopicPartition(*key) for key in wanted])
        found = self._patiently(
            lambda timeout_s: self._client.list_consumer_group_offsets(
                [request], require_stable=True, request_timeout=timeout_s
            ),
            self._doing("read what the group has committed", group=group),
        )
        (answer,) = found.values()
        committed: dict[Position, Committed] = {}
        for part in answer.topic_partitions:
            if part.error is not None:
                raise explain(part.error, self._doing("read what the group has committed", group=group))
            if part.offset >= 0:
                committed[wanted[part.topic, part.partition]] = Committed(part.offset, part.metadata or "")
        return committed

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        doing = self._doing("delete the topic", topic=name)
        try:
            self._answers(
                lambda timeout_s: self._client.delete_topics([self._names.topic(name)], request_timeout=timeout_s)
            )
        except KafkaException as error:
            if cause_of(error).code() not in MISSING:
                raise self._explained(error, doing) from error
        deadline = time.monotonic() + self._settings.request_timeout_s
        while self.find(name) is not None:
            if time.monotonic() > deadline:
                raise LogError(f"topic {name!r} is still there, though its deletion was asked for; see the brokers")
            time.sleep(_PAUSE_S)

    def commit_starts(
        self, group: str, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None
    ) -> None:
        """Commit for a group without members: with notes instead of what it had, else where it has nothing."""
        stored = self.committed(group, list(offsets)) if notes is None else {}
        starts = [
            TopicPartition(self._names.topic(p.topic), p.partition, offset, (notes or {}).get(p, ""))
            for p, offset in offsets.items()
            if p not in stored
        ]
        if not starts:
            return
        doing = self._doing("store where the group begins", group=group)
        request = ConsumerGroupTopicPartitions(self._names.group(group), starts)
        answers = self._patiently(
            lambda timeout_s: self._client.alter_consumer_group_offsets([request], request_timeout=timeout_s), doing
        )
        (answer,) = answers.values()
        for part in answer.topic_partitions:
            if part.error is None:
                continue
            if part.error.code() == KafkaError.UNKNOWN_MEMBER_ID:
                raise LogError(f"group {group!r} has members, which have begun already; stop them before")
            topic = self._names.topic_here(part.topic)
            raise explain(part.error, self._doing("store where the group begins", topic=topic, group=group))

    def check_positions(self, positions: Sequence[Position]) -> dict[str, TopicFacts]:
        """Return the facts of the partitions' topics. Raises LogError for a topic or partition that is not there."""
        facts = {topic: self.facts(topic) for topic in sorted({position.topic for position in positions})}
        for position in positions:
            if not 0 <= position.partition < facts[position.topic].partitions:
                raise too_few_partitions(position.topic, position.partition, facts[position.topic].partitions)
        return facts

    def _offsets(self, positions: Sequence[Position], spec: OffsetSpec) -> dict[Position, int]:
        """Ask once for all partitions. Cost: one request to each broker that leads some; 1–2 ms nearby."""
        if not positions:
            return {}
        wanted = {TopicPartition(self._names.topic(p.topic), p.partition): p for p in positions}
        answers = self._patiently(
            lambda timeout_s: self._client.list_offsets(
                dict.fromkeys(wanted, spec),
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=timeout_s,
            ),
            self._doing("say which offsets there are"),
            lambda: self.check_positions(positions),
        )
        return {wanted[part]: answer.offset for part, answer in answers.items()}

    def _patiently(
        self,
        ask: "Callable[[float], Mapping[_Key, Future[_Value]]]",
        doing: Doing,
        check: Callable[[], object] = lambda: None,
    ) -> dict[_Key, _Value]:
        """Ask until there are answers; `check` raises if what is asked about is not there."""
        deadline = time.monotonic() + self._settings.unreachable_after_s
        while True:
            try:
                return self._answers(ask)
            except KafkaException as error:
                cause = cause_of(error)
                if cause.code() in MISSING:
                    check()
                is_passing = cause.code() in _PASSING or cause.code() in UNREACHABLE or cause.code() in MISSING
                if not is_passing or time.monotonic() > deadline:
                    raise self._explained(error, doing) from error
            time.sleep(_PAUSE_S)

    def _answers(self, ask: "Callable[[float], Mapping[_Key, Future[_Value]]]") -> dict[_Key, _Value]:
        """Ask once and wait for all answers. Raises KafkaException."""
        try:
            answers = {key: future.result() for key, future in ask(self._settings.request_timeout_s).items()}
        finally:
            self._client.poll(0)  # serves the error callback, which tells why there was no answer
        self._reach.well()
        return answers

    def _explained(self, error: KafkaException, doing: Doing) -> LogError:
        cause = cause_of(error)
        if cause.code() in UNREACHABLE:
            return unreachable(self._settings.bootstrap, self._reach.detail or cause.str())
        return explain(cause, doing)

    def _doing(self, what: str, *, topic: str | None = None, group: str | None = None) -> Doing:
        return Doing(what, self._settings.bootstrap, topic=topic, group=group)


def _facts(description: TopicDescription) -> TopicFacts:
    return TopicFacts(str(description.topic_id), len(description.partitions))
