"""Waiting for the first results of new queries."""

import sys
import time
from collections.abc import Callable, Sequence

from skyband.cli.figures import moment_of, span
from skyband.cli.remote import time_zone
from skyband.client import Client
from skyband.errors import LogError, NotFoundError

__all__ = ["FirstResults"]

_LOOK_S = 0.2
_WORDS_S = 1.0


class FirstResults:
    """Looks for results of queries until each has one, or the time is over, and says on stderr how it goes.

    `clock` and `sleep` count seconds.
    """

    def __init__(
        self,
        client: Client,
        paths: Sequence[str],
        timeout_s: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._client = client
        self._paths = list(paths)
        self._timeout_s = timeout_s
        self._clock = clock
        self._sleep = sleep
        self._is_screen = sys.stderr.isatty()

    def wait(self) -> bool:
        """Return whether all queries have a result in time; else the reasons are said, as the server tells them."""
        began = self._clock()
        waiting = list(self._paths)
        words_at = began
        while True:
            for path in list(waiting):
                if self._has_result(path, self._clock() - began):
                    waiting.remove(path)
            passed = self._clock() - began
            if not waiting or passed >= self._timeout_s:
                break
            if self._is_screen and self._clock() >= words_at:
                self._show(waiting, passed)
                words_at = self._clock() + _WORDS_S
            self._sleep(_LOOK_S)
        self._clear()
        for path in waiting:
            self._say_why_not(path)
        return not waiting

    def _has_result(self, path: str, passed: float) -> bool:
        try:
            found = self._client.get_result(path)
        except (NotFoundError, LogError):
            # There is none yet, or its group is not served yet.
            return False
        in_rows = self._client.query(path).resource.query.window.in_rows
        end = moment_of(found.window_end, in_rows, time.time_ns() // 1_000)
        self._clear()
        print(f"first result of {path}: {end} ✓  ({span(passed)})", file=sys.stderr)
        return True

    def _show(self, waiting: Sequence[str], passed: float) -> None:
        headline = self._client.describe_query(waiting[0], time_zone=time_zone()).headline
        line = f"waiting for the first result … {span(passed)} of {span(self._timeout_s)} · {headline}"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._is_screen:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _say_why_not(self, path: str) -> None:
        found = self._client.describe_query(path, time_zone=time_zone())
        print(f"no result of {path} within {span(self._timeout_s)}", file=sys.stderr)
        print(found.headline, file=sys.stderr)
        for label, text in found.lines:
            print(f"  {label:<7} {text}", file=sys.stderr)
