"""Avro schemas of source records: checked, and, if flat, as a plan that the kernel follows.

A record is *flat* if each field is a primitive, an enum or a fixed, or a union of null and one of these, and no field
has two roles. Logical types are taken off, so that whole numbers stay what they are; the one of the event time says its
unit, whatever the stream's definition says. Only a value that is a decimal keeps its logical type.

Refused are schemas that some bytes could turn against the process that reads them: recursive ones (the reader's stack
is not guarded) and arrays of items that take no bytes (a few bytes may announce any number of them).
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastavro import parse_schema

from services.runtime import source_avro_kernel as kernel
from services.runtime.source_columns import Roles
from services.runtime.source_times import LOGICAL_SCALES
from skyband.errors import InputError

__all__ = ["AvroSchema", "FlatPlan", "read_schema"]

_KINDS = {
    "null": kernel.NULL,
    "boolean": kernel.BOOLEAN,
    "int": kernel.WHOLE,
    "long": kernel.WHOLE,
    "float": kernel.FLOAT,
    "double": kernel.DOUBLE,
    "bytes": kernel.BYTES,
    "string": kernel.STRING,
    "enum": kernel.ENUM,
    "fixed": kernel.FIXED,
}
_NAMED = ("record", "error", "enum", "fixed")
_IDS = {"string", "bytes", "int", "long", "enum", "fixed"}
_TIMES = {"string", "int", "long", "double"}
_VALUES = {"int", "long", "float", "double"}
_NO_INSTANT = ("time-millis", "time-micros", "duration")
_DEEPEST = 64
_Schema = Any


@dataclass(frozen=True, slots=True)
class FlatPlan:
    """What the kernel does with each of f fields: int64[f, 4] kind, role, index of null in its union or -1, limit."""

    fields: npt.NDArray[np.int64]
    has_whole_id: bool
    has_text_time: bool


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema that serves a stream: as fastavro reads it, its plan if flat, and what whole-number times are worth."""

    parsed: _Schema
    plan: FlatPlan | None
    scale: int


def read_schema(text: str, roles: Roles) -> AvroSchema:
    """Return the schema that a text is. Raises InputError if it is none, or cannot serve these roles; says why."""
    try:
        schema = parse_schema(json.loads(text))
    except RecursionError:
        raise InputError("schema nests too deeply") from None
    # On what is no schema at all the parser fails in any way.
    except Exception as error:
        problem = str(error) or type(error).__name__
        raise InputError(f"schema is no Avro schema: {type(error).__name__}: {problem}") from None
    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        raise InputError("schema is no record; source records must be records with named fields")
    names = _Walk().names_of(schema)
    fields = {field["name"]: field for field in schema["fields"]}
    for name in roles.names:
        if name not in fields:
            raise InputError(f"schema has no field {name!r}; its fields are {', '.join(fields) or 'none'}")
    _check(fields[roles.object_id]["type"], names, roles.object_id, _IDS, "id: text, bytes or a whole number")
    scale = roles.scale
    if roles.event_time is not None:
        kind = fields[roles.event_time]["type"]
        _check(kind, names, roles.event_time, _TIMES, "time: a whole number, double or text")
        scale = _scale(kind, names, roles)
    for name in roles.values:
        if not any(_is_decimal(branch) for branch in _branches(fields[name]["type"], names)):
            _check(fields[name]["type"], names, name, _VALUES, "value: a number")
    _strip(schema, names, roles.values)
    return AvroSchema(schema, _plan(schema, names, roles), scale)


class _Walk:
    """Collects the named types of a schema, and refuses what must not be read."""

    def __init__(self) -> None:
        self._names: dict[str, _Schema] = {}
        self._open: list[str] = []
        self._least: dict[str, int] = {}

    def names_of(self, schema: _Schema) -> dict[str, _Schema]:
        self._least_bytes(schema, 0)
        return self._names

    def _least_bytes(self, schema: _Schema, depth: int) -> int:
        """Return the least number of bytes, 1 for all above, that a value takes."""
        if depth > _DEEPEST:
            raise InputError(f"schema nests more than {_DEEPEST} levels deep")
        if isinstance(schema, list):
            for branch in schema:
                self._least_bytes(branch, depth + 1)
            return 1
        if isinstance(schema, str):
            if schema in self._open:
                raise InputError(f"schema is recursive: {schema} holds itself; use a schema that is not")
            return self._least.get(schema, int(schema != "null"))
        kind = schema["type"]
        if kind not in _NAMED:
            return self._least_of_items(schema, depth)
        name = schema["name"]
        self._names[name] = schema
        self._open.append(name)
        least = int(kind == "enum" or bool(schema.get("size")))
        for field in schema.get("fields", ()):
            least = max(least, self._least_bytes(field["type"], depth + 1))
        self._open.pop()
        self._least[name] = least
        return least

    def _least_of_items(self, schema: _Schema, depth: int) -> int:
        kind = schema["type"]
        if kind == "array":
            if not self._least_bytes(schema["items"], depth + 1):
                raise InputError("schema has an array of items that take no bytes; use a schema without")
            return 1
        if kind == "map":
            self._least_bytes(schema["values"], depth + 1)
            return 1
        return self._least_bytes(kind, depth + 1)


def _branches(schema: _Schema, names: dict[str, _Schema]) -> list[_Schema]:
    """Return the types that a value may have, names resolved, each as a mapping."""
    if isinstance(schema, list):
        return [found for branch in schema for found in _branches(branch, names)]
    if isinstance(schema, str):
        return [names.get(schema, {"type": schema})]
    return [schema]


def _is_decimal(schema: _Schema) -> bool:
    return bool(schema.get("logicalType") == "decimal" and schema["type"] in ("bytes", "fixed"))


def _check(schema: _Schema, names: dict[str, _Schema], name: str, right: set[str], what: str) -> None:
    kinds = [branch["type"] for branch in _branches(schema, names)]
    if not right.intersection(kinds):
        raise InputError(f"field {name!r} of the schema is {' or '.join(kinds)}, which is no {what}")


def _scale(schema: _Schema, names: dict[str, _Schema], roles: Roles) -> int:
    """Return what the whole numbers of the event time are worth."""
    branches = [branch for branch in _branches(schema, names) if branch["type"] in ("int", "long")]
    logical = [branch.get("logicalType", "") for branch in branches]
    if wrong := next((kind for kind in logical if kind in _NO_INSTANT), ""):
        raise InputError(f"field {roles.event_time!r} of the schema is {wrong}, which is no instant; use timestamps")
    scales = {LOGICAL_SCALES.get(kind, roles.scale) for kind in logical}
    if len(scales) > 1:
        raise InputError(f"field {roles.event_time!r} of the schema has whole numbers in two units; use one")
    return scales.pop() if scales else roles.scale


def _strip(schema: _Schema, names: dict[str, _Schema], values: tuple[str, ...]) -> None:
    """Take off all logical types, but for those of decimals that are values."""
    kept = {id(b) for f in schema["fields"] if f["name"] in values for b in _branches(f["type"], names)}
    waiting: list[_Schema] = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting += found
        elif isinstance(found, dict):
            if not (id(found) in kept and _is_decimal(found)):
                found.pop("logicalType", None)
            waiting += [found["type"], found.get("items"), found.get("values")]
            waiting += [field["type"] for field in found.get("fields", ())]


def _plan(schema: _Schema, names: dict[str, _Schema], roles: Roles) -> FlatPlan | None:
    """Return what the kernel does with the fields, or None if they are more than it knows."""
    if len(set(roles.names)) != len(roles.names):
        return None
    role_of = {roles.object_id: kernel.ID} | {name: column for column, name in enumerate(roles.values)}
    if roles.event_time is not None:
        role_of[roles.event_time] = kernel.TIME
    rows = []
    for field in schema["fields"]:
        branches = _branches(field["type"], names)
        kinds = [branch["type"] for branch in branches]
        null = -1
        if isinstance(field["type"], list):
            if len(kinds) != 2 or kinds.count("null") != 1:
                return None
            null = kinds.index("null")
        main = branches[1 - null if null >= 0 else 0]
        kind = _KINDS.get(main["type"])
        role = role_of.get(field["name"], kernel.UNUSED)
        if kind is None or (role != kernel.UNUSED and (kind in (kernel.ENUM, kernel.FIXED) or _is_decimal(main))):
            return None
        rows.append((kind, role, null, main.get("size", len(main.get("symbols", ())))))
    fields = np.array(rows, np.int64)
    used = {role: kind for kind, role, _, _ in rows}
    return FlatPlan(
        fields=fields,
        has_whole_id=used[kernel.ID] == kernel.WHOLE,
        has_text_time=used.get(kernel.TIME) == kernel.STRING,
    )
