"""A process from its start to its end: settings, logs, signals, health, readiness, drain."""

import asyncio
import ctypes
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

import grpc
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.runtime.codecs import Codecs
from services.runtime.events import PROCESS_READY, PROCESS_STOPPED, PROCESS_STOPPING
from services.runtime.grpc_server import GrpcServer
from services.runtime.health import Health
from services.runtime.kafka_log import KafkaLog
from services.runtime.security import ServerTls
from services.runtime.settings import KafkaSettings
from services.runtime.telemetry import configure_logs, get_logger
from skyband.errors import SkybandError

__all__ = ["Process", "ProcessSettings", "run_process"]

# Numbers of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

_KAFKA = "kafka"
_LOOK_EVERY_S = 0.25

Register = Callable[[grpc.aio.Server, asyncio.AbstractEventLoop], None]


class ProcessSettings(BaseSettings):
    """What every process reads from its environment, with the prefix SKYBAND_.

    `listen` is where it serves gRPC (port 0: any free one), `member` its stable name in consumer groups (empty: none),
    `ready_file` a file that it writes when it listens. Its health says whether it has reached Kafka.
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_", frozen=True, extra="ignore")

    listen: str = "127.0.0.1:0"
    member: str = ""
    log_level: str = "info"
    log_form: str = "auto"
    ready_file: Path | None = None
    grace_s: float = Field(20.0, gt=0)
    tls_certificate: Path | None = None
    tls_key: Path | None = None


class Process:
    """What the parts of one process share: its log, when to stop, and how it is doing."""

    def __init__(self, name: str, settings: ProcessSettings, kafka: KafkaSettings) -> None:
        self.name = name
        self.settings = settings
        if settings.member and not kafka.member:
            kafka = kafka.model_copy(update={"member": settings.member})
        self.kafka = kafka
        self.stop = threading.Event()
        self.health = Health(self._tell_health)
        self.log = KafkaLog(kafka, Codecs())
        self._server: GrpcServer | None = None

    def run(
        self,
        loops: Sequence[Callable[[threading.Event], None]],
        *,
        services: Sequence[str] = (),
        register: Sequence[Register] = (),
    ) -> None:
        """Serve, run each loop on a thread of its own until a signal comes, and wait for them to finish."""
        tls = ServerTls.of(self.settings.tls_certificate, self.settings.tls_key)
        self._server = GrpcServer(self.settings.listen, services, register, tls)
        # Daemons: one that does not end within the grace period does not keep the process from ending.
        threads = [
            threading.Thread(target=self._guarded, args=(loop,), name=f"loop-{i}", daemon=True)
            for i, loop in enumerate(loops)
        ]
        for thread in threads:
            thread.start()
        self._say_ready()
        while not self.stop.wait(_LOOK_EVERY_S):
            self._look_at_kafka()
        get_logger().info(PROCESS_STOPPING)
        for thread in threads:
            thread.join(self.settings.grace_s)
        self._server.stop(1.0)
        get_logger().info(PROCESS_STOPPED)

    def _look_at_kafka(self) -> None:
        """Be ready from the first answer of Kafka on, and ill while it is out of reach."""
        trouble = self.log.trouble
        if trouble is None:
            self.health.well(_KAFKA)
        else:
            self.health.ill(_KAFKA, trouble)
        if self.log.has_answered:
            self.health.ready()

    def _guarded(self, loop: Callable[[threading.Event], None]) -> None:
        """Run a loop; the process ends when one of them does."""
        try:
            loop(self.stop)
        finally:
            self.stop.set()

    def _tell_health(self, is_well: bool) -> None:
        if self._server is not None:
            self._server.set_well(is_well)

    def _say_ready(self) -> None:
        assert self._server is not None
        get_logger().info(PROCESS_READY, address=self._server.address)
        path = self.settings.ready_file
        if path is not None:
            draft = path.with_suffix(".draft")
            draft.write_text(json.dumps({"pid": os.getpid(), "address": self._server.address}))
            draft.replace(path)


def run_process(name: str, main: Callable[[Process], None]) -> None:
    """Run `main` as the process `name`, ended by SIGTERM or SIGINT; exit 1 with one sentence if it cannot begin."""
    try:
        settings, kafka = ProcessSettings(), KafkaSettings()
        configure_logs(name, level=settings.log_level, form=settings.log_form)
        process = Process(name, settings, kafka)
        _spare_the_collector()
        _give_memory_back()

        def stop(signum: int, frame: FrameType | None) -> None:
            process.stop.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        main(process)
    except ValidationError as error:
        sys.exit(f"{name}: {_settings_in_words(error)}")
    except SkybandError as error:
        sys.exit(f"{name}: {error}")


def _spare_the_collector() -> None:
    """Look for cycles rarely: thousands of messages at a time are no garbage, and looking at them costs a third."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def _give_memory_back() -> None:
    """Have columns of a megabyte and more returned to the system when they go, and threads share their heaps.

    By default the GNU C library keeps them, for each thread: an engine held 470 MB where it now holds 350, and was
    slower. Other libraries have no such settings.
    """
    settings = ((_MMAP_THRESHOLD, 1 << 20), (_TRIM_THRESHOLD, 8 << 20), (_ARENA_MAX, 2))
    with suppress(AttributeError, OSError):
        tune = ctypes.CDLL(None).mallopt
        for setting, value in settings:
            tune(setting, value)


def _settings_in_words(error: ValidationError) -> str:
    wrong = error.errors()[0]
    place = "_".join(str(part) for part in wrong["loc"]).upper()
    return f"setting {place} is wrong: {wrong['msg']}; see the README of this service"
