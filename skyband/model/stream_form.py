"""Streams as plain documents: the keys under ``streams:`` of a definitions file, read and written."""

import math
from collections.abc import Mapping
from typing import Any

from skyband.errors import DefinitionError
from skyband.model.document import bound, duration, items, number, one_of, read_mapping, text, under
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.stream import (
    Aggregate,
    Attribute,
    Fields,
    Format,
    Identity,
    IdleThen,
    Late,
    OutOfRange,
    Stream,
    TimeUnit,
)

__all__ = ["dump_stream", "read_stream"]

_ATTRIBUTE_ONLY = ("lo", "hi", "out_of_range", "missing")


def read_stream(value: object, path: str = "") -> Stream:
    """Return the stream that a document at `path` describes.

    With ``attributes`` it is an object stream, whose default ``aggregate`` is latest. Raises DefinitionError.
    """
    found = read_mapping(value, path, _what("stream", value), _STREAM, required=("name",))
    is_object_stream = "attributes" in found
    if is_object_stream:
        _refuse_in_object_stream(found, path)
        attributes = found["attributes"]
    else:
        attributes = (_attribute({key: found[key] for key in ("name", *_ATTRIBUTE_ONLY) if key in found}, path),)
    options = {field: found[key] for key, field in _OPTIONS.items() if key in found}
    for key, field in (("after", "idle_after_us"), ("then", "idle_then")):
        if key in found.get("idle", {}):
            options[field] = found["idle"][key]
    if is_object_stream:
        options.setdefault("aggregate", Aggregate.LATEST)
    try:
        return Stream(name=found["name"], attributes=attributes, is_object_stream=is_object_stream, **options)
    except DefinitionError as error:
        raise under(error, path) from None


def dump_stream(stream: Stream) -> dict[str, Any]:
    """Return the document, every key written, that `read_stream` reads back as `stream`."""
    document: dict[str, Any] = {"name": stream.name}
    if stream.is_object_stream:
        document["attributes"] = [{"name": a.name, **_dump_attribute(a)} for a in stream.attributes]
        document["identity"] = stream.identity.value
    else:
        document |= _dump_attribute(stream.attributes[0])
    if stream.identity is Identity.OBJECT:
        document["aggregate"] = stream.aggregate.value
    if stream.repeat_after_us is not None:
        never = stream.repeat_after_us >= MAX_TIME_US
        document["repeat_after"] = "never" if never else format_duration(stream.repeat_after_us)
    document |= {
        "max_delay": format_duration(stream.max_delay_us),
        "late": stream.late.value,
        "idle": {"after": format_duration(stream.idle_after_us), "then": stream.idle_then.value},
        "max_ahead": format_duration(stream.max_ahead_us),
        "topic": stream.topic,
        "format": stream.format.value,
        "schema": stream.schema,
        "fields": _dump_fields(stream),
    }
    return document


def _what(kind: str, value: object) -> str:
    name = value.get("name") if isinstance(value, Mapping) else None
    return f"{kind} {name!r}" if isinstance(name, str) else f"a {kind}"


def _refuse_in_object_stream(found: dict[str, Any], path: str) -> None:
    name = found["name"]
    for key in found:
        if key in _ATTRIBUTE_ONLY:
            raise DefinitionError(
                f"stream {name!r} lists attributes, so {key} belongs to each of them; move it there",
                field=f"{path}.{key}",
            )
        if key == "aggregate" and found.get("identity") is Identity.ROW:
            raise DefinitionError(
                f"stream {name!r} has identity row: every record is an object of its own and nothing combines; "
                "remove aggregate",
                field=f"{path}.aggregate",
            )
        if key == "fields" and found["fields"].value != Fields().value:
            raise DefinitionError(
                f"stream {name!r} lists attributes, each read from the field of its name; remove value",
                field=f"{path}.fields.value",
            )


def _attribute(found: dict[str, Any], path: str) -> Attribute:
    try:
        return Attribute(**found)
    except DefinitionError as error:
        if error.field == "lo" and "lo" not in found:
            error.field = "hi"
        raise under(error, path) from None


def _read_attribute(value: object, path: str) -> Attribute:
    return _attribute(read_mapping(value, path, _what("attribute", value), _ATTRIBUTE, required=("name",)), path)


def _read_missing(value: object, path: str) -> float | None:
    return None if value == "worst" else number(value, path)


def _read_repeat_after(value: object, path: str) -> int:
    return MAX_TIME_US if value == "never" else duration(value, path)


def _read_idle(value: object, path: str) -> dict[str, Any]:
    return read_mapping(value, path, "idle", {"after": duration, "then": one_of(IdleThen)})


def _read_fields(value: object, path: str) -> Fields:
    converters = {"object_id": text, "event_time": text, "value": text, "time_unit": one_of(TimeUnit)}
    return Fields(**read_mapping(value, path, "fields", converters))


def _dump_attribute(attribute: Attribute) -> dict[str, Any]:
    document: dict[str, Any] = {"lo": _dump_bound(attribute.lo), "hi": _dump_bound(attribute.hi)}
    document["out_of_range"] = attribute.out_of_range.value
    document["missing"] = "worst" if attribute.missing is None else attribute.missing
    return document


def _dump_bound(value: float) -> float | str:
    # JSON has no infinity.
    return value if math.isfinite(value) else str(value)


def _dump_fields(stream: Stream) -> dict[str, str]:
    fields = stream.fields
    document = {"object_id": fields.object_id, "event_time": fields.event_time}
    if not stream.is_object_stream:
        document["value"] = fields.value
    return document | {"time_unit": fields.time_unit.value}


_ATTRIBUTE = {"name": text, "lo": bound, "hi": bound, "out_of_range": one_of(OutOfRange), "missing": _read_missing}
_OPTIONS = {
    "identity": "identity",
    "aggregate": "aggregate",
    "repeat_after": "repeat_after_us",
    "max_delay": "max_delay_us",
    "late": "late",
    "max_ahead": "max_ahead_us",
    "topic": "topic",
    "format": "format",
    "schema": "schema",
    "fields": "fields",
}
_STREAM = {
    **_ATTRIBUTE,
    "attributes": items(_read_attribute),
    "identity": one_of(Identity),
    "aggregate": one_of(Aggregate),
    "repeat_after": _read_repeat_after,
    "max_delay": duration,
    "late": one_of(Late),
    "idle": _read_idle,
    "max_ahead": duration,
    "topic": text,
    "format": one_of(Format),
    "schema": text,
    "fields": _read_fields,
}
