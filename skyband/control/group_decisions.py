"""Decisions about groups and their generations."""

from dataclasses import replace

from skyband.control.catalog_events import CatalogEvent, Removed, Retired, Stored
from skyband.control.commands import CreateGroup, DeleteGroup, RegenerateGroup, UpdateGroup
from skyband.control.decision import Case, Decision, check_etag, masked
from skyband.control.planner import check_plan
from skyband.control.rebuilt import rebuilt_sources
from skyband.errors import AlreadyExistsError, ConflictError, DefinitionError, NotServedError
from skyband.model.group import Group
from skyband.model.resources import GroupResource, GroupSpec, SourceStart, group_name

__all__ = ["create_group", "delete_group", "regenerate_group", "update_group"]

# The keys of a group in a definitions file, and the field of the value that each stands for.
_FIELDS = {
    "streams": "streams",
    "retention": "retention_us",
    "retention_rows": "retention_rows",
    "pane": "pane_us",
    "shards": "shards",
    "max_drift": "max_drift_us",
}


def create_group(case: Case, command: CreateGroup) -> Decision:
    """Add a group whose name is free, over streams that exist."""
    name = command.spec.name
    if case.catalog.find(group_name(name)):
        raise AlreadyExistsError(f"there is a group {name!r} already; update it, or choose another name")
    group = _build(case, command.spec)
    resource = GroupResource(
        group=group,
        generation=case.catalog.next_generation(name),
        sources=_checked(group, command.sources),
        stamp=case.stamp,
    )
    return Decision(resource, (Stored(resource),))


def update_group(case: Case, command: UpdateGroup) -> Decision:
    """Change max_drift; all else is fixed within a generation."""
    old = case.catalog.group(command.spec.name)
    check_etag(old, command.etag)
    before = GroupSpec.of(old.group)
    for key in masked(command.mask, list(_FIELDS), "group"):
        if key != "max_drift" and getattr(before, _FIELDS[key]) != getattr(command.spec, _FIELDS[key]):
            raise DefinitionError(
                f"{key} of group {old.group.name!r} is fixed within a generation; "
                f"begin a new one with it: skyband groups regenerate {old.group.name}",
                field=key,
            )
    if command.mask and "max_drift" not in command.mask:
        return Decision(old)
    group = replace(old.group, max_drift_us=command.spec.max_drift_us)
    if group == old.group:
        return Decision(old)
    resource = replace(old, group=group, stamp=old.stamp.next(case.now_us))
    return Decision(resource, (Stored(resource),))


def regenerate_group(case: Case, command: RegenerateGroup) -> Decision:
    """Begin a new generation; every query of the group must still fit, with the plan it has."""
    old = case.catalog.group(command.group)
    check_etag(old, command.etag)
    before = GroupSpec.of(old.group)
    spec = command.spec or before
    if spec.name != command.group:
        raise DefinitionError(f"a group cannot be renamed, as from {command.group!r} to {spec.name!r}", field="name")
    if spec.streams[: len(before.streams)] != before.streams:
        raise DefinitionError(
            f"streams of group {command.group!r} can only be added behind {', '.join(before.streams)}; "
            "for other streams create another group",
            field="streams",
        )
    group = _build(case, spec)
    sources = command.sources if command.rebuild is None else rebuilt_sources(old, group, command.rebuild)
    for query in case.catalog.queries_of(command.group):
        try:
            check_plan(group, query.query, query.plan)
        except DefinitionError as error:
            raise NotServedError(
                f"a new generation of group {command.group!r} would end its query {query.query.name!r}: "
                f"{error.message}; or delete the query first",
                field=error.field,
            ) from None
    resource = GroupResource(
        group=group,
        generation=old.generation + 1,
        sources=_checked(group, sources),
        stamp=old.stamp.next(case.now_us),
    )
    return Decision(resource, (Stored(resource),))


def delete_group(case: Case, command: DeleteGroup) -> Decision:
    """Remove a group, and with force its queries; its generations are never used again."""
    resource = case.catalog.group(command.group)
    check_etag(resource, command.etag)
    queries = case.catalog.queries_of(command.group)
    if queries and not command.force:
        names = ", ".join(query.query.name for query in queries[:5]) + (", …" if len(queries) > 5 else "")
        raise ConflictError(
            f"group {command.group!r} has {len(queries)} {'queries' if len(queries) > 1 else 'query'} ({names}); "
            "delete them first, or delete the group with force"
        )
    events: list[CatalogEvent] = [Removed(query.name, query) for query in queries]
    # The generation is retired before the group goes: whoever stops in between has lost nothing.
    events += [Retired(command.group, resource.generation), Removed(resource.name, resource)]
    return Decision(None, tuple(events))


def _build(case: Case, spec: GroupSpec) -> Group:
    return spec.build([case.catalog.stream(name).stream for name in spec.streams])


def _checked(group: Group, sources: tuple[SourceStart, ...]) -> tuple[SourceStart, ...]:
    seen: set[tuple[str, int]] = set()
    for index, source in enumerate(sources):
        group.stream_index(source.stream)
        place = f"sources[{index}]"
        if source.partition < 0 or source.offset < 0:
            raise DefinitionError(f"{place} has a negative partition or offset; both begin at 0", field=place)
        if (source.stream, source.partition) in seen:
            message = f"{place} names partition {source.partition} of stream {source.stream!r} a second time; keep one"
            raise DefinitionError(message, field=place)
        seen.add((source.stream, source.partition))
    return tuple(sorted(sources, key=lambda source: (group.stream_index(source.stream), source.partition)))
