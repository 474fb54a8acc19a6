"""A guarded process ends with the process that started it, however that ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from services.runtime.embedded.guarded import GuardedProcess
from skyband.errors import SkybandError

ROOT = Path(__file__).resolve().parents[4]
LISTENS = "import signal; print('ready', flush=True); signal.pause()"
IGNORES = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
PARENT = """
import pathlib, sys
from services.runtime.embedded.guarded import GuardedProcess
program, held, log = sys.argv[1:]
child = GuardedProcess([sys.executable, "-c", program], log=pathlib.Path(log), grace_s=0.2, held=[int(held)])
print(child.pid, flush=True)
sys.stdin.read()
"""


def python(program: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", program, *map(str, arguments)]


def test_what_it_writes_is_in_the_log_and_its_exit_code_is_known(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    child = GuardedProcess(python(program), log=log)
    assert child.wait(30) == 3
    assert sorted(log.read_text().split()) == ["before", "err", "out"]
    assert child.stop() == 3


def test_stop_asks_first(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "def stop(*_):\n    print('asked', flush=True)\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\nprint('ready', flush=True)\nwhile True: signal.pause()"
    )
    log = tmp_path / "log"
    child = GuardedProcess(python(program), log=log)
    wait_for(log, "ready")
    assert child.poll() is None
    assert child.stop() == 0
    assert log.read_text().split() == ["ready", "asked"]


def test_who_does_not_listen_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = GuardedProcess(python(IGNORES), log=log, grace_s=0.1)
    wait_for(log, "ready")
    assert child.stop() == 128 + signal.SIGKILL


def test_kill_is_at_once(tmp_path: Path) -> None:
    child = GuardedProcess(python(LISTENS), log=tmp_path / "log")
    child.kill()
    assert child.wait(30) == 128 + signal.SIGKILL
    child.kill()


def test_a_wait_that_is_too_short_says_so(tmp_path: Path) -> None:
    child = GuardedProcess(python(LISTENS), log=tmp_path / "log")
    with pytest.raises(TimeoutError, match=r"still runs after 0\.01 s"):
        child.wait(0.01)
    child.stop()


def test_a_command_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SkybandError, match=r"cannot run no-such-command; see .*log"):
        GuardedProcess(["no-such-command"], log=tmp_path / "log")
    assert "no such file" in (tmp_path / "log").read_text().lower()


@pytest.mark.parametrize("program", [LISTENS, IGNORES], ids=["listens", "does not listen"])
def test_a_parent_that_is_killed_leaves_nothing_behind(tmp_path: Path, program: str) -> None:
    reading, writing = os.pipe()
    log = tmp_path / "log"
    with subprocess.Popen(
        python(PARENT, program, writing, log),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[writing],
    ) as parent:
        os.close(writing)
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_for(log, "ready")
        assert is_alive(pid)
        parent.send_signal(signal.SIGKILL)
    # Returns when the guard, which holds the other end, is gone: after the command.
    with os.fdopen(reading, "rb") as pipe:
        pipe.read()
    assert not is_alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux binds a child to its parent")
def test_a_guard_that_is_killed_takes_the_command_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = GuardedProcess(python(LISTENS), log=log)
    wait_for(log, "ready")
    os.kill(child._guard.pid, signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL
    until(lambda: not is_alive(child.pid))


def is_alive(pid: int) -> bool:
    """Return whether the process runs; one that nobody has buried does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def until(holds: Callable[[], bool]) -> None:
    """Return once `holds`; looks without rest, for half a minute at most."""
    give_up_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up_s
        os.sched_yield()


def wait_for(log: Path, word: str) -> None:
    until(lambda: word in log.read_text())
