"""Rankings side by side over the same rows: what each retains, and how near its results come to the exact ones.

Words: a *contestant* is an algorithm with its options. What is exact is what SLA shows, which keeps the whole window.
Nothing counts before two windows have passed. *precision* is the share of the exact result that is shown, *error* the
mean difference of the scores rank by rank, *retained* instances after an evaluation (SLA: tuples). A contestant's *own*
recall is what it reports of itself: of the objects whose exact score is not below the last row shown, the share shown;
`true_recall` is the same over all objects. Where a share m is missed, that is 1/(1 + m) while precision is 1 - m.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from skyband.engine.incomplete import ApproximationOptions, EaaExpected, EaaRelaxed, EaaStrict, EaaTail, SlaRanking
from skyband.engine.ranked import Ranked
from skyband.model.approximation import recall_interval
from skyband.model.binding import BoundQuery, bind
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, Window
from skyband.model.stream import Attribute, Stream
from skyband.structures.object_table import ObjectTable
from skyband.structures.store_arrays import Rows
from skyband.structures.window_store import WindowStore

__all__ = ["CONTESTANTS", "Outcome", "Setting", "compare"]

Make = Callable[[BoundQuery, Group], EaaRelaxed]


def _tail(**options: float) -> Make:
    return lambda bound, group: EaaTail(bound, group, ApproximationOptions(**options))  # type: ignore[arg-type]


CONTESTANTS: Mapping[str, Make] = {
    "EAA": EaaStrict,
    "relaxed EAA": EaaRelaxed,
    "expected": EaaExpected,
    "tail .01": _tail(max_error=0.01),
    "tail .05": _tail(max_error=0.05),
    "tail .1": _tail(max_error=0.1),
    "target .95": _tail(target_precision=0.95),
}

# Exact rows looked at, times k: enough to find all that are due unless three of four are missed.
_DEEP = 4
_WARM_WINDOWS = 2


@dataclass(frozen=True)
class Setting:
    """A query for the k largest sums over the last `size` rows, every `slide` rows.

    `once`: objects are promised to stay away for one window only, so that what an instance has left behind might come
    again while it lives; else they never come again.
    """

    size: int = 1_000
    slide: int = 50
    k: int = 10
    streams: int = 2
    once: bool = False

    def bound(self) -> tuple[BoundQuery, Group]:
        """Return the query and its group. Row n comes at n us, so that rows and time are the same window."""
        names = [f"s{i}" for i in range(self.streams)]
        repeat = self.size if self.once else MAX_TIME_US
        streams = [
            Stream(name=name, attributes=(Attribute(name=name, lo=0.0, hi=1.0),), repeat_after_us=repeat)
            for name in names
        ]
        group = Group(name="g", streams=tuple(streams), retention_us=self.size, pane_us=1, retention_rows=self.size)
        window = Window(self.size, self.slide, in_rows=not self.once)
        return bind(group, Query(name="q", k=self.k, score=" + ".join(names), window=window)), group


@dataclass
class Outcome:
    """What was counted of one contestant; shares and means are properties."""

    k: int
    precisions: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    retained: list[int] = field(default_factory=list)
    used_bytes: list[int] = field(default_factory=list)
    most: int = 0
    shown: int = 0
    due: int = 0
    own_shown: int = 0
    own_due: int = 0
    own_objects: int = 0
    epsilon: float | None = None

    @property
    def precision(self) -> float:
        """Mean precision."""
        return float(np.mean(self.precisions))

    @property
    def error(self) -> float:
        """Mean error."""
        return float(np.mean(self.errors))

    @property
    def held(self) -> float:
        """Mean of what was retained."""
        return float(np.mean(self.retained))

    @property
    def bytes(self) -> float:
        """Mean of the bytes that instances and their objects need."""
        return float(np.mean(self.used_bytes))

    @property
    def true_recall(self) -> float:
        """What its own recall estimates."""
        return self.shown / self.due if self.due else 1.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where it says with 95 % confidence that its recall lies; None: unknown."""
        return recall_interval(self.own_shown / self.own_due, self.own_objects) if self.own_due else None

    def join(self, other: "Outcome") -> None:
        """Take in what was counted over other rows."""
        for name in ("precisions", "errors", "retained", "used_bytes"):
            getattr(self, name).extend(getattr(other, name))
        for name in ("shown", "due", "own_shown", "own_due", "own_objects"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.most = max(self.most, other.most)
        self.epsilon = other.epsilon


Listed = list[tuple[bytes, float]]


def _listed(objects: ObjectTable, ranked: Ranked) -> Listed:
    """Return ids and scores of the one ranking, best first."""
    at = ranked.ranking[ranked.starts[0] : ranked.starts[1]]
    arena, ends = objects.ids(ranked.slot[at])
    ids = [arena[start:end].tobytes() for start, end in zip((0, *ends), ends, strict=False)]
    return list(zip(ids, ranked.rank[at].tolist(), strict=True))


class _Exact:
    """SLA over a window store."""

    def __init__(self, setting: Setting) -> None:
        bound, group = setting.bound()
        self.setting = setting
        self.store = WindowStore(group, in_rows=not setting.once)
        self.ranking = SlaRanking(bound, self.store)

    def advance(self, rows: Rows, end: int) -> Listed:
        """Take the rows of a slide; return more than the k best."""
        low, deep = end - self.setting.size, _DEEP * self.setting.k
        self.ranking.leave(low)
        self.store.expire(low)
        self.store.apply(rows, end - self.setting.slide, end)
        self.ranking.demand(deep, self.setting.size)
        return _listed(self.store.objects, self.ranking.rank(end, np.array([self.setting.size]), np.array([deep])))


def _count(outcome: Outcome, exact: Listed, shown: Listed) -> None:
    """Count one evaluation."""
    k = outcome.k
    best, found = exact[:k], {name for name, _ in shown}
    outcome.precisions.append(sum(name in found for name, _ in best) / max(1, len(best)))
    scores = [score for _, score in shown] + [0.0] * (len(best) - len(shown))
    outcome.errors.append(float(np.mean([abs(a[1] - b) for a, b in zip(best, scores, strict=False)])))
    last = (-shown[-1][1], shown[-1][0]) if len(shown) == k else (np.inf, b"")
    due = [name for name, score in exact if (-score, name) <= last]
    outcome.due += len(due)
    outcome.shown += sum(name in found for name in due)


def compare(rows: Rows, setting: Setting, names: Sequence[str]) -> dict[str, Outcome]:
    """Drive SLA and the named contestants over rows; return what was counted of each, SLA first."""
    exact = _Exact(setting)
    bound, group = setting.bound()
    rankings = {name: CONTESTANTS[name](bound, group) for name in names}
    outcomes = {name: Outcome(setting.k) for name in ("SLA", *names)}
    sizes, ks = np.array([setting.size]), np.array([setting.k])
    first = _WARM_WINDOWS * setting.size
    own_before: dict[str, tuple[int, int, int]] = {}
    for end in range(setting.slide, len(rows.stream) + 1, setting.slide):
        truth = exact.advance(rows, end)
        if end > first:
            outcomes["SLA"].retained.append(exact.ranking.held)
            outcomes["SLA"].used_bytes.append(exact.store.entries * exact.store.arrays.cells[:1].nbytes)
            _count(outcomes["SLA"], truth, truth[: setting.k])
        for name, ranking in rankings.items():
            ranking.take(rows, end - setting.slide, end, end - setting.size, end - setting.slide)
            before = ranking.held
            shown = _listed(ranking.objects, ranking.rank(end, sizes, ks))
            own = ranking.approximation
            if end <= first:
                own_before[name] = (own.shown, own.due, own.objects) if own else (0, 0, 0)
                continue
            outcome = outcomes[name]
            outcome.most = max(outcome.most, before)
            outcome.retained.append(ranking.held)
            outcome.used_bytes.append(ranking.instances.used_bytes)
            _count(outcome, truth, shown)
            if own:
                now = (own.shown, own.due, own.objects)
                since = [after - before for after, before in zip(now, own_before[name], strict=True)]
                outcome.own_shown, outcome.own_due, outcome.own_objects = since
                outcome.epsilon = own.error
    for name, ranking in rankings.items():
        assert ranking.broken_promises == 0, name
        assert ranking.approximation is not None or outcomes[name].precision == 1.0, name
    return outcomes
