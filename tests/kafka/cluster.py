"""Skyband as separate processes on a real Kafka: started, killed, frozen and started again by tests.

Every wait has a deadline and ends as soon as what is waited for has come about; none is a pause. What the processes
say lies in the cluster's folder, and is shown when one of them ends unasked.
"""

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from confluent_kafka.admin import AdminClient
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.codecs import Codecs
from services.runtime.embedded.guarded import GuardedProcess
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.client import Client

__all__ = ["FOREVER_S", "Cluster", "Service", "until"]

ROOT = Path(__file__).resolve().parents[2]
# After so long a test has failed: ten times the usual. Processes that find no compiled kernels take minutes to compile.
FOREVER_S = 240.0
_LOOK_S = 0.05
# Who is gone is missed after so long: ten times faster than in production.
SESSION_MS = 6_000

T = TypeVar("T")


def until(ask: Callable[[], T | None], what: str | Callable[[], str], seconds: float = FOREVER_S) -> T:
    """Ask until an answer is something, and return it; fail after a deadline, saying `what` is missing."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(_LOOK_S)


class Service:
    """One process ``python -m services.<kind>``. It keeps its address and its member's name over restarts."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.kind = name.partition("-")[0]
        self.log = folder / f"{name}.log"
        self._ready = folder / f"{name}.ready"
        self._environment = dict(environment)
        self._listen = "127.0.0.1:0"
        self._process: GuardedProcess | None = None
        self.starts = 0

    @property
    def address(self) -> str:
        """Where it serves gRPC."""
        return self._listen

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    def start(self) -> None:
        """Start it; see `wait_ready`."""
        assert self._process is None, f"{self.name} runs already"
        self._ready.unlink(missing_ok=True)
        self.starts += 1
        own = {
            "PYTHONPATH": str(ROOT),  # what is tested is what lies here, wherever the package may be installed
            "SKYBAND_LISTEN": self._listen,
            "SKYBAND_READY_FILE": str(self._ready),
            "SKYBAND_MEMBER": self.name,
        }
        self._process = GuardedProcess(
            [sys.executable, "-P", "-m", f"services.{self.kind}"],
            log=self.log,
            environment={**os.environ, **self._environment, **own},
            folder=ROOT,
        )

    def wait_ready(self) -> None:
        """Wait until it says that it is ready."""
        until(self._look, lambda: f"{self.name} ready; it said:\n{self.tail()}")

    def kill(self) -> None:
        """End it as a power cut would."""
        process = self._take()
        process.kill()
        process.wait(FOREVER_S)

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        return self._take().stop()

    def freeze(self) -> None:
        """Let it do nothing, as a long pause of its machine would."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """End it, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return what it has logged, or its events of one name, oldest first."""
        found = []
        for line in self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else ():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and name in (None, event.get("event")):
                found.append(event)
        return found

    def tail(self, lines: int = 30) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(encoding="utf-8").splitlines()[-lines:]) if self.log.exists() else ""

    def is_well(self) -> bool:
        """Whether its health check says so."""
        with grpc.insecure_channel(self.address) as channel:
            try:
                answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def _look(self) -> bool:
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            raise AssertionError(f"{self.name} ended with exit code {code}; it said:\n{self.tail()}")
        try:
            told = json.loads(self._ready.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        if told["pid"] != self._process.pid:
            return False
        self._listen = told["address"]
        return True

    def _take(self) -> GuardedProcess:
        process, self._process = self._process, None
        assert process is not None, f"{self.name} does not run"
        return process


class Cluster:
    """Services on one broker, under a prefix of their own, so that clusters do not see each other.

    A service is named ``<kind>`` or ``<kind>-<number>``. Initially none runs. As a context manager it ends them all,
    and shows their logs if the block fails.
    """

    def __init__(self, bootstrap: str, folder: Path, **environment: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = f"t{uuid.uuid4().hex[:8]}."
        self.folder = folder
        self.services: dict[str, Service] = {}
        self.kafka = KafkaSettings(bootstrap=bootstrap, topic_prefix=self.prefix, replication_factor=1)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 1})
        self._environment = {
            "SKYBAND_KAFKA_BOOTSTRAP": bootstrap,
            "SKYBAND_KAFKA_REPLICATION_FACTOR": "1",
            "SKYBAND_KAFKA_TOPIC_PREFIX": self.prefix,
            "SKYBAND_KAFKA_METADATA_REFRESH_S": "2",
            "SKYBAND_KAFKA_EXTRA": json.dumps({"session.timeout.ms": str(SESSION_MS)}),
            "SKYBAND_LOG_FORM": "json",
            "SKYBAND_ENGINE_CHECKPOINT_S": "1",
            **environment,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for service in self.services.values():
            service.end()
        if error is not None:
            print(self.said())

    def __getitem__(self, name: str) -> Service:
        return self.services[name]

    def start(self, *names: str) -> None:
        """Start services, new ones or such as have ended, and wait until they are ready."""
        for name in names:
            self.services.setdefault(name, Service(name, self.folder, self._environment))
            self.services[name].start()
        for name in names:
            self.services[name].wait_ready()

    def restart(self, name: str) -> None:
        """Kill a service and start it again."""
        self.services[name].kill()
        self.start(name)

    def of(self, kind: str) -> list[Service]:
        """Return the services of a kind that run."""
        return [service for service in self.services.values() if service.kind == kind and service.is_running]

    @contextmanager
    def client(self, control: str = "control", results: str = "fanout-1", **options: Any) -> Iterator[Client]:
        """Connect a client with a control and a fanout."""
        fanout = self.services.get(results)
        address = None if fanout is None else fanout.address
        with Client(self.services[control].address, results=address, retry_s=60.0, **options) as client:
            yield client

    def members(self, group: str) -> dict[str, frozenset[tuple[str, int]]]:
        """Return who is in a consumer group, by the names of services, and which partitions each has."""
        name = self.prefix + group
        found = self._admin.describe_consumer_groups([name], request_timeout=30)[name].result()
        return {
            member.group_instance_id or member.client_id: frozenset(
                (part.topic.removeprefix(self.prefix), part.partition) for part in member.assignment.topic_partitions
            )
            for member in found.members
        }

    def wait_for_members(self, group: str, *names: str, seconds: float = FOREVER_S) -> None:
        """Wait until exactly these services share the partitions of a consumer group, and each has some."""

        def is_shared() -> bool:
            members = self.members(group)
            return members.keys() == set(names) and all(members.values())

        until(is_shared, lambda: f"{names} share {group}; it has {self.members(group)}\n{self.said()}", seconds)

    def log(self) -> KafkaLog:
        """Return this cluster's log, for looking at internal topics."""
        return KafkaLog(self.kafka, Codecs())

    def said(self, kinds: Sequence[str] = ()) -> str:
        """Return the ends of the services' logs."""
        chosen = [service for service in self.services.values() if not kinds or service.kind in kinds]
        return "\n".join(f"--- {service.name}\n{service.tail()}" for service in chosen)

    def check(self) -> None:
        """Fail if a service has ended unasked, or has logged a failure that is no known kind of trouble."""
        for service in self.services.values():
            if service._process is not None and not service.is_running:
                raise AssertionError(f"{service.name} has ended; it said:\n{service.tail()}")
            traces = [event for event in service.events() if "exception" in event]
            assert not traces, f"{service.name} met what it does not know: {traces[-1]}"
