import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.fanout import service
from services.fanout.service import Fanout
from services.fanout.settings import FanoutSettings
from services.runtime.groups import GroupWatch
from services.runtime.health import Health
from services.runtime.process import Process
from skyband.control.catalog_events import Stored, to_record
from skyband.errors import LogError, NotFoundError
from skyband.files.definitions import load_definitions
from skyband.model.resources import GroupResource, Stamp
from tests.fanout.partials import query_change
from tests.fanout.place import new_log
from tests.kafka.cluster import until

WAIT_S = 30.0
GROUP = load_definitions("group:\n  {name: g, retention: 1m, streams: [{name: a, hi: 1}]}\n").group


class Stop(threading.Event):
    """Tells when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.set()
        return super().wait(timeout)


class Running:
    """A Fanout whose loop stands still while the gate is closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate, self.stands_still, self.stop = threading.Event(), threading.Event(), Stop()
        self.gate.set()
        gate, stands_still = self.gate, self.stands_still

        class HeldWatch(GroupWatch):
            def poll(self, timeout_s: float) -> bool:
                if not gate.is_set():
                    stands_still.set()
                assert gate.wait(WAIT_S)
                return super().poll(timeout_s)

        monkeypatch.setattr(service, "GroupWatch", HeldWatch)
        monkeypatch.setattr(service.topics, "apply", lambda log: None)
        self.log = new_log()
        process = SimpleNamespace(log=self.log, stop=self.stop, health=Health(lambda is_well: None))
        self.fanout = Fanout(cast(Process, process), FanoutSettings())
        self.ending = threading.Event()
        self.loop = threading.Thread(target=self.fanout.loop, args=(self.ending,))
        self.loop.start()
        until(self._is_connected, "a stage")

    def hold(self) -> None:
        self.gate.clear()
        assert self.stands_still.wait(WAIT_S)

    def make_a_query(self) -> None:
        resource = GroupResource(group=GROUP, generation=1, sources=(), stamp=Stamp("uid", 1, 0, 0))
        for key, value in (("groups/g", to_record(Stored(resource))), ("groups/g/queries/q", query_change("q"))):
            self.log.producer().send("catalog", 0, cast(Any, value), key=key.encode())

    def close(self) -> None:
        self.gate.set()
        self.ending.set()
        self.loop.join(WAIT_S)

    def _is_connected(self) -> bool:
        try:
            self.fanout.get_result("none", None, None)
        except NotFoundError:
            return True
        except LogError:
            return False
        return False


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    its = Running(monkeypatch)
    yield its
    its.close()


def test_who_asks_before_the_stage_has_heard_of_the_query_waits_for_it(running: Running) -> None:
    running.hold()
    running.make_a_query()
    running.stop.waited.clear()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(running.fanout.subscribe, "q")
        assert running.stop.waited.wait(WAIT_S)
        assert not asked.done()
        running.gate.set()
        assert asked.result(WAIT_S).uid == "q"


def test_who_asks_for_what_the_catalog_does_not_hold_is_told_at_once(running: Running) -> None:
    running.make_a_query()
    assert running.fanout.subscribe("q").uid == "q"
    running.stop.waited.clear()
    with pytest.raises(NotFoundError, match="no query 'other'"):
        running.fanout.subscribe("other")
    assert not running.stop.waited.is_set()
