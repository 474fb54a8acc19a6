"""One shard: aligned batches in, partials out.

Order of work for each batch: check coverage (sequencer), take in query changes at their place, then alternate: apply
the rows with release time < T to the window store, evaluate the queries due at T, until nothing is due.

A query begins at the first window end whose window its ranking has seen all of: see `Rankings`.

Words: a *due* window end T of a query with slide s has T <= frontier, or T - s <= settled (all sources idle or
finished, and T is the first end past the newest row). A stretch in which no query could show anything is jumped.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.sequencer import Sequencer
from skyband.engine.checkpoint import Checkpoint, Done, Standing
from skyband.engine.contenders import Prospects, ProspectsOfRankings
from skyband.engine.query_set import QuerySet, first_multiple_after
from skyband.engine.ranked import Ranked, Ranking
from skyband.engine.ranking import RankingKey, ranking_key
from skyband.engine.rankings import Rankings, as_rows
from skyband.engine.shard_statistics import QueryStatistics, ShardStatistics, statistics_of
from skyband.engine.shown_rows import gather
from skyband.engine.snapshot import Snapshot, shape_of
from skyband.errors import LogError
from skyband.model.binding import bind
from skyband.model.catalog import QueryChange
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.partials import Activated, Evaluation, PartialBatch, Progress
from skyband.model.query import QueryState
from skyband.model.saved_arrays import array_of, part_of, prefixed
from skyband.structures.window_store import Rows, WindowStore

__all__ = ["Shard"]

PartialValue = PartialBatch | Activated | Progress


class Shard:
    """The engine of one aligned partition of one generation of a group.

    `offer` one batch, then `advance`; both are functions of the batches so far alone.
    """

    def __init__(self, group: Group, generation: int, shard: int, sequencer: Sequencer) -> None:
        self.group = group
        self.generation = generation
        self.shard = shard
        self.sequencer = sequencer
        self._rankings = Rankings(group)
        self._prospects = ProspectsOfRankings(group)
        self._sets: dict[tuple[RankingKey, int], QuerySet] = {}
        self._keys: dict[str, tuple[RankingKey, int]] = {}
        self._passed = MIN_TIME_US
        self._done: Done | None = None  # while what it says is read again, nothing is told
        self.taken_until_us = MIN_TIME_US
        self._evaluations = 0
        self._late_rows = 0
        self._out: list[PartialValue] = []

    def offer(self, batch: AlignedBatch) -> None:
        """Take in a batch; raises CoverageGapError if offsets are missing, CapacityError if too much waits."""
        self.sequencer.offer(batch)
        for change in self.sequencer.drain_catalog():
            self.change(change)

    def change(self, change: QueryChange) -> None:
        """Add, change, pause or delete a query; `Activated` tells the first window end under the new revision."""
        first = self._put(change) if change.state is QueryState.ACTIVE else self._remove(change.uid)
        self._out.append(Activated(self.group.name, self.generation, self.shard, change.uid, change.revision, first))

    def advance(self) -> list[PartialValue]:
        """Evaluate all that is due; return partials in the order of their window ends, then the progress."""
        frontier, settled = self.sequencer.frontier_us, self.sequencer.settled_us
        self.taken_until_us = self._horizon(frontier, settled)
        rows = self.sequencer.take(self.taken_until_us)
        columns = as_rows(rows)
        release = rows.release_time_us
        self._late_rows += int(np.count_nonzero(release > rows.event_time_us))
        cursor = 0
        while True:
            waiting = int(release[cursor]) if cursor < len(release) else None
            end, due = self._next_due(frontier, settled, waiting)
            stop = len(release) if end is None else cursor + int(np.searchsorted(release[cursor:], end, "left"))
            # A window end past the frontier (settled) is not the last word: others before it may follow.
            self._apply(columns, cursor, stop, frontier if end is None else min(end, frontier))
            cursor = stop
            if end is None:
                break
            # Whatever ended before had nothing to show; the rows just applied must not be seen there.
            self._pass(min(end - 1, frontier))
            for key, queries in due:
                self._evaluate(key, queries, end)
        self._pass(frontier)
        for (key, _), queries in self._sets.items():
            if not key.in_rows:
                self._settle(queries)
        out, self._out = self._out, []
        if self.is_replaying:
            return []
        out.append(Progress(self.group.name, self.generation, self.shard, frontier, settled))
        return out

    @property
    def passed_us(self) -> int:
        """Window ends up to here are done (MIN_TIME_US: none)."""
        return self._passed

    @property
    def taken_rows(self) -> int:
        """Rows applied since the start or the restore."""
        return self._rankings.stores[False].rows_applied

    @property
    def is_replaying(self) -> bool:
        """Whether batches are read again, and nothing is told."""
        return self._done is not None

    @property
    def _numbered(self) -> int:
        return self._rankings.stores[True].rows_applied if True in self._rankings.stores else 0

    def standing(self) -> Standing:
        """Return where the shard stands before its next batch."""
        queries = tuple(query for queries in self._sets.values() for query in queries.standing())
        rows = self._numbered + self.sequencer.pending_rows
        return Standing(self.sequencer.state(), self._passed, rows, queries)

    def done(self, aligned_offset: int) -> Done:
        """Return what has been told so far, by the batches below this offset."""
        queries = {uid: told for queries in self._sets.values() for uid, told in queries.done().items()}
        return Done(aligned_offset, self._passed, self._numbered, queries)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Stand where `checkpoint` says; the next batch is the one at its offset. The shard must be new.

        It tells nothing until `resume`, which is due before the batch at which `checkpoint.done` ends.
        """
        standing = checkpoint.standing
        self.sequencer.restore(standing.sequencer)
        self._passed = standing.passed_us
        if True in self._rankings.stores:
            # Rows that waited are taken before any that counts later, so that these get the numbers they had.
            self._rankings.stores[True].rows_applied = standing.rows
        for query in standing.queries:
            self._put(query.change)
        # All that still counts is read again.
        self._rankings.see_all_again()
        for query in standing.queries:
            passed = max(query.passed, standing.rows) if query.change.query.window.in_rows else query.passed
            self._sets[self._keys[query.change.uid]].stand_at(passed)
        self._done = checkpoint.done

    def resume(self) -> None:
        """Go on from where what was told ends."""
        assert self._done is not None
        done, self._done = self._done, None
        self._passed = done.passed_us
        for queries in self._sets.values():
            queries.resume(done.queries)

    def snapshot(self, aligned_offset: int) -> Snapshot:
        """Return all that it holds, between `advance` and the next batch, which is the one at this offset.

        Raises LogError while it reads again what it has told. Cost: a copy of the stores.
        """
        if self.is_replaying or self._out:
            raise LogError(
                f"shard {self.shard} of group {self.group.name!r} has not told all that it read; take its snapshot "
                "after advance, once what was done before a restart is read again"
            )
        standing, done = self.standing(), self.done(aligned_offset)
        arrays = {
            "counts": np.array([self.taken_until_us, self._late_rows, self._evaluations], np.int64),
            **prefixed("waiting", self.sequencer.waiting()),
            **prefixed("rankings", self._rankings.state()),
        }
        checkpoint = Checkpoint(self.group.name, self.generation, self.shard, aligned_offset, standing, done)
        return Snapshot(checkpoint, shape_of(self.group), arrays)

    def restore_snapshot(self, snapshot: Snapshot, done: Done | None = None) -> None:
        """Hold what `snapshot` holds; the next batch is the one at its offset. The shard must be new.

        With `done` of a later offset it tells nothing until `resume`, which is due before the batch at which that ends.
        Raises LogError for a snapshot of another shard or shape of the group: the shard is then of no use.
        """
        snapshot.check_fits(self.group)
        standing, then = snapshot.checkpoint.standing, snapshot.checkpoint.done
        self.sequencer.restore(standing.sequencer)
        self.sequencer.restore_waiting(part_of(snapshot.arrays, "waiting"))
        self._passed = standing.passed_us
        counts = array_of(snapshot.arrays, "counts", np.int64, (3,)).tolist()
        self.taken_until_us, self._late_rows, self._evaluations = counts
        for query in standing.queries:
            self._put(query.change)
        self._rankings.restore(part_of(snapshot.arrays, "rankings"))
        for queries in self._sets.values():
            queries.resume(then.queries)
        self._done = done if done is not None and done.aligned_offset > then.aligned_offset else None

    def statistics(self) -> ShardStatistics:
        """Return counts and sizes as of now."""
        return statistics_of(self._rankings, self._late_rows, self._evaluations)

    def uids(self) -> tuple[str, ...]:
        """Return the uids of the queries that are evaluated."""
        return tuple(self._keys)

    def query_statistics(self, uid: str) -> QueryStatistics:
        """Return what one query holds and has done; raises KeyError for one that is not evaluated."""
        place = self._keys[uid]
        ranking, queries = self._rankings[place[0]], self._sets[place]
        evaluations, last_end = queries.history(uid)
        found = QueryStatistics(evaluations, last_end, ranking.held, ranking.state_bytes)
        for own in self._rankings.forgetting(place[0]):
            return replace(found, approximation=own.approximation)
        return found

    def _check(self) -> None:
        """Assert the invariants of everything the shard holds. Cost: all of it."""
        self.sequencer._check()
        for store in self._rankings.stores.values():
            store._check()
        for ranking in self._rankings.all():
            ranking._check()

    def _put(self, change: QueryChange) -> int:
        """Give a query its place; return its first window end (MIN_TIME_US: from the beginning)."""
        bound = bind(self.group, change.query)
        window = change.query.window
        key = ranking_key(bound, change.uid)
        place = (key, window.slide)
        seen_from = self._rankings.begin(key, bound, self.taken_until_us)
        if place not in self._sets:
            passed = self._rankings.stores[True].rows_applied if window.in_rows else self._passed
            self._sets[place] = QuerySet(window.slide, passed)
            if not window.in_rows and self.sequencer.holder() is not None:
                # Not all is idle (any more): what counts as shown since it was can no longer be shown as of then.
                self._settle(self._sets[place])
        queries = self._sets[place]
        first = MIN_TIME_US
        if seen_from != MIN_TIME_US:
            first = first_multiple_after(window.slide, seen_from + window.size - 1)
        queries.put(change, first)
        self._keys[change.uid] = place
        self._demand(key)
        return max(first, queries.next_end)

    def _remove(self, uid: str) -> int:
        """Take a query out; return the first window end that it is not asked for any more."""
        place = self._keys.pop(uid, None)
        if place is None:
            return self._passed + 1
        key, queries = place[0], self._sets[place]
        queries.remove(uid)
        if not queries.members:
            del self._sets[place]
        if any(other == key for other, _ in self._sets):
            self._demand(key)
        else:
            self._rankings.end(key, self.taken_until_us)
        return queries.next_end

    def _demand(self, key: RankingKey) -> None:
        tick = 1 if key.in_rows else self.group.pane_us
        sets = [queries for (other, _), queries in self._sets.items() if other == key]
        self._rankings[key].demand(
            max(int(queries.ks.max()) for queries in sets),
            max(queries.largest_size for queries in sets) // tick,
        )

    def _pass(self, point: int) -> None:
        """Note that every window end up to `point` is done."""
        self._passed = max(self._passed, point)
        for (key, _), queries in self._sets.items():
            if not key.in_rows:
                queries.passed(point)

    def _settle(self, queries: QuerySet) -> None:
        """Note that every window end T with T - slide <= settled is done, as `Progress.covers` says."""
        if self.sequencer.settled_us != MIN_TIME_US:
            queries.passed(first_multiple_after(queries.slide, self.sequencer.settled_us))

    def _horizon(self, frontier: int, settled: int) -> int:
        """Return the release time below which rows may be applied now.

        Past the frontier only while all sources are idle or finished, when no accepted row is newer than `settled`: as
        far as window ends are due there, and to the last row for count windows, which know no time.
        """
        if settled == MIN_TIME_US or self.sequencer.holder() is not None:
            return frontier
        if any(key.in_rows for key, _ in self._sets):
            return MAX_TIME_US
        ends = [
            first_multiple_after(slide, settled)
            for (key, slide), queries in self._sets.items()
            if not key.in_rows and queries.next_end - slide <= settled
        ]
        return max([frontier, *ends])

    def _next_due(
        self, frontier: int, settled: int, waiting: int | None
    ) -> tuple[int | None, list[tuple[RankingKey, QuerySet]]]:
        """Return the next due window end and whose it is; `waiting` is the release time of the next row to apply."""
        newest = self._rankings.stores[False].newest
        shown_until = (newest + 1) * self.group.pane_us
        first: int | None = None
        due: list[tuple[RankingKey, QuerySet]] = []
        for (key, slide), queries in self._sets.items():
            if key.in_rows:
                continue
            end = queries.next_end
            if queries.is_quiet and (newest == MIN_TIME_US or shown_until <= end - queries.largest_size):
                # Nothing to show before the next row: jump to the first end that can hold it.
                if waiting is None:
                    continue
                end = max(end, first_multiple_after(slide, waiting))
            if (end > frontier and end - slide > settled) or (first is not None and end > first):
                continue
            if end != first:
                first, due = end, []
            due.append((key, queries))
        return first, due

    def _apply(self, rows: Rows, first: int, last: int, end: int) -> None:
        """Apply rows; no window that ends before `end` will be asked for any more."""
        if True in self._rankings.stores:
            self._apply_by_count(rows, first, last)
        self._rankings.take(rows, first, last, in_rows=False, end=end // self.group.pane_us)

    def _apply_by_count(self, rows: Rows, first: int, last: int) -> None:
        store = self._rankings.stores[True]
        while first < last:
            ends = [queries.next_end for (key, _), queries in self._sets.items() if key.in_rows]
            stop = min([last, *(first + end - store.rows_applied for end in ends)])
            number = store.rows_applied + stop - first
            self._rankings.take(rows, first, stop, in_rows=True, end=number)
            first = stop
            for (key, slide), queries in list(self._sets.items()):
                if key.in_rows and number % slide == 0:
                    self._evaluate(key, queries, number)

    def _evaluate(self, key: RankingKey, queries: QuerySet, end: int) -> None:
        if self.is_replaying:
            queries.passed(end)
            return
        tick = 1 if key.in_rows else self.group.pane_us
        ranking = self._rankings[key]
        ranked = ranking.rank(end // tick, queries.sizes // tick, queries.ks)
        self._evaluations += len(queries.members)
        store = self._rankings.stores[key.in_rows]
        prospects = self._prospects.of(ranking, store)
        told: Sequence[Evaluation] = queries.evaluated(end, ranked.starts)
        told = prospects.foresee(told, ranked, ranking, store, queries, end)
        if len(told):
            self._out.append(self._partial(ranking, store, ranked, told, prospects, queries))

    def _partial(
        self,
        ranking: Ranking,
        store: WindowStore,
        ranked: Ranked,
        told: Sequence[Evaluation],
        prospects: Prospects,
        queries: QuerySet,
    ) -> PartialBatch:
        used, renumbered, cases = prospects.rows_of(ranked, queries, told)
        bound, by_row = ranking.bound, store.layout.by_row
        shown = gather(
            ranking.objects,
            used,
            ranked.slot,
            ranked.rank,
            ranked.present,
            ranked.values,
            descending=bound.descending,
        )
        slots = shown.slots
        return PartialBatch(
            group=self.group.name,
            generation=self.generation,
            shard=self.shard,
            descending=bound.descending,
            attribute_names=ranking.attribute_names,
            evaluations=told,
            ranking=renumbered,
            id_bytes=shown.id_bytes,
            id_ends=shown.id_ends,
            score=shown.score,
            event_time_us=store.event_times(slots) if by_row else np.zeros(0, np.int64),
            sequence=store.objects.arrays.records[slots, 3] if by_row else np.zeros(len(slots), np.int64),
            attributes=shown.attributes,
            present=shown.present,
            best=prospects.best_of_rows(ranked.present[used], shown.attributes, cases),
        )
