"""Whether servers answer, and how each query is doing, against servers of this process."""

from services.doctor.checks_control import check_control
from services.doctor.finding import Finding, Level
from skyband.client import Client
from skyband.control.commands import DeleteQuery, PauseQuery
from tests.client.conftest import Deployment, deployment

__all__ = ["deployment"]


def found(deployment: Deployment) -> list[Finding]:
    with Client(deployment.address, retry_s=0.1) as client:
        return list(check_control(client, deployment.address, "UTC"))


def test_queries_that_wait_for_a_shard_are_wrong(deployment: Deployment) -> None:
    made = found(deployment)
    assert [(one.level, one.text) for one in made[:2]] == [
        (Level.OK, f"control at {deployment.address} answers"),
        (Level.OK, "results are served"),
    ]
    assert [one.level for one in made[2:]] == [Level.WRONG, Level.WRONG]
    assert made[2].text.startswith("factory/coolest: STARTING; shard 0 (of 1) has not reported yet")
    assert "skyband doctor engine" in made[2].do


def test_a_paused_query_is_worth_knowing(deployment: Deployment) -> None:
    deployment.call(lambda control: control.execute(PauseQuery("factory", "hottest")))
    hottest = found(deployment)[3]
    assert hottest.level is Level.NOTE
    assert hottest.text.startswith("factory/hottest: PAUSED since")
    assert hottest.do == "skyband queries resume factory/hottest"


def test_without_queries_there_is_nothing_to_judge(deployment: Deployment) -> None:
    for name in ("hottest", "coolest"):
        deployment.call(lambda control, name=name: control.execute(DeleteQuery("factory", name)))
    assert [one.text for one in found(deployment)][1:] == ["there is no query"]


def test_a_server_that_is_not_there_is_wrong(deployment: Deployment) -> None:
    deployment.stop()
    (one,) = found(deployment)
    assert one.level is Level.WRONG
    assert one.text.startswith(f"cannot reach Skyband at {deployment.address} (")
    assert "skyband contexts list" in one.do
