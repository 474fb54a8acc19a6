"""The folder of one `up`: what is where, and who has it.

::

    lock          held by the running `up`
    kafka/        the broker's data and log
    logs/         NAME.log of each program, NAME.log.1 what was before 10 MB of it
    run/          NAME.json of each program that is ready, up.json of `up` itself
    demo-sent     there once the demo's rows were sent to this Kafka
"""

import fcntl
import json
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from skyband.errors import ConflictError, SkybandError

__all__ = ["Folders", "stop_running"]

_LONGEST_LOG = 10 << 20
# Longer than any program's grace period, and all of them end at about the same time.
_STOPPED_S = 60.0


@dataclass(frozen=True, slots=True)
class Folders:
    """Paths in the folder of one `up`."""

    root: Path

    @property
    def kafka(self) -> Path:
        """The broker's folder."""
        return self.root / "kafka"

    @property
    def demo_sent(self) -> Path:
        """The mark that the demo's rows were sent."""
        return self.root / "demo-sent"

    def log(self, name: str) -> Path:
        """Return the log of a program."""
        return self.root / "logs" / f"{name}.log"

    def ready(self, name: str) -> Path:
        """Return the file that a program writes when it is ready."""
        return self.root / "run" / f"{name}.json"

    def claim(self) -> int:
        """Take the folder for this process until it ends. Raises ConflictError if another `up` has it."""
        for each in ("logs", "run"):
            (self.root / each).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ConflictError(
                f"Skyband is already up on {self.root} ({self._running_words()}); stop it with `skyband down`, or name "
                "another --folder"
            ) from None
        os.truncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        for path in (self.root / "run").glob("*.json"):
            path.unlink()
        return descriptor

    def forget(self) -> None:
        """Remove what earlier runs left: records, logs, marks. Only for who has claimed the folder."""
        shutil.rmtree(self.kafka, ignore_errors=True)
        for path in (self.root / "logs").glob("*.log*"):
            path.unlink()
        self.demo_sent.unlink(missing_ok=True)

    def begin_log(self, name: str) -> Path:
        """Return the log of a program that is about to start, put aside first if it has grown too long."""
        path = self.log(name)
        if path.exists() and path.stat().st_size > _LONGEST_LOG:
            path.replace(path.with_suffix(".log.1"))
        path.touch()
        return path

    def read_ready(self, name: str) -> dict[str, object]:
        """Return what a program wrote when it became ready; empty if it is not."""
        try:
            said = json.loads(self.ready(name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def write_ready(self, name: str, said: dict[str, object]) -> None:
        """Write a ready file, whole or not at all."""
        path = self.ready(name)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(said) + "\n", encoding="utf-8")
        draft.replace(path)

    def _running_words(self) -> str:
        said = self.read_ready("up")
        return f"process {said['pid']}, control at {said['control']}" if said else "still starting"


def stop_running(folders: Folders) -> bool:
    """Stop the `up` that has the folder and return when it has ended; False if there is none.

    Raises SkybandError if it does not end.
    """
    try:
        descriptor = os.open(folders.root / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        if _is_taken(descriptor):
            return False
        pid = _owner(descriptor, folders)
        os.kill(pid, signal.SIGTERM)
        give_up_s = time.monotonic() + _STOPPED_S
        while not _is_taken(descriptor):
            if time.monotonic() > give_up_s:
                raise SkybandError(f"process {pid} did not end within {_STOPPED_S:g} s; see {folders.root / 'logs'}")
            time.sleep(0.05)
        return True
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    """Take the lock if nobody has it, and return whether that worked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(descriptor: int, folders: Folders) -> int:
    # Written by the owner while it holds the lock, so it cannot be an old one.
    text = os.pread(descriptor, 32, 0).decode("ascii").strip()
    if not text.isdigit():
        raise SkybandError(f"something holds {folders.root / 'lock'}, and it is no `skyband up`")
    return int(text)
