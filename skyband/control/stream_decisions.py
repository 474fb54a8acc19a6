"""Decisions about streams."""

from dataclasses import replace

from skyband.control.catalog_events import Removed, Stored
from skyband.control.commands import CreateStream, DeleteStream, UpdateStream
from skyband.control.decision import Case, Decision, check_etag, masked
from skyband.errors import AlreadyExistsError, ConflictError
from skyband.model.resources import StreamResource

__all__ = ["create_stream", "delete_stream", "update_stream"]

# The keys of a stream in a definitions file, and the fields of the value that each stands for.
_FIELDS = {
    "attributes": ("attributes", "is_object_stream"),
    "lo": ("attributes",),
    "hi": ("attributes",),
    "out_of_range": ("attributes",),
    "missing": ("attributes",),
    "identity": ("identity",),
    "aggregate": ("aggregate",),
    "repeat_after": ("repeat_after_us",),
    "max_delay": ("max_delay_us",),
    "late": ("late",),
    "idle": ("idle_after_us", "idle_then"),
    "max_ahead": ("max_ahead_us",),
    "topic": ("topic",),
    "format": ("format",),
    "schema": ("schema",),
    "fields": ("fields",),
}


def create_stream(case: Case, command: CreateStream) -> Decision:
    """Add a stream whose name is free."""
    resource = StreamResource(stream=command.stream, stamp=case.stamp)
    if case.catalog.find(resource.name):
        raise AlreadyExistsError(
            f"there is a stream {command.stream.name!r} already; update it, or choose another name"
        )
    return Decision(resource, (Stored(resource),))


def update_stream(case: Case, command: UpdateStream) -> Decision:
    """Change any field but the name; the groups that use the stream notice at their next generation."""
    old = case.catalog.stream(command.stream.name)
    check_etag(old, command.etag)
    keys = masked(command.mask, list(_FIELDS), "stream")
    values = {name: getattr(command.stream, name) for key in keys for name in _FIELDS[key]}
    stream = replace(old.stream, **values)
    if stream == old.stream:
        return Decision(old)
    resource = replace(old, stream=stream, stamp=old.stamp.next(case.now_us))
    return Decision(resource, (Stored(resource),))


def delete_stream(case: Case, command: DeleteStream) -> Decision:
    """Remove a stream that no group uses."""
    resource = case.catalog.stream(command.stream)
    check_etag(resource, command.etag)
    groups = case.catalog.groups_with(command.stream)
    if groups:
        plural = "s" if len(groups) > 1 else ""
        raise ConflictError(
            f"stream {command.stream!r} is used by group{plural} {', '.join(groups)}; delete the group{plural} first"
        )
    return Decision(None, (Removed(resource.name, resource),))
