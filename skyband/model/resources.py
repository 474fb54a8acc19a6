"""What the catalog holds: streams, groups and queries with their history.

Names are paths: ``streams/temperature``, ``groups/factory``, ``groups/factory/queries/hottest``. A group keeps the
definitions of its streams as of its *generation*; a stream that changes reaches it with the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skyband.model.group import Group
from skyband.model.plan import Plan
from skyband.model.query import Query, QueryState
from skyband.model.stream import Stream

__all__ = [
    "GroupResource",
    "GroupSpec",
    "QueryResource",
    "Resource",
    "SourceStart",
    "Stamp",
    "StreamResource",
    "group_name",
    "query_name",
    "stream_name",
]


def stream_name(stream: str) -> str:
    """Return the resource name of a stream."""
    return f"streams/{stream}"


def group_name(group: str) -> str:
    """Return the resource name of a group."""
    return f"groups/{group}"


def query_name(group: str, query: str) -> str:
    """Return the resource name of a query."""
    return f"groups/{group}/queries/{query}"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who a resource is and how often it has changed. `uid` never changes; `revision` grows from 1 with each change."""

    uid: str
    revision: int
    created_us: int
    updated_us: int

    @property
    def etag(self) -> str:
        """A text that is different after every change; opaque to whoever sends it back."""
        return f"{self.uid}.{self.revision}"

    def next(self, now_us: int) -> "Stamp":
        """Return the stamp after a change at `now_us`."""
        return replace(self, revision=self.revision + 1, updated_us=now_us)


@dataclass(frozen=True, slots=True)
class SourceStart:
    """Where a generation begins to read one source partition; `topic_id` tells a recreated topic from the old one."""

    stream: str
    partition: int
    offset: int
    topic_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group as one asks for it: its streams by name, the rest as in Group."""

    name: str
    streams: tuple[str, ...]
    retention_us: int
    pane_us: int = 1_000_000
    retention_rows: int = 0
    shards: int = 1
    max_drift_us: int = 60_000_000

    @classmethod
    def of(cls, group: Group) -> "GroupSpec":
        """Return what one would ask for to get `group`."""
        return cls(
            name=group.name,
            streams=tuple(stream.name for stream in group.streams),
            retention_us=group.retention_us,
            pane_us=group.pane_us,
            retention_rows=group.retention_rows,
            shards=group.shards,
            max_drift_us=group.max_drift_us,
        )

    def build(self, streams: Sequence[Stream]) -> Group:
        """Return the group over the definitions of its streams, given in its order. Raises DefinitionError."""
        return Group(
            name=self.name,
            streams=tuple(streams),
            retention_us=self.retention_us,
            pane_us=self.pane_us,
            retention_rows=self.retention_rows,
            shards=self.shards,
            max_drift_us=self.max_drift_us,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResource:
    """A stream as last defined."""

    stream: Stream
    stamp: Stamp

    @property
    def name(self) -> str:
        """Resource name."""
        return stream_name(self.stream.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResource:
    """A group in one generation. `sources` without a partition: it is read from its beginning."""

    group: Group
    generation: int
    sources: tuple[SourceStart, ...]
    stamp: Stamp

    @property
    def name(self) -> str:
        """Resource name."""
        return group_name(self.group.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResource:
    """A query with the plan made when it was created."""

    group: str
    query: Query
    plan: Plan
    state: QueryState
    stamp: Stamp

    @property
    def name(self) -> str:
        """Resource name."""
        return query_name(self.group, self.query.name)


Resource = StreamResource | GroupResource | QueryResource
