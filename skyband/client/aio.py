"""The client for asyncio; the same calls as the one in sync, to be awaited."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import grpc
import stamina

from skyband.client import calls
from skyband.client.calls import Call, Description, Page
from skyband.client.connection import CHANNEL_OPTIONS, Tls, check_address
from skyband.client.errors import error_of, is_outdated, is_passing
from skyband.client.options import (
    Duration,
    GroupOptions,
    QueryOptions,
    Start,
    StreamOptions,
    changed_stream,
    query_of,
    query_path,
    stream_of,
)
from skyband.client.updates import Follower, Update
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.resources import GroupResource, QueryResource, StreamResource
from skyband.model.result import Result
from skyband.v1.control_pb2_grpc import ControlServiceStub
from skyband.v1.results_pb2 import SubscribeRequest, SubscribeResponse
from skyband.v1.results_pb2_grpc import ResultsServiceStub

if TYPE_CHECKING:
    from skyband.v1.results_pb2_grpc import ResultsServiceAsyncStub

__all__ = ["Client", "QueryHandle"]

T = TypeVar("T")


class Client:
    """A connection to Skyband at `address` (``host:port``), for one event loop.

    `results` is where results are served, None: where the server says. A call may take `timeout_s`; one that fails
    because nobody answers is tried again, with growing pauses, for `retry_s`: changes are done once, however often they
    are tried. All calls raise what the server raised (skyband.errors), or SkybandError if it cannot be reached.

    >>> async with Client("localhost:50051") as client:  # doctest: +SKIP
    ...     async for update in client.subscribe("factory/hottest"):
    ...         print(update.window_end, [row.object_id for row in update.rows])
    """

    def __init__(
        self,
        address: str,
        *,
        results: str | None = None,
        tls: Tls | None = None,
        timeout_s: float = 35.0,
        retry_s: float = 5.0,
    ) -> None:
        """Connect with the first call. Raises DefinitionError for an address that is none, and what `Tls` raises."""
        self._address = check_address(address)
        self._credentials = None if tls is None else tls.credentials()
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._channels = [self._channel(address)]
        self._control = ControlServiceStub(self._channels[0])
        self._results_address = None if results is None else check_address(results, "results")
        self._results_stub: ResultsServiceAsyncStub | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all calls and subscriptions."""
        for channel in self._channels:
            await channel.close()

    # --- streams

    async def create_stream(
        self, name: str, *, validate_only: bool = False, **options: Unpack[StreamOptions]
    ) -> StreamResource:
        """Add a stream; with `validate_only` return what it would be."""
        return await self._do(calls.create_stream(stream_of(name, options), validate_only))

    async def get_stream(self, name: str) -> StreamResource:
        """Return a stream."""
        return await self._do(calls.get_stream(name))

    def list_streams(self) -> AsyncIterator[StreamResource]:
        """Yield all streams, by name."""
        return self._list(calls.list_streams)

    async def update_stream(self, name: str, *, etag: str = "", **changes: Unpack[StreamOptions]) -> StreamResource:
        """Change a stream; groups that use it keep their definition until they are regenerated."""
        changed = changed_stream((await self.get_stream(name)).stream, changes)
        return await self._do(calls.update_stream(changed, changes, etag))

    async def delete_stream(self, name: str, *, etag: str = "") -> None:
        """Remove a stream that no group uses."""
        await self._do(calls.delete_stream(name, etag))

    # --- groups

    async def create_group(
        self, name: str, *, begin: Start = "earliest", validate_only: bool = False, **options: Unpack[GroupOptions]
    ) -> GroupResource:
        """Add a group over existing streams; `streams` and `retention` must be given."""
        return await self._do(calls.create_group(name, options, begin, validate_only))

    async def get_group(self, name: str) -> GroupResource:
        """Return a group."""
        return await self._do(calls.get_group(name))

    def list_groups(self) -> AsyncIterator[GroupResource]:
        """Yield all groups, by name."""
        return self._list(calls.list_groups)

    async def update_group(self, name: str, *, etag: str = "", **changes: Unpack[GroupOptions]) -> GroupResource:
        """Change max_drift of a group; all else needs a new generation."""
        return await self._do(calls.update_group(name, changes, etag))

    async def regenerate_group(
        self,
        name: str,
        *,
        begin: Start = "earliest",
        rebuild: str | None = None,
        etag: str = "",
        validate_only: bool = False,
        **changes: Unpack[GroupOptions],
    ) -> GroupResource:
        """Begin a new generation of a group, with its streams as they are now, and with `changes`.

        `rebuild`: the document of a rebuild, as text; its log and its group are those of the new generation.
        """
        return await self._do(calls.regenerate_group(name, changes, begin, etag, validate_only, rebuild))

    async def delete_group(self, name: str, *, force: bool = False, etag: str = "") -> None:
        """Remove a group; with `force` its queries too."""
        await self._do(calls.delete_group(name, force, etag))

    async def statistics(
        self, group: str, window: Duration | None = None, *, source: str | None = None
    ) -> PublishedStatistics:
        """Return what is known of a group's streams in its newest window, by default as long as its retention.

        `source`: whose statistics, by default the sketch service's; a job's are of the range that it was asked for.
        """
        return await self._do(calls.get_statistics(group, window, source))

    # --- queries

    async def create_query(
        self,
        group: str,
        *,
        name: str,
        k: int,
        score: str,
        window: Duration | int,
        validate_only: bool = False,
        **options: Unpack[QueryOptions],
    ) -> "QueryHandle":
        """Add a query to a group; a whole number as `window` counts rows. Without `slide`, windows do not overlap."""
        query = query_of(name, k, score, window, options)
        return QueryHandle(self, await self._do(calls.create_query(group, query, validate_only)))

    async def query(self, path: str) -> "QueryHandle":
        """Return a query by ``group/query``."""
        return QueryHandle(self, await self._do(calls.get_query(*query_path(path))))

    def list_queries(self, group: str = "-") -> AsyncIterator[QueryResource]:
        """Yield the queries of a group, or all, by name."""
        return self._list(lambda token: calls.list_queries(group, token))

    async def update_query(self, path: str, *, k: int, etag: str = "") -> QueryResource:
        """Change k of a query."""
        return await self._do(calls.update_query(*query_path(path), k, etag))

    async def pause_query(self, path: str, *, etag: str = "") -> QueryResource:
        """Stop evaluating a query, which keeps its place."""
        return await self._do(calls.pause_query(*query_path(path), etag))

    async def resume_query(self, path: str, *, etag: str = "") -> QueryResource:
        """Evaluate a paused query again."""
        return await self._do(calls.resume_query(*query_path(path), etag))

    async def delete_query(self, path: str, *, etag: str = "") -> None:
        """Remove a query; its subscriptions end."""
        await self._do(calls.delete_query(*query_path(path), etag))

    async def explain_query(self, path: str) -> str:
        """Return in words how a query is answered."""
        return await self._do(calls.explain_query(*query_path(path)))

    async def describe_query(self, path: str, *, time_zone: str = "UTC") -> Description:
        """Return how a query is doing, with times written in `time_zone`."""
        return await self._do(calls.describe_query(*query_path(path), time_zone))

    # --- results

    async def get_result(self, path: str, window_end: int | None = None) -> Result:
        """Return the result of a query at a window end, or the newest one."""
        return await self._do(calls.get_result(*query_path(path), window_end), self._results)

    async def subscribe(
        self, path: str, *, progress: bool = False, patience_s: float | None = None
    ) -> AsyncIterator[Update]:
        """Yield the results of a query for ever; with `progress` also that the one before still holds.

        A break is mended: it goes on with exactly what was missed, or, after a long one, with a snapshot. Raises
        NotFoundError once the query is deleted, SkybandError if nobody answers for `patience_s` (None: for ever; the
        first time for the client's retry_s).
        """
        group, query = query_path(path)
        follower = Follower()
        patience: float | None = self._retry_s
        while True:
            try:
                # Pauses grow from attempt to attempt, and begin anew after a stream that brought something.
                async for attempt in stamina.retry_context(
                    is_passing, attempts=None, timeout=patience, wait_jitter=0.2
                ):
                    has_heard = False
                    with attempt:
                        try:
                            request = calls.subscribe(group, query, follower.token)
                            async with aclosing(self._stream(request)) as stream:
                                async for message in stream:
                                    has_heard = True
                                    update = follower.take(message)
                                    if update is not None and (progress or not update.is_progress):
                                        yield update
                        except grpc.RpcError as failure:
                            if is_outdated(failure):
                                follower.begin_anew()
                            elif not (has_heard and is_passing(failure)):
                                raise
            except grpc.RpcError as failure:
                raise error_of(failure, self._results_address or self._address) from None
            patience = patience_s

    async def _stream(self, request: SubscribeRequest) -> AsyncGenerator[SubscribeResponse, None]:
        call = (await self._results()).Subscribe(request)
        try:
            async for message in call:
                yield message
        finally:
            call.cancel()

    async def _results(self) -> "ResultsServiceAsyncStub":
        """Return the stub of the results service, found out with the first call that needs it."""
        async with self._lock:
            if self._results_stub is None:
                if self._results_address is None:
                    self._results_address = (await self._do(calls.get_server())).results_address
                channel = self._channels[0]
                if self._results_address:
                    channel = self._channel(self._results_address)
                    self._channels.append(channel)
                self._results_stub = ResultsServiceStub(channel)
            return self._results_stub

    def _channel(self, address: str) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)
        return grpc.aio.secure_channel(address, self._credentials, options=CHANNEL_OPTIONS)

    async def _do(self, call: Call[T], stub: Callable[[], Awaitable[Any]] | None = None) -> T:
        """Do a call, and again while nobody answers; return what it brings."""
        try:
            async for attempt in stamina.retry_context(
                is_passing, attempts=None, timeout=self._retry_s, wait_jitter=0.2
            ):
                with attempt:
                    method = getattr(self._control if stub is None else await stub(), call.method)
                    return call.read(await method(call.request, timeout=self._timeout_s))
        except grpc.RpcError as failure:
            raise error_of(failure, self._address) from None
        raise AssertionError("a call is tried until it ends")

    async def _list(self, page: Callable[[str], Call[Page[T]]]) -> AsyncIterator[T]:
        token = ""
        while True:
            found = await self._do(page(token))
            for item in found.items:
                yield item
            token = found.token
            if not token:
                return


class QueryHandle:
    """One query, as it was when it was read: `resource`."""

    def __init__(self, client: Client, resource: QueryResource) -> None:
        self._client = client
        self.resource = resource
        self.path = f"{resource.group}/{resource.query.name}"

    def __repr__(self) -> str:
        return f"QueryHandle({self.path!r})"

    def watch(self, *, progress: bool = False, patience_s: float | None = None) -> AsyncIterator[Update]:
        """Yield its results; see Client.subscribe."""
        return self._client.subscribe(self.path, progress=progress, patience_s=patience_s)

    async def result(self, window_end: int | None = None) -> Result:
        """Return its result at a window end, or the newest one."""
        return await self._client.get_result(self.path, window_end)

    async def explain(self) -> str:
        """Return in words how it is answered."""
        return await self._client.explain_query(self.path)

    async def describe(self, *, time_zone: str = "UTC") -> Description:
        """Return how it is doing."""
        return await self._client.describe_query(self.path, time_zone=time_zone)

    async def update(self, *, k: int) -> None:
        """Change k."""
        self.resource = await self._client.update_query(self.path, k=k)

    async def pause(self) -> None:
        """Stop evaluating it."""
        self.resource = await self._client.pause_query(self.path)

    async def resume(self) -> None:
        """Evaluate it again."""
        self.resource = await self._client.resume_query(self.path)

    async def delete(self) -> None:
        """Remove it."""
        await self._client.delete_query(self.path)
