"""Stand-ins for the programs that `up` runs: tiny, and each does one thing."""

import os
import sys
import time
from collections.abc import Callable

from services.up.child import Child, State
from services.up.folders import Folders
from services.up.plan import Program

# Writes its ready file, as services do, and runs until it is stopped.
SERVES = """
import json, os, pathlib, signal, sys
def stop(*_):
    print(json.dumps({"event": "stopping", "level": "info"}), flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
path = pathlib.Path(os.environ["SKYBAND_READY_FILE"])
draft = path.with_suffix(".draft")
draft.write_text(json.dumps({"pid": os.getpid(), "address": "127.0.0.1:1"}))
print(json.dumps({"event": "ready", "level": "info", "where": os.environ.get("WHERE", "")}), flush=True)
draft.replace(path)
while True:
    signal.pause()
"""
NEVER_READY = "import signal\nwhile True: signal.pause()"
FAILS = "import sys; print('working'); sys.exit('the reason')"
ENDS = "print('worked')"


def program(name: str, source: str, *, serves: bool = True, **environment: str) -> Program:
    return Program(name, (sys.executable, "-c", source), environment, serves)


class Watched:
    """A child, with what it said, and a clock that stands still."""

    def __init__(self, folders: Folders, stand_in: Program) -> None:
        self.said: list[str] = []
        self.shown: list[str] = []
        self.child = Child(stand_in, folders, self.tell, self.shown.append)

    def tell(self, name: str, text: str, level: str = "info") -> None:
        self.said.append(f"{name}: {level}: {text}")

    def start(self, now_s: float = 0.0) -> None:
        self.child.start(now_s)

    def until(self, state: State, now_s: float = 0.0) -> None:
        """Look until the child is in `state`; the clock stands still."""
        until(lambda: self.child.state is state, lambda: self.child.look(now_s))


def until(holds: Callable[[], bool], do: Callable[[], object] = lambda: os.sched_yield()) -> None:
    """Do something until `holds`, for half a minute of time at most: what is waited for is another process."""
    give_up_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up_s
        do()
