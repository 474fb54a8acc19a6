"""What one can ask of the catalog. Streams, groups and queries are named by their plain names.

An `etag`, if given, must be that of the resource as it is; an update changes the fields of its `mask`, or all fields if
the mask is empty.
"""

from dataclasses import dataclass

from skyband.model.query import Query
from skyband.model.rebuild import Rebuild
from skyband.model.resources import GroupSpec, SourceStart
from skyband.model.stream import Stream

__all__ = [
    "Command",
    "CreateGroup",
    "CreateQuery",
    "CreateStream",
    "DeleteGroup",
    "DeleteQuery",
    "DeleteStream",
    "PauseQuery",
    "RegenerateGroup",
    "ResumeQuery",
    "UpdateGroup",
    "UpdateQuery",
    "UpdateStream",
]


@dataclass(frozen=True, slots=True)
class CreateStream:
    """Add a stream."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class UpdateStream:
    """Change a stream; groups that use it keep their definition until they are regenerated."""

    stream: Stream
    mask: tuple[str, ...] = ()
    etag: str = ""


@dataclass(frozen=True, slots=True)
class DeleteStream:
    """Remove a stream that no group uses."""

    stream: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class CreateGroup:
    """Add a group over existing streams; `sources` say where to begin (none: everywhere from the beginning)."""

    spec: GroupSpec
    sources: tuple[SourceStart, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateGroup:
    """Change what a group may change within a generation: max_drift."""

    spec: GroupSpec
    mask: tuple[str, ...] = ()
    etag: str = ""


@dataclass(frozen=True, slots=True)
class RegenerateGroup:
    """Begin a new generation: with `spec`, or as the group is, over the streams as they are now defined.

    With `rebuild` its aligned log is there already, and it begins with the source partitions of that.
    """

    group: str
    spec: GroupSpec | None = None
    sources: tuple[SourceStart, ...] = ()
    etag: str = ""
    rebuild: Rebuild | None = None


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Remove a group; with `force` its queries too."""

    group: str
    force: bool = False
    etag: str = ""


@dataclass(frozen=True, slots=True)
class CreateQuery:
    """Add a query to a group; its plan is made now and kept."""

    group: str
    query: Query


@dataclass(frozen=True, slots=True)
class UpdateQuery:
    """Change a query's k, which alone may change."""

    group: str
    query: Query
    mask: tuple[str, ...] = ()
    etag: str = ""


@dataclass(frozen=True, slots=True)
class PauseQuery:
    """Stop evaluating a query, keeping its place; one that is paused stays so."""

    group: str
    query: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class ResumeQuery:
    """Evaluate a paused query again; one that is active stays so."""

    group: str
    query: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class DeleteQuery:
    """Remove a query."""

    group: str
    query: str
    etag: str = ""


Command = (
    CreateStream
    | UpdateStream
    | DeleteStream
    | CreateGroup
    | UpdateGroup
    | RegenerateGroup
    | DeleteGroup
    | CreateQuery
    | UpdateQuery
    | PauseQuery
    | ResumeQuery
    | DeleteQuery
)
