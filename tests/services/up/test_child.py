"""A program under watch: ready, shown, started again, stopped."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from services.up.child import State
from services.up.folders import Folders
from services.up.plan import Program
from tests.services.up.stand_ins import ENDS, FAILS, NEVER_READY, SERVES, Watched, program, until

Watch = Callable[[Program], Watched]


@pytest.fixture
def service(watch: Watch) -> Iterator[Watched]:
    watched = watch(program("engine", SERVES, WHERE="here"))
    watched.start()
    watched.until(State.READY)
    yield watched
    watched.child.stop()


def test_a_service_is_ready_once_it_says_so_and_its_events_are_shown(service: Watched) -> None:
    service.child.look(0.0)
    assert len(service.shown) == 1
    assert service.shown[0].endswith("engine    ready  where=here")
    assert service.said == []


def test_a_stopped_service_has_ended_by_itself(service: Watched) -> None:
    pid = service.child.pid
    assert service.child.stop() == 0
    assert service.child.state is State.STOPPED
    assert service.child.pid is None
    assert service.shown[-1].endswith("engine    stopping")
    with pytest.raises(ProcessLookupError):
        os.kill(pid or 0, 0)


def test_a_service_that_dies_is_started_again_after_a_pause_and_that_is_said(service: Watched) -> None:
    first = service.child.pid
    os.kill(first or 0, signal.SIGKILL)
    service.until(State.WAITING, now_s=10.0)
    assert len(service.said) == 1
    assert service.said[0].startswith("engine: error: ended by signal 9: ")
    assert "it starts again in 1 s" in service.said[0]
    service.child.look(10.9)
    assert service.child.state is State.WAITING
    service.child.look(11.0)
    assert service.child.state is State.STARTING
    service.until(State.READY, now_s=11.0)
    assert service.child.pid not in (None, first)


def test_an_old_ready_file_makes_nobody_ready(folders: Folders, watch: Watch) -> None:
    folders.write_ready("engine", {"pid": 1})
    watched = watch(program("engine", NEVER_READY))
    watched.start()
    watched.child.look(0.0)
    assert watched.child.state is State.STARTING
    folders.write_ready("engine", {"pid": 1})
    watched.child.look(0.0)
    assert watched.child.state is State.STARTING
    watched.child.stop()


def test_pauses_double_up_to_half_a_minute(watch: Watch) -> None:
    watched = watch(program("engine", FAILS))
    now_s = 0.0
    watched.start(now_s)
    for _ in range(7):
        watched.until(State.WAITING, now_s)
        now_s += 100.0
        watched.child.look(now_s)
    pauses = [line.partition("again in ")[2] for line in watched.said]
    assert pauses == ["1 s", "2 s", "4 s", "8 s", "16 s", "30 s", "30 s"]
    assert "ended with exit code 1: the reason (see " in watched.said[0]
    watched.child.stop()


def test_a_minute_of_service_makes_up_for_earlier_ends(service: Watched) -> None:
    os.kill(service.child.pid or 0, signal.SIGKILL)
    service.until(State.WAITING)
    service.child.look(1.0)
    service.until(State.READY, now_s=1.0)
    service.child.look(60.9)
    assert service.child.ends == 1
    service.child.look(61.0)
    assert service.child.ends == 0


def test_a_service_that_takes_long_is_said_once(watch: Watch) -> None:
    watched = watch(program("engine", NEVER_READY))
    watched.start()
    for now_s in (59.0, 60.0, 61.0):
        watched.child.look(now_s)
    assert len(watched.said) == 1
    assert watched.said[0].startswith("engine: warning: not ready after 60 s; see ")
    watched.child.stop()


@pytest.mark.parametrize(("source", "state"), [(ENDS, State.DONE), (FAILS, State.FAILED)])
def test_a_task_runs_once(watch: Watch, source: str, state: State) -> None:
    watched = watch(program("apply", source, serves=False))
    watched.start()
    watched.until(state)
    watched.child.look(100.0)
    assert watched.child.state is state
    assert len(watched.said) == (state is State.FAILED)


def test_a_log_is_kept_and_put_aside_when_it_is_too_long(folders: Folders, watch: Watch) -> None:
    log = folders.log("apply")
    with log.open("wb") as file:
        file.truncate(11 << 20)
    watched = watch(program("apply", ENDS, serves=False))
    for _ in range(2):
        watched.start()
        watched.until(State.DONE)
    assert log.read_text() == "worked\nworked\n"
    assert log.with_suffix(".log.1").stat().st_size == 11 << 20


def test_the_checkout_is_on_the_path_of_every_program(watch: Watch, folders: Folders) -> None:
    watched = watch(program("apply", "import services.up, skyband; print('found')", serves=False))
    watched.start()
    until(lambda: watched.child.state in (State.DONE, State.FAILED), lambda: watched.child.look(0.0))
    assert folders.log("apply").read_text() == "found\n"
