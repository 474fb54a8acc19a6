"""Flink's processes on this machine: a job manager, a task manager with a slot for each of two cores, a client.

They are started as Flink's own scripts do it, without the scripts: a Java with the memory that Flink works out from
its configuration. All listen on 127.0.0.1, on ports that the system chose.
"""

import importlib.util
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.deployment import Cost, peak_mb
from benchmarks.peers.peer import PeerError
from services.runtime.embedded.guarded import GuardedProcess
from services.runtime.embedded.java import find_java
from services.runtime.embedded.ports import ADDRESS, free_ports

__all__ = ["Cluster", "running_cluster"]

SLOTS = 2
_PACKAGES = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util")
_CONCURRENT = ("util.concurrent", "util.concurrent.atomic", "util.concurrent.locks")
# What Flink's own configuration opens to its serialisers and cleaners.
_OPENED = [f"java.base/java.{name}" for name in _PACKAGES + _CONCURRENT] + ["java.base/sun.nio.ch"]
_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_READY_S = 90.0
_SUBMIT_S = 120.0
_TRIES = 3
_TAKEN = re.compile(r"Address already in use|Could not start rest endpoint on any port")
_ENDED = ("FINISHED", "FAILED", "CANCELED")


def _configuration(rpc_port: int, rest_port: int, folder: Path) -> dict[str, str]:
    """Return the settings: state in the heap, objects reused, no checkpoints."""
    return {
        "jobmanager.rpc.address": ADDRESS,
        "jobmanager.bind-host": ADDRESS,
        "jobmanager.rpc.port": str(rpc_port),
        "taskmanager.host": ADDRESS,
        "taskmanager.bind-host": ADDRESS,
        "rest.address": ADDRESS,
        "rest.bind-address": ADDRESS,
        "rest.port": str(rest_port),
        "jobmanager.memory.process.size": "1g",
        "taskmanager.memory.process.size": "4g",
        "taskmanager.memory.managed.size": "1g",
        "taskmanager.numberOfTaskSlots": str(SLOTS),
        "parallelism.default": str(SLOTS),
        "state.backend.type": "hashmap",
        "pipeline.object-reuse": "true",
        "execution.target": "remote",
        "io.tmp.dirs": str(folder),
    }


class Cluster:
    """A running Flink; `running_cluster` makes one."""

    def __init__(self, distribution: Path, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        flink, more = distribution / "pyflink", distribution / "jars"
        self._jars = sorted([*(flink / "lib").glob("*.jar"), *more.glob("*kafka*.jar"), *more.glob("*avro*.jar")])
        self._client_jars = sorted([*(flink / "opt").glob("*.jar"), *more.glob("*gateway*.jar"), _hadoop_jar()])
        self._memory_jars = [flink / "bin" / "bash-java-utils.jar", *sorted((flink / "lib").glob("flink-dist-*.jar"))]
        self._processes: dict[str, GuardedProcess] = {}
        rpc_port, self._port = free_ports(2)
        lines = [f"{key}: {json.dumps(value)}" for key, value in _configuration(rpc_port, self._port, folder).items()]
        (folder / "config.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def start(self) -> None:
        """Start both processes, and return once all slots are there."""
        self._start("jobmanager", _JOB_MANAGER, "GET_JM_RESOURCE_PARAMS")
        self._start("taskmanager", _TASK_MANAGER, "GET_TM_RESOURCE_PARAMS")
        give_up_s = time.monotonic() + _READY_S
        while time.monotonic() < give_up_s:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise PeerError(f"Flink's {name} ended at its start: {self._last_words(name)}")
            try:
                if self.ask("/overview").get("slots-available") == SLOTS:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise PeerError(f"Flink was not ready within {_READY_S:g} s: {self._last_words('taskmanager')}")

    def cost(self) -> Cost:
        """Return what both processes have cost so far."""
        pids = {name: process.pid for name, process in self._processes.items()}
        cpu = {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in pids.items()}
        return Cost(cpu, {name: peak_mb(pid) for name, pid in pids.items()})

    def submit(self, script: str) -> str:
        """Run an SQL script that ends in an INSERT; return the id of the job."""
        path = self._folder / "job.sql"
        path.write_text(script, encoding="utf-8")
        command = self._java([*self._jars, *self._client_jars], "-Xmx512m", "-XX:TieredStopAtLevel=1")
        command += ["org.apache.flink.table.client.SqlClient", "embedded", "--file", str(path)]
        command += ["--history", str(self._folder / "history")]
        environment = {**os.environ, "FLINK_CONF_DIR": str(self._folder)}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_SUBMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise PeerError(f"Flink's SQL client did not end within {_SUBMIT_S:g} s") from None
        found = re.search(r"Job ID: ([0-9a-f]{32})", done.stdout)
        if done.returncode != 0 or not found:
            raise PeerError(f"Flink did not take the SQL: {_cause(done.stdout + done.stderr)}")
        return found[1]

    def began_ms(self, job: str) -> int:
        """Return since when a job has been running; raises PeerError if it ended by itself."""
        give_up_s = time.monotonic() + _READY_S
        while time.monotonic() < give_up_s:
            details = self.ask(f"/jobs/{job}")
            if details["state"] in _ENDED:
                told = str(self.ask(f"/jobs/{job}/exceptions").get("root-exception") or "no reason given")
                raise PeerError(f"Flink's job ended as {details['state']}: {_cause(told)}")
            if details["timestamps"]["RUNNING"] > 0:
                return int(details["timestamps"]["RUNNING"])
            time.sleep(0.1)
        raise PeerError(f"Flink's job did not run within {_READY_S:g} s")

    def cancel(self, job: str) -> None:
        """End a job and wait for its end."""
        self.ask(f"/jobs/{job}?mode=cancel", "PATCH")
        give_up_s = time.monotonic() + _READY_S
        while self.ask(f"/jobs/{job}")["state"] not in _ENDED:
            if time.monotonic() > give_up_s:
                raise PeerError(f"Flink's job could not be cancelled within {_READY_S:g} s")
            time.sleep(0.1)

    def ask(self, path: str, method: str = "GET") -> Mapping[str, Any]:
        """Return the job manager's answer."""
        asked = urllib.request.Request(f"http://{ADDRESS}:{self._port}{path}", method=method)
        # No proxy: it is this machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=20) as answer:
            answered: Mapping[str, Any] = json.loads(answer.read() or b"{}")
        return answered

    def _start(self, name: str, main: str, memory: str) -> None:
        command = self._java(self._memory_jars)
        command += ["org.apache.flink.runtime.util.bash.BashJavaUtils", memory, "--configDir", str(self._folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        told = re.findall(r"^BASH_JAVA_UTILS_EXEC_RESULT:(.*)$", done.stdout, re.MULTILINE)
        if len(told) != 2:
            raise PeerError(f"Flink did not work out the memory of its {name}: {_cause(done.stdout + done.stderr)}")
        options, settings = (line.split() for line in told)
        command = self._java(self._jars, *options, "-XX:+UseG1GC")
        process = GuardedProcess(
            [*command, main, "--configDir", str(self._folder), *settings],
            log=self._folder / f"{name}.log",
            folder=self._folder,
        )
        self._stack.callback(process.stop)
        self._processes[name] = process

    def _java(self, jars: list[Path], *options: str) -> list[str]:
        java = find_java()
        words = [str(java.launcher), *options, f"-Djava.io.tmpdir={self._folder}", "-Dlog4j2.level=WARN"]
        words += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        if java.feature >= 24:
            # Flink's memory calls what newer Java warns of.
            words += ["--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"]
        return [*words, "-cp", os.pathsep.join(map(str, jars))]

    def _last_words(self, name: str) -> str:
        return _cause((self._folder / f"{name}.log").read_text(errors="replace"))


@contextmanager
def running_cluster(distribution: Path) -> Iterator[Cluster]:
    """Run a Flink until the block ends; leaves nothing behind. Raises PeerError."""
    with tempfile.TemporaryDirectory(prefix="skyband-flink-") as text, ExitStack() as stack:
        for trial in range(_TRIES):
            folder = Path(text, str(trial))
            folder.mkdir()
            cluster = Cluster(distribution, folder, stack)
            try:
                cluster.start()
                break
            except PeerError as error:
                stack.close()
                # Another process may have taken a port between its choice and its use.
                if trial == _TRIES - 1 or not _TAKEN.search(str(error)):
                    raise
        yield cluster


def _cause(said: str) -> str:
    """Return what a Java program ended with: the innermost reason, without its trace."""
    reasons = re.findall(r"^(?:.*Caused by: |\[ERROR\] .*\n)?([\w.$]+(?:Exception|Error): .+)$", said, re.MULTILINE)
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("\tat ")]
    return (reasons or lines or ["no reason given"])[-1].strip()[:300]


def _hadoop_jar() -> Path:
    """Return a jar that PySpark ships: looking for a cluster to submit to, the client loads classes that name it.

    Flink goes on without them on the Javas it was made for; newer ones let the error through.
    """
    specification = importlib.util.find_spec("pyspark")
    for place in (specification.submodule_search_locations or []) if specification else []:
        for jar in Path(place, "jars").glob("hadoop-client-api-*.jar"):
            return jar
    raise PeerError(
        "Flink's SQL client needs a jar of the package pyspark, which is not installed here; run `make setup`"
    )
