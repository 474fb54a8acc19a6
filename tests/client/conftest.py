from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, TypeVar

import pytest

from services.control.servicer import ControlServicer
from services.control.statistics import statistics_from
from services.fanout.servicer import ResultsServicer
from skyband.client import Client
from skyband.control.stage import ControlStage
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.resources import GroupResource, SourceStart
from skyband.model.stream import Stream
from skyband.sketch.publication import SERVICE, Publication, newest_publications
from skyband.sketch.stage import SketchStage, SketchTopics, SketchTuning
from skyband.v1 import control_pb2_grpc, results_pb2_grpc
from skyband.v1.begin import Begin
from tests.services.fanout.conftest import Factory
from tests.services.serving import Server

T = TypeVar("T")


class Deployment(Factory):
    """A pipeline with control and results behind servers of the test: at one address, or at two."""

    def __init__(self, *, apart: bool = False) -> None:
        super().__init__()
        self.begins: list[Begin] = []
        self.published: list[Publication] = []
        self.failures: list[Exception] = []
        self._lock = Lock()
        results = ResultsServicer(self.source)
        self._servicers.append(results)
        register = [lambda server: results_pb2_grpc.add_ResultsServiceServicer_to_server(results, server)]
        results_address = ""
        if apart:
            self.servers.append(Server(*register))
            results_address, register = self.servers[0].address, []
        self._control = ControlServicer(self.call, self.resolve, results_address, self.statistics_of)
        self._register: list[Callable[[Any], None]] = [
            lambda server: control_pb2_grpc.add_ControlServiceServicer_to_server(self._control, server),
            *register,
        ]
        self.server = Server(*self._register)
        self.servers.append(self.server)
        self.address = self.server.address

    def call(self, function: Callable[[ControlStage], T]) -> T:
        with self._lock:
            if self.failures:
                raise self.failures.pop()
            return function(self.pipeline.control)

    def resolve(self, streams: Sequence[Stream], begin: Begin) -> tuple[SourceStart, ...]:
        self.begins.append(begin)
        return tuple(SourceStart(stream.name, 0, 7) for stream in streams)

    def sketch(self) -> None:
        """Publish statistics of what was fed."""
        log, group = self.pipeline.engine._log, self.pipeline.group
        log.create_topic("statistics", 1)
        topics = SketchTopics(aligned="aligned.factory.1")
        tuning = SketchTuning(publish_every_us=0)
        stage = SketchStage(log, group, 1, {}, topics, clock=self.clock, tuning=tuning, shards=(0,))
        while stage.step():
            pass
        self.published = list(newest_publications(log, "statistics", "factory", 1, (0,)).values())

    def statistics_of(
        self, resource: GroupResource, window_us: int | None, source: str = SERVICE
    ) -> PublishedStatistics:
        return statistics_from(resource, self.published, window_us, source)

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        """Begin to serve again, on the same port."""
        self.server = Server(*self._register, port=self.server.port)
        self.servers.append(self.server)


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


@pytest.fixture
def client(deployment: Deployment) -> Iterator[Client]:
    with Client(deployment.address) as made:
        yield made
