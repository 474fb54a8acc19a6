"""The calls of the API, as values: what is asked of which method, and how its answer is read.

Each change has a request_id of its own, so that it can be tried again when an answer was lost.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from skyband.client.options import (
    Duration,
    GroupOptions,
    Start,
    StreamOptions,
    begin_of,
    duration_us,
    group_options,
    group_spec,
)
from skyband.errors import DefinitionError
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.query import Query
from skyband.model.resources import GroupResource, GroupSpec, QueryResource, StreamResource
from skyband.model.result import Result
from skyband.model.status import QueryStatus
from skyband.model.stream import Stream
from skyband.v1 import control_pb2 as pb
from skyband.v1 import results_pb2, types_pb2
from skyband.v1.messages import (
    read_group_resource,
    read_query_resource,
    read_result,
    read_statistics,
    read_status,
    read_stream_resource,
    write_begin,
    write_group_spec,
    write_query,
    write_stream,
)
from skyband.v1.names import group_name, query_name, stream_name
from skyband.v1.times import duration

__all__ = ["Call", "Description", "Page"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request to `method` of a service, and the reader of its answer."""

    method: str
    request: Message
    read: Callable[[Any], T]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list; `token` is that of the next part, empty on the last."""

    items: tuple[T, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Description:
    """How a query is doing: a headline, lines of (label, words), and the same as values."""

    headline: str
    lines: tuple[tuple[str, str], ...]
    status: QueryStatus


def get_server() -> Call[pb.Server]:
    """Ask what runs there."""
    return Call("GetServer", pb.GetServerRequest(), lambda answer: answer)


def create_stream(stream: Stream, validate_only: bool) -> Call[StreamResource]:
    """Add a stream."""
    request = pb.CreateStreamRequest(stream=write_stream(stream), request_id=_new_id(), validate_only=validate_only)
    return Call("CreateStream", request, read_stream_resource)


def get_stream(name: str) -> Call[StreamResource]:
    """Read a stream."""
    return Call("GetStream", pb.GetStreamRequest(name=stream_name(name)), read_stream_resource)


def list_streams(token: str) -> Call[Page[StreamResource]]:
    """Read a page of streams."""
    request = pb.ListStreamsRequest(page_token=token)
    return Call("ListStreams", request, lambda page: _page(page, page.streams, read_stream_resource))


def update_stream(stream: Stream, options: StreamOptions, etag: str) -> Call[StreamResource]:
    """Change the fields of a stream that the options name."""
    _check_changes(options, f"stream {stream.name!r}")
    message = write_stream(stream)
    message.etag = etag
    request = pb.UpdateStreamRequest(stream=message, update_mask=FieldMask(paths=sorted(options)), request_id=_new_id())
    return Call("UpdateStream", request, read_stream_resource)


def delete_stream(name: str, etag: str) -> Call[None]:
    """Remove a stream."""
    request = pb.DeleteStreamRequest(name=stream_name(name), etag=etag, request_id=_new_id())
    return Call("DeleteStream", request, _nothing)


def create_group(name: str, options: GroupOptions, begin: Start, validate_only: bool) -> Call[GroupResource]:
    """Add a group."""
    request = pb.CreateGroupRequest(
        group=write_group_spec(group_spec(name, options)),
        begin=write_begin(begin_of(begin)),
        request_id=_new_id(),
        validate_only=validate_only,
    )
    return Call("CreateGroup", request, read_group_resource)


def get_group(name: str) -> Call[GroupResource]:
    """Read a group."""
    return Call("GetGroup", pb.GetGroupRequest(name=group_name(name)), read_group_resource)


def list_groups(token: str) -> Call[Page[GroupResource]]:
    """Read a page of groups."""
    request = pb.ListGroupsRequest(page_token=token)
    return Call("ListGroups", request, lambda page: _page(page, page.groups, read_group_resource))


def update_group(name: str, options: GroupOptions, etag: str) -> Call[GroupResource]:
    """Change max_drift of a group."""
    _check_changes(options, f"group {name!r}")
    message, mask = _partial_group(name, options)
    message.etag = etag
    request = pb.UpdateGroupRequest(group=message, update_mask=mask, request_id=_new_id())
    return Call("UpdateGroup", request, read_group_resource)


def delete_group(name: str, force: bool, etag: str) -> Call[None]:
    """Remove a group."""
    request = pb.DeleteGroupRequest(name=group_name(name), force=force, etag=etag, request_id=_new_id())
    return Call("DeleteGroup", request, _nothing)


def regenerate_group(
    name: str, options: GroupOptions, begin: Start, etag: str, validate_only: bool, rebuild: str | None = None
) -> Call[GroupResource]:
    """Begin a new generation of a group, rebuilt or not."""
    if rebuild is not None and begin != "earliest":
        raise DefinitionError("a rebuilt generation begins where its rebuild says; leave begin out", field="begin")
    # An empty mask would stand for all that is set.
    message, mask = _partial_group(name, options) if options else (None, None)
    request = pb.RegenerateGroupRequest(
        name=group_name(name),
        group=message,
        update_mask=mask,
        begin=write_begin(begin_of(begin)) if rebuild is None else None,
        rebuild=rebuild or "",
        etag=etag,
        request_id=_new_id(),
        validate_only=validate_only,
    )
    return Call("RegenerateGroup", request, read_group_resource)


def get_statistics(group: str, window: Duration | None, source: str | None) -> Call[PublishedStatistics]:
    """Read what is known of the streams of a group."""
    length = None if window is None else duration(duration_us(window, "window"))
    request = pb.GetStatisticsRequest(name=group_name(group), window=length, source=source or "")
    return Call("GetStatistics", request, read_statistics)


def create_query(group: str, query: Query, validate_only: bool) -> Call[QueryResource]:
    """Add a query."""
    message = write_query(group, query)
    request = pb.CreateQueryRequest(query=message, request_id=_new_id(), validate_only=validate_only)
    return Call("CreateQuery", request, read_query_resource)


def get_query(group: str, query: str) -> Call[QueryResource]:
    """Read a query."""
    return Call("GetQuery", pb.GetQueryRequest(name=query_name(group, query)), read_query_resource)


def list_queries(group: str, token: str) -> Call[Page[QueryResource]]:
    """Read a page of queries."""
    request = pb.ListQueriesRequest(parent=group_name(group), page_token=token)
    return Call("ListQueries", request, lambda page: _page(page, page.queries, read_query_resource))


def update_query(group: str, query: str, k: int, etag: str) -> Call[QueryResource]:
    """Change k of a query."""
    message = types_pb2.Query(name=query_name(group, query), k=k, etag=etag)
    request = pb.UpdateQueryRequest(query=message, update_mask=FieldMask(paths=["k"]), request_id=_new_id())
    return Call("UpdateQuery", request, read_query_resource)


def delete_query(group: str, query: str, etag: str) -> Call[None]:
    """Remove a query."""
    request = pb.DeleteQueryRequest(name=query_name(group, query), etag=etag, request_id=_new_id())
    return Call("DeleteQuery", request, _nothing)


def pause_query(group: str, query: str, etag: str) -> Call[QueryResource]:
    """Pause a query."""
    request = pb.PauseQueryRequest(name=query_name(group, query), etag=etag, request_id=_new_id())
    return Call("PauseQuery", request, read_query_resource)


def resume_query(group: str, query: str, etag: str) -> Call[QueryResource]:
    """Resume a query."""
    request = pb.ResumeQueryRequest(name=query_name(group, query), etag=etag, request_id=_new_id())
    return Call("ResumeQuery", request, read_query_resource)


def explain_query(group: str, query: str) -> Call[str]:
    """Read how a query is answered."""
    return Call("ExplainQuery", pb.ExplainQueryRequest(name=query_name(group, query)), lambda answer: str(answer.text))


def describe_query(group: str, query: str, time_zone: str) -> Call[Description]:
    """Read how a query is doing."""
    request = pb.DescribeQueryRequest(name=query_name(group, query), time_zone=time_zone)

    def read(answer: pb.DescribeQueryResponse) -> Description:
        lines = tuple((line.label, line.text) for line in answer.lines)
        return Description(answer.headline, lines, read_status(answer.status))

    return Call("DescribeQuery", request, read)


def get_result(group: str, query: str, window_end: int | None) -> Call[Result]:
    """Read a result."""
    request = results_pb2.GetResultRequest(query=query_name(group, query), window_end=window_end)
    return Call("GetResult", request, read_result)


def subscribe(group: str, query: str, token: str) -> results_pb2.SubscribeRequest:
    """Return the request for a stream of changes from where `token` stands."""
    return results_pb2.SubscribeRequest(query=query_name(group, query), resume_token=token)


def _check_changes(options: Mapping[str, object], what: str) -> None:
    if not options:
        raise DefinitionError(f"nothing is said that shall change of {what}; name at least one field")


def _new_id() -> str:
    return uuid.uuid4().hex


def _nothing(answer: object) -> None:
    return None


def _page(page: Any, messages: Sequence[Any], read: Callable[[Any], T]) -> Page[T]:
    return Page(tuple(read(message) for message in messages), page.next_page_token)


def _partial_group(name: str, options: GroupOptions) -> tuple[types_pb2.Group, FieldMask]:
    """Return a group that has what the options name, and the mask of that."""
    # What is not named is masked out, whatever it is.
    spec = GroupSpec(**{"name": name, "streams": (), "retention_us": 1, **group_options(options)})
    return write_group_spec(spec), FieldMask(paths=sorted(options))
