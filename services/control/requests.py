"""What requests of the control service have in common: a resource, its name or id, and paths to their fields."""

import json
import re
from typing import Any
from zoneinfo import ZoneInfo

from google.protobuf.descriptor import Descriptor

from skyband.errors import DefinitionError
from skyband.model.rebuild import Rebuild
from skyband.v1 import control_pb2 as pb

__all__ = ["as_named", "named", "placed", "rebuild_in", "resource_in", "zone"]


def resource_in(request: Any) -> Any:
    """Return the stream, group or query in a request, None if it only names one."""
    return next((getattr(request, key) for key in ("stream", "group", "query") if hasattr(request, key)), None)


def named(message: Any, name: str, id_field: str) -> Any:
    """Return a resource with the `name` that the request's id says, or with its own where that is empty."""
    if not name:
        return message
    if message.name and message.name != name:
        raise DefinitionError(f"{id_field} says {name!r}, but name says {message.name!r}; give one", field=id_field)
    copy = type(message)()
    copy.CopyFrom(message)
    copy.name = name
    return copy


def as_named(field: str | None, request: object) -> str | None:
    """Return the field of a name that came as an id: that one was wrong."""
    match = re.fullmatch(r"(stream|group|query)\.name", field or "")
    id_field = f"{match.group(1)}_id" if match else ""
    return id_field if getattr(request, id_field, "") else field


def placed(field: str | None, resource: Descriptor) -> str:
    """Return the path in the request of what control calls `field`."""
    if field in ("update_mask", "rebuild"):
        return field
    top = re.split(r"[.\[]", field or "")[0]
    if top == "sources":
        return "begin"
    # A new generation is refused for a field of one of the group's queries: what is wrong here is the group.
    prefix = resource.name.lower()
    return f"{prefix}.{field}" if top in resource.fields_by_name else prefix


def zone(name: str) -> ZoneInfo:
    """Return the time zone of that name, UTC for an empty one. Raises DefinitionError for one that is not known."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError) as error:
        message = f"time_zone {name!r} is not known here; write for example Europe/Berlin"
        raise DefinitionError(message, field="time_zone") from error


def rebuild_in(request: pb.RegenerateGroupRequest) -> Rebuild | None:
    """Return the rebuild that a new generation goes on from, None without one. Raises DefinitionError."""
    if not request.rebuild:
        return None
    for name in ("group", "begin"):
        if request.HasField(name):
            raise DefinitionError(f"a rebuild says all of the group; leave {name} out", field=name)
    try:
        document = json.loads(request.rebuild)
    except ValueError as error:
        message = f"rebuild is no JSON ({error}); send what python -m spark.rebuild wrote"
        raise DefinitionError(message, field="rebuild") from None
    return Rebuild.of(document)
