"""Groups, and where they begin, as messages."""

from collections.abc import Iterable

from skyband.errors import DefinitionError
from skyband.model.resources import GroupResource, GroupSpec, SourceStart, group_name, stream_name
from skyband.v1 import types_pb2
from skyband.v1.begin import EARLIEST, LATEST, Begin
from skyband.v1.names import group_id, stream_reference
from skyband.v1.stamps import read_stamp, write_stamp
from skyband.v1.stream_messages import read_stream, write_stream
from skyband.v1.times import duration, duration_us, timestamp, timestamp_us

__all__ = [
    "read_begin",
    "read_group_resource",
    "read_group_spec",
    "write_begin",
    "write_group_resource",
    "write_group_spec",
]

_DURATIONS = {"retention": "retention_us", "pane": "pane_us", "max_drift": "max_drift_us"}


def read_group_spec(message: types_pb2.Group, path: str = "group") -> GroupSpec:
    """Return the group that a message at `path` asks for. Raises DefinitionError; its values are checked when built."""
    if not message.HasField("retention"):
        field = f"{path}.retention"
        raise DefinitionError(f"{field} is missing; say how long rows are kept, at least a query's window", field=field)
    options = {
        name: duration_us(getattr(message, key), f"{path}.{key}")
        for key, name in _DURATIONS.items()
        if message.HasField(key)  # type: ignore[arg-type]
    }
    if message.HasField("shards"):
        options["shards"] = message.shards
    return GroupSpec(
        name=group_id(message.name, f"{path}.name"),
        streams=tuple(stream_reference(name, f"{path}.streams[{i}]") for i, name in enumerate(message.streams)),
        retention_rows=message.retention_rows,
        **options,
    )


def read_group_resource(message: types_pb2.Group) -> GroupResource:
    """Return the group that a server has sent."""
    definitions = message.stream_definitions
    streams = [read_stream(stream, f"group.stream_definitions[{i}]") for i, stream in enumerate(definitions)]
    return GroupResource(
        group=read_group_spec(message).build(streams),
        generation=message.generation,
        sources=tuple(
            SourceStart(stream_reference(s.stream, f"group.sources[{i}].stream"), s.partition, s.offset, s.topic_id)
            for i, s in enumerate(message.sources)
        ),
        stamp=read_stamp(message),
    )


def write_group_spec(spec: GroupSpec) -> types_pb2.Group:
    """Return the message that asks for `spec`, every field written."""
    return types_pb2.Group(
        name=group_name(spec.name),
        streams=[stream_name(stream) for stream in spec.streams],
        retention=duration(spec.retention_us),
        retention_rows=spec.retention_rows,
        pane=duration(spec.pane_us),
        shards=spec.shards,
        max_drift=duration(spec.max_drift_us),
    )


def write_group_resource(resource: GroupResource) -> types_pb2.Group:
    """Return the message of a group with its stamp, generation, sources and definitions of streams."""
    message = write_group_spec(GroupSpec.of(resource.group))
    write_stamp(message, resource.stamp)
    message.generation = resource.generation
    message.sources.extend(_write_sources(resource.sources))
    message.stream_definitions.extend(write_stream(stream) for stream in resource.group.streams)
    return message


def read_begin(message: types_pb2.Begin, path: str = "begin") -> Begin:
    """Return where to begin; the earliest record if the message says nothing. Raises DefinitionError."""
    if message.WhichOneof("at") == "time":
        return timestamp_us(message.time, f"{path}.time")
    if message.edge not in (edges := types_pb2.Begin.Edge).values():
        known = ", ".join(name for name, number in edges.items() if number)
        field = f"{path}.edge"
        raise DefinitionError(f"{field} has the value {message.edge}, which is not one of {known}", field=field)
    return LATEST if message.edge == types_pb2.Begin.EDGE_LATEST else EARLIEST


def write_begin(begin: Begin) -> types_pb2.Begin:
    """Return the message that says where to begin."""
    if isinstance(begin, int):
        return types_pb2.Begin(time=timestamp(begin))
    return types_pb2.Begin(edge=types_pb2.Begin.EDGE_LATEST if begin == LATEST else types_pb2.Begin.EDGE_EARLIEST)


def _write_sources(sources: Iterable[SourceStart]) -> Iterable[types_pb2.SourceStart]:
    for source in sources:
        yield types_pb2.SourceStart(
            stream=stream_name(source.stream),
            partition=source.partition,
            offset=source.offset,
            topic_id=source.topic_id,
        )
