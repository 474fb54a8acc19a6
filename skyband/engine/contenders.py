"""What could still happen to a ranking: what its rows could reach, and which objects contend for their places.

Words: the *case* of a query is what its window makes of the promises of its streams: which attributes stay as they are
once they were seen, and what all others could become. *Contenders* are the first of a shard's objects by their best
case, members of the result among them. As many as k and the query's candidates together are enough for the merge:
before a candidate that it may name stand at most k members and the other candidates; and of whom k others could
overtake, that many stand before it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.incomplete.instance_set import InstanceSet
from skyband.engine.incomplete.instances import COVERED, CURRENT, OLDER, SEEN, SLOT
from skyband.engine.query_set import QuerySet
from skyband.engine.ranked import Ranked, Ranking
from skyband.model.ability import best_value, is_promised
from skyband.model.binding import BoundColumn, BoundQuery
from skyband.model.catalog import QueryChange
from skyband.model.group import Group
from skyband.model.partials import Contender, Evaluation
from skyband.model.query import Query
from skyband.model.stream import Aggregate
from skyband.structures.best_case import BestCase, Cases, best_scores, first_cases, read_cases
from skyband.structures.object_table import ObjectTable
from skyband.structures.question import pose
from skyband.structures.rank_order import sort_by_rank
from skyband.structures.window_store import WindowStore

__all__ = ["Prospects", "ProspectsOfRankings", "case_of"]

_ADDS = (Aggregate.SUM, Aggregate.COUNT)
# Bits of all columns.
_ALL = -1


def case_of(group: Group, bound: BoundQuery, query: Query) -> BestCase:
    """Return the case of a query that asks for the score of `bound`. Cost: its columns."""
    own = replace(bound, query=query)
    promised = [group.is_row_identity or is_promised(group, own, column) for column in bound.columns]
    places = range(len(bound.columns))
    return BestCase(
        best=np.array(
            [_best_of(group, c, known) for c, known in zip(bound.columns, promised, strict=True)], np.float64
        ),
        final=sum(1 << place for place in places if promised[place]),
        scored=sum(1 << place for place in places if bound.columns[place].in_score),
        required=sum(1 << place for place in places if bound.columns[place].stream in bound.required_streams),
    )


def _best_of(group: Group, column: BoundColumn, promised: bool) -> float:
    """Return what a column could become that ranks its object best: infinite without a bound, NaN if that is unknown.

    What counts while nothing was seen may be better than anything that can be.
    """
    if not column.in_score:
        return 0.0
    if column.prefers_high is None:
        return np.nan
    if column.aggregate in _ADDS and not promised:
        return np.inf if column.prefers_high else -np.inf
    better = max if column.prefers_high else min
    return better(best_value(group, column), column.missing)


class Prospects:
    """What the objects of one ranking could still reach, for all queries that it serves."""

    def __init__(self, group: Group, bound: BoundQuery, store: WindowStore) -> None:
        self._group = group
        self._bound = bound
        question = pose(bound, store.layout)
        self._question = question._replace(required=np.zeros(0, np.int32))
        self._stack = np.empty(bound.score.stack_size, np.float64)
        self._scratch = np.empty((2, len(bound.columns)), np.float64)
        self._where = np.zeros(0, np.int32)
        self._cases: dict[int, BestCase] = {}
        self._members: dict[int, tuple[Sequence[QueryChange], list[BestCase]]] = {}

    def rows_of(
        self, ranked: Ranked, queries: QuerySet, told: Sequence[Evaluation]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], list[tuple[npt.NDArray[np.int64] | slice, BestCase]]]:
        """Return which rows to show, the ranking in places of these, and which of them belong to which case.

        A row shown by queries of different cases is shown once for each: it could reach something else in each.
        """
        cases = self._cases_of(queries)
        ranking, rows = ranked.ranking, len(ranked.rank)
        if len(told) == 1 and len(cases) == 1:
            return ranking, np.arange(len(ranking), dtype=np.int32), [(slice(None), cases[0])]
        kinds = {id(case): kind for kind, case in enumerate(cases)}
        if len(kinds) == 1:
            used, places = np.unique(ranking, return_inverse=True)
            return used, places.astype(np.int32), [(slice(None), cases[0])]
        of_queries = np.array([kinds[id(case)] for case in cases], np.int64)
        keys, places = np.unique(ranking + rows * np.repeat(of_queries, np.diff(ranked.starts)), return_inverse=True)
        used = (keys % max(rows, 1)).astype(np.int32)
        parts = [(np.flatnonzero(keys // max(rows, 1) == kind), cases[kind]) for kind in sorted(set(kinds.values()))]
        return used, places.astype(np.int32), list(parts)

    def best_of_rows(
        self,
        present: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
        parts: Sequence[tuple[npt.NDArray[np.int64] | slice, BestCase]],
    ) -> npt.NDArray[np.float64]:
        """Return what rows could reach, NaN if that is unbounded or unknown. Cost: a score a row."""
        if len(parts) == 1:
            return self._best_scores(present, parts[0][1].final, values, parts[0][1])
        best = np.empty(len(present), np.float64)
        for of, case in parts:
            best[of] = self._best_scores(present[of], case.final, values[of], case)
        return best

    def foresee(
        self,
        told: Sequence[Evaluation],
        ranked: Ranked,
        ranking: Ranking,
        store: WindowStore,
        queries: QuerySet,
        end: int,
    ) -> Sequence[Evaluation]:
        """Return evaluations with the contenders of queries that ask for them, whether they have rows or not.

        Cost: all objects of the window (those that are remembered, if the ranking forgets), for each window size of the
        queries that ask; nothing if none does.
        """
        if not queries.asks_candidates or store.layout.by_row:
            return told
        asking = [
            place
            for place, member in enumerate(queries.members)
            if member.query.candidates and queries.is_told(place, end)
        ]
        known = {evaluation.uid: evaluation for evaluation in told}
        read: dict[int, Cases] = {}
        for place in asking:
            member = queries.members[place]
            query, size = member.query, member.query.window.size
            if size not in read:
                read[size] = self._read(ranking, store, query, end)
            contenders = self._first(read[size], ranking.objects, query)
            if contenders:
                start, stop = int(ranked.starts[place]), int(ranked.starts[place + 1])
                found = Evaluation(member.uid, member.revision, query.k, end - size, end, start, stop)
                known[member.uid] = replace(found, contenders=contenders)
        return tuple(known.values())

    def _case(self, query: Query) -> BestCase:
        size = query.window.size
        if size not in self._cases:
            made = case_of(self._group, self._bound, query)
            # One object for all sizes that come to the same.
            same = (case for case in self._cases.values() if case.final == made.final)
            self._cases[size] = next(same, made)
        return self._cases[size]

    def _cases_of(self, queries: QuerySet) -> list[BestCase]:
        """Return the case of each query of a set, or one for all if it is the same."""
        members, cases = self._members.get(queries.slide, ((), []))
        if members is not queries.members:
            cases = [self._case(member.query) for member in queries.members]
            cases = cases[:1] if all(case is cases[0] for case in cases) else cases
            self._members[queries.slide] = queries.members, cases
        return cases

    def _best_scores(
        self, bits: npt.NDArray[np.int64], settling: int, values: npt.NDArray[np.float64], case: BestCase
    ) -> npt.NDArray[np.float64]:
        question = self._question
        out = np.empty(len(bits), np.float64)
        best_scores(
            question.code, question.constants, self._stack, values, case.best, bits, settling, self._scratch[0], out
        )
        return out

    def _read(self, ranking: Ranking, store: WindowStore, query: Query, end: int) -> Cases:
        tick = 1 if query.window.in_rows else self._group.pane_us
        low, case = (end - query.window.size) // tick, self._case(query)
        if isinstance(ranking, EaaRelaxed):
            return self._remember(ranking.instances, case, low)
        live = store.objects.live
        cases = Cases(
            slot=np.empty(live, np.int32),
            tick=np.empty(live, np.int64),
            present=np.empty(live, np.int64),
            rank=np.empty(live, np.float64),
            best=np.empty(live, np.float64),
        )
        found = read_cases(
            store.objects.arrays, store.arrays, self._question, case, low, self._stack, self._scratch, cases
        )
        return Cases(
            slot=cases.slot[:found],
            tick=cases.tick[:found],
            present=cases.present[:found],
            rank=cases.rank[:found],
            best=cases.best[:found],
        )

    def _remember(self, held: InstanceSet, case: BestCase, low: int) -> Cases:
        """Return what is remembered of each object: its oldest instance of the window.

        What it showed before that, if it has been forgotten, cannot come again where the stream promises so for two
        windows; elsewhere it may.
        """
        at, places = held.instances, held.live()
        older = at.links[places, OLDER]
        places = places[(at.tick[places] >= low) & ((older < 0) | (at.tick[older] < low))]
        covered = at.bits[places, COVERED]
        gone = at.bits[places, SEEN] & held.ask.twice & ~covered
        possible = (gone & case.required) == 0
        places, covered, gone = places[possible], covered[possible], gone[possible]
        settled = (covered & case.final) | gone
        best = self._question.sign * self._best_scores(settled, _ALL, at.values[places], case)
        best[np.isnan(best)] = np.inf
        return Cases(
            slot=at.links[places, SLOT].copy(),
            tick=at.tick[places],
            present=covered,
            rank=at.scores[places, CURRENT].copy(),
            best=best,
        )

    def _first(self, cases: Cases, objects: ObjectTable, query: Query) -> tuple[Contender, ...]:
        """Return the first objects by best score and id, as many as may matter to the query."""
        if len(self._where) < objects.capacity:
            self._where = np.full(objects.capacity, -1, np.int32)
        heap = np.empty(min(query.k + query.candidates, len(cases.slot)), np.int32)
        found = heap[: first_cases(objects.arrays, cases.best, cases.slot, heap, self._where)]
        order = sort_by_rank(objects.arrays, False, cases.best[found], cases.slot[found], cases.tick[found], len(found))
        first = found[order]
        arena, ends = objects.ids(cases.slot[first])
        ids, starts = arena.tobytes(), [0, *ends.tolist()]
        window = query.window
        tick = 1 if window.in_rows else self._group.pane_us
        columns = (cases.tick[first], cases.present[first], cases.rank[first], cases.best[first])
        return tuple(
            Contender(
                object_id=ids[starts[i] : starts[i + 1]].decode(),
                score=self._as_score(rank),
                best_score=self._as_score(best),
                lacks=tuple(place for place in range(len(self._bound.columns)) if not present >> place & 1),
                until=(oldest * tick + window.size) // window.slide * window.slide,
            )
            for i, (oldest, present, rank, best) in enumerate(zip(*(c.tolist() for c in columns), strict=True))
        )

    def _as_score(self, rank: float) -> float | None:
        if not math.isfinite(rank):
            return None
        return rank if self._bound.descending else 0.0 - rank


class ProspectsOfRankings:
    """The prospects of each ranking of a shard, for as long as there is the ranking."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._known: WeakKeyDictionary[Ranking, Prospects] = WeakKeyDictionary()

    def of(self, ranking: Ranking, store: WindowStore) -> Prospects:
        """Return the prospects of a ranking over `store`, or of its time if it forgets."""
        found = self._known.get(ranking)
        if found is None:
            found = self._known[ranking] = Prospects(self._group, ranking.bound, store)
        return found
