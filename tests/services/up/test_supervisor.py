"""Services together, tasks one after the other, Kafka below them."""

import os
import signal
from collections.abc import Callable

import pytest

from services.up.child import State
from services.up.plan import Program
from services.up.supervisor import MOST_ENDS, Supervisor
from skyband.errors import LogError, SkybandError
from tests.services.up.stand_ins import ENDS, FAILS, SERVES, Watched, program, until

Watch = Callable[[Program], Watched]


class FakeBroker:
    """A broker that runs, until a test says otherwise."""

    def __init__(self) -> None:
        self.running = True
        self.failure: LogError | None = None

    def start(self) -> None:
        if self.failure:
            raise self.failure
        self.running = True

    def stop(self) -> None:
        self.running = False

    def is_running(self) -> bool:
        return self.running


class Stage:
    """A supervisor over stand-ins; time moves when a test says so."""

    def __init__(self, watch: Watch) -> None:
        self.now_s = 0.0
        self.said: list[str] = []
        self.broker = FakeBroker()
        self.supervisor = Supervisor(self.broker, tell=self.tell, clock=lambda: self.now_s)
        self.watch = watch
        self.ready = 0

    def tell(self, name: str, text: str, level: str = "info") -> None:
        self.said.append(f"{name}: {level}: {text}")

    def start(self, *services: str, tasks: tuple[str, ...] = ()) -> tuple[list[Watched], list[Watched]]:
        served = [self.watch(program(f"service-{n}", source)) for n, source in enumerate(services)]
        tasked = [self.watch(program(f"task-{n}", source, serves=False)) for n, source in enumerate(tasks)]
        self.supervisor.start([each.child for each in served], [each.child for each in tasked], self.note_ready)
        return served, tasked

    def note_ready(self) -> None:
        self.ready += 1

    def until(self, holds: Callable[[], bool]) -> None:
        until(holds, self.supervisor.step)


@pytest.fixture
def stage(watch: Watch) -> Stage:
    return Stage(watch)


def test_tasks_run_in_order_once_every_service_is_ready(stage: Stage) -> None:
    (one, two), (first, second) = stage.start(SERVES, SERVES, tasks=(ENDS, ENDS))
    assert first.child.state is State.STOPPED
    stage.until(lambda: first.child.state is not State.STOPPED)
    assert one.child.state is two.child.state is State.READY
    assert second.child.state is State.STOPPED
    stage.until(lambda: second.child.state is State.DONE)
    stage.supervisor.step()
    assert stage.said == ["task-0: info: done", "task-1: info: done"]
    assert stage.ready == 1
    stage.supervisor.stop()
    assert one.child.state is two.child.state is State.STOPPED
    assert not stage.broker.running


def test_what_comes_after_a_failed_task_is_left_out_and_services_go_on(stage: Stage) -> None:
    (service,), (first, second) = stage.start(SERVES, tasks=(FAILS, ENDS))
    stage.until(lambda: first.child.state is State.FAILED)
    for _ in range(3):
        stage.supervisor.step()
    assert second.child.state is State.STOPPED
    assert stage.supervisor.task_name is None
    assert service.child.state is State.READY
    stage.supervisor.stop()


def test_a_service_that_comes_back_is_no_second_readiness(stage: Stage) -> None:
    (service,), _ = stage.start(SERVES)
    stage.until(lambda: stage.ready == 1)
    os.kill(service.child.pid or 0, signal.SIGKILL)
    stage.until(lambda: service.child.state is State.WAITING)
    stage.now_s = 1.0
    stage.until(lambda: service.child.state is State.READY)
    stage.supervisor.step()
    assert stage.ready == 1
    stage.supervisor.stop()


def test_a_service_that_cannot_be_brought_up_is_an_error(stage: Stage) -> None:
    stage.start(FAILS)

    def step() -> None:
        stage.supervisor.step()
        stage.now_s += 100.0

    with pytest.raises(SkybandError, match=f"service-0 ended {MOST_ENDS} times before it was ready"):
        until(lambda: False, step)
    stage.supervisor.stop()


def test_a_kafka_that_ends_is_started_again_with_longer_and_longer_pauses(stage: Stage) -> None:
    stage.broker.running = False
    stage.broker.failure = LogError("no room left")
    stage.supervisor.step()
    for stage.now_s in (0.9, 1.0, 2.9, 3.0):
        stage.supervisor.step()
    assert stage.said == [
        "kafka: error: has ended; it starts again in 1 s",
        "kafka: error: no room left; it starts again in 2 s",
        "kafka: error: no room left; it starts again in 4 s",
    ]
    stage.broker.failure = None
    stage.now_s = 7.0
    stage.supervisor.step()
    assert stage.broker.running
    assert stage.said[-1] == "kafka: info: is back"
