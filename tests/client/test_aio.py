"""The client for asyncio, where it is not the same as the other by construction."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from skyband.client import Client as SyncClient
from skyband.client import QueryHandle as SyncHandle
from skyband.client import Update
from skyband.client.aio import Client, QueryHandle
from skyband.control.commands import DeleteQuery
from skyband.errors import DefinitionError, NotFoundError, SkybandError
from tests.client.conftest import Deployment

PATH = "factory/hottest"


def run(deployment: Deployment, work: Callable[[Client], Awaitable[None]]) -> None:
    async def connected() -> None:
        async with Client(deployment.address) as client:
            await work(client)

    asyncio.run(asyncio.wait_for(connected(), 20))


async def on_thread(function: Callable[..., object], *arguments: object, **named: object) -> None:
    await asyncio.get_running_loop().run_in_executor(None, lambda: function(*arguments, **named))


async def exhaust(updates: AsyncIterator[Update]) -> None:
    async for _ in updates:
        pass


def public(kind: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(method).parameters)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_both_clients_have_the_same_calls() -> None:
    assert public(Client) == public(SyncClient)
    assert public(QueryHandle) == public(SyncHandle)


def test_a_question_of_ones_own_is_asked(deployment: Deployment) -> None:
    async def work(client: Client) -> None:
        await client.create_stream("cold", lo=-50, hi=50)
        await client.create_group("lab", streams=["cold"], retention="10m")
        query = await client.create_query("lab", name="coldest", k=5, score="cold", window="60s")
        assert [q.query.name async for q in client.list_queries("lab")] == ["coldest"]
        await query.update(k=6)
        assert query.resource.query.k == 6
        assert (await query.describe()).headline.startswith("coldest")
        await query.delete()
        with pytest.raises(NotFoundError):
            await client.query("lab/coldest")
        with pytest.raises(DefinitionError):
            await client.create_query("lab", name="q", k=1, score="speed", window="5s")

    run(deployment, work)


def test_a_subscription_survives_its_server(deployment: Deployment) -> None:
    deployment.feed(0, a=1, b=2, c=3)
    deployment.feed(1.5, a=5)

    async def work(client: Client) -> None:
        updates = (await client.query(PATH)).watch()
        first = await anext(updates)
        assert [row.object_id for row in first.rows] == ["c", "b"]
        await on_thread(deployment.stop)
        await on_thread(deployment.feed, 2.5, b=9)
        await on_thread(deployment.start)
        mended = await anext(updates)
        assert not mended.is_snapshot
        assert [row.object_id for row in mended.entered] == ["a"]
        await on_thread(deployment.pipeline.control.execute, DeleteQuery("factory", "hottest"))
        await on_thread(deployment.work)
        with pytest.raises(NotFoundError, match="was deleted"):
            await exhaust(updates)

    run(deployment, work)


def test_who_stops_watching_is_forgotten(deployment: Deployment) -> None:
    deployment.feed(0.5, a=1)
    deployment.feed(1.5, a=1)

    async def work(client: Client) -> None:
        async for _ in client.subscribe(PATH):
            break
        await on_thread(deployment.source.wait_for, live=0, made=1)

    run(deployment, work)


def test_who_is_cancelled_while_watching_is_forgotten(deployment: Deployment) -> None:
    deployment.feed(0.5, a=1)

    async def work(client: Client) -> None:
        task = asyncio.create_task(exhaust(client.subscribe(PATH)))
        await on_thread(deployment.source.wait_for, live=1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await on_thread(deployment.source.wait_for, live=0, made=1)

    run(deployment, work)


def test_nobody_at_home_is_said_with_the_address() -> None:
    async def work() -> None:
        async with Client("localhost:1", retry_s=0.01) as client:
            with pytest.raises(SkybandError, match=r"cannot reach Skyband at localhost:1 \(Connection refused"):
                await client.get_group("factory")

    asyncio.run(work())
