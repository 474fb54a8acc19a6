"""Commands of Spark jobs as benchmarks run them: whole processes, the session's start told apart from the work."""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.deployment import ROOT

__all__ = ["Ran", "environment", "exponent", "ran", "running"]


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended: seconds from start to end, figures of its own, and what it wrote.

    `figures` are those of ``benchmarks.spark_command``.
    """

    seconds: float
    figures: Mapping[str, float]
    stdout: str
    stderr: str

    @property
    def work_s(self) -> float:
        """Seconds between the session's start and its end."""
        return self.figures["closed_s"] - self.figures["opened_s"]

    def of(self, rows: int) -> dict[str, float]:
        """Return the figures for so many rows."""
        return {
            "rows": rows,
            "seconds": self.work_s,
            "command_seconds": self.seconds,
            "rows_per_s": rows / self.work_s,
            "command_rows_per_s": rows / self.seconds,
            "cpu_s_per_m_rows": self.figures["cpu_s"] / rows * 1e6,
            **{name: mb for name, mb in self.figures.items() if name.endswith("_mb")},
        }


def environment(bootstrap: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command that is to reach this Kafka."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SKYBAND_KAFKA_BOOTSTRAP": bootstrap,
        "SKYBAND_KAFKA_REPLICATION_FACTOR": "1",
        **settings,
    }


def ran(bootstrap: str, job: str, *arguments: str, settings: Mapping[str, str] | None = None) -> Ran:
    """Run a job to its end. Raises RuntimeError with its last words if it fails."""
    with running(bootstrap, job, arguments, settings or {}) as (process, folder):
        began_s = time.monotonic()
        code = process.wait()
        seconds = time.monotonic() - began_s
        said = (folder / "stderr").read_text(errors="replace")
        if code:
            raise RuntimeError(f"{job} ended with {code}: {said[-2000:]}\n{(folder / 'stdout').read_text()[-2000:]}")
        return Ran(seconds, json.loads((folder / "figures").read_text()), (folder / "stdout").read_text(), said)


@contextmanager
def running(
    bootstrap: str, job: str, arguments: Sequence[str], settings: Mapping[str, str]
) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """Run a job for a block, with a folder for what it says; it is stopped at the end unless it has ended."""
    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as text:
        folder = Path(text)
        command = [sys.executable, "-m", "benchmarks.spark_command", str(folder / "figures"), job, *arguments]
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                command, cwd=folder, env=environment(bootstrap, settings), stdout=stdout, stderr=stderr
            )
        try:
            yield process, folder
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def exponent(rows: Sequence[float], seconds: Sequence[float]) -> float:
    """Return by which power of the rows the seconds grow: the slope of the line through their logarithms."""
    x, y = [math.log(its) for its in rows], [math.log(its) for its in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)
