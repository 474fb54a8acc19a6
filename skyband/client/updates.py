"""What a subscriber sees, put together from the messages of one stream after another."""

from dataclasses import dataclass
from datetime import timedelta

from skyband.model.deltas import apply_deltas
from skyband.model.query import QueryState
from skyband.model.result import Candidate, Change, Delta, Result, ResultRow
from skyband.v1 import results_pb2, types_pb2
from skyband.v1.choices import member
from skyband.v1.messages import read_candidates, read_deltas, read_result

__all__ = ["Follower", "Update"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The newest result of a query, and how it differs from the one before.

    Times are event time in microseconds; for a window counted in rows, row numbers. `entered`, `moved` and `rescored`
    are rows as they are now, `left` as they were; a delta of `moved` has the `old_rank`. In a snapshot, which is the
    first result or comes after a gap, all rows count as entered; progress is the result before, which still holds.
    `candidates` are objects outside that could still come in, what could reach most first, if the query asks for them.
    `skipped`: results passed over since the update before. `frontier_us`: how far the group had been read, `age`: how
    long ago that was (None: not known). `state`: whether the query is evaluated.
    """

    window_start: int
    window_end: int
    rows: tuple[ResultRow, ...]
    entered: tuple[ResultRow, ...] = ()
    left: tuple[ResultRow, ...] = ()
    moved: tuple[Delta, ...] = ()
    rescored: tuple[ResultRow, ...] = ()
    is_snapshot: bool = False
    is_progress: bool = False
    skipped: int = 0
    frontier_us: int | None = None
    age: timedelta | None = None
    state: QueryState = QueryState.ACTIVE
    candidates: tuple[Candidate, ...] = ()


class Follower:
    """One subscriber's state: the rows shown, and where to go on.

    Initially nothing is shown and `token` is empty. Invariant: `token` stands for exactly the rows that are shown.
    """

    def __init__(self) -> None:
        self.token = ""
        self.state = QueryState.ACTIVE
        self._shown: Update | None = None

    def begin_anew(self) -> None:
        """Forget where to go on: the next result comes whole."""
        self.token = ""

    def take(self, message: results_pb2.SubscribeResponse) -> Update | None:
        """Return the update that a message makes, None for one that shows nothing. Cost: the rows of a result."""
        update: Update | None
        match message.WhichOneof("message"):
            case "header":
                # A server tells only what is not so.
                self.state = QueryState.ACTIVE
                return None
            case "snapshot":
                update = self._whole(message, read_result(message.snapshot.result))
            case "delta":
                update = self._changed(message, message.delta)
            case "progress":
                update = self._still(message)
            case "state_change":
                state = message.state_change.state
                enum = types_pb2.QueryState.DESCRIPTOR
                self.state = member(enum, QueryState, state, "state") or QueryState.ACTIVE
                update = self._still(message)
            case _:
                # What a newer server may add.
                return None
        self.token = message.resume_token
        if update is not None:
            self._shown = update
        return update

    def _whole(self, message: results_pb2.SubscribeResponse, result: Result) -> Update:
        return Update(
            window_start=result.window_start,
            window_end=result.window_end,
            rows=result.rows,
            entered=result.rows,
            is_snapshot=True,
            skipped=message.skipped,
            frontier_us=_frontier(message),
            age=_age(message),
            state=self.state,
            candidates=result.candidates,
        )

    def _changed(self, message: results_pb2.SubscribeResponse, delta: results_pb2.Delta) -> Update:
        changes = read_deltas(delta)
        before = () if self._shown is None else self._shown.rows

        def rows_of(change: Change) -> tuple[ResultRow, ...]:
            return tuple(found.row for found in changes if found.change is change)

        return Update(
            window_start=delta.window_start,
            window_end=delta.window_end,
            rows=apply_deltas(before, changes),
            entered=rows_of(Change.ENTERED),
            left=rows_of(Change.LEFT),
            moved=tuple(found for found in changes if found.change is Change.MOVED),
            rescored=rows_of(Change.RESCORED),
            skipped=message.skipped,
            frontier_us=_frontier(message),
            age=_age(message),
            state=self.state,
            candidates=read_candidates(delta),
        )

    def _still(self, message: results_pb2.SubscribeResponse) -> Update | None:
        if self._shown is None:
            return None
        return Update(
            window_start=self._shown.window_start,
            window_end=self._shown.window_end,
            rows=self._shown.rows,
            is_progress=True,
            frontier_us=_frontier(message),
            age=_age(message),
            state=self.state,
            candidates=self._shown.candidates,
        )


def _frontier(message: results_pb2.SubscribeResponse) -> int | None:
    return message.frontier_us if message.HasField("frontier_us") else None


def _age(message: results_pb2.SubscribeResponse) -> timedelta | None:
    if not message.HasField("age"):
        return None
    return timedelta(seconds=message.age.seconds, microseconds=message.age.nanos // 1_000)
