"""Clocks: the only source of "now"; injected, so that tests and replay own time."""

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """Tells the time in microseconds since the epoch, UTC."""

    def now_us(self) -> int:
        """Return the current time."""


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        """Return the machine's time."""
        return time.time_ns() // 1_000


class ManualClock:
    """A clock that moves only when told."""

    def __init__(self, now_us: int = 0) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        """Return the time it was last set to."""
        return self._now_us

    def advance(self, by_us: int) -> None:
        """Move forward."""
        self._now_us += by_us
