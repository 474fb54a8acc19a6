"""Streams as messages.

A message is read as the plain document of a stream, whose keys are its fields: definitions mean the same, and are
refused with the same sentences, wherever they are written.
"""

from typing import Any, Protocol

from google.protobuf.descriptor import EnumDescriptor

from skyband.errors import DefinitionError
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.resources import StreamResource, stream_name
from skyband.model.stream import (
    Aggregate,
    Attribute,
    Format,
    Identity,
    IdleThen,
    Late,
    OutOfRange,
    Stream,
    TimeUnit,
)
from skyband.model.stream_form import read_stream as read_document
from skyband.v1 import types_pb2
from skyband.v1.choices import member, number
from skyband.v1.names import stream_id
from skyband.v1.stamps import read_stamp, write_stamp
from skyband.v1.times import duration, duration_us

__all__ = ["read_stream", "read_stream_resource", "write_stream", "write_stream_resource"]

_CHOICES: dict[str, tuple[EnumDescriptor, Any]] = {
    "format": (types_pb2.Format.DESCRIPTOR, Format),
    "out_of_range": (types_pb2.OutOfRange.DESCRIPTOR, OutOfRange),
    "identity": (types_pb2.Identity.DESCRIPTOR, Identity),
    "aggregate": (types_pb2.Aggregate.DESCRIPTOR, Aggregate),
    "late": (types_pb2.Late.DESCRIPTOR, Late),
    "then": (types_pb2.IdleThen.DESCRIPTOR, IdleThen),
    "time_unit": (types_pb2.TimeUnit.DESCRIPTOR, TimeUnit),
}


class _Bounded(Protocol):
    """What an attribute and an attribute stream have in common."""

    lo: float
    hi: float
    out_of_range: types_pb2.OutOfRange.ValueType
    missing: float


def read_stream(message: types_pb2.Stream, path: str = "stream") -> Stream:
    """Return the stream that a message at `path` defines. Raises DefinitionError."""
    document: dict[str, Any] = {"name": stream_id(message.name, f"{path}.name")}
    document |= _read_present(message, ("lo", "hi", "missing"))
    document |= {key: text for key in ("topic", "schema") if (text := getattr(message, key))}
    document |= _read_choices(message, ("out_of_range", "identity", "aggregate", "late", "format"), path)
    for key in ("max_delay", "max_ahead"):
        if message.HasField(key):
            document[key] = format_duration(duration_us(getattr(message, key), f"{path}.{key}"))
    if message.attributes:
        document["attributes"] = [
            _read_attribute(a, f"{path}.attributes[{i}]") for i, a in enumerate(message.attributes)
        ]
    if message.HasField("repeat_after"):
        document["repeat_after"] = _read_repeat_after(message.repeat_after, f"{path}.repeat_after")
    if message.HasField("idle"):
        document["idle"] = _read_idle(message.idle, f"{path}.idle")
    if message.HasField("fields"):
        fields = message.fields
        document["fields"] = _read_present(fields, ("object_id", "event_time", "value"))
        document["fields"] |= _read_choices(fields, ("time_unit",), f"{path}.fields")
    return read_document(document, path)


def read_stream_resource(message: types_pb2.Stream) -> StreamResource:
    """Return the stream that a server has sent."""
    return StreamResource(stream=read_stream(message), stamp=read_stamp(message))


def write_stream(stream: Stream) -> types_pb2.Stream:
    """Return the message that defines `stream`, every field written but what an object stream must not have."""
    message = types_pb2.Stream(
        name=stream_name(stream.name),
        topic=stream.topic,
        format=_number("format", stream.format),
        schema=stream.schema,
        fields=types_pb2.Fields(
            object_id=stream.fields.object_id,
            event_time=stream.fields.event_time,
            value=None if stream.is_object_stream else stream.fields.value,
            time_unit=_number("time_unit", stream.fields.time_unit),
        ),
        max_delay=duration(stream.max_delay_us),
        late=_number("late", stream.late),
        idle=types_pb2.Idle(after=duration(stream.idle_after_us), then=_number("then", stream.idle_then)),
        max_ahead=duration(stream.max_ahead_us),
    )
    if stream.is_object_stream:
        message.identity = _number("identity", stream.identity)
        for attribute in stream.attributes:
            _write_bounds(message.attributes.add(name=attribute.name), attribute)
    else:
        _write_bounds(message, stream.attributes[0])
    if stream.identity is Identity.OBJECT:
        message.aggregate = _number("aggregate", stream.aggregate)
    if stream.repeat_after_us is not None:
        if stream.repeat_after_us >= MAX_TIME_US:
            message.repeat_after.never = True
        else:
            message.repeat_after.duration.CopyFrom(duration(stream.repeat_after_us))
    return message


def write_stream_resource(resource: StreamResource) -> types_pb2.Stream:
    """Return the message of a stream with its stamp."""
    message = write_stream(resource.stream)
    write_stamp(message, resource.stamp)
    return message


def _read_present(message: types_pb2.Stream | types_pb2.Attribute | types_pb2.Fields, keys: tuple[str, ...]) -> Any:
    return {key: getattr(message, key) for key in keys if message.HasField(key)}  # type: ignore[arg-type]


def _read_choices(message: object, keys: tuple[str, ...], path: str) -> dict[str, str]:
    found = {key: member(*_CHOICES[key], getattr(message, key), f"{path}.{key}") for key in keys}
    return {key: choice.value for key, choice in found.items() if choice is not None}


def _read_attribute(attribute: types_pb2.Attribute, path: str) -> dict[str, Any]:
    document = {"name": attribute.name, **_read_present(attribute, ("lo", "hi", "missing"))}
    return document | _read_choices(attribute, ("out_of_range",), path)


def _read_repeat_after(message: types_pb2.RepeatAfter, path: str) -> str:
    match message.WhichOneof("promise"):
        case "duration":
            return format_duration(duration_us(message.duration, f"{path}.duration"))
        case "never" if message.never:
            return "never"
        case "never":
            raise DefinitionError(
                f"{path}.never is false; set it to true, or leave repeat_after out", field=f"{path}.never"
            )
    raise DefinitionError(f"{path} promises nothing; give duration or never, or leave it out", field=path)


def _read_idle(message: types_pb2.Idle, path: str) -> dict[str, str]:
    document = _read_choices(message, ("then",), path)
    if message.HasField("after"):
        document["after"] = format_duration(duration_us(message.after, f"{path}.after"))
    return document


def _write_bounds(message: _Bounded, attribute: Attribute) -> None:
    message.lo, message.hi = attribute.lo, attribute.hi
    message.out_of_range = _number("out_of_range", attribute.out_of_range)
    if attribute.missing is not None:
        message.missing = attribute.missing


def _number(key: str, choice: Any) -> Any:
    return number(_CHOICES[key][0], choice)
