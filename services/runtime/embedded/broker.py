"""One Kafka broker as a child of this process.

Its *folder* holds everything: ``data/`` (kept: a broker started there later is the same cluster), ``broker.log`` (what
it has to say, warnings and worse), ``server.properties`` and ``lock``. One broker runs on a folder at a time. It is
*ready* once it has answered a client.
"""

import base64
import contextlib
import fcntl
import logging
import os
import re
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.runtime.embedded.guarded import GuardedProcess
from services.runtime.embedded.jars import KAFKA_VERSION, cache_folder, ensure_jars
from services.runtime.embedded.java import Java, find_java
from services.runtime.embedded.ports import ADDRESS, answers, free_ports, is_free
from services.runtime.embedded.properties import write_properties
from skyband.errors import LogError

__all__ = ["EmbeddedKafka", "archive_path"]

_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Xlog:disable", "-Xlog:all=error:stderr")
_LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
)
# Busy machines take their time: 2 s is usual.
_READY_S = 60.0
_TRIES = 5
_TAKEN = "Address already in use"


def archive_path(java: Java) -> Path:
    """Return where the archive of classes for `java` lies once it is made, see ``archive.py``."""
    return cache_folder() / f"kafka-{KAFKA_VERSION}-java-{java.version}.aot"


class EmbeddedKafka:
    """Apache Kafka, one node, on 127.0.0.1 alone; a context manager that starts and stops it.

    `port` is chosen by the system if it is None. `properties` are further settings of the broker, `jvm_options` of its
    Java. All errors are LogError and say what to do. Starting takes about 2 s, a folder's first start 1 s more, a
    machine's first a minute, to fetch Kafka.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = (),
        grace_s: float = 20.0,
    ) -> None:
        self.folder = folder.absolute()
        self._wanted_port = port
        self._properties = dict(properties or {})
        self._jvm_options = tuple(jvm_options)
        self._grace_s = grace_s
        self._process: GuardedProcess | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        self._running()
        return f"{ADDRESS}:{self._port}"

    @property
    def pid(self) -> int:
        """The process id of the broker itself."""
        return self._running().pid

    def is_running(self) -> bool:
        """Return whether the broker was started and has not ended, by itself or otherwise."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the broker and return once it is ready."""
        if self.is_running():
            raise LogError(f"this Kafka is already running at {self.bootstrap}")
        java, jars = find_java(), ensure_jars()
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = self._lock()
        try:
            for _ in range(_TRIES):
                if self._try(java, jars, lock):
                    return
            raise LogError(f"no free port for Kafka on {ADDRESS} in {_TRIES} tries; see {self._log}")
        finally:
            # From here on the guard holds it, until the broker has ended.
            os.close(lock)

    def stop(self) -> None:
        """Stop the broker and return when it has ended; does nothing if it does not run."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """End the broker as a power cut would; it can be started again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def _log(self) -> Path:
        return self.folder / "broker.log"

    def _running(self) -> GuardedProcess:
        if self._process is None:
            raise LogError(f"the Kafka of {self.folder} is not running; start it first")
        return self._process

    def _lock(self) -> int:
        """Return an open, locked file. If the process that had it is dead, its broker is about to end: wait for it."""
        path = self.folder / "lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        give_up_s = time.monotonic() + self._grace_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                owner = path.read_text(encoding="ascii").strip()
                if _lives(owner) or time.monotonic() > give_up_s:
                    os.close(descriptor)
                    raise LogError(
                        f"another Kafka runs on {self.folder} (started by process {owner or 'unknown'}); stop it, or "
                        "use another folder"
                    ) from None
                time.sleep(0.05)
        os.truncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        return descriptor

    def _try(self, java: Java, jars: Path, lock: int) -> bool:
        """Return whether the broker is ready; False if another process took a port of its first."""
        if self._wanted_port is not None and not is_free(self._wanted_port):
            raise LogError(f"port {self._wanted_port} of {ADDRESS}, wanted for Kafka, is in use; name another port")
        port, controller_port = free_ports(2)
        self._port = port if self._wanted_port is None else self._wanted_port
        settings, data = self.folder / "server.properties", self.folder / "data"
        write_properties(settings, port=self._port, controller_port=controller_port, data=data, more=self._properties)
        command = self._java_command(java, jars)
        if not (data / "meta.properties").is_file():
            self._format(command, settings)
        begin = self._log.stat().st_size if self._log.exists() else 0
        self._process = GuardedProcess(
            [*command, *self._jvm_options, "kafka.Kafka", str(settings)],
            log=self._log,
            grace_s=self._grace_s,
            held=[lock],
        )
        try:
            self._wait_until_ready()
        except BaseException as error:
            self.stop()
            if isinstance(error, LogError) and _TAKEN in self._log_since(begin):
                return False
            raise
        return True

    def _java_command(self, java: Java, jars: Path) -> list[str]:
        path = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
        options = [*_JVM, *_LOGGING]
        if java.feature >= 24:
            # Kafka calls what newer Java warns of.
            options += ["--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"]
        if (archive := archive_path(java)).is_file():
            options.append(f"-XX:AOTCache={archive}")
        return [str(java.launcher), *options, "-cp", path]

    def _format(self, command: Sequence[str], settings: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # One word each: an id may begin with a dash.
        words = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", f"--config={settings}"]
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LogError(f"cannot prepare {self.folder} for Kafka: {_cause(done.stderr or done.stdout)}")

    def _log_since(self, begin: int) -> str:
        with self._log.open("rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")

    def _wait_until_ready(self) -> None:
        process = self._running()
        give_up_s = time.monotonic() + _READY_S
        admin = None
        while time.monotonic() < give_up_s:
            if (code := process.poll()) is not None:
                raise LogError(f"Kafka ended at its start (exit code {code}); see {self._log}")
            # A client is made only when the port answers: it would write of every failure to connect.
            if admin is None and answers(self._port):
                admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2}, logger=_silent())
            if admin is not None:
                with contextlib.suppress(KafkaException):
                    if admin.list_topics(timeout=1.0).brokers:
                        return
            time.sleep(0.02)
        raise LogError(f"Kafka was not ready within {_READY_S:g} s; see {self._log}")


def _cause(said: str) -> str:
    """Return the message in what a Java program ended with, without its trace."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("\tat ")]
    failures = [line for line in lines if re.search(r"(Exception|Error): ", line)]
    return re.sub(r"^.*?(Exception|Error): ", "", (failures or lines or ["no reason given"])[-1])


def _silent() -> logging.Logger:
    logger = logging.getLogger(f"{__name__}.silent")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
