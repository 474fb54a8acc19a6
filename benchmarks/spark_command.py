"""Runs a job as its command does, and tells what it took: ``python -m benchmarks.spark_command FILE JOB ARGUMENT …``.

The file gets seconds since the process was made at which Spark's session was open (`opened_s`) and its work done
(`closed_s`), CPU seconds of all processes between the two, and their largest memory: of the driver's Python, of the
JVM, of one Python worker, and of all workers together at one time.
"""

import importlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.deployment import peak_mb

_LOOK_S = 0.2


class Family:
    """This process and those it has started: the JVM, and Spark's Python workers below it."""

    def __init__(self) -> None:
        self.peak_mb = {"driver_mb": 0.0, "jvm_mb": 0.0, "worker_mb": 0.0, "workers_mb": 0.0}
        self._own = psutil.Process()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def cpu_s(self) -> float:
        """Return CPU seconds so far, of those that have ended too."""
        total = 0.0
        for one in (self._own, *self._own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += sum(one.cpu_times()[:4])
        return total

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_S):
            workers_mb = 0.0
            self._take("driver_mb", peak_mb(self._own.pid))
            for one in self._own.children(recursive=True):
                with suppress(psutil.NoSuchProcess, OSError):
                    if "java" in one.name():
                        self._take("jvm_mb", peak_mb(one.pid))
                    else:
                        self._take("worker_mb", peak_mb(one.pid))
                        workers_mb += one.memory_info().rss / 1e6
            self._take("workers_mb", workers_mb)

    def _take(self, name: str, mb: float) -> None:
        self.peak_mb[name] = max(self.peak_mb[name], mb)


def main(arguments: list[str]) -> int:
    from skyband.cli.failures import run_as_command

    path, job, *rest = arguments
    made_s = psutil.Process().create_time()
    module = importlib.import_module(f"spark.{job}")
    opens, family, figures = module.session_for, Family(), {}

    @contextmanager
    def timed(*its: Any) -> Iterator[Any]:
        with opens(*its) as session:
            figures["opened_s"], before_s = time.time() - made_s, family.cpu_s()
            try:
                yield session
            finally:
                figures["closed_s"] = time.time() - made_s
                figures["cpu_s"] = family.cpu_s() - before_s

    module.session_for = timed  # type: ignore[attr-defined]
    family.start()
    try:
        # The audit's exit codes are its own.
        return module.run(rest) if job == "audit" else run_as_command(module.main, rest)
    finally:
        family.stop()
        Path(path).write_text(json.dumps({**figures, **family.peak_mb}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
