"""Statistics through both clients, against servers of this process."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from skyband.client import Client
from skyband.client.aio import Client as AioClient
from skyband.errors import DefinitionError, NotFoundError
from skyband.model.published_statistics import PublishedStatistics
from tests.client.conftest import Deployment
from tests.services.fanout.conftest import START, S


def fed(deployment: Deployment) -> None:
    for second in range(30):
        deployment.feed(second, **{f"n{second * 7 % 60}": float(second), f"m{second}": 1.0})
    deployment.sketch()


def test_statistics_are_those_of_the_group(client: Client, deployment: Deployment) -> None:
    fed(deployment)
    found = client.statistics("factory")
    assert found == deployment.statistics_of(deployment.pipeline.control.catalog.group("factory"), None)
    assert (found.group, found.generation, found.streams, found.attributes) == ("factory", 1, ("heat",), (("heat",),))
    assert found.observations[0] == 60
    assert found.statistics.window_us == 60 * S
    assert found.statistics.at_us == START + 30 * S
    objects = found.statistics.streams[0].cardinality
    assert abs(objects.value - 60) < 4 * objects.error


@pytest.mark.parametrize("window", ["10s", timedelta(seconds=10)])
def test_a_window_is_shorter_than_the_retention(
    client: Client, deployment: Deployment, window: str | timedelta
) -> None:
    fed(deployment)
    found = client.statistics("factory", window)
    assert (found.statistics.window_us, found.observations) == (10 * S, (20,))


def test_a_window_that_is_none_is_refused(client: Client, deployment: Deployment) -> None:
    fed(deployment)
    with pytest.raises(DefinitionError, match="at most the group's retention, 1m"):
        client.statistics("factory", "2m")
    with pytest.raises(DefinitionError, match="window 'soon' is no duration"):
        client.statistics("factory", "soon")


def test_before_anything_is_published_it_is_said_when_that_will_be(client: Client) -> None:
    with pytest.raises(NotFoundError, match=r"the sketch service publishes every 5 s"):
        client.statistics("factory")
    with pytest.raises(NotFoundError, match="'nothing'"):
        client.statistics("nothing")


def test_a_jobs_statistics_are_had_by_its_name_and_told_of_beside_the_others(
    client: Client, deployment: Deployment
) -> None:
    fed(deployment)
    own = deployment.published[0]
    deployment.published.append(replace(own, source="spark:july", newest_us=own.newest_us, published_us=7))
    found, of_job = client.statistics("factory"), client.statistics("factory", source="spark:july")
    assert (found.source, found.other_sources) == ("service", ("spark:july",))
    assert (of_job.source, of_job.other_sources, of_job.published_us) == ("spark:july", ("service",), 7)
    assert of_job.statistics == found.statistics
    with pytest.raises(NotFoundError, match="from 'spark:june', but from 'service', 'spark:july'"):
        client.statistics("factory", source="spark:june")
    with pytest.raises(DefinitionError, match="at most what 'spark:july' is of, 1m"):
        client.statistics("factory", "2m", source="spark:july")
    del deployment.published[0]
    with pytest.raises(NotFoundError, match="from 'service', but from 'spark:july'; the sketch service publishes"):
        client.statistics("factory")


def test_the_client_for_asyncio_gets_the_same(client: Client, deployment: Deployment) -> None:
    fed(deployment)

    async def ask() -> PublishedStatistics:
        async with AioClient(deployment.address) as connected:
            return await connected.statistics("factory", "10s")

    assert asyncio.run(ask()) == client.statistics("factory", "10s")
