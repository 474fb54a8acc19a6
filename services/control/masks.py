"""Update masks: which fields of a resource a request changes."""

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from skyband.errors import DefinitionError

__all__ = ["changed"]

_M = TypeVar("_M", bound=Message)

# Fields that an update never changes: the name, and what only the server sets.
_FIXED = frozenset(
    {
        "name",
        "uid",
        "revision",
        "etag",
        "create_time",
        "update_time",
        "generation",
        "sources",
        "stream_definitions",
        "state",
        "plan",
    }
)
# Fields that control knows under another name.
_KEYS = {"require_all": "require"}


def changed(current: _M, request: _M, mask: FieldMask) -> tuple[_M, tuple[str, ...]]:
    """Return `current` with the masked fields of `request`, and the masked fields as control calls them.

    ``*`` masks all fields, an empty mask those that `request` sets. Raises DefinitionError for a path that is none.
    """
    changeable = [field.name for field in current.DESCRIPTOR.fields if field.name not in _FIXED]
    paths = list(mask.paths)
    if not paths:
        paths = [field.name for field, _ in request.ListFields()]
    elif paths == ["*"]:
        paths = changeable
    result = type(current)()
    result.CopyFrom(current)
    keys = []
    for path in paths:
        _check_path(path, current, changeable)
        name = path.split(".", 1)[0]
        if name not in _FIXED:
            _copy(request, result, path)
            keys.append(_KEYS.get(name, name))
    return result, tuple(dict.fromkeys(keys))


def _check_path(path: str, message: Message, changeable: Iterable[str]) -> None:
    descriptor: Any = message.DESCRIPTOR
    names = path.split(".")
    for depth, name in enumerate(names):
        if descriptor is None or name not in descriptor.fields_by_name:
            near = difflib.get_close_matches(path, list(changeable), 1)
            hint = f"did you mean {near[0]}?" if near else f"fields are {', '.join(changeable)}"
            what = message.DESCRIPTOR.name.lower()
            raise DefinitionError(
                f"update_mask names {path!r}, which a {what} does not have; {hint}", field="update_mask"
            )
        field = descriptor.fields_by_name[name]
        if field.is_repeated and depth + 1 < len(names):
            raise DefinitionError(
                f"update_mask names {path!r}, a part of a list; name the whole, {'.'.join(names[: depth + 1])}",
                field="update_mask",
            )
        descriptor = field.message_type


def _copy(source: Message, target: Message, path: str) -> None:
    """Make `path` in `target` as it is in `source`, unset if it is not set there."""
    name, _, rest = path.partition(".")
    if rest:
        if source.HasField(name) or target.HasField(name):
            _copy(getattr(source, name), getattr(target, name), rest)
        return
    target.ClearField(name)
    for field, value in source.ListFields():
        if field.name != name:
            continue
        if field.is_repeated or field.message_type is not None:
            getattr(target, name).MergeFrom(value)
        else:
            setattr(target, name, value)
