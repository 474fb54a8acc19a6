"""What the shards must hear of a change to the catalog."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from skyband.control.catalog import Catalog
from skyband.control.catalog_events import CatalogEvent, Removed, Stored
from skyband.model.catalog import QueryChange
from skyband.model.query import QueryState
from skyband.model.resources import QueryResource

__all__ = ["changes_for", "missing_changes"]


def changes_for(events: Iterable[CatalogEvent]) -> list[QueryChange]:
    """Return what the shards must hear of `events`, in their order."""
    changes = []
    for event in events:
        match event:
            case Stored(QueryResource() as resource):
                changes.append(_change(resource))
            case Removed(resource=QueryResource() as resource):
                changes.append(_ended(_change(resource)))
    return changes


def missing_changes(catalog: Catalog, heard: Mapping[str, QueryChange]) -> list[QueryChange]:
    """Return what the shards should have heard and did not; `heard` is the newest change of each uid.

    A resource and its change are two records: where the writer died between them, this is the second one.
    """
    live = {resource.stamp.uid: resource for resource in catalog.queries()}
    missing = [
        _change(resource)
        for uid, resource in live.items()
        if uid not in heard or heard[uid].revision < resource.stamp.revision
    ]
    for uid, change in heard.items():
        if uid not in live and change.state is not QueryState.DELETED:
            missing.append(_ended(change))
    return missing


def _change(resource: QueryResource) -> QueryChange:
    return QueryChange(
        uid=resource.stamp.uid,
        revision=resource.stamp.revision,
        group=resource.group,
        query=replace(resource.query, algorithm=resource.plan.algorithm),
        state=resource.state,
    )


def _ended(change: QueryChange) -> QueryChange:
    return replace(change, revision=change.revision + 1, state=QueryState.DELETED)
