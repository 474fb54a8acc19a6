"""The catalog: all streams, groups and queries, as of the last event applied.

Words: an *event* says what one key now holds (`catalog_events`); a *retired* generation is that of a deleted group; the
catalog *remembers* the last `REMEMBERED` requests that named themselves. It begins empty. Invariant: it is a function
of the latest event of each key, whatever their order (a compacted topic holds just that); `decide` in `decisions` makes
only events that keep every query's group, and every group's streams, in it.
"""

from dataclasses import dataclass

from skyband.control.catalog_events import CatalogEvent, Remembered, Removed, Retired, Stored
from skyband.control.paging import page_token, resume_after
from skyband.errors import DefinitionError, NotFoundError
from skyband.model.resources import (
    GroupResource,
    QueryResource,
    Resource,
    StreamResource,
    group_name,
    query_name,
    stream_name,
)

__all__ = ["REMEMBERED", "Catalog", "Page"]

REMEMBERED = 1_000
MAX_PAGE = 1_000
DEFAULT_PAGE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list; `next_page_token` is empty on the last."""

    resources: tuple[Resource, ...]
    next_page_token: str


class Catalog:
    """The state, read by name and by list, changed by events alone. One thread owns it."""

    def __init__(self) -> None:
        self._resources: dict[str, Resource] = {}
        self._retired: dict[str, int] = {}
        self._remembered: dict[str, Remembered] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalog) and self._state() == other._state()

    __hash__ = None  # type: ignore[assignment]

    def apply(self, event: CatalogEvent) -> None:
        """Change the state as `event` says."""
        match event:
            case Stored():
                self._resources[event.key] = event.resource
            case Removed():
                self._resources.pop(event.key, None)
            case Retired():
                self._retired[event.group] = event.generation
            case Remembered():
                self._remembered[event.key] = event

    def stream(self, name: str) -> StreamResource:
        """Return a stream; NotFoundError if there is none."""
        found = self._resources.get(stream_name(name))
        if isinstance(found, StreamResource):
            return found
        raise NotFoundError(f"there is no stream {name!r}; see them with `skyband streams list`")

    def group(self, name: str) -> GroupResource:
        """Return a group; NotFoundError if there is none."""
        found = self._resources.get(group_name(name))
        if isinstance(found, GroupResource):
            return found
        raise NotFoundError(f"there is no group {name!r}; see them with `skyband groups list`")

    def query(self, group: str, name: str) -> QueryResource:
        """Return a query; NotFoundError if there is none, or no such group."""
        found = self._resources.get(query_name(group, name))
        if isinstance(found, QueryResource):
            return found
        self.group(group)
        raise NotFoundError(
            f"there is no query {name!r} in group {group!r}; see them with `skyband queries list {group}`"
        )

    def find(self, name: str) -> Resource | None:
        """Return the resource of that full name, or None."""
        return self._resources.get(name)

    def queries_of(self, group: str) -> tuple[QueryResource, ...]:
        """Return the queries of a group, by name."""
        collection = f"{group_name(group)}/queries"
        return tuple(r for r in self._listed(collection) if isinstance(r, QueryResource))

    def queries(self) -> tuple[QueryResource, ...]:
        """Return all queries, by name."""
        return tuple(r for r in self._listed("groups/-/queries") if isinstance(r, QueryResource))

    def groups_with(self, stream: str) -> tuple[str, ...]:
        """Return the names of the groups that use a stream, sorted."""
        groups = (r.group for r in self._resources.values() if isinstance(r, GroupResource))
        return tuple(sorted(g.name for g in groups if any(s.name == stream for s in g.streams)))

    def page(self, collection: str, page_size: int = 0, token: str = "") -> Page:
        """Return a page of ``streams``, ``groups``, ``groups/<group>/queries`` or ``groups/-/queries``, by name.

        `page_size` 0 means 50; more than 1,000 counts as 1,000. A token stays good while resources come and go: what
        is there from the first page to the last is listed exactly once. Cost: linear in the catalog.
        """
        if page_size < 0:
            raise DefinitionError("page_size must not be negative", field="page_size")
        parts = collection.split("/")
        if parts not in (["streams"], ["groups"]) and not (len(parts) == 3 and parts[::2] == ["groups", "queries"]):
            raise DefinitionError(
                f"{collection!r} is no list; lists are streams, groups, groups/<group>/queries and groups/-/queries",
                field="parent",
            )
        if len(parts) == 3 and parts[1] != "-":
            self.group(parts[1])
        size = min(page_size or DEFAULT_PAGE, MAX_PAGE)
        after = resume_after(token, collection)
        left = [resource for resource in self._listed(collection) if resource.name > after]
        shown = tuple(left[:size])
        return Page(shown, page_token(collection, shown[-1].name) if len(left) > size else "")

    def next_generation(self, group: str) -> int:
        """Return the generation that a new group of this name begins with."""
        return self._retired.get(group, 0) + 1

    def remembered(self, request_id: str) -> Remembered | None:
        """Return the request of that id, if it is among the last ones."""
        return next((r for r in self._remembered.values() if r.request_id == request_id), None)

    def next_request(self) -> int:
        """Return the number of the next request to remember."""
        return max((r.number for r in self._remembered.values()), default=-1) + 1

    def _listed(self, collection: str) -> list[Resource]:
        found = []
        for name in sorted(self._resources):
            parent = name.rsplit("/", 1)[0]
            if parent == collection or (collection == "groups/-/queries" and parent.endswith("/queries")):
                found.append(self._resources[name])
        return found

    def _state(self) -> tuple[object, ...]:
        return self._resources, self._retired, self._remembered

    def _check(self) -> None:
        """Assert the invariant: nothing hangs in the air."""
        for name, resource in self._resources.items():
            assert resource.name == name
            if isinstance(resource, QueryResource):
                assert group_name(resource.group) in self._resources, name
            if isinstance(resource, GroupResource):
                assert resource.generation >= self._retired.get(resource.group.name, 0)
                for stream in resource.group.streams:
                    assert stream_name(stream.name) in self._resources, name
        assert len({r.request_id for r in self._remembered.values()}) == len(self._remembered) <= REMEMBERED
