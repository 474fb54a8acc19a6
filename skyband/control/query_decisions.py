"""Decisions about queries."""

from dataclasses import replace

from skyband.control.catalog_events import Removed, Stored
from skyband.control.commands import CreateQuery, DeleteQuery, PauseQuery, ResumeQuery, UpdateQuery
from skyband.control.decision import Case, Decision, check_etag, masked
from skyband.control.planner import plan
from skyband.errors import AlreadyExistsError, DefinitionError, NotServedError
from skyband.model.query import Algorithm, Query, QueryState
from skyband.model.resources import QueryResource, query_name

__all__ = ["create_query", "delete_query", "pause_query", "resume_query", "update_query"]

_LIMITS = ("max_error", "target_precision", "memory_budget", "candidates")
_FIELDS = ("kind", "k", "score", "order", "window", "require", "algorithm", *_LIMITS)


def create_query(case: Case, command: CreateQuery) -> Decision:
    """Add a query whose name is free in its group, with the plan that will answer it."""
    group = case.catalog.group(command.group).group
    if case.catalog.find(query_name(command.group, command.query.name)):
        raise AlreadyExistsError(
            f"group {command.group!r} has a query {command.query.name!r} already; update it, or choose another name"
        )
    resource = QueryResource(
        group=command.group,
        query=command.query,
        plan=plan(group, command.query),
        state=QueryState.ACTIVE,
        stamp=case.stamp,
    )
    return Decision(resource, (Stored(resource),))


def update_query(case: Case, command: UpdateQuery) -> Decision:
    """Change k; a query that asks something else is another query."""
    old = case.catalog.query(command.group, command.query.name)
    check_etag(old, command.etag)
    keys = masked(command.mask, _FIELDS, "query")
    for key in keys:
        if key != "k" and not _same(old, command.query, key):
            raise DefinitionError(
                f"{key} of query '{command.group}/{old.query.name}' cannot change; "
                f"create a query of another name with the new {key}, then delete this one",
                field=key,
            )
    if "k" not in keys or command.query.k == old.query.k:
        return Decision(old)
    if old.plan.algorithm.forgets and command.query.k > old.query.k:
        raise NotServedError(
            f"k of query '{command.group}/{old.query.name}' cannot grow, because {old.plan.algorithm} has forgotten "
            f"what a larger k needs; create a query of another name with k {command.query.k:,}, then delete this one",
            field="k",
        )
    return _changed(case, replace(old, query=replace(old.query, k=command.query.k)))


def pause_query(case: Case, command: PauseQuery) -> Decision:
    """Pause a query that is active."""
    return _set_state(case, command, QueryState.PAUSED)


def resume_query(case: Case, command: ResumeQuery) -> Decision:
    """Resume a query that is paused."""
    return _set_state(case, command, QueryState.ACTIVE)


def delete_query(case: Case, command: DeleteQuery) -> Decision:
    """Remove a query."""
    resource = case.catalog.query(command.group, command.query)
    check_etag(resource, command.etag)
    return Decision(None, (Removed(resource.name, resource),))


def _set_state(case: Case, command: PauseQuery | ResumeQuery, state: QueryState) -> Decision:
    old = case.catalog.query(command.group, command.query)
    check_etag(old, command.etag)
    return Decision(old) if old.state is state else _changed(case, replace(old, state=state))


def _changed(case: Case, resource: QueryResource) -> Decision:
    resource = replace(resource, stamp=resource.stamp.next(case.now_us))
    return Decision(resource, (Stored(resource),))


def _same(old: QueryResource, new: Query, key: str) -> bool:
    match key:
        case "require":
            return (old.query.require, old.query.require_all) == (new.require, new.require_all)
        case "algorithm":
            return new.algorithm in (Algorithm.AUTO, old.query.algorithm, old.plan.algorithm)
        case _:
            return bool(getattr(old.query, key) == getattr(new, key))
