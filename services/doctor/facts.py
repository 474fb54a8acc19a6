"""What there is to be judged: topics, groups, and the newest reports about them. Times in microseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from skyband.model.partials import MergeProgress
from skyband.model.resources import GroupResource
from skyband.model.status import ShardReport, SourceReport

__all__ = ["GroupFacts", "Lag", "Reported", "Reports", "SourceTopic", "TopicFacts"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One of Skyband's topics as it is (partitions None: missing), and as it should be."""

    name: str
    partitions: int | None
    cleanup: str
    wanted_partitions: int
    wanted_cleanup: str


@dataclass(frozen=True, slots=True)
class Reported(Generic[T]):
    """A report, and when it was written."""

    value: T
    time_us: int


@dataclass(frozen=True, slots=True)
class Reports:
    """The newest reports of a group's generation; `merge` None: there is none."""

    shards: Mapping[int, Reported[ShardReport]] = field(default_factory=dict)
    sources: Mapping[tuple[str, int], Reported[SourceReport]] = field(default_factory=dict)
    merge: Reported[MergeProgress] | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """One partition of a source topic: its lowest offset, its end, and what align has committed (None: nothing)."""

    begin: int
    end: int
    committed: int | None


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """The topic of one stream, as it is: `topic_id` None means that there is none."""

    stream: str
    topic: str
    topic_id: str | None
    lags: tuple[Lag, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group of the catalog, its source topics, and what was reported of it."""

    resource: GroupResource
    topics: tuple[SourceTopic, ...]
    reports: Reports = field(default_factory=Reports)
