"""Keeps a stage running: builds it, steps it, and builds it anew when the log fails it."""

import itertools
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any, Protocol

from services.runtime import topics
from services.runtime.events import STAGE_FAILED, STAGE_RUNNING, STAGE_STOPPED
from services.runtime.groups import GroupWatch
from services.runtime.health import Health
from services.runtime.kafka_log import KafkaLog
from services.runtime.telemetry import get_logger
from skyband.errors import SkybandError
from skyband.model.resources import GroupResource

__all__ = ["Fleet", "Stage", "keep"]

_STEP_S = 0.1
_SOUND_AFTER_S = 30.0
_LONGEST_WAIT_S = 15.0


class Stage(Protocol):
    """A stage's loop, one step at a time."""

    def step(self, timeout_s: float) -> object:
        """Do what is there to do, waiting at most `timeout_s` for something."""

    def close(self) -> None:
        """Finish, and give up the log."""

    def abandon(self) -> None:
        """Give up the log after a failure, and write nothing more: what is stored is for the next one to go on from."""


def keep(part: str, build: Callable[[], Stage], stop: threading.Event, health: Health) -> None:
    """Run a stage until `stop`. One that fails is discarded and built anew, after a wait that grows up to 15 s.

    The stage is built and stepped on the calling thread, which owns all that it holds.
    """
    log = get_logger(part=part)
    waits = _waits()
    while not stop.is_set():
        stage: Stage | None = None
        began = time.monotonic()
        try:
            stage = build()
            stage.step(0.0)
            health.well(part)
            log.info(STAGE_RUNNING)
            while not stop.is_set():
                stage.step(_STEP_S)
        except SkybandError as error:
            _fail(health, part, str(error))
        except Exception as error:
            _fail(health, part, f"{type(error).__name__}: {error}", trace=True)
        else:
            _close(stage, log)
            log.info(STAGE_STOPPED)
            return
        if stage is not None:
            # What a failed stage says at its end is no news, and must not keep the next one from being built.
            with suppress(Exception):
                stage.abandon()
        if time.monotonic() - began > _SOUND_AFTER_S:
            waits = _waits()
        stop.wait(next(waits))


class Fleet:
    """One kept stage, on a thread of its own, for each group that the catalog names.

    `key` says which groups need another stage than before: a stage is stopped, and another one built, when it changes.
    """

    def __init__(
        self,
        log: KafkaLog,
        build: Callable[[GroupResource], Stage],
        health: Health,
        *,
        key: Callable[[GroupResource], Hashable],
    ) -> None:
        self._log = log
        self._build = build
        self._health = health
        self._key = key
        self._running: dict[str, tuple[Hashable, threading.Event, threading.Thread]] = {}
        self._watch: GroupWatch | None = None
        self._is_turned = False

    def run(self, stop: threading.Event) -> None:
        """Follow the catalog until `stop`, then stop all stages and wait for them."""
        try:
            keep("catalog", self._open, stop, self._health)
        finally:
            self._turn_to({})

    def _open(self) -> Stage:
        topics.apply(self._log)
        self._watch, self._is_turned = GroupWatch(self._log), False
        return self

    def step(self, timeout_s: float) -> None:
        """Read the catalog on, and start and stop stages as it says."""
        assert self._watch is not None
        changed = self._watch.poll(timeout_s)
        if self._watch.is_current and (changed or not self._is_turned):
            self._is_turned = True
            self._turn_to(dict(self._watch.groups))

    def close(self) -> None:
        """Stop following the catalog."""
        if self._watch is not None:
            self._watch.close()

    abandon = close

    def _turn_to(self, groups: dict[str, GroupResource]) -> None:
        wanted = {name: self._key(resource) for name, resource in groups.items()}
        ended = [name for name, (key, _, _) in self._running.items() if wanted.get(name) != key]
        for name in ended:
            self._running[name][1].set()
        for name in ended:
            self._running.pop(name)[2].join()
            self._health.well(f"group {name}")
        for name in wanted.keys() - self._running.keys():
            self._start(groups[name], wanted[name])

    def _start(self, resource: GroupResource, key: Hashable) -> None:
        name, stop = resource.group.name, threading.Event()
        thread = threading.Thread(
            target=keep,
            args=(f"group {name}", lambda: self._build(resource), stop, self._health),
            name=f"group-{name}.{resource.generation}",
        )
        self._running[name] = (key, stop, thread)
        thread.start()


def _waits() -> Iterator[float]:
    return (min(_LONGEST_WAIT_S, 0.25 * 2.0**attempt) for attempt in itertools.count())


def _fail(health: Health, part: str, why: str, *, trace: bool = False) -> None:
    is_news = health.ill(part, why)
    if is_news or trace:
        get_logger(part=part).warning(STAGE_FAILED, why=why, exc_info=trace)


def _close(stage: Stage, log: Any) -> None:
    """Close a stage that is to end; whatever it meets then, its thread ends in order."""
    try:
        stage.close()
    except SkybandError as error:
        log.warning(STAGE_STOPPED, why=str(error))
    except Exception as error:
        log.warning(STAGE_STOPPED, why=f"{type(error).__name__}: {error}", exc_info=True)
