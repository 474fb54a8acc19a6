"""Queries as messages; read, like streams, as plain documents (see stream_messages)."""

from enum import StrEnum
from typing import Any, Literal

from google.protobuf.descriptor import EnumDescriptor

from skyband.errors import DefinitionError
from skyband.model.duration import format_duration
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Kind, Order, Query, QueryState, Window
from skyband.model.query_form import read_query as read_document
from skyband.model.resources import QueryResource, query_name, stream_name
from skyband.v1 import types_pb2
from skyband.v1.choices import member, number
from skyband.v1.names import query_ids, stream_reference
from skyband.v1.stamps import read_stamp, write_stamp
from skyband.v1.times import duration, duration_us

__all__ = ["read_query", "read_query_resource", "write_query", "write_query_resource"]

_ALGORITHM = types_pb2.Algorithm.DESCRIPTOR
_LIMITS: tuple[Literal["max_error", "target_precision", "memory_budget"], ...] = (
    "max_error",
    "target_precision",
    "memory_budget",
)
_STATE = types_pb2.QueryState.DESCRIPTOR
_CHOICES: dict[str, tuple[EnumDescriptor, type[StrEnum]]] = {
    "kind": (types_pb2.Kind.DESCRIPTOR, Kind),
    "order": (types_pb2.Order.DESCRIPTOR, Order),
    "algorithm": (_ALGORITHM, Algorithm),
}


def read_query(message: types_pb2.Query, path: str = "query") -> Query:
    """Return the query that a message at `path` defines; it is not bound to its group yet. Raises DefinitionError."""
    _, name = query_ids(message.name, f"{path}.name")
    if not message.score:
        raise DefinitionError(f"{path}.score is missing; say by what objects are ranked", field=f"{path}.score")
    if not message.HasField("window"):
        raise DefinitionError(f"{path}.window is missing; say which rows count", field=f"{path}.window")
    document: dict[str, Any] = {"name": name, "k": message.k, "score": message.score}
    for key, (enum, kind) in _CHOICES.items():
        choice = member(enum, kind, getattr(message, key), f"{path}.{key}")
        if choice is not None:
            document[key] = choice.value
    document["window"] = _read_window(message.window, f"{path}.window")
    document |= {key: getattr(message, key) for key in _LIMITS if message.HasField(key)}
    document["candidates"] = message.candidates
    if message.require_all and message.require:
        raise DefinitionError(f"{path} has both require and require_all; keep one", field=f"{path}.require")
    if message.require_all:
        document["require"] = "all"
    elif message.require:
        named = enumerate(message.require)
        document["require"] = [stream_reference(name, f"{path}.require[{i}]") for i, name in named]
    try:
        return read_document(document, path)
    except DefinitionError as error:
        if error.field == f"{path}.window.slide" and message.window.count:
            error.field = f"{path}.window.slide_rows"
        raise


def read_query_resource(message: types_pb2.Query) -> QueryResource:
    """Return the query that a server has sent."""
    group, _ = query_ids(message.name)
    plan = message.plan
    return QueryResource(
        group=group,
        query=read_query(message),
        plan=Plan(
            algorithm=member(_ALGORITHM, Algorithm, plan.algorithm, "query.plan.algorithm") or Algorithm.AUTO,
            reason=plan.reason,
            relies_on=tuple(plan.relies_on),
            cost=plan.cost,
        ),
        state=member(_STATE, QueryState, message.state, "query.state") or QueryState.ACTIVE,
        stamp=read_stamp(message),
    )


def write_query(group: str, query: Query) -> types_pb2.Query:
    """Return the message that defines a query of `group`, every field written."""
    return types_pb2.Query(
        name=query_name(group, query.name),
        kind=number(_CHOICES["kind"][0], query.kind),
        k=query.k,
        score=query.score,
        order=number(_CHOICES["order"][0], query.order),
        window=_write_window(query.window),
        require=[stream_name(stream) for stream in query.require],
        require_all=query.require_all,
        algorithm=number(_ALGORITHM, query.algorithm),
        max_error=query.max_error,
        target_precision=query.target_precision,
        memory_budget=query.memory_budget,
        candidates=query.candidates,
    )


def write_query_resource(resource: QueryResource) -> types_pb2.Query:
    """Return the message of a query with its stamp, state and plan."""
    message = write_query(resource.group, resource.query)
    write_stamp(message, resource.stamp)
    message.state = number(_STATE, resource.state)
    message.plan.CopyFrom(
        types_pb2.Plan(
            algorithm=number(_ALGORITHM, resource.plan.algorithm),
            reason=resource.plan.reason,
            relies_on=resource.plan.relies_on,
            cost=resource.plan.cost,
        )
    )
    return message


def _read_window(message: types_pb2.Window, path: str) -> dict[str, Any]:
    in_rows = bool(message.count)
    if in_rows == message.HasField("size"):
        both = "both size and count; keep size for time, or count for rows"
        raise DefinitionError(f"{path} has {both if in_rows else 'neither size nor count; give one'}", field=path)
    foreign = message.HasField("slide") if in_rows else bool(message.slide_rows)
    if foreign:
        wrong, right = ("slide", "slide_rows") if in_rows else ("slide_rows", "slide")
        unit = "rows" if in_rows else "time"
        raise DefinitionError(f"{path} is counted in {unit}, so give {right}, not {wrong}", field=f"{path}.{wrong}")
    if in_rows:
        return {"count": message.count} | ({"slide": message.slide_rows} if message.slide_rows else {})
    document = {"size": format_duration(duration_us(message.size, f"{path}.size"))}
    if message.HasField("slide"):
        document["slide"] = format_duration(duration_us(message.slide, f"{path}.slide"))
    return document


def _write_window(window: Window) -> types_pb2.Window:
    if window.in_rows:
        return types_pb2.Window(count=window.size, slide_rows=window.slide)
    return types_pb2.Window(size=duration(window.size), slide=duration(window.slide))
