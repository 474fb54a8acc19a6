import threading
from collections.abc import Callable, Iterator

import grpc
import pytest

from services.fanout.servicer import ResultsServicer, ResultsSource
from skyband.align.stage import AlignSettings
from skyband.fanout.subscription import Mode, Subscription
from skyband.files.definitions import load_definitions
from skyband.local.pipeline import LocalPipeline
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.model.result import Result
from skyband.v1 import results_pb2_grpc
from tests.oracle import Row
from tests.services.serving import Server
from tests.workloads import source_rows

S = 1_000_000
START = 1_700_000_000 * S
DEFINITIONS = load_definitions("""\
group:
  name: factory
  retention: 1m
  streams: [{name: heat, lo: 0, hi: 100, aggregate: latest}]
queries:
  - {name: hottest, k: 2, score: heat, window: {size: 10s, slide: 1s}}
  - {name: coolest, k: 1, score: heat, order: lowest, window: {size: 10s, slide: 1s}}
""")


class Watched:
    """A source that knows who is subscribed."""

    def __init__(self, source: ResultsSource) -> None:
        self.source = source
        self.gate = threading.Event()
        self.gate.set()
        self.reached = threading.Event()
        self.made = 0
        self._live: list[Subscription] = []
        self._changed = threading.Condition()

    def subscribe(
        self,
        query: str,
        *,
        group: str | None = None,
        resume_token: str | None = None,
        mode: Mode = Mode.CHANGES,
        wake: Callable[[], None] | None = None,
    ) -> Subscription:
        self.reached.set()
        assert self.gate.wait(10)
        made = self.source.subscribe(query, group=group, resume_token=resume_token, mode=mode, wake=wake)
        with self._changed:
            self._live.append(made)
            self.made += 1
            self._changed.notify_all()
        return made

    def unsubscribe(self, subscription: Subscription) -> None:
        self.source.unsubscribe(subscription)
        with self._changed:
            self._live.remove(subscription)
            self._changed.notify_all()

    def get_result(self, query: str, group: str | None, window_end: int | None) -> Result:
        return self.source.get_result(query, group, window_end)

    def wait_for(self, live: int, made: int = 0) -> None:
        """Wait until there are `live` subscriptions, after at least `made`."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._live) == live and self.made >= made, 10)


class Factory:
    """A pipeline in the test's hand, and servers of its results."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        settings = AlignSettings(flush_interval_us=0)
        log = MemoryLog(self.clock)
        self.pipeline = LocalPipeline(DEFINITIONS, log, self.clock, [(0, 0)], align=settings)
        self.source = Watched(self.pipeline.fanout)
        self.servers: list[Server] = []
        self._servicers: list[ResultsServicer] = []
        self._fed = 0

    def feed(self, second: float, **heat: float) -> None:
        """Let machines report at a second from the start; what ended before is evaluated."""
        self.feed_rows([Row(name, START + int(second * S), (value,)) for name, value in heat.items()])

    def feed_rows(self, rows: list[Row]) -> None:
        first, self._fed = self._fed, self._fed + len(rows)
        self.pipeline.feed((0, 0), first, self._fed, source_rows(rows, 1, first))
        self.work()

    def work(self) -> None:
        while self.pipeline.step():
            pass

    def serve(self, port: int = 0) -> Server:
        servicer = ResultsServicer(self.source)
        self._servicers.append(servicer)
        self.servers.append(
            Server(lambda s: results_pb2_grpc.add_ResultsServiceServicer_to_server(servicer, s), port=port)
        )
        return self.servers[-1]

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        for servicer in self._servicers:
            servicer.close()


@pytest.fixture
def factory() -> Iterator[Factory]:
    made = Factory()
    yield made
    made.close()


@pytest.fixture
def stub(factory: Factory) -> Iterator[results_pb2_grpc.ResultsServiceStub]:
    with grpc.insecure_channel(factory.serve().address) as channel:
        yield results_pb2_grpc.ResultsServiceStub(channel)
