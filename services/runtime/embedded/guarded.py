"""Child processes that end with this one, even if it is killed.

Each has a small guard between, see ``guard.py``. Linux could bind a child to its parent without one, but binds it to
the *thread* that started it, and other systems cannot; a pipe is a bond everywhere.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from skyband.errors import SkybandError

__all__ = ["GuardedProcess"]

_GUARD = Path(__file__).with_name("guard.py")
# What the guard may take beyond the command's own time.
_GUARD_S = 5.0


class GuardedProcess:
    """A command, running from construction on; what it writes goes to the end of the file `log`.

    It runs in a session of its own, so that Ctrl-C on the terminal reaches this process alone, which then stops its
    children in order. `held` are file descriptors (locks) that stay open until the command has ended. Not for sharing
    between threads. Raises SkybandError if the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        grace_s: float = 20.0,
        held: Sequence[int] = (),
    ) -> None:
        self.command = [str(word) for word in command]
        self.grace_s = grace_s
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), str(log), str(grace_s), *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=folder,
            pass_fds=held,
            start_new_session=True,
        )
        assert self._guard.stdout is not None
        with self._guard.stdout as told:
            first = told.readline()
        if not first.strip():
            self.wait(_GUARD_S)
            raise SkybandError(f"cannot run {self.command[0]}; see {log}")
        self.pid = int(first)

    def poll(self) -> int | None:
        """Return the command's exit code (128 + n if signal n ended it), or None while it runs."""
        return self._guard.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the command to end and return its exit code; raises TimeoutError."""
        try:
            return self._guard.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.command[0]} (pid {self.pid}) still runs after {timeout_s:g} s") from None

    def ask_to_stop(self) -> None:
        """Send SIGTERM now, and SIGKILL after the grace period; returns at once."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()

    def stop(self) -> int:
        """Stop the command, wait for its end and return its exit code."""
        self.ask_to_stop()
        try:
            return self.wait(self.grace_s + _GUARD_S)
        except TimeoutError:
            self.kill()
            return self.wait()

    def kill(self) -> None:
        """Send SIGKILL."""
        # The guard lives a little longer than the command: while it does, nobody else has this pid.
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
