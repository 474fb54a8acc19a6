"""When each row is due: at a rate, at the speed of its event time, or at once."""

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Pace"]


@dataclass(slots=True)
class Pace:
    """Says how long to wait before a row. `rate`: rows a second; `speed`: event time against time; 0: no limit."""

    rate: float = 0.0
    speed: float = 0.0
    now: Callable[[], float] = time.monotonic
    _began: float | None = None
    _first_us: int = 0

    def wait_s(self, row: int, event_us: int) -> float:
        """Return the seconds to wait before row number `row` (from 0), 0 if it is due."""
        now = self.now()
        if self._began is None:
            self._began, self._first_us = now, event_us
        due = self._began
        if self.rate:
            due = max(due, self._began + row / self.rate)
        if self.speed:
            due = max(due, self._began + (event_us - self._first_us) / 1e6 / self.speed)
        return max(0.0, due - now)
