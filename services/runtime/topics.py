"""The topics that Skyband makes: what schemas/topics.yaml says of them, and making them so."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml

from services.runtime.codec_schemas import SCHEMAS
from skyband.errors import DefinitionError, LogError
from skyband.model.duration import parse_duration
from skyband.model.group import Group

__all__ = ["MAX_MESSAGE_BYTES", "KeySpace", "Topic", "TopicAdmin", "Topics", "aligned_config", "apply"]

# A producer's message.max.bytes must be as much, so that no topic's own limit is out of its reach.
MAX_MESSAGE_BYTES = 33_554_432
# So many retentions of a group stay in its aligned log, so that a restart finds the one that it replays.
_RETENTIONS = 3
_LEAST_RETENTION_US = 6 * 3_600_000_000
_PLACEHOLDER = re.compile(r"<[^>]*>")
# What topics.yaml says instead of a retention where the group's decides.
_OF_GROUP = "aligned"


class TopicAdmin(Protocol):
    """What making topics takes of a log."""

    def create_topic(self, name: str, partitions: int, *, config: Mapping[str, str]) -> None:
        """Make a topic; an existing one with as many partitions stays as it is, else LogError."""

    def partitions(self, name: str) -> int:
        """Return a topic's number of partitions; LogError if it does not exist."""

    def topic_config(self, name: str) -> Mapping[str, str]:
        """Return the settings of a topic, by Kafka's names."""


@dataclass(frozen=True, slots=True)
class KeySpace:
    """Records of one kind in a topic: the form of their keys, the stage that writes them, their record's name."""

    key: str
    writer: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What topics.yaml says of one topic.

    `partitions` is a number, the name of the topic whose number it has, or ``shards``. `config` holds the settings, by
    Kafka's names, that depend on neither cluster nor group.
    """

    name: str
    schema: str
    partitions: int | str
    config: Mapping[str, str]
    keys: tuple[KeySpace, ...]
    if_damaged: str
    notes: str

    @property
    def is_pattern(self) -> bool:
        """Whether the name stands for any number of topics."""
        return "<" in self.name

    @property
    def cleanup(self) -> str:
        """What becomes of old records: delete or compact."""
        return self.config["cleanup.policy"]


class Topics:
    """All topics of a topics.yaml, in its order; never changes."""

    def __init__(self, folder: Path = SCHEMAS) -> None:
        """Read topics.yaml in a folder. Raises LogError if it cannot be read."""
        path = folder / "topics.yaml"
        try:
            listed = yaml.safe_load(path.read_text(encoding="utf-8"))["topics"]
            self.all = tuple(_read_topic(**topic) for topic in listed)
        except OSError as error:
            raise LogError(f"{path.name} cannot be read ({error}); run from a checkout or an image") from error
        except (yaml.YAMLError, DefinitionError, KeyError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise LogError(f"{path.name} is no list of topics ({why}); restore the file") from error
        self._by_name = {topic.name: topic for topic in self.all if not topic.is_pattern}
        self._patterns = [(_pattern(topic.name), topic) for topic in self.all if topic.is_pattern]

    def topic_of(self, name: str) -> Topic:
        """Return what is said of the topic called `name`; LogError if it is none of these."""
        topic = self._by_name.get(name)
        if topic is not None:
            return topic
        for pattern, topic in self._patterns:
            if pattern.fullmatch(name):
                return topic
        raise LogError(f"topic {name!r} is no internal topic; those are {', '.join(topic.name for topic in self.all)}")

    def partitions(self, instead: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return how many partitions each topic but those of groups shall have.

        `instead`: other numbers than the file's, by topic; what follows such a topic follows it there too.
        """
        numbers: dict[str, int | str] = {name: topic.partitions for name, topic in self._by_name.items()}
        fixed = [name for name, number in numbers.items() if isinstance(number, int)]
        for name, number in (instead or {}).items():
            if name not in fixed:
                raise LogError(f"the partitions of {name!r} cannot be chosen, only those of {', '.join(fixed)}")
            numbers[name] = number
        return {name: number if isinstance(number, int) else int(numbers[number]) for name, number in numbers.items()}


def apply(admin: TopicAdmin, partitions: Mapping[str, int] | None = None) -> None:
    """Make every topic that is missing, but those of groups; doing it again changes nothing.

    `partitions`: see `Topics.partitions`. Raises LogError, in one sentence, if topics that are there have other numbers
    of partitions or clean up otherwise; what was missing is made all the same.
    """
    topics = Topics()
    differences: list[str] = []
    for name, count in topics.partitions(partitions).items():
        topic = topics.topic_of(name)
        differences += _make(admin, topic, count)
        cleanup = admin.topic_config(name).get("cleanup.policy", topic.cleanup)
        if cleanup != topic.cleanup:
            differences.append(f"topic {name!r} has cleanup.policy {cleanup}, not {topic.cleanup}")
    if differences:
        raise LogError(f"{', and '.join(differences)}; alter the topics, or the settings where they say so")


def aligned_config(group: Group) -> dict[str, str]:
    """Return the settings of an aligned topic of this group; its partitions are the group's shards.

    It keeps three retentions of the group, at least six hours, so that a shard finds what it replays.
    """
    topic = Topics().topic_of(f"aligned.{group.name}.1")
    retention_us = max(_LEAST_RETENTION_US, _RETENTIONS * group.retention_us)
    return {**topic.config, "retention.ms": str(retention_us // 1_000)}


def _make(admin: TopicAdmin, topic: Topic, count: int) -> list[str]:
    """Make a topic unless it is there; return how it differs in its number of partitions."""
    try:
        admin.create_topic(topic.name, count, config=topic.config)
    except LogError:
        found = admin.partitions(topic.name)
        if found == count:
            raise
        return [f"topic {topic.name!r} has {found} partitions, not {count}"]
    return []


def _read_topic(
    *,
    name: str,
    schema: str,
    partitions: int | str,
    cleanup: str,
    keys: Sequence[Mapping[str, str]],
    if_damaged: str,
    retention: str | None = None,
    config: Mapping[str, object] | None = None,
    notes: str = "",
) -> Topic:
    settings = {"cleanup.policy": cleanup, **{key: str(value) for key, value in (config or {}).items()}}
    if retention not in (None, _OF_GROUP):
        settings["retention.ms"] = str(parse_duration(retention) // 1_000)
    return Topic(
        name=name,
        schema=schema,
        partitions=partitions,
        config=settings,
        keys=tuple(KeySpace(**space) for space in keys),
        if_damaged=if_damaged,
        notes=notes.strip(),
    )


def _pattern(name: str) -> re.Pattern[str]:
    """Return what matches the names that a name with placeholders stands for."""
    return re.compile(r"[^.]+".join(re.escape(part) for part in _PLACEHOLDER.split(name)))
