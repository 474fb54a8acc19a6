"""A whole `up` as a process, on a real Kafka, with stand-ins for the services."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from services.runtime.embedded.ports import free_ports
from tests.services.up.stand_ins import until

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[3]
UP = """
import sys
from services.up import __main__ as up, run
from tests.services.up.stand_ins import ENDS, SERVES, program
def start(settings):
    run.run(
        settings,
        services=lambda addresses: [program("engine", SERVES), program("control", SERVES, WHERE=addresses.kafka)],
        tasks=lambda *_: [program("apply", ENDS, serves=False), program("produce", ENDS, serves=False)],
    )
up.run = start
sys.exit(up.main(sys.argv[1:]))
"""


@contextmanager
def up(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start an `up`; it is killed at the end if it still runs."""
    ports = free_ports(2)
    words = ["--folder", str(folder), "--port", str(ports[0]), "--kafka-port", str(ports[1]), *options]
    command = [sys.executable, "-c", UP, *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "services.up", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def read_until(process: subprocess.Popen[str], words: str) -> list[str]:
    """Return the lines up to the one with `words` in it."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if words in line:
            return lines
    raise AssertionError(f"ended without {words!r}: {lines}")


def descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_up_brings_everything_up_says_how_to_go_on_and_down_stops_it(tmp_path: Path) -> None:
    with up(tmp_path) as first:
        lines = read_until(first, "produce   done")
        text = "\n".join(lines)
        said = json.loads((tmp_path / "run" / "up.json").read_text())
        assert said["pid"] == first.pid
        assert text.index("kafka     ready at") < text.index("engine    ready") < text.index("Skyband is up")
        assert f"watch:  SKYBAND_SERVER={said['control']} skyband queries watch flights/most-delayed" in lines
        assert f"where={said['kafka']}" in text
        assert AdminClient({"bootstrap.servers": said["kafka"]}).list_topics(timeout=10).brokers

        again = ask("--folder", tmp_path)
        assert again.returncode == 1
        assert f"already up on {tmp_path} (process {first.pid}" in again.stderr

        family = descendants(first)
        assert ask("--folder", tmp_path, "--stop").stdout == "stopped\n"
        rest = first.communicate()[0]
        assert first.returncode == 0
        assert rest.index("engine    stopping") < rest.index("everything is stopped")
        assert all(is_gone(each) for each in family)

    with up(tmp_path) as second:
        assert "the demo's rows were sent before" in "\n".join(read_until(second, "Skyband is up"))
        second.send_signal(signal.SIGINT)
        second.communicate()
        assert second.returncode == 0


def test_a_killed_up_leaves_nothing_behind(tmp_path: Path) -> None:
    with up(tmp_path, "--empty") as process:
        assert "next:" in read_until(process, "next:")[-1]
        family = descendants(process)
        # Two programs and Kafka, and a guard for each.
        assert len(family) == 6
        process.kill()
        process.communicate()
        until(lambda: all(is_gone(each) for each in family))


def test_an_interrupt_before_everything_is_up_stops_what_there_is(tmp_path: Path) -> None:
    with up(tmp_path, "--empty") as process:
        read_until(process, "kafka     starting")
        until(lambda: len(descendants(process)) > 0)
        family = descendants(process)
        process.send_signal(signal.SIGTERM)
        assert "everything is stopped" in process.communicate()[0]
        assert process.returncode == 130
        until(lambda: all(is_gone(each) for each in family))


def test_a_wanted_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = ask("--folder", tmp_path, "--kafka-port", port)
    assert refused.returncode == 1
    assert f"port {port} of 127.0.0.1, wanted for Kafka, is in use" in refused.stderr


def test_down_where_nothing_is_up_says_so(tmp_path: Path) -> None:
    nothing = ask("--folder", tmp_path, "--stop")
    assert nothing.returncode == 0
    assert nothing.stdout == f"nothing is up on {tmp_path}\n"
