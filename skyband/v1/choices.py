"""Enums of messages: a value is called as the model's member, behind the name of its enum; 0 stands for the default."""

import re
from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf.descriptor import EnumDescriptor

from skyband.errors import DefinitionError

__all__ = ["member", "number"]

_E = TypeVar("_E", bound=StrEnum)


def number(enum: EnumDescriptor, choice: StrEnum) -> Any:
    """Return the number that stands for `choice` in an enum of messages; the caller's field says its type."""
    return enum.values_by_name[f"{_prefix(enum)}_{choice.name}"].number


def member(enum: EnumDescriptor, kind: type[_E], value: int, field: str) -> _E | None:
    """Return the choice that a number stands for, None for the default.

    Raises DefinitionError, with `field`, for a number that this version does not know.
    """
    if not value:
        return None
    found = enum.values_by_number.get(value)
    if found is None:
        known = ", ".join(name.name for name in enum.values if name.number)
        raise DefinitionError(f"{field} has the value {value}, which is not one of {known}", field=field)
    return kind[found.name.removeprefix(f"{_prefix(enum)}_")]


def _prefix(enum: EnumDescriptor) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper()
