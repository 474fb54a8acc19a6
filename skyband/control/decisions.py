"""Deciding: what a command does to the catalog, without doing it.

A decision is a list of events and the resource as it will be. Nothing changes until they are applied; a dry run leaves
them away.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from skyband.control import commands
from skyband.control.catalog import REMEMBERED, Catalog
from skyband.control.catalog_events import Remembered, check_storable
from skyband.control.commands import Command
from skyband.control.decision import Case, Decision
from skyband.control.group_decisions import create_group, delete_group, regenerate_group, update_group
from skyband.control.query_decisions import create_query, delete_query, pause_query, resume_query, update_query
from skyband.control.stream_decisions import create_stream, delete_stream, update_stream
from skyband.errors import ConflictError
from skyband.model.resources import Resource

__all__ = ["Decision", "decide"]

_DECIDERS: dict[type, Callable[[Case, Any], Decision]] = {
    commands.CreateStream: create_stream,
    commands.UpdateStream: update_stream,
    commands.DeleteStream: delete_stream,
    commands.CreateGroup: create_group,
    commands.UpdateGroup: update_group,
    commands.RegenerateGroup: regenerate_group,
    commands.DeleteGroup: delete_group,
    commands.CreateQuery: create_query,
    commands.UpdateQuery: update_query,
    commands.PauseQuery: pause_query,
    commands.ResumeQuery: resume_query,
    commands.DeleteQuery: delete_query,
}


def decide(
    catalog: Catalog,
    command: Command,
    *,
    now_us: int,
    new_uid: str,
    request_id: str = "",
    validate_only: bool = False,
) -> Decision:
    """Return what `command` does to `catalog`.

    `new_uid` is the uid of what it may create. A `request_id` that was used for the same command before does nothing
    again; `validate_only` decides, but changes nothing. Raises NotFoundError, AlreadyExistsError, ConflictError (etag,
    resources in use), DefinitionError and NotServedError (what cannot be, or may not change).
    """
    digest = hashlib.sha256(repr(command).encode()).hexdigest()
    repeated = catalog.remembered(request_id) if request_id else None
    if repeated is not None:
        return Decision(_repeated(catalog, repeated, digest))
    decision = _DECIDERS[type(command)](Case(catalog, now_us, new_uid), command)
    for event in decision.events:
        check_storable(event)
    if validate_only:
        return Decision(decision.resource)
    if request_id:
        name = decision.resource.name if decision.resource else ""
        memory = Remembered(catalog.next_request(), REMEMBERED, request_id, digest, name)
        return Decision(decision.resource, (*decision.events, memory))
    return decision


def _repeated(catalog: Catalog, repeated: Remembered, digest: str) -> Resource | None:
    if repeated.digest != digest:
        raise ConflictError(
            f"request_id {repeated.request_id!r} was used for another request; give each request an id of its own"
        )
    if not repeated.resource:
        return None
    found = catalog.find(repeated.resource)
    if found is None:
        raise ConflictError(
            f"request_id {repeated.request_id!r} was done before, but {repeated.resource} has been deleted since; "
            "use a new request_id"
        )
    return found
