"""The merge: partials of all shards in, each result once out.

For one query with slide 10 on two shards; ``r`` is a partial with rows, ``-`` one without, blank: none sent::

    window end      100   110   120   130   140
    shard 0          r     r     r     -
    shard 1                r           -
    progress         .     .     .     .     shard 0 past 140, shard 1 past 130
    result           no   yes   yes   empty  waits for shard 1

Shard 1 began the query at 110, so 100 is dropped; at 120 it had no rows twice running and sent nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from skyband.errors import CapacityError
from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.fanout.offset_holds import Hold, ReadPosition
from skyband.fanout.outlook import outlook_of, size_of
from skyband.fanout.progress_table import ProgressTable
from skyband.fanout.ranked_rows import Part, RankedRows, merge_parts
from skyband.fanout.schedule import Due, Schedule
from skyband.fanout.tracked_query import TrackedQuery, Verdict
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import QueryState
from skyband.model.result import Candidate, Result

__all__ = ["Merger"]


class Merger:
    """Merges the partials of one generation of a group.

    A *part* is what one shard says for one (query, window end); a *slot* the parts of one of them. A slot is *covered*
    once the progress of every shard, in every partition read, covers its window end, and then *decided*: written as a
    result, or dropped because some shard does not evaluate it (not begun, paused, deleted). A shard of which there is
    no part counts as evaluated without rows if the query is active there. Window ends up to a query's *mark* are
    decided; parts at or below it are repeats. Initially there are no queries, and progress is at the beginning of time.

    What it relies on: a query's partials come through one partition; a shard's Progress follows what it covers in the
    same partition; its Activated precedes the partials under that revision; the catalog has been told (`change_query`)
    up to a point past any Activated. Parts of queries it was not told of, or has forgotten, are ignored.
    """

    def __init__(
        self,
        group: str,
        generation: int,
        shards: int,
        *,
        partitions: Sequence[int] = (0,),
        max_pending_rows: int = 50_000_000,
    ) -> None:
        self.group = group
        self.generation = generation
        self.shards = shards
        self._max_pending_rows = max_pending_rows
        self._positions = {partition: ReadPosition() for partition in partitions}
        self._read_to: dict[int, int] = {}  # what must be read again before anything is decided
        self._carried: dict[str, Mark] = {}  # of an older generation, for queries not told of yet
        self._progress = ProgressTable(partitions, shards)
        self._queries: dict[str, TrackedQuery] = {}
        self._catalog_to = 0
        self._schedule: dict[int, Schedule] = {}
        self._waiting: list[Due] = []
        self._ready: list[Result] = []
        self._deleted: set[str] = set()
        self._changed: set[str] = set()
        self._moved = False
        self._pending_rows = self._peak_pending_rows = 0
        self._repeats = self._ignored = self._dropped = self._written = 0

    def change_query(self, change: QueryChange, offset: int | None = None) -> None:
        """Take a query's new revision, read at `offset` of the catalog (None: from elsewhere).

        Repeats, older revisions, other groups' and deletions of unknown queries change nothing.
        """
        if offset is not None:
            if offset < self._catalog_to:
                return
            self._catalog_to = offset + 1
        if change.group != self.group:
            return
        query = self._queries.get(change.uid)
        if query is None:
            if change.state is QueryState.DELETED:
                return
            self._queries[change.uid] = TrackedQuery(change, self.shards, self._carried.pop(change.uid, None))
        elif not query.update(change):
            return
        self._changed.add(change.uid)
        if change.state is QueryState.DELETED:
            self._deleted.add(change.uid)
            self._moved = True

    def knows(self, uid: str, revision: int) -> bool:
        """Return whether the catalog has told of this revision of a query that is not forgotten."""
        query = self._queries.get(uid)
        return query is not None and revision <= query.change.revision

    def accept(self, value: PartialBatch | Progress | Activated, partition: int, offset: int) -> None:
        """Take one value read at `offset` of `partition`; one that was read already is passed over.

        Cost: a few look-ups an evaluation. Raises CapacityError past `max_pending_rows`.
        """
        position = self._positions[partition]
        if offset < position.next_offset:
            return
        position.next_offset = offset + 1
        if (value.group, value.generation) != (self.group, self.generation):
            return
        if isinstance(value, PartialBatch):
            self._accept_partials(value, partition, offset)
        elif isinstance(value, Progress):
            self._progress.update(value, partition, offset)
            self._moved = True
        else:
            self._accept_activated(value, partition, offset)

    def skip_to(self, partition: int, next_offset: int) -> None:
        """Note that a partition has been read up to `next_offset`, and the rest of it was none of this merge's."""
        position = self._positions[partition]
        position.next_offset = max(position.next_offset, next_offset)

    def take(self) -> list[Result]:
        """Return the results that have become complete, by (window end, query name); each is returned once.

        Cost: a few microseconds if nothing is due; else about one for each new row shown.
        """
        results, self._ready = self._ready, []
        if self._moved and self._has_caught_up():
            self._moved = False
            held: set[str] = set()
            for due in self._due():
                self._decide(due, held, results)
            self._forget_deleted()
        results.sort(key=_by_end_and_name)
        return results

    @property
    def frontier_us(self) -> int | None:
        """How far all shards have read, None while one has told nothing."""
        return self._progress.frontier_us

    @property
    def catalog_to(self) -> int:
        """The offset of the catalog to read next for this merge."""
        return self._catalog_to

    @property
    def written_to_us(self) -> int | None:
        """Up to where all results are taken, or never to be; None while that is not known."""
        frontier_us = self.frontier_us
        if frontier_us is None or self._read_to:
            return None
        # A slot that waits for an activation may still become a result.
        return min([frontier_us, *(window_end - 1 for window_end, *_ in self._waiting)])

    def needed(self) -> dict[int, int]:
        """Return for each partition the least offset that is still needed."""
        return {partition: position.needed() for partition, position in self._positions.items()}

    def checkpoint(self) -> MergeCheckpoint:
        """Return progress and read positions, to be stored together with the marks."""
        read_to = {p: max(position.next_offset, self._read_to.get(p, 0)) for p, position in self._positions.items()}
        progress = self._progress.entries()
        return MergeCheckpoint(self.group, self.generation, progress, read_to, self.needed(), self._catalog_to)

    def marks(self) -> dict[str, Mark]:
        """Return the marks of all queries."""
        return {uid: query.mark() for uid, query in self._queries.items()}

    def take_changed_marks(self) -> dict[str, Mark | None]:
        """Return the marks changed since they were last taken; None for a query that is forgotten."""
        queries, changed = self._queries, self._changed
        self._changed = set()
        return {uid: queries[uid].mark() if uid in queries else None for uid in changed}

    def begin_at(self, partition: int, offset: int) -> None:
        """Begin a merge that has read nothing at this offset."""
        self._positions[partition].next_offset = offset

    def carry_over(self, marks: Mapping[str, Mark]) -> None:
        """Begin behind what an older generation has decided: nothing of it is written again."""
        self._carried = dict(marks)

    def restore(self, checkpoint: MergeCheckpoint, marks: Mapping[str, Mark]) -> None:
        """Begin from what was stored; the next values are those from the offsets on that it needs."""
        self._progress.restore(checkpoint.progress)
        self._read_to = {p: end for p, end in checkpoint.read_to.items() if p in self._positions}
        self._catalog_to = checkpoint.catalog_to
        for partition, position in self._positions.items():
            position.next_offset = checkpoint.needed.get(partition, 0)
        for uid, mark in marks.items():
            query = self._queries[uid] = TrackedQuery.from_mark(mark)
            self._expect_result(uid, query)
            if mark.change.state is QueryState.DELETED:
                self._deleted.add(uid)
        self._moved = True

    def statistics(self) -> dict[str, int]:
        """Return counts: pending rows with their peak, parts repeated or ignored, slots dropped, results written."""
        return {
            "queries": len(self._queries),
            "pending_rows": self._pending_rows,
            "peak_pending_rows": self._peak_pending_rows,
            "repeated_parts": self._repeats,
            "ignored_parts": self._ignored,
            "dropped_window_ends": self._dropped,
            "results": self._written,
        }

    def _accept_partials(self, batch: PartialBatch, partition: int, offset: int) -> None:
        hold = Hold(offset)
        rows = RankedRows(batch, hold)
        shard, queries, pending = batch.shard, self._queries, 0
        for evaluation in batch.evaluations:
            query = queries.get(evaluation.uid)
            if query is None:
                self._ignored += 1
                continue
            window_end = evaluation.window_end
            slot = query.slots.get(window_end)
            if window_end <= query.window_end or (slot is not None and shard in slot):
                self._repeats += 1
                continue
            if query.in_rows:
                self._write(query, window_end, {shard: (rows, evaluation)}, self._ready)
                continue
            if slot is None:
                slot = self._open_slot(evaluation.uid, query, window_end)
            slot[shard] = (rows, evaluation)
            hold.count += 1
            pending += size_of(evaluation)
        if hold.count:
            self._positions[partition].hold(hold)
            self._add_pending(pending)

    def _open_slot(self, uid: str, query: TrackedQuery, window_end: int) -> dict[int, Part]:
        schedule = self._schedule.get(query.slide)
        if schedule is None:
            schedule = self._schedule[query.slide] = Schedule()
        schedule.add((window_end, query.name, uid, query))
        slot = query.slots[window_end] = {}
        return slot

    def _add_pending(self, rows: int) -> None:
        self._pending_rows += rows
        self._peak_pending_rows = max(self._peak_pending_rows, self._pending_rows)
        if self._pending_rows > self._max_pending_rows:
            shard = self._progress.hindmost()
            raise CapacityError(
                f"group {self.group!r} holds {self._pending_rows:,} rows that wait for shard {shard}, "
                f"above the cap of {self._max_pending_rows:,}; see why the engine of that shard is behind, or raise "
                "max_pending_rows"
            )

    def _accept_activated(self, activated: Activated, partition: int, offset: int) -> None:
        query = self._queries.get(activated.uid)
        if query is None:
            self._ignored += 1
        elif query.activate(activated, self._progress, partition, offset):
            self._changed.add(activated.uid)
            self._expect_result(activated.uid, query)
            self._moved = True

    def _expect_result(self, uid: str, query: TrackedQuery) -> None:
        """Open slots where all shards (again) evaluate a query.

        Where none has rows, none may send a part; yet subscribers that saw rows before a pause must see them gone.
        """
        for window_end in () if query.in_rows else query.beginnings():
            if window_end not in query.slots:
                self._open_slot(uid, query, window_end)

    def _has_caught_up(self) -> bool:
        if self._read_to:
            positions = self._positions
            self._read_to = {p: end for p, end in self._read_to.items() if positions[p].next_offset < end}
        return not self._read_to

    def _due(self) -> list[Due]:
        """Take the slots that all shards cover, and those that waited, in order of (window end, query name)."""
        due, self._waiting = self._waiting, []
        for slide, schedule in self._schedule.items():
            schedule.take(self._progress.limit_us(slide), due)
        due.sort(key=_by_end_name_and_uid)
        return due

    def _decide(self, due: Due, held: set[str], results: list[Result]) -> None:
        window_end, _, uid, query = due
        if window_end <= query.window_end:
            return
        slot = query.slots[window_end]
        verdict = Verdict.WAIT if uid in held else self._verdict(query, window_end, slot)
        if verdict is Verdict.WAIT:
            held.add(uid)
            self._waiting.append(due)
            return
        if verdict is Verdict.WRITE:
            self._write(query, window_end, slot, results)
        else:
            self._dropped += 1
            query.decided(window_end)
        self._changed.add(uid)
        self._let_go(slot.values())

    def _verdict(self, query: TrackedQuery, window_end: int, slot: dict[int, Part]) -> Verdict:
        if len(slot) == self.shards:
            return Verdict.WRITE
        for shard, timeline in enumerate(query.timelines):
            if shard in slot:
                continue
            if not timeline.entries:
                return Verdict.WAIT
            newest = timeline.entries[-1]
            # Progress read before the query (or revision) began says nothing of what it then evaluates at once.
            if not self._progress.told_since(newest.partition, shard, newest.offset):
                return Verdict.WAIT
            in_force = timeline.at(window_end)
            if in_force is None or not in_force.active:
                return Verdict.DROP
        return Verdict.WRITE

    def _write(self, query: TrackedQuery, window_end: int, slot: dict[int, Part], results: list[Result]) -> None:
        could: tuple[Candidate, ...] = ()
        if slot:
            parts = list(slot.values())
            evaluation = parts[0][1]
            k, revision, window_start = evaluation.k, evaluation.revision, evaluation.window_start
            for _, other in parts:
                # While shards still differ, only the smaller k is complete on all of them.
                k, revision = min(k, other.k), min(revision, other.revision)
            rows = merge_parts(slot, k)
        else:
            rows, window_start, revision = (), window_end - query.size, min(t.revision for t in query.timelines)
        if rows or query.had_rows:
            uid, asked = query.change.uid, query.change.query
            if slot and asked.candidates:
                rows, could = outlook_of(slot, rows, k, asked.candidates, asked.window)
            results.append(Result(query.name, uid, window_start, window_end, rows, self.frontier_us, revision, could))
            query.had_rows = bool(rows)
            self._written += 1
        query.decided(window_end)
        self._changed.add(query.change.uid)

    def _let_go(self, parts: Iterable[Part]) -> None:
        for rows, evaluation in parts:
            rows.hold.count -= 1
            self._pending_rows -= size_of(evaluation)

    def _forget_deleted(self) -> None:
        for uid in tuple(self._deleted):
            query = self._queries[uid]
            end = query.ends_at()
            if end is None or any(window_end < end for window_end in query.slots):
                continue
            for slot in query.slots.values():
                self._dropped += 1
                self._let_go(slot.values())
            # What is still scheduled is passed over by its mark.
            query.decided(max(query.slots, default=query.window_end))
            query.slots.clear()
            del self._queries[uid]
            self._deleted.discard(uid)
            self._changed.add(uid)

    def _check(self) -> None:
        """Assert the invariants. Cost: all that is pending."""
        pending, counts = 0, dict[int, tuple[Hold, int]]()
        scheduled = {(due[0], due[2]) for schedule in self._schedule.values() for due in schedule.pending()}
        waiting = {(due[0], due[2]) for due in self._waiting}
        assert not scheduled & waiting
        for uid, query in self._queries.items():
            assert (query.change.state is QueryState.DELETED) == (uid in self._deleted)
            for window_end, slot in query.slots.items():
                assert window_end > query.window_end
                assert (window_end, uid) in scheduled | waiting
                for rows, evaluation in slot.values():
                    pending += size_of(evaluation)
                    counts[id(rows)] = rows.hold, counts.get(id(rows), (rows.hold, 0))[1] + 1
        assert pending == self._pending_rows
        for hold, count in counts.values():
            assert hold.count == count
            assert any(hold.offset >= position.needed() for position in self._positions.values())


_by_end_name_and_uid = itemgetter(0, 1, 2)


def _by_end_and_name(result: Result) -> tuple[int, str, str]:
    return result.window_end, result.query, result.uid
