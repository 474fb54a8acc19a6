"""Starts the programs in order, keeps them running, stops them in reverse order.

It has one thread, and its state is the state of its children: `step` looks at each of them once. *Services* start
together; *tasks* (the demo) one after the other, once every service has been ready.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from services.up.child import Child, State, Tell
from skyband.errors import LogError, SkybandError

__all__ = ["Broker", "Supervisor"]

# A service that ends this often without ever having been ready will not be by trying again.
MOST_ENDS = 3
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0


class Broker(Protocol):
    """What is needed of a Kafka."""

    def start(self) -> None:
        """Start it and return once it is ready."""

    def stop(self) -> None:
        """Stop it."""

    def is_running(self) -> bool:
        """Return whether it runs."""


class Supervisor:
    """The programs of one `up`. Initially none runs; after `stop` none does, nor the broker, which runs already.

    `clock` gives seconds.
    """

    def __init__(self, broker: Broker, *, tell: Tell, clock: Callable[[], float]) -> None:
        self._broker = broker
        self._tell = tell
        self._clock = clock
        self._services: Sequence[Child] = ()
        self._waiting_tasks: list[Child] = []
        self._task: Child | None = None
        self._when_ready: Callable[[], None] = lambda: None
        self.was_ready = False
        self._broker_ends = 0
        self._broker_again_s: float | None = None

    @property
    def task_name(self) -> str | None:
        """The name of the task that runs."""
        return self._task.name if self._task else None

    def start(
        self, services: Sequence[Child], tasks: Sequence[Child] = (), when_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Start the services; `when_ready` is called once, when all of them have become ready, before the tasks."""
        self._services = services
        self._waiting_tasks = list(tasks)
        self._when_ready = when_ready
        now_s = self._clock()
        for service in services:
            service.start(now_s)

    def step(self) -> None:
        """Look at every program once. Raises SkybandError if a service cannot be brought up at all."""
        now_s = self._clock()
        self._look_at_broker(now_s)
        for service in self._services:
            service.look(now_s)
            if service.state is State.WAITING and service.ends >= MOST_ENDS and not service.was_ready:
                raise SkybandError(f"{service.name} ended {service.ends} times before it was ready; see its log")
        if not self.was_ready and all(service.was_ready for service in self._services):
            self.was_ready = True
            self._when_ready()
        if self.was_ready:
            self._look_at_tasks(now_s)

    def stop(self) -> None:
        """Stop tasks, services and Kafka, in this order: nobody loses what it still has to write."""
        if self._task:
            self._task.stop()
            self._task = None
        # All at once, and each has its own grace period.
        for service in reversed(self._services):
            service.ask_to_stop()
        for service in reversed(self._services):
            service.stop()
        self._broker.stop()

    def _look_at_broker(self, now_s: float) -> None:
        if self._broker_again_s is None:
            if not self._broker.is_running():
                self._broker_ended("has ended", now_s)
        elif now_s >= self._broker_again_s:
            self._broker_again_s = None
            try:
                self._broker.start()
            except LogError as error:
                self._broker_ended(str(error), now_s)
            else:
                self._broker_ends = 0
                self._tell("kafka", "is back")

    def _broker_ended(self, why: str, now_s: float) -> None:
        pause_s = min(_FIRST_PAUSE_S * 2**self._broker_ends, _LONGEST_PAUSE_S)
        self._broker_ends += 1
        self._broker_again_s = now_s + pause_s
        self._tell("kafka", f"{why}; it starts again in {pause_s:g} s", level="error")

    def _look_at_tasks(self, now_s: float) -> None:
        if self._task is None and self._waiting_tasks:
            self._task = self._waiting_tasks.pop(0)
            self._task.start(now_s)
        if self._task:
            self._task.look(now_s)
            if self._task.state is State.DONE:
                self._tell(self._task.name, "done")
                self._task = None
            elif self._task.state is State.FAILED:
                # What comes after it builds on it.
                self._waiting_tasks.clear()
                self._task = None
