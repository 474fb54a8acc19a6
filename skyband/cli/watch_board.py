"""What a watch has seen of its query so far, and what of it a screen shows."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from skyband.cli.documents import question
from skyband.cli.remote import reason_of
from skyband.client import Update
from skyband.model.resources import QueryResource

__all__ = ["WatchBoard", "WatchView", "moves_of"]

_RATE_S = 30.0
_NEWS_S = 10.0


@dataclass(frozen=True, slots=True)
class WatchView:
    """What a frame shows.

    `moves` has for each row how many places it rose (below 0: sank), None if it is new; it is empty if nothing was
    known before. `age_s`: how long ago the frontier was reached. `lost_s`: for how long there has been no connection,
    and `why`; `back_s`: how long the last break took, shortly after it. `skipped`: results passed over since the
    frame's result before. `candidates`: how many objects to show at most that could still come in.
    """

    path: str
    question: str
    window: str
    in_rows: bool
    names: tuple[str, ...]
    update: Update | None = None
    moves: tuple[int | None, ...] = ()
    results: int = 0
    rate: float = 0.0
    age_s: float | None = None
    lost_s: float | None = None
    why: str = ""
    back_s: float | None = None
    skipped: int = 0
    candidates: int = 0


@dataclass(slots=True)
class _Break:
    """A lost connection: when, why, how long it took, and when it was over (None: it is not)."""

    since: float
    why: str
    over: float | None = None


class WatchBoard:
    """Takes updates on one thread, and says on another what to show.

    Initially nothing has come. Whatever a view needs is replaced as a whole, never changed.
    """

    def __init__(
        self, resource: QueryResource, names: Sequence[str], clock: Callable[[], float], *, candidates: int = 0
    ) -> None:
        """Begin; `names` are the columns to show, `clock` gives seconds, `candidates` is the most to show of them."""
        query = resource.query
        path = f"{resource.group}/{query.name}"
        self._clock = clock
        window = query.window
        self._view = WatchView(
            path, question(query), window.describe(), window.in_rows, tuple(names), candidates=candidates
        )
        self._seen_s = 0.0
        self._times: deque[tuple[float, int]] = deque()
        self._break: _Break | None = None

    def take(self, update: Update) -> None:
        """Take in what has come."""
        now = self._seen_s = self._clock()
        if self._break is not None and self._break.over is None:
            self._break = replace(self._break, over=now)
        view = self._view
        if update.is_progress:
            self._view = replace(view, update=update)
            return
        self._times.append((now, 1 + update.skipped))
        self._view = replace(
            view,
            update=update,
            moves=moves_of(update, view.update),
            results=view.results + 1 + update.skipped,
            skipped=update.skipped,
        )

    def lost(self, error: Exception, attempt: int) -> None:
        """Take in that the connection is lost, and the client tries again."""
        if self._break is None or self._break.over is not None:
            self._break = _Break(self._clock(), reason_of(error))

    def view(self) -> WatchView:
        """Return what to show now."""
        now, view, broken = self._clock(), self._view, self._break
        age = None
        if view.update is not None and view.update.age is not None:
            age = view.update.age.total_seconds() + now - self._seen_s
        if broken is None:
            return replace(view, rate=self._rate(now), age_s=age)
        if broken.over is None:
            return replace(view, rate=self._rate(now), age_s=age, lost_s=now - broken.since, why=broken.why)
        back = broken.over - broken.since if now - broken.over < _NEWS_S else None
        return replace(view, rate=self._rate(now), age_s=age, back_s=back)

    def _rate(self, now: float) -> float:
        """Return results a second over the last half minute, or since the first; 0 while that is not known."""
        times = [(at, number) for at, number in tuple(self._times) if now - at < _RATE_S]
        while self._times and now - self._times[0][0] >= 2 * _RATE_S:
            self._times.popleft()
        passed = min(_RATE_S, now - times[0][0]) if times else 0.0
        return sum(number for _, number in times[1:]) / passed if passed >= 1.0 else 0.0


def moves_of(update: Update, before: Update | None) -> tuple[int | None, ...]:
    """Return for each row how many places it rose since the result before, None if it is new; empty: nothing before."""
    if not update.is_snapshot:
        rose = {delta.row.rank: (delta.old_rank or delta.row.rank) - delta.row.rank for delta in update.moved}
        new = {row.rank for row in update.entered}
        return tuple(None if row.rank in new else rose.get(row.rank, 0) for row in update.rows)
    if before is None:
        return ()
    # After a gap, by what was shown.
    ranks = {row.object_id: row.rank for row in before.rows}
    return tuple(ranks[row.object_id] - row.rank if row.object_id in ranks else None for row in update.rows)
