"""One program under watch.

::

    stopped ──start──► starting ──its ready file──► ready
       ▲                  │                           │
       └──its pause is over──  waiting  ◄──its end────┘

A program that does not serve has no ready file and is started once: its end leaves it *done* (exit code 0) or *failed*.
Time is told, in seconds.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from services.runtime.embedded.guarded import GuardedProcess
from services.up.folders import Folders
from services.up.log_lines import LogTail, line_of
from services.up.plan import ROOT, Program, environment_of

__all__ = ["Child", "State", "Tell"]

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
# A program that was ready this long has proved itself: its next end is a first one.
_PROVED_S = 60.0
_SLOW_S = 60.0
_GRACE_S = 20.0
_LONGEST_REASON = 300


class State(Enum):
    """Where a program is in its life."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


class Tell(Protocol):
    """Takes a line for a person: from whom, what, how bad."""

    def __call__(self, name: str, text: str, level: str = "info") -> None:
        """Take the line."""


class Child:
    """A program, its process and its log. `look` does all the work and is to be called often.

    `tell` takes what this class has to say, `show` the program's own lines. `ends` counts ends since it last proved
    itself.
    """

    def __init__(self, program: Program, folders: Folders, tell: Tell, show: Callable[[str], None]) -> None:
        self.program = program
        self.state = State.STOPPED
        self.ends = 0
        self.was_ready = False
        self._folders = folders
        self._tell = tell
        self._show = show
        self._process: GuardedProcess | None = None
        self._tail: LogTail | None = None
        self._since_s = 0.0
        self._until_s = 0.0
        self._is_slow = False

    @property
    def name(self) -> str:
        """The program's name."""
        return self.program.name

    @property
    def pid(self) -> int | None:
        """The program's process id, None if it does not run."""
        return self._process.pid if self._process else None

    def start(self, now_s: float) -> None:
        """Start the program."""
        ready = self._folders.ready(self.name)
        ready.unlink(missing_ok=True)
        log = self._folders.begin_log(self.name)
        self._tail = LogTail(log)
        self._process = GuardedProcess(
            self.program.command,
            log=log,
            environment=environment_of(self.program, ready),
            folder=ROOT,
            grace_s=_GRACE_S,
        )
        self._enter(State.STARTING, now_s)
        self._is_slow = False

    def look(self, now_s: float) -> None:
        """Show what the program wrote, and act upon what became of it."""
        code = self._process.poll() if self._process else None
        self._show_lines()
        if self._process and code is not None:
            self._process = None
            self._ended(code, now_s)
        elif self.state is State.STARTING:
            self._look_if_ready(now_s)
        elif self.state is State.READY and self.ends and now_s - self._since_s >= _PROVED_S:
            self.ends = 0
        elif self.state is State.WAITING and now_s >= self._until_s:
            self.start(now_s)

    def ask_to_stop(self) -> None:
        """Ask the program to end; returns at once."""
        if self._process:
            self._process.ask_to_stop()

    def stop(self) -> int | None:
        """End the program; returns its exit code, None if it did not run."""
        code = None
        if self._process:
            code = self._process.stop()
            self._process = None
        self._show_lines()
        self.state = State.STOPPED
        return code

    def _enter(self, state: State, now_s: float) -> None:
        self.state = state
        self._since_s = now_s

    def _show_lines(self) -> None:
        for written in self._tail.read() if self._tail else ():
            line = line_of(self.name, written)
            if line is not None:
                self._show(line)

    def _look_if_ready(self, now_s: float) -> None:
        if not self.program.serves:
            return
        if self._folders.read_ready(self.name).get("pid") == self.pid:
            self.was_ready = True
            self._enter(State.READY, now_s)
        elif not self._is_slow and now_s - self._since_s >= _SLOW_S:
            self._is_slow = True
            self._tell(self.name, f"not ready after {_SLOW_S:g} s; see {self._folders.log(self.name)}", level="warning")

    def _ended(self, code: int, now_s: float) -> None:
        if not self.program.serves:
            self._enter(State.FAILED if code else State.DONE, now_s)
            if code:
                self._tell(self.name, self._why_ended(code), level="error")
            return
        if self.state is State.READY and now_s - self._since_s >= _PROVED_S:
            self.ends = 0
        pause_s = min(_FIRST_PAUSE_S * 2**self.ends, _LONGEST_PAUSE_S)
        self.ends += 1
        self._enter(State.WAITING, now_s)
        self._until_s = now_s + pause_s
        self._tell(self.name, f"{self._why_ended(code)}; it starts again in {pause_s:g} s", level="error")

    def _why_ended(self, code: int) -> str:
        """Return how the program ended, with what it said last."""
        said = self._tail.last[:_LONGEST_REASON] if self._tail else ""
        how = f"ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"
        return f"{how}{': ' + said if said else ''} (see {self._folders.log(self.name)})"
