"""What the sketch service publishes, as control knows it."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.runtime import topics
from services.runtime.health import Health
from services.runtime.kafka_log import KafkaLog
from services.runtime.keeper import keep
from skyband.errors import LogError, NotFoundError
from skyband.log.record_log import Position, RecordLog
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.resources import GroupResource
from skyband.sketch.merged import merged_statistics
from skyband.sketch.publication import SERVICE, Publication

__all__ = ["PublicationReader", "Statistics", "statistics_from"]

_TOPIC = "statistics"
_BATCH = 100
_Key = tuple[str, int, int, str]


class PublicationReader:
    """Follows the topic of the statistics, and keeps the newest publication of each shard and source.

    One thread owns it. Of each group only the newest generation of a source is kept. Initially nothing is known;
    `is_current` says whether all is read that the topic held when this reader began.
    """

    def __init__(self, log: RecordLog, topic: str = _TOPIC) -> None:
        self._consumer = log.consumer()
        positions = [Position(topic, number) for number in range(log.partitions(topic))]
        begins, self._ends = self._consumer.begin_offsets(positions), self._consumer.end_offsets(positions)
        self._next = dict(begins)
        self._consumer.assign(dict(begins))
        self._by_key: dict[bytes, Publication] = {}

    @property
    def is_current(self) -> bool:
        """Whether all is read that was there at the beginning."""
        return all(self._next[at] >= end for at, end in self._ends.items())

    @property
    def publications(self) -> Mapping[_Key, Publication]:
        """The newest publication of each shard, by group, generation, shard and source."""
        return {(its.group, its.generation, its.shard, its.source): its for its in self._by_key.values()}

    def poll(self, timeout_s: float) -> bool:
        """Read on, waiting at most `timeout_s` for more; return whether anything has come."""
        records = self._consumer.poll(_BATCH, timeout_s)
        for record in records:
            self._next[Position(record.topic, record.partition)] = record.next_offset
            if isinstance(record.value, Publication):
                self._take(record.key or b"", record.value)
            elif record.key is not None:
                self._by_key.pop(record.key, None)
        return bool(records)

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()

    def _take(self, key: bytes, value: Publication) -> None:
        same = (value.group, value.source)
        alike = [(known, its) for known, its in self._by_key.items() if (its.group, its.source) == same]
        if any(its.generation > value.generation for _, its in alike):
            return
        for known, its in alike:
            if its.generation < value.generation:
                del self._by_key[known]
        self._by_key[key] = value


def statistics_from(
    resource: GroupResource, publications: Sequence[Publication], window_us: int | None, source: str = SERVICE
) -> PublishedStatistics:
    """Return what one source says of a group, out of all publications of its generation, by shard.

    Raises what `merged_statistics` raises, and NotFoundError for a job that has published nothing.
    """
    group, generation = resource.group, resource.generation
    others = sorted({its.source for its in publications} - {source})
    mine = [its for its in publications if its.source == source and its.shard < group.shards]
    if not mine and others:
        known = ", ".join(map(repr, others))
        hint = "" if source != SERVICE else "; the sketch service publishes every 5 s once rows come: see that it runs"
        raise NotFoundError(
            f"there are no statistics of group {group.name!r}, generation {generation}, from {source!r}, but from "
            f"{known}{hint}"
        )
    found = merged_statistics(group, generation, mine, window_us)
    return replace(found, other_sources=tuple(others))


class Statistics:
    """The statistics of all groups; `loop` keeps them up to date on a thread of its own, any thread may ask."""

    def __init__(self, log: KafkaLog, health: Health) -> None:
        self._log = log
        self._health = health
        self._reader: PublicationReader | None = None
        self._publications: Mapping[_Key, Publication] | None = None

    def loop(self, stop: threading.Event) -> None:
        """Read until `stop`."""
        keep("statistics", self._open, stop, self._health)

    def of(self, resource: GroupResource, window_us: int | None, source: str) -> PublishedStatistics:
        """Return what is known of a group. Raises what `statistics_from` raises, LogError while it is not read."""
        known = self._publications
        if known is None:
            raise LogError("the statistics have not been read yet; try again in a moment, and see control's health")
        mine = [its for key, its in sorted(known.items()) if key[:2] == (resource.group.name, resource.generation)]
        return statistics_from(resource, mine, window_us, source)

    def step(self, timeout_s: float) -> None:
        """Read what has come."""
        assert self._reader is not None
        changed = self._reader.poll(timeout_s)
        if self._reader.is_current and (changed or self._publications is None):
            self._publications = self._reader.publications

    def close(self) -> None:
        """Stop reading; what is known is still answered."""
        if self._reader is not None:
            self._reader.close()

    abandon = close

    def _open(self) -> "Statistics":
        topics.apply(self._log)
        self._reader = PublicationReader(self._log)
        return self
