import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import grpc
import pytest

from services.control.servicer import ControlServicer
from skyband.control.stage import ControlStage
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.model.resources import SourceStart
from skyband.model.stream import Stream
from skyband.v1 import control_pb2_grpc
from skyband.v1.begin import Begin
from tests.services.serving import Server

T = TypeVar("T")
START = 1_700_000_000_000_000


class Control:
    """A control stage with one owner's thread, behind a servicer; its topics have two partitions that grow."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.log = MemoryLog(self.clock)
        self.log.create_topic("catalog", 1)
        self.log.create_topic("progress", 1)
        numbers = itertools.count(1)
        self.stage = ControlStage(self.log, self.clock, lambda: f"uid{next(numbers)}")
        self.asked: list[tuple[list[str], Begin]] = []
        self.failure: Exception | None = None
        self.end = 100
        self._owner = ThreadPoolExecutor(1, thread_name_prefix="owner")
        self._owned_by = self._owner.submit(threading.get_ident).result()
        self.servicer = ControlServicer(self.call, self.resolve, results_address="there:1")

    def call(self, function: Callable[[ControlStage], T]) -> T:
        if self.failure is not None:
            raise self.failure
        return self._owner.submit(function, self.stage).result()

    def resolve(self, streams: Sequence[Stream], begin: Begin) -> tuple[SourceStart, ...]:
        assert threading.get_ident() != self._owned_by
        self.asked.append(([stream.name for stream in streams], begin))
        self.end += 1
        offset = {"earliest": 0, "latest": self.end}[begin] if isinstance(begin, str) else 50
        return tuple(SourceStart(s.name, p, offset, f"t-{s.name}") for p in (1, 0) for s in reversed(streams))

    def add_to(self, server: grpc.Server) -> None:
        control_pb2_grpc.add_ControlServiceServicer_to_server(self.servicer, server)


@pytest.fixture
def control() -> Control:
    return Control()


@pytest.fixture
def stub(control: Control) -> Iterator[control_pb2_grpc.ControlServiceStub]:
    server = Server(control.add_to)
    with grpc.insecure_channel(server.address) as channel:
        yield control_pb2_grpc.ControlServiceStub(channel)
    server.stop()
