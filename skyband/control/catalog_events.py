"""What happens to the catalog, as values: each says all about one key, so that the latest of each key is enough.

=====================================  ============================================================
key                                    event
=====================================  ============================================================
streams/…, groups/…, …/queries/…       Stored, or Removed (no record)
retired/<group>                        Retired: last generation of a group that was deleted
requests/<slot>                        Remembered: one of the last requests that named themselves
=====================================  ============================================================

As records they are plain dicts, fit for JSON, with a version.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from skyband.errors import DefinitionError, LogError
from skyband.model.group_form import dump_group, read_group
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, QueryState
from skyband.model.query_form import dump_query, read_query
from skyband.model.resources import GroupResource, QueryResource, Resource, SourceStart, Stamp, StreamResource
from skyband.model.stream_form import dump_stream, read_stream

__all__ = [
    "VERSION",
    "CatalogEvent",
    "Remembered",
    "Removed",
    "Retired",
    "Stored",
    "check_storable",
    "from_record",
    "to_record",
]

VERSION = 1


@dataclass(frozen=True, slots=True)
class Stored:
    """A resource is now as given."""

    resource: Resource

    @property
    def key(self) -> str:
        """Key of the event's record."""
        return self.resource.name


@dataclass(frozen=True, slots=True)
class Removed:
    """A resource is gone. `resource` is what it was, None where only the record is left."""

    key: str
    resource: Resource | None = None


@dataclass(frozen=True, slots=True)
class Retired:
    """The last generation of a deleted group: one of the same name must not read its aligned log."""

    group: str
    generation: int

    @property
    def key(self) -> str:
        """Key of the event's record."""
        return f"retired/{self.group}"


@dataclass(frozen=True, slots=True)
class Remembered:
    """A request that was done. `number` counts them all; it shares its slot with those `slots` before and after it."""

    number: int
    slots: int
    request_id: str
    digest: str
    resource: str

    @property
    def key(self) -> str:
        """Key of the event's record."""
        return f"requests/{self.number % self.slots}"


CatalogEvent = Stored | Removed | Retired | Remembered


def to_record(event: CatalogEvent) -> dict[str, Any] | None:
    """Return the record of `event`, to be stored under its key; None deletes the key."""
    match event:
        case Removed():
            return None
        case Retired() | Remembered():
            return {"version": VERSION, "kind": type(event).__name__.lower(), **asdict(event)}
        case Stored():
            return {"version": VERSION, **_dump(event.resource), "stamp": asdict(event.resource.stamp)}


def from_record(key: str, record: Mapping[str, Any] | None) -> CatalogEvent:
    """Return the event of a record. Raises LogError for one that this version does not know, or that is damaged."""
    if record is None:
        return Removed(key)
    version, kind = record.get("version"), record.get("kind")
    if version != VERSION or kind not in _READERS:
        raise LogError(
            f"catalog record {key!r} is of version {version} and kind {kind!r}; this control reads version {VERSION}: "
            "run the version that wrote it, or a newer one"
        )
    try:
        return _READERS[kind](record)
    except Exception as error:
        raise LogError(f"catalog record {key!r} is damaged ({error}); restore the catalog topic") from error


def check_storable(event: CatalogEvent) -> None:
    """Raise DefinitionError if `event` could not be read back: the catalog would not survive a restart."""
    record = to_record(event)
    if record is not None and _READERS[record["kind"]](record) != event:
        raise DefinitionError(f"{event.key} would be read back as another value; write its numbers plainly")


def _dump(resource: Resource) -> dict[str, Any]:
    match resource:
        case StreamResource():
            return {"kind": "stream", "stream": dump_stream(resource.stream)}
        case GroupResource():
            sources = [asdict(source) for source in resource.sources]
            generation = resource.generation
            return {"kind": "group", "group": dump_group(resource.group), "generation": generation, "sources": sources}
        case QueryResource():
            plan = {**asdict(resource.plan), "algorithm": resource.plan.algorithm.value}
            return {
                "kind": "query",
                "group": resource.group,
                "query": dump_query(resource.query),
                "plan": {**plan, "relies_on": list(resource.plan.relies_on)},
                "state": resource.state.value,
            }


def _read_stream(record: Mapping[str, Any]) -> CatalogEvent:
    return Stored(StreamResource(stream=read_stream(record["stream"]), stamp=Stamp(**record["stamp"])))


def _read_group(record: Mapping[str, Any]) -> CatalogEvent:
    return Stored(
        GroupResource(
            group=read_group(record["group"]),
            generation=record["generation"],
            sources=tuple(SourceStart(**source) for source in record["sources"]),
            stamp=Stamp(**record["stamp"]),
        )
    )


def _read_query(record: Mapping[str, Any]) -> CatalogEvent:
    plan = record["plan"]
    return Stored(
        QueryResource(
            group=record["group"],
            query=read_query(record["query"]),
            plan=Plan(Algorithm(plan["algorithm"]), plan["reason"], tuple(plan["relies_on"]), plan["cost"]),
            state=QueryState(record["state"]),
            stamp=Stamp(**record["stamp"]),
        )
    )


def _read_retired(record: Mapping[str, Any]) -> CatalogEvent:
    return Retired(record["group"], record["generation"])


def _read_remembered(record: Mapping[str, Any]) -> CatalogEvent:
    return Remembered(record["number"], record["slots"], record["request_id"], record["digest"], record["resource"])


_READERS: dict[object, Callable[[Mapping[str, Any]], CatalogEvent]] = {
    "stream": _read_stream,
    "group": _read_group,
    "query": _read_query,
    "retired": _read_retired,
    "remembered": _read_remembered,
}
