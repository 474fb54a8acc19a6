"""One subscriber: the state it was given last, and the newest state it was not."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

from skyband.fanout.resume_token import ResultPosition, ResumeToken
from skyband.log.clock import Clock
from skyband.model.deltas import deltas
from skyband.model.query import QueryState
from skyband.model.result import Delta, Result

__all__ = ["Mode", "Subscription", "Update", "UpdateKind"]


class Mode(StrEnum):
    """What a subscriber is sent: whole results, or what changes."""

    SNAPSHOT = "snapshot"
    CHANGES = "changes"


class UpdateKind(StrEnum):
    """What an update tells."""

    SNAPSHOT = "snapshot"
    DELTA = "delta"
    PROGRESS = "progress"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Update:
    """One message to a subscriber.

    `result` is the newest result (None for progress and state); for a delta, `deltas` lead to it from the result sent
    before. `skipped`: results passed over since then, because newer ones came before the subscriber took them.
    `frontier_us`: how far the group had been read; `age_us`: how long ago that was on this server's clock (None: not
    known yet). `state`: the query's state; where it has changed, an update of kind state tells so, after the results.
    """

    kind: UpdateKind
    result: Result | None
    deltas: tuple[Delta, ...]
    skipped: int
    frontier_us: int | None
    age_us: int | None
    resume_token: str
    state: QueryState = QueryState.ACTIVE


class Subscription:
    """Coalesces the results of one query for one subscriber.

    Words: *delivered* is the result taken last, *pending* the newest one offered since; initially there is neither.
    Invariant: these two are all it ever holds, however slow the subscriber. A pending result is newer than the
    delivered one by its place in the results. A subscriber takes a query for active until it is told otherwise; what is
    pending of a deleted one is dropped. Offers and takes may come from different threads.
    """

    def __init__(
        self, uid: str, generation: int, mode: Mode, clock: Clock, *, wake: Callable[[], None] | None = None
    ) -> None:
        self.uid = uid
        self.generation = generation
        self.mode = mode
        self._clock = clock
        self._wake = wake
        self._lock = Lock()
        self._delivered: Result | None = None
        self._delivered_at: ResultPosition | None = None
        self._pending: Result | None = None
        self._newest_at: ResultPosition | None = None
        self._read_to = ResultPosition(0, 0)
        self._skipped = 0
        self._frontier_us: int | None = None
        self._has_progress = False
        self._has_ended = False
        self._state = self._told_state = QueryState.ACTIVE

    @property
    def ended(self) -> bool:
        """Whether the query is gone and everything of it was taken."""
        with self._lock:
            return self._has_ended and self._pending is None and self._told_state is self._state

    def resume_from(self, result: Result, position: ResultPosition) -> None:
        """Take `result` as delivered: the subscriber has it from before."""
        with self._lock:
            self._delivered, self._delivered_at, self._newest_at = result, position, position

    def offer(self, result: Result, position: ResultPosition) -> None:
        """Make `result` the pending one; a result not behind the newest position is a repeat, and ignored."""
        with self._lock:
            if self._has_ended or (self._newest_at is not None and position.offset <= self._newest_at.offset):
                return
            self._skipped += self._pending is not None
            self._pending, self._newest_at = result, position
            self._advance(result.frontier_us)
        self._notify()

    def offer_progress(self, frontier_us: int, position: ResultPosition) -> None:
        """Tell that all results up to `frontier_us` were offered, none of them behind `position`."""
        with self._lock:
            if self._has_ended or not self._advance(frontier_us):
                return
            self._has_progress = True
            self._read_to = position
        self._notify()

    def change_state(self, state: QueryState) -> None:
        """Tell that the query is paused, active again, or deleted: then nothing more of it is output."""
        with self._lock:
            self._state = state
            if state is QueryState.DELETED:
                self._has_ended = True
                self._has_progress = False
                self._pending, self._skipped = None, 0
        self._notify()

    def end(self) -> None:
        """Tell that no more will come from here, though the query lives; a pending result can still be taken."""
        with self._lock:
            self._has_ended = True
        self._notify()

    def take(self) -> Update | None:
        """Return what the subscriber has not been given, None if nothing. Cost: the rows of two results."""
        with self._lock:
            result, skipped, before, state = self._pending, self._skipped, self._delivered, self._state
            kind = self._due()
            if kind is None:
                return None
            if result is not None:
                self._delivered, self._delivered_at, self._pending, self._skipped = result, self._newest_at, None, 0
            elif kind is UpdateKind.STATE:
                self._told_state = state
            self._has_progress = False
            token, frontier_us = self._token(), self._frontier_us
        age_us = None if frontier_us is None else max(0, self._clock.now_us() - frontier_us)
        changes = tuple(deltas(before, result)) if result is not None and kind is UpdateKind.DELTA else ()
        return Update(kind, result, changes, skipped, frontier_us, age_us, token, state)

    def _due(self) -> UpdateKind | None:
        """Return what to tell next: results, then the state, then progress."""
        if self._pending is not None:
            snapshot = self.mode is Mode.SNAPSHOT or self._delivered is None
            return UpdateKind.SNAPSHOT if snapshot else UpdateKind.DELTA
        if self._state is not self._told_state:
            return UpdateKind.STATE
        return UpdateKind.PROGRESS if self._has_progress else None

    def _token(self) -> str:
        """Return where the subscriber stands: its last result (a delta needs it as its base), else how far was read."""
        if self._delivered is None or self._delivered_at is None:
            return ResumeToken(self.uid, self.generation, self._read_to, None).encode()
        return ResumeToken(self.uid, self.generation, self._delivered_at, self._delivered.window_end).encode()

    def _advance(self, frontier_us: int | None) -> bool:
        if frontier_us is None or (self._frontier_us is not None and frontier_us <= self._frontier_us):
            return False
        self._frontier_us = frontier_us
        return True

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake()
