"""Control as a stage to be kept running: its calls, and which of several controls writes."""

import asyncio
import itertools
import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import grpc

from services.control.events import GENERATION_PREPARED, ROLE
from services.control.servicer import ControlServicer
from services.control.settings import ControlSettings
from services.control.sources import Sources
from services.control.statistics import Statistics
from services.runtime import topics
from services.runtime.kafka_log import KafkaLog
from services.runtime.keeper import keep
from services.runtime.process import Process
from services.runtime.telemetry import get_logger
from skyband.control.stage import CATALOG_TOPIC, ControlStage
from skyband.errors import LogError
from skyband.log.clock import SystemClock
from skyband.log.record_log import Position
from skyband.model.rebuild import Rebuild
from skyband.model.resources import GroupResource
from skyband.v1 import control_pb2_grpc

__all__ = ["CONTROL_SERVICE", "Calls", "Control", "ControlLoop"]

CONTROL_SERVICE = "skyband.v1.ControlService"

T = TypeVar("T")
_ELECTION = "skyband.control"
_CALL_TIMEOUT_S = 30.0
# How long calls wait for the first election; a second or two are usual.
_ELECTION_S = 10.0


class Calls:
    """Work for the thread that owns the stage, and its answers."""

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[Callable[[Any], Any], Future[Any]]] = queue.Queue(1_000)

    def call(self, function: Callable[[ControlStage], T]) -> T:
        """Run `function` on the owner's thread; return or raise what it does. Raises LogError if nobody takes it."""
        answer: Future[T] = Future()
        try:
            self._queue.put((function, answer), timeout=_CALL_TIMEOUT_S)
            return answer.result(_CALL_TIMEOUT_S)
        except (queue.Full, TimeoutError) as error:
            answer.cancel()
            raise LogError("control cannot reach its log; try again, and see its health") from error

    def answer(self, stage: ControlStage, timeout_s: float) -> bool:
        """Do the work that waits, waiting at most `timeout_s` for the first; return whether there was any."""
        for count in itertools.count():
            try:
                function, answer = self._queue.get(timeout=0 if count else timeout_s, block=not count)
            except queue.Empty:
                return count > 0
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(function(stage))
            except Exception as error:
                answer.set_exception(error)
        return False


class Control:
    """The stage kept running, and the calls of the API that it answers.

    `statistics` has a loop of its own, to be run beside this one.
    """

    def __init__(self, process: Process, settings: ControlSettings) -> None:
        self._process = process
        self._settings = settings
        self._calls = Calls()
        self._sources = Sources(process.log, settings.create_topics)
        self.statistics = Statistics(process.log, process.health)

    def loop(self, stop: threading.Event) -> None:
        """Answer calls until `stop`."""
        keep("control", self._open, stop, self._process.health)

    def register(self, server: grpc.aio.Server, loop: asyncio.AbstractEventLoop) -> None:
        """Add the control service to a server."""
        address = self._settings.results_address
        servicer = ControlServicer(
            self._calls.call, self._sources.resolve, address, self.statistics.of, self._sources.check_rebuilt
        )
        control_pb2_grpc.add_ControlServiceServicer_to_server(servicer, server)

    def _open(self) -> "ControlLoop":
        topics.apply(self._process.log)
        return ControlLoop(self._process.log, self._sources, self._calls)


class ControlLoop:
    """One control of several. The one that holds the catalog's partition in the consumer group writes.

    It begins as a follower, answers what can be answered without writing, and becomes the writer when the partition is
    assigned to it. The writer's transactional id shuts out a former one that has not noticed yet.
    """

    def __init__(self, log: KafkaLog, sources: Sources, calls: Calls) -> None:
        self._log = log
        self._calls = calls
        self._sources = sources
        self._writes = self._wanted = False
        self._stage = self._open(writes=False)
        self._is_elected = False
        self._elected_by_s = time.monotonic() + _ELECTION_S
        self._election = log.consumer(_ELECTION)
        self._election.subscribe([CATALOG_TOPIC], self)

    def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
        """Become the writer, if the partition is among them: who gets none is told so with an empty list."""
        self._is_elected = True
        self._wanted = self._wanted or bool(positions)
        return self._election.end_offsets(positions)

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        """Become a follower, unless nothing is taken away."""
        self._wanted = self._wanted and not positions

    def step(self, timeout_s: float) -> None:
        """Take part in the election, take in reports, answer calls. Raises LogError if the writer was shut out."""
        self._election.poll(100, 0.0 if self._is_elected else timeout_s)
        if self._wanted != self._writes:
            self._turn()
        if not self._is_elected and time.monotonic() < self._elected_by_s:
            # Calls wait: whoever comes first would be told that another one writes, and there is none yet.
            return
        self._stage.poll()
        self._calls.answer(self._stage, timeout_s)
        if self._stage.failed:
            raise LogError(self._stage.failed)

    def close(self) -> None:
        """Leave the election, and give up the log."""
        self._election.close()
        self._stage.close()

    abandon = close

    def _turn(self) -> None:
        self._stage.close()
        self._stage = self._open(writes=self._wanted)
        self._writes = self._wanted

    def _open(self, *, writes: bool) -> ControlStage:
        get_logger().info(ROLE, writes=writes)
        return ControlStage(
            self._log,
            SystemClock(),
            lambda: uuid.uuid4().hex[:16],
            writes=writes,
            prepare=self._prepare,
            take_over=self._take_over,
        )

    def _prepare(self, resource: GroupResource) -> None:
        self._sources.prepare(resource)
        get_logger().info(GENERATION_PREPARED, group=resource.group.name, generation=resource.generation)

    def _take_over(self, resource: GroupResource, rebuild: Rebuild) -> None:
        self._sources.take_over(resource, rebuild)
        get_logger().info(GENERATION_PREPARED, group=resource.group.name, generation=resource.generation)
