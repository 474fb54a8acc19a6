"""Fanout as a stage to be kept running, and as what the API serves results from."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import grpc

from services.fanout.servicer import ResultsServicer
from services.fanout.settings import FanoutSettings
from services.runtime import topics
from services.runtime.groups import GroupWatch
from services.runtime.keeper import keep
from services.runtime.process import Process
from skyband.control.stage import CATALOG_TOPIC
from skyband.errors import LogError, NotFoundError
from skyband.fanout.merge_stage import ServedGroup
from skyband.fanout.stage import FanoutStage
from skyband.fanout.subscription import Mode, Subscription
from skyband.log.clock import SystemClock
from skyband.log.record_log import Position
from skyband.model.result import Result
from skyband.v1 import results_pb2_grpc

__all__ = ["RESULTS_SERVICE", "Fanout"]

T = TypeVar("T")
# Control answers as soon as the catalog has a query; this process may read of it later, and begins its group first.
_HEARD_WITHIN_S = 10.0
_ASK_AGAIN_S = 0.02

RESULTS_SERVICE = "skyband.v1.ResultsService"


class Fanout:
    """The stage of the moment, for the loop that keeps it and the calls that need it.

    While there is none, because its log fails it, subscribers are told so and come back.
    """

    def __init__(self, process: Process, settings: FanoutSettings) -> None:
        self._process = process
        self._settings = settings
        self._watch: GroupWatch | None = None
        self._stage: FanoutStage | None = None
        self._servicer = ResultsServicer(self)
        self._stopped: set[str] = set()
        self._heard_to = 0

    def loop(self, stop: threading.Event) -> None:
        """Merge and serve until `stop`."""
        try:
            keep("fanout", self._open, stop, self._process.health)
        finally:
            self._servicer.close()

    def register(self, server: grpc.aio.Server, loop: asyncio.AbstractEventLoop) -> None:
        """Add the results service to a server."""
        results_pb2_grpc.add_ResultsServiceServicer_to_server(self._servicer, server)

    def step(self, timeout_s: float) -> None:
        """Do one round of the stage, over the groups that there are now."""
        assert self._watch is not None
        assert self._stage is not None
        if self._watch.poll(0.0):
            self._serve(self._watch, self._stage)
        self._stage.step(timeout_s)
        self._heard_to = min(self._watch.next_offset, self._stage.catalog_to)
        stopped = {
            f"merge of {group}.{generation}": str(why) for (group, generation), why in self._stage.stopped.items()
        }
        for part, why in stopped.items():
            self._process.health.ill(part, why)
        for part in self._stopped - stopped.keys():
            self._process.health.well(part)
        self._stopped = set(stopped)

    def close(self) -> None:
        """Finish, and end all subscriptions."""
        watch, self._watch = self._watch, None
        stage, self._stage = self._stage, None
        for part in (stage, watch):
            if part is not None:
                part.close()

    # A stage that has failed writes nothing more when it is closed.
    abandon = close

    def subscribe(
        self,
        query: str,
        *,
        group: str | None = None,
        resume_token: str | None = None,
        mode: Mode = Mode.CHANGES,
        wake: Callable[[], None] | None = None,
    ) -> Subscription:
        """See `FanoutStage.subscribe`."""
        return self._when_known(
            lambda stage: stage.subscribe(query, group=group, resume_token=resume_token, mode=mode, wake=wake)
        )

    def unsubscribe(self, subscription: Subscription) -> None:
        """Drop a subscription; one of a stage that is gone is gone with it."""
        stage = self._stage
        if stage is not None:
            stage.unsubscribe(subscription)

    def get_result(self, query: str, group: str | None, window_end: int | None) -> Result:
        """See `FanoutStage.get_result`."""
        return self._when_known(lambda stage: stage.get_result(query, group, window_end))

    def _when_known(self, ask: Callable[[FanoutStage], T]) -> T:
        """Ask the stage; if it does not know the query, ask again once it has read all that the catalog holds now."""
        try:
            return ask(self._now())
        except NotFoundError:
            self._hear_all()
            return ask(self._now())

    def _hear_all(self) -> None:
        """Wait until the stage has taken all that the catalog holds now, or for too long."""
        at = Position(CATALOG_TOPIC, 0)
        consumer = self._process.log.consumer()
        try:
            end = consumer.end_offsets([at])[at]
        finally:
            consumer.close()
        deadline = time.monotonic() + _HEARD_WITHIN_S
        while self._heard_to < end and time.monotonic() < deadline:
            if self._process.stop.wait(_ASK_AGAIN_S):
                return

    def _now(self) -> FanoutStage:
        stage = self._stage
        if stage is None:
            raise LogError("this server is not connected to Kafka; try again")
        return stage

    def _open(self) -> "Fanout":
        self.close()
        topics.apply(self._process.log)
        self._watch = watch = GroupWatch(self._process.log)
        while not watch.is_current and not self._process.stop.is_set():
            watch.poll(0.5)
        stage = FanoutStage(
            self._process.log,
            SystemClock(),
            tail_offsets=self._settings.tail_offsets,
            search_us=int(self._settings.search_s * 1e6),
        )
        try:
            self._serve(watch, stage)
        except BaseException:
            # Nobody else knows of it: it would stay a member of its group.
            stage.close()
            raise
        self._heard_to = 0
        self._stage = stage
        return self

    @staticmethod
    def _serve(watch: GroupWatch, stage: FanoutStage) -> None:
        groups = watch.groups.values()
        stage.serve([ServedGroup(each.group.name, each.generation, each.group.shards) for each in groups])
