"""The results service of the API: subscriptions of the stage as streams of messages.

A stream holds no queue: a message is made when the one before has been written to the client's connection, from the
newest result there is by then. So a slow client costs two results of memory, and nobody else's time.
"""

# The methods bear the names of the calls.
# ruff: noqa: N802

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import grpc

from services.runtime.grpc_errors import Conflict, refuse_async, status_of
from skyband.errors import DefinitionError, LogError, NotFoundError
from skyband.fanout.subscription import Mode, Subscription, Update, UpdateKind
from skyband.model.query import QueryState
from skyband.model.result import Result
from skyband.v1 import results_pb2 as pb
from skyband.v1 import results_pb2_grpc, types_pb2
from skyband.v1.choices import number
from skyband.v1.messages import write_delta, write_result
from skyband.v1.names import is_query_name, query_ids
from skyband.v1.times import duration

__all__ = ["ResultsServicer", "ResultsSource"]

T = TypeVar("T")
_Context = grpc.aio.ServicerContext[Any, Any]
_THREADS = 4

_MODES: dict[int, Mode] = {
    pb.MODE_UNSPECIFIED: Mode.CHANGES,
    pb.MODE_CHANGES: Mode.CHANGES,
    pb.MODE_SNAPSHOTS: Mode.SNAPSHOT,
}


class ResultsSource(Protocol):
    """What results are served from, as the fanout stage does; may be called from any thread.

    NotFoundError means that the catalog has no such query; one that cannot be served right now is a LogError.
    """

    def subscribe(
        self,
        query: str,
        *,
        group: str | None = None,
        resume_token: str | None = None,
        mode: Mode = Mode.CHANGES,
        wake: Callable[[], None] | None = None,
    ) -> Subscription:
        """Return a subscription to a query by name or uid; ConflictError for an outdated token."""

    def unsubscribe(self, subscription: Subscription) -> None:
        """Drop a subscription."""

    def get_result(self, query: str, group: str | None, window_end: int | None) -> Result:
        """Return the result of a window end, None: the newest; NotFoundError if there is none."""


class ResultsServicer(results_pb2_grpc.ResultsServiceServicer):
    """Answers the calls of one asyncio server.

    What may wait for the log runs on threads of its own, and so does what costs a result's rows: the event loop does
    neither, so that no subscriber waits for another.
    """

    def __init__(self, source: ResultsSource) -> None:
        self._source = source
        self._readers = ThreadPoolExecutor(_THREADS, thread_name_prefix="results-read")
        self._writers = ThreadPoolExecutor(_THREADS, thread_name_prefix="results-write")

    def close(self) -> None:
        """Give up the threads; calls that still run end with UNAVAILABLE."""
        for pool in (self._readers, self._writers):
            pool.shutdown(wait=False, cancel_futures=True)

    # Written to the context, not yielded: a call that is cancelled while it writes gives up its subscription at once.
    async def Subscribe(self, request: pb.SubscribeRequest, context: _Context) -> None:  # type: ignore[override]
        """Stream the results of a query."""
        await _answer(context, self._stream(request, context))

    async def GetResult(self, request: pb.GetResultRequest, context: _Context) -> pb.Result:
        """Return one result."""
        return await _answer(context, self._get_result(request))

    async def _stream(self, request: pb.SubscribeRequest, context: _Context) -> None:
        ready = asyncio.Event()
        subscription = await self._subscribe(request, ready)
        try:
            await context.write(_header(request, subscription))
            state = QueryState.ACTIVE
            while not subscription.ended:
                ready.clear()
                following = await _run(self._writers, partial(_next, subscription))
                if following is None:
                    await ready.wait()
                else:
                    response, state = following
                    await context.write(response)
        finally:
            self._source.unsubscribe(subscription)
        if state is QueryState.DELETED:
            raise NotFoundError(f"query {request.query!r} was deleted")
        raise LogError(f"this server serves query {request.query!r} no longer; subscribe again, with the resume token")

    async def _subscribe(self, request: pb.SubscribeRequest, ready: asyncio.Event) -> Subscription:
        query, group = _address(request.query)
        mode = _MODES.get(request.mode)
        if mode is None:
            message = f"mode has the value {request.mode}, which is not one of MODE_CHANGES, MODE_SNAPSHOTS"
            raise DefinitionError(message, field="mode")
        loop = asyncio.get_running_loop()

        def wake() -> None:
            # The stage may outlive the server, whose loop is then closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

        token = request.resume_token or None
        subscribe = partial(self._source.subscribe, query, group=group, resume_token=token, mode=mode, wake=wake)
        made = asyncio.ensure_future(_run(self._readers, subscribe))
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            # The thread goes on, and makes a subscription that nobody has any more.
            made.add_done_callback(self._drop)
            raise

    async def _get_result(self, request: pb.GetResultRequest) -> pb.Result:
        query, group = _address(request.query)
        window_end = request.window_end if request.HasField("window_end") else None

        def get() -> pb.Result:
            return write_result(self._source.get_result(query, group, window_end))

        return await _run(self._readers, get)

    def _drop(self, made: "asyncio.Future[Subscription]") -> None:
        if not made.cancelled() and made.exception() is None:
            self._source.unsubscribe(made.result())


async def _answer(context: _Context, work: Awaitable[T]) -> T:
    """Return what `work` does; end the call with the status of what it raises."""
    try:
        return await work
    except grpc.aio.BaseError as error:
        # The client has gone in the middle of a write: nobody is there to be told, and nothing is wrong.
        raise asyncio.CancelledError from error
    except Exception as error:
        failure = status_of(error, Conflict.RESUME_TOKEN)
    await refuse_async(context, failure)


async def _run(pool: Executor, function: Callable[[], T]) -> T:
    try:
        done = asyncio.get_running_loop().run_in_executor(pool, function)
    except RuntimeError as error:
        raise LogError("this server is stopping; try again") from error
    return await done


def _address(query: str) -> tuple[str, str | None]:
    """Return name and group of a query that is named, or its uid and None."""
    if is_query_name(query) or not query:
        group, name = query_ids(query, "query")
        return name, group
    return query, None


def _header(request: pb.SubscribeRequest, subscription: Subscription) -> pb.SubscribeResponse:
    mode = pb.MODE_SNAPSHOTS if subscription.mode is Mode.SNAPSHOT else pb.MODE_CHANGES
    header = pb.Header(query=request.query, uid=subscription.uid, generation=subscription.generation, mode=mode)
    return pb.SubscribeResponse(resume_token=request.resume_token, header=header)


def _next(subscription: Subscription) -> tuple[pb.SubscribeResponse, QueryState] | None:
    """Return what the subscriber has not been given, as a message, and the query's state. Cost: rows of two results."""
    update = subscription.take()
    return None if update is None else (_message(update), update.state)


def _message(update: Update) -> pb.SubscribeResponse:
    message = pb.SubscribeResponse(
        resume_token=update.resume_token,
        frontier_us=update.frontier_us,
        age=None if update.age_us is None else duration(update.age_us),
        skipped=update.skipped,
    )
    if update.kind is UpdateKind.STATE:
        message.state_change.state = number(types_pb2.QueryState.DESCRIPTOR, update.state)
    elif update.result is None:
        message.progress.SetInParent()
    elif update.kind is UpdateKind.DELTA:
        message.delta.CopyFrom(write_delta(update.result, update.deltas))
    else:
        message.snapshot.result.CopyFrom(write_result(update.result))
    return message
