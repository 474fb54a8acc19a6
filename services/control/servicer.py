"""The control service of the API: requests as commands of the stage, and its answers as messages."""

# The methods bear the names of the calls.
# ruff: noqa: N802

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.empty_pb2 import Empty

import skyband
from services.control.masks import changed
from services.control.requests import as_named, named, placed, rebuild_in, resource_in, zone
from services.runtime.grpc_errors import Conflict, refuse, status_of
from skyband.control import commands
from skyband.control.stage import ControlStage
from skyband.errors import ConflictError, DefinitionError, LogError, NotFoundError, SkybandError
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.rebuild import Rebuild
from skyband.model.resources import (
    GroupResource,
    GroupSpec,
    QueryResource,
    Resource,
    SourceStart,
    StreamResource,
    group_name,
    query_name,
    stream_name,
)
from skyband.model.stream import Stream
from skyband.sketch.merged import merged_statistics
from skyband.sketch.publication import SERVICE
from skyband.v1 import control_pb2 as pb
from skyband.v1 import control_pb2_grpc, types_pb2
from skyband.v1.begin import Begin
from skyband.v1.messages import (
    read_begin,
    read_group_spec,
    read_query,
    read_stream,
    write_group_resource,
    write_query_resource,
    write_statistics,
    write_status,
    write_stream_resource,
)
from skyband.v1.names import group_id, query_ids, stream_id
from skyband.v1.times import duration_us

__all__ = ["ControlServicer", "ResolveSources", "StageCall", "StatisticsOf"]

T = TypeVar("T")
_S = TypeVar("_S", bound="ControlServicer")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context = grpc.ServicerContext


class StageCall(Protocol):
    """Runs a function on the thread that owns the stage, and returns or raises what it does."""

    def __call__(self, function: Callable[[ControlStage], T], /) -> T:
        """Run `function`."""


class ResolveSources(Protocol):
    """Says at which offset of each source partition a group begins."""

    def __call__(self, streams: Sequence[Stream], begin: Begin, /) -> tuple[SourceStart, ...]:
        """Return the starts. Raises ConflictError for a topic that is not there, LogError if the log does not say."""


class StatisticsOf(Protocol):
    """Says what is known of the streams of a group."""

    def __call__(self, resource: GroupResource, window_us: int | None, source: str, /) -> PublishedStatistics:
        """Return what `source` says. Raises NotFoundError if that is nothing, DefinitionError for a window of none."""


def _answers(method: Callable[[_S, _Request, _Context], _Response]) -> Callable[[_S, _Request, _Context], _Response]:
    """Return `method` with its errors told to the client as statuses."""

    @functools.wraps(method)
    def answer(self: _S, request: _Request, context: _Context) -> _Response:
        try:
            return method(self, request, context)
        except Exception as error:
            if isinstance(error, DefinitionError):
                error.field = as_named(error.field, request)
            conflict = self.conflict_of(request) if isinstance(error, ConflictError) else Conflict.STATE
            failure = status_of(error, conflict)
        refuse(context, failure)

    return answer


def _nothing_published(resource: GroupResource, window_us: int | None, source: str) -> PublishedStatistics:
    """Return the statistics where nobody makes any."""
    return merged_statistics(resource.group, resource.generation, (), window_us)


class ControlServicer(control_pb2_grpc.ControlServiceServicer):
    """Answers the calls of any number of threads.

    `call` runs what touches the stage on its owner's thread; `resolve_sources` is asked, on the thread of the call,
    where a group begins, `statistics_of` what is known of its streams, and `check_rebuilt` whether the log still has
    what a rebuild goes on from. A retry with a request_id begins where the first try did.
    """

    def __init__(
        self,
        call: StageCall,
        resolve_sources: ResolveSources,
        results_address: str = "",
        statistics_of: StatisticsOf = _nothing_published,
        check_rebuilt: Callable[[Rebuild], None] = lambda rebuild: None,
    ) -> None:
        """Serve a stage; `results_address` is where clients find the results service, empty: where they found this."""
        self._call = call
        self._statistics_of = statistics_of
        self._check_rebuilt = check_rebuilt
        self._resolve_sources = resolve_sources
        self._results_address = results_address

    def GetServer(self, request: pb.GetServerRequest, context: _Context) -> pb.Server:
        """Return what runs here."""
        return pb.Server(version=skyband.__version__, results_address=self._results_address)

    # --- streams

    @_answers
    def CreateStream(self, request: pb.CreateStreamRequest, context: _Context) -> types_pb2.Stream:
        """Add a stream."""
        name = stream_name(request.stream_id) if request.stream_id else ""
        stream = read_stream(named(request.stream, name, "stream_id"))
        return self._change_stream(request, lambda stage: commands.CreateStream(stream))

    @_answers
    def GetStream(self, request: pb.GetStreamRequest, context: _Context) -> types_pb2.Stream:
        """Return a stream."""
        name = stream_id(request.name)
        return write_stream_resource(self._call(lambda stage: stage.catalog.stream(name)))

    @_answers
    def ListStreams(self, request: pb.ListStreamsRequest, context: _Context) -> pb.ListStreamsResponse:
        """Return a page of streams."""
        page = self._call(lambda stage: stage.page("streams", request.page_size, request.page_token))
        streams = [write_stream_resource(_a(StreamResource, resource)) for resource in page.resources]
        return pb.ListStreamsResponse(streams=streams, next_page_token=page.next_page_token)

    @_answers
    def UpdateStream(self, request: pb.UpdateStreamRequest, context: _Context) -> types_pb2.Stream:
        """Change a stream."""
        name = stream_id(request.stream.name, "stream.name")

        def command(stage: ControlStage) -> commands.Command:
            current = write_stream_resource(stage.catalog.stream(name))
            message, mask = changed(current, request.stream, request.update_mask)
            return commands.UpdateStream(read_stream(message), mask, request.stream.etag)

        return self._change_stream(request, command)

    @_answers
    def DeleteStream(self, request: pb.DeleteStreamRequest, context: _Context) -> Empty:
        """Remove a stream."""
        command = commands.DeleteStream(stream_id(request.name), request.etag)
        self._execute(request, lambda stage: command)
        return Empty()

    # --- groups

    @_answers
    def CreateGroup(self, request: pb.CreateGroupRequest, context: _Context) -> types_pb2.Group:
        """Add a group."""
        name = group_name(request.group_id) if request.group_id else ""
        spec = read_group_spec(named(request.group, name, "group_id"))
        sources = self._sources(request, lambda stage: spec.streams)
        return self._change_group(request, lambda stage: commands.CreateGroup(spec, sources))

    @_answers
    def GetGroup(self, request: pb.GetGroupRequest, context: _Context) -> types_pb2.Group:
        """Return a group."""
        name = group_id(request.name)
        return write_group_resource(self._call(lambda stage: stage.catalog.group(name)))

    @_answers
    def ListGroups(self, request: pb.ListGroupsRequest, context: _Context) -> pb.ListGroupsResponse:
        """Return a page of groups."""
        page = self._call(lambda stage: stage.page("groups", request.page_size, request.page_token))
        groups = [write_group_resource(_a(GroupResource, resource)) for resource in page.resources]
        return pb.ListGroupsResponse(groups=groups, next_page_token=page.next_page_token)

    @_answers
    def UpdateGroup(self, request: pb.UpdateGroupRequest, context: _Context) -> types_pb2.Group:
        """Change max_drift of a group."""
        name = group_id(request.group.name, "group.name")

        def command(stage: ControlStage) -> commands.Command:
            current = write_group_resource(stage.catalog.group(name))
            message, mask = changed(current, request.group, request.update_mask)
            return commands.UpdateGroup(read_group_spec(message), mask, request.group.etag)

        return self._change_group(request, command)

    @_answers
    def DeleteGroup(self, request: pb.DeleteGroupRequest, context: _Context) -> Empty:
        """Remove a group, if forced with its queries."""
        command = commands.DeleteGroup(group_id(request.name), request.force, request.etag)
        self._execute(request, lambda stage: command)
        return Empty()

    @_answers
    def RegenerateGroup(self, request: pb.RegenerateGroupRequest, context: _Context) -> types_pb2.Group:
        """Begin a new generation of a group."""
        name = group_id(request.name)
        if (rebuild := rebuild_in(request)) is not None:
            wanted = commands.RegenerateGroup(name, GroupSpec.of(rebuild.group), (), request.etag, rebuild)
            self._call(lambda stage: stage.execute(wanted, request_id=request.request_id, validate_only=True))
            self._check_rebuilt(rebuild)
            return self._change_group(request, lambda stage: wanted)

        def spec(stage: ControlStage) -> GroupSpec:
            current = write_group_resource(stage.catalog.group(name))
            message, _ = changed(current, request.group, request.update_mask)
            return read_group_spec(message)

        sources = self._sources(request, lambda stage: spec(stage).streams)
        return self._change_group(
            request, lambda stage: commands.RegenerateGroup(name, spec(stage), sources, request.etag)
        )

    @_answers
    def GetStatistics(self, request: pb.GetStatisticsRequest, context: _Context) -> pb.GroupStatistics:
        """Return what is known of the streams of a group."""
        name = group_id(request.name)
        window_us = duration_us(request.window, "window") if request.HasField("window") else None
        resource = self._call(lambda stage: stage.catalog.group(name))
        return write_statistics(self._statistics_of(resource, window_us, request.source or SERVICE))

    # --- queries

    @_answers
    def CreateQuery(self, request: pb.CreateQueryRequest, context: _Context) -> types_pb2.Query:
        """Add a query."""
        name = ""
        if request.query_id:
            name = query_name(group_id(request.parent, "parent"), request.query_id)
        message = named(request.query, name, "query_id")
        query, (group, _) = read_query(message), query_ids(message.name, "query.name")
        if request.parent and request.parent != group_name(group):
            raise DefinitionError(f"parent {request.parent!r} is not the group of {message.name!r}", field="parent")
        return self._change_query(request, lambda stage: commands.CreateQuery(group, query))

    @_answers
    def GetQuery(self, request: pb.GetQueryRequest, context: _Context) -> types_pb2.Query:
        """Return a query."""
        ids = query_ids(request.name)
        return write_query_resource(self._call(lambda stage: stage.catalog.query(*ids)))

    @_answers
    def ListQueries(self, request: pb.ListQueriesRequest, context: _Context) -> pb.ListQueriesResponse:
        """Return a page of queries, of one group or of all."""
        collection = f"{group_name(group_id(request.parent, 'parent'))}/queries"
        page = self._call(lambda stage: stage.page(collection, request.page_size, request.page_token))
        queries = [write_query_resource(_a(QueryResource, resource)) for resource in page.resources]
        return pb.ListQueriesResponse(queries=queries, next_page_token=page.next_page_token)

    @_answers
    def UpdateQuery(self, request: pb.UpdateQueryRequest, context: _Context) -> types_pb2.Query:
        """Change k of a query."""
        group, name = query_ids(request.query.name, "query.name")

        def command(stage: ControlStage) -> commands.Command:
            current = write_query_resource(stage.catalog.query(group, name))
            message, mask = changed(current, request.query, request.update_mask)
            return commands.UpdateQuery(group, read_query(message), mask, request.query.etag)

        return self._change_query(request, command)

    @_answers
    def DeleteQuery(self, request: pb.DeleteQueryRequest, context: _Context) -> Empty:
        """Remove a query."""
        command = commands.DeleteQuery(*query_ids(request.name), request.etag)
        self._execute(request, lambda stage: command)
        return Empty()

    @_answers
    def PauseQuery(self, request: pb.PauseQueryRequest, context: _Context) -> types_pb2.Query:
        """Pause a query."""
        command = commands.PauseQuery(*query_ids(request.name), request.etag)
        return self._change_query(request, lambda stage: command)

    @_answers
    def ResumeQuery(self, request: pb.ResumeQueryRequest, context: _Context) -> types_pb2.Query:
        """Resume a query."""
        command = commands.ResumeQuery(*query_ids(request.name), request.etag)
        return self._change_query(request, lambda stage: command)

    @_answers
    def ExplainQuery(self, request: pb.ExplainQueryRequest, context: _Context) -> pb.ExplainQueryResponse:
        """Explain how a query is answered, and what is known of it."""
        group, name = query_ids(request.name)
        of_query, of_group = self._call(lambda stage: (stage.catalog.query(group, name), stage.catalog.group(group)))
        window = of_query.query.window
        known, why = self._known(of_group, None if window.in_rows else window.size)
        return pb.ExplainQueryResponse(text=self._call(lambda stage: stage.explain(group, name, known, why)))

    @_answers
    def DescribeQuery(self, request: pb.DescribeQueryRequest, context: _Context) -> pb.DescribeQueryResponse:
        """Describe how a query is doing."""
        ids, times_in = query_ids(request.name), zone(request.time_zone)
        found, status = self._call(lambda stage: (stage.describe(*ids, times_in), stage.status(*ids)))
        return pb.DescribeQueryResponse(
            headline=found.headline,
            lines=[pb.DescriptionLine(label=label, text=text) for label, text in found.lines],
            status=write_status(status),
        )

    # --- what they share

    def _known(self, resource: GroupResource, window_us: int | None) -> tuple[PublishedStatistics | None, str]:
        """Return the statistics of a group, or None and why; empty if nothing is published."""
        try:
            return self._statistics_of(resource, window_us, SERVICE), ""
        except NotFoundError:
            return None, ""
        except SkybandError as error:
            return None, str(error)

    def conflict_of(self, request: Any) -> Conflict:
        """Return what stood against `request`: an outdated etag, or the state of things."""
        holder = request if hasattr(request, "etag") else resource_in(request)
        if holder is None or not holder.etag:
            return Conflict.STATE
        try:
            current = self._call(lambda stage: stage.catalog.find(holder.name))
        except LogError:
            return Conflict.STATE
        return Conflict.ETAG if current is not None and current.stamp.etag != holder.etag else Conflict.STATE

    def _execute(self, request: Any, command: Callable[[ControlStage], commands.Command]) -> Resource | None:
        """Make a command and do it, both on the owner's thread, so that nothing changes in between."""

        def run(stage: ControlStage) -> Resource | None:
            wanted = command(stage)
            try:
                return stage.execute(wanted, request_id=request.request_id, validate_only=request.validate_only)
            except DefinitionError as error:
                resource = resource_in(request)
                if resource is not None:
                    error.field = placed(error.field, resource.DESCRIPTOR)
                raise

        return self._call(run)

    def _change_stream(self, request: Any, command: Callable[[ControlStage], commands.Command]) -> types_pb2.Stream:
        return write_stream_resource(_a(StreamResource, self._execute(request, command)))

    def _change_group(self, request: Any, command: Callable[[ControlStage], commands.Command]) -> types_pb2.Group:
        return write_group_resource(_a(GroupResource, self._execute(request, command)))

    def _change_query(self, request: Any, command: Callable[[ControlStage], commands.Command]) -> types_pb2.Query:
        return write_query_resource(_a(QueryResource, self._execute(request, command)))

    def _sources(
        self,
        request: pb.CreateGroupRequest | pb.RegenerateGroupRequest,
        names: Callable[[ControlStage], Sequence[str]],
    ) -> tuple[SourceStart, ...]:
        """Return where to begin, in the order in which the catalog keeps it."""
        begin = read_begin(request.begin)

        def prepare(stage: ControlStage) -> tuple[list[Stream], tuple[SourceStart, ...] | None]:
            streams = [stage.catalog.stream(name).stream for name in names(stage)]
            done = stage.catalog.remembered(request.request_id) if request.request_id else None
            group = stage.catalog.find(done.resource) if done is not None else None
            # What was done began at what `latest` was then: a retry must not ask again, and so become another request.
            return streams, group.sources if isinstance(group, GroupResource) else None

        streams, begun = self._call(prepare)
        if begun is not None:
            return begun
        order = {stream.name: index for index, stream in enumerate(streams)}
        starts = self._resolve_sources(streams, begin)
        return tuple(sorted(starts, key=lambda start: (order[start.stream], start.partition)))


def _a(kind: type[T], resource: Resource | None) -> T:
    """Return `resource`, which is one of `kind`."""
    assert isinstance(resource, kind)
    return resource
