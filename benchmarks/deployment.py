"""Skyband on an embedded Kafka for the length of a benchmark, and what its processes cost."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from services.runtime.embedded.broker import EmbeddedKafka

__all__ = ["SERVICES", "Cost", "Deployment", "deployed", "peak_mb"]

ROOT = Path(__file__).resolve().parents[1]
SERVICES = ("control", "fanout", "engine", "align")
_READY_S = 120.0


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds so far and the largest memory in MB, by process."""

    cpu_s: Mapping[str, float]
    peak_mb: Mapping[str, float]

    def since(self, before: "Cost") -> dict[str, float]:
        """Return the CPU seconds between two readings, by process."""
        return {name: seconds - before.cpu_s[name] for name, seconds in self.cpu_s.items()}


class Deployment:
    """Processes that run, by name, and where they are."""

    def __init__(self, bootstrap: str, broker_pid: int, folder: Path) -> None:
        self.bootstrap = bootstrap
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._pids = {"kafka": broker_pid}

    def start(self, names: Sequence[str], settings: Mapping[str, str]) -> None:
        """Start services, and return once all of them are ready."""
        for name in names:
            environment = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "SKYBAND_KAFKA_BOOTSTRAP": self.bootstrap,
                "SKYBAND_KAFKA_REPLICATION_FACTOR": "1",
                "SKYBAND_READY_FILE": str(self._folder / f"{name}.json"),
                "SKYBAND_LOG_FORM": "json",
                **settings,
            }
            log = (self._folder / f"{name}.log").open("wb")
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", f"services.{name}"], env=environment, stderr=log, cwd=self._folder
            )
        deadline = time.monotonic() + _READY_S
        for name in names:
            while not (self._folder / f"{name}.json").exists():
                if self._processes[name].poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{name} did not start:\n{(self._folder / f'{name}.log').read_text()[-2000:]}")
                time.sleep(0.05)
            self._pids[name] = self._processes[name].pid

    def address(self, name: str) -> str:
        """Return where a service listens."""
        return str(json.loads((self._folder / f"{name}.json").read_text())["address"])

    def cost(self) -> Cost:
        """Return what the processes, and their children, have cost so far."""
        cpu, peak = {}, {}
        for name, pid in self._pids.items():
            family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
            cpu[name] = sum(sum(one.cpu_times()[:2]) for one in family)
            peak[name] = sum(peak_mb(one.pid) for one in family)
        return Cost(cpu, peak)

    def stop(self) -> None:
        """Stop the services."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def deployed(names: Sequence[str], settings: Mapping[str, str] | None = None) -> Iterator[Deployment]:
    """Run a Kafka and services until the block ends; leaves nothing behind."""
    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as text:
        folder = Path(text)
        with EmbeddedKafka(folder / "kafka") as kafka:
            deployment = Deployment(kafka.bootstrap, kafka.pid, folder)
            try:
                deployment.start(names, settings or {})
                yield deployment
            finally:
                deployment.stop()


def peak_mb(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1e3
    return 0.0
