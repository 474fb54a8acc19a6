"""Run a command that must not outlive the process that started this one.

A script for ``guarded.py``: ``guard.py LOG GRACE COMMAND…``. Only the standard library, and started with -I -S: it is
up in 20 ms and takes 8 MB. What the command writes goes to the end of LOG. The first line on stdout is the command's
pid. stdin is a pipe on which nothing comes: its end is the end of the parent, however that came about. Then the command
gets SIGTERM, and GRACE seconds later SIGKILL. Should this process be killed, Linux kills the command.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

_SET_PARENT_DEATH_SIGNAL = 1


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _follow_parent(command: subprocess.Popen[bytes], grace_s: float) -> None:
    while os.read(0, 4096):
        pass
    command.terminate()
    try:
        command.wait(grace_s)
    except subprocess.TimeoutExpired:
        command.kill()


def main() -> int:
    """Run the command and return its exit code, 128 + n if signal n ended it."""
    log, grace, *words = sys.argv[1:]
    own = os.getpid()
    # The signal is bound to the thread that starts the command; this one lasts as long as the process.
    bind = (lambda: _die_with(own)) if sys.platform == "linux" else None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(log, "ab") as file:
        try:
            command = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, preexec_fn=bind)
        except OSError as error:
            file.write(f"cannot run {words[0]}: {error.strerror}\n".encode())
            return 127
    signal.signal(signal.SIGTERM, lambda _number, _frame: command.terminate())
    os.write(1, f"{command.pid}\n".encode())
    os.close(1)
    threading.Thread(target=_follow_parent, args=(command, float(grace)), daemon=True).start()
    code = command.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    # Not sys.exit: at its end Python would wait for the thread's lock on stdin.
    os._exit(main())
