"""The fanout stage: merges partials into results, each written once, and serves subscribers from the results topic."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from skyband.errors import DefinitionError, NotFoundError
from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.fanout.committer import Commit, Committer, GroupKey, MarkKey, PlainCommitter
from skyband.fanout.merger import Merger
from skyband.fanout.result_tail import ResultTail
from skyband.fanout.subscription import Mode, Subscription
from skyband.log.clock import Clock
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import QueryState
from skyband.model.result import Result

__all__ = ["FanoutStage", "FanoutTopics", "ServedGroup"]

_MAX_RECORDS = 1_000
_CATALOG_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class ServedGroup:
    """A generation of a group whose partials are merged here."""

    group: str
    generation: int
    shards: int


@dataclass(frozen=True, slots=True)
class FanoutTopics:
    """Names of the topics that fanout reads and writes."""

    partials: str = "partials"
    catalog: str = "catalog"
    results: str = "results"


class FanoutStage:
    """One fanout process over a log.

    `partitions`: the partials partitions merged here (None: all); queries of other partitions are served from the
    results, not merged. A *step* reads partials, then the catalog, merges, commits, tails the results, offers them.
    The catalog is read up to the revision that an Activated names before it is taken: a shard knows it from there, so
    it is there to be read. If `step` raises, build a new stage with the same committer.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        groups: Iterable[ServedGroup],
        *,
        topics: FanoutTopics | None = None,
        committer: Committer | None = None,
        partitions: Sequence[int] | None = None,
        results_from: Mapping[int, int] | None = None,
        commit_every_us: int = 1_000_000,
    ) -> None:
        self._clock = clock
        self._topics = topics or FanoutTopics()
        self._committer: Committer = committer or PlainCommitter(log, clock, results=self._topics.results)
        self._commit_every_us = commit_every_us
        self._committed_us = clock.now_us()
        if partitions is None:
            partitions = range(log.partitions(self._topics.partials))
        self._mergers = {
            (g.group, g.generation): Merger(g.group, g.generation, g.shards, partitions=partitions) for g in groups
        }
        self._generations = dict(sorted(self._mergers))
        self._queries: dict[str, QueryChange] = {}
        self._written_end: dict[str, int] = {}
        self._ignored_values = 0
        self._tail = ResultTail(log, clock, results=self._topics.results, from_offsets=results_from)
        self._catalog_at = Position(self._topics.catalog, 0)
        self._next: dict[Position, int] = {}
        self._restore(partitions)
        self._partials = log.consumer()
        self._partials.assign({at: offset for at, offset in self._next.items() if at != self._catalog_at})
        self._catalog = log.consumer()
        self._catalog.assign({self._catalog_at: self._next[self._catalog_at]})
        self._read_catalog()
        self._tail.poll()

    def step(self, timeout_s: float) -> bool:
        """Do one round, waiting at most `timeout_s` for partials; return whether there was anything to do."""
        records = self._partials.poll(_MAX_RECORDS, timeout_s)
        changes = self._catch_up_with(records)
        self._accept(records)
        results = self._merge()
        if results or self._clock.now_us() - self._committed_us >= self._commit_every_us:
            self._commit(results)
        tailed = self._tail.poll()
        self._offer_progress()
        return bool(records or changes or results or tailed)

    def subscribe(
        self,
        query: str,
        *,
        group: str | None = None,
        resume_token: str | None = None,
        mode: Mode = Mode.CHANGES,
        wake: Callable[[], None] | None = None,
    ) -> Subscription:
        """Return a subscription to a query by name or uid; `wake` is called whenever there is something to take.

        Raises NotFoundError for an unknown query, DefinitionError where several groups have one of that name, and what
        `ResultTail.subscribe` raises. May be called from any thread.
        """
        change = self._find(query, group)
        return self._tail.subscribe(
            change.uid, self._generations[change.group], resume_token=resume_token, mode=mode, wake=wake
        )

    def unsubscribe(self, subscription: Subscription) -> None:
        """Drop a subscription."""
        self._tail.unsubscribe(subscription)

    def statistics(self) -> dict[str, dict[str, int]]:
        """Return the counts of each merge, by ``group.generation``, and of values of groups not served here."""
        counts = {f"{group}.{generation}": merger.statistics() for (group, generation), merger in self._mergers.items()}
        return {**counts, "stage": {"ignored_values": self._ignored_values}}

    def close(self) -> None:
        """Commit, end all subscriptions, and give up the log."""
        self._commit([])
        self._tail.close()
        self._partials.close()
        self._catalog.close()
        self._committer.close()

    def _restore(self, partitions: Iterable[int]) -> None:
        committed = self._committer.load()
        positions = [self._catalog_at, *(Position(self._topics.partials, partition) for partition in partitions)]
        # A group that is new here may have its beginning before the committed offsets; to the others that is repeats.
        known = committed.offsets if self._mergers.keys() <= committed.checkpoints.keys() else {}
        self._next = {at: known.get(at, 0) for at in positions}
        needed = {at.partition: offset for at, offset in self._next.items() if at != self._catalog_at}
        for key, merger in self._mergers.items():
            checkpoint = committed.checkpoints.get(key)
            if checkpoint is not None:
                marks = {uid: mark for (*owner, uid), mark in committed.marks.items() if tuple(owner) == key}
                merger.restore(checkpoint, marks, needed)
        for change in committed.queries():
            self._note(change)

    def _read_catalog(self, *, wait_s: float = 0.0) -> int:
        """Take what the catalog holds, waiting at most `wait_s` for more, and return how many records."""
        count = 0
        while records := self._catalog.poll(_MAX_RECORDS, wait_s):
            count += len(records)
            for record in records:
                self._next[self._catalog_at] = record.next_offset
                if isinstance(record.value, QueryChange):
                    for merger in self._mergers.values():
                        merger.change_query(record.value, record.offset)
                    self._note(record.value)
        return count

    def _catch_up_with(self, records: Sequence[Record]) -> int:
        """Read the catalog up to what the shards speak of in `records`, and return how many records."""
        count = self._read_catalog()
        begun = [record.value for record in records if isinstance(record.value, Activated)]
        if all(self._knows(activated) for activated in begun):
            return count
        # Deleted and forgotten, or the catalog's reader is behind the partials': its end decides.
        if self._next[self._catalog_at] < self._catalog.end_offsets([self._catalog_at])[self._catalog_at]:
            count += self._read_catalog(wait_s=_CATALOG_WAIT_S)
        return count

    def _knows(self, activated: Activated) -> bool:
        merger = self._mergers.get((activated.group, activated.generation))
        return merger is None or merger.knows(activated.uid, activated.revision)

    def _note(self, change: QueryChange) -> None:
        if change.group not in self._generations:
            return
        if change.state is QueryState.DELETED:
            self._queries.pop(change.uid, None)
            self._tail.end(change.uid)
        else:
            self._queries[change.uid] = change
            self._tail.begin(change.uid)

    def _accept(self, records: Sequence[Record]) -> None:
        for record in records:
            value = record.value
            self._next[Position(record.topic, record.partition)] = record.next_offset
            if isinstance(value, PartialBatch | Progress | Activated):
                merger = self._mergers.get((value.group, value.generation))
                if merger is not None:
                    merger.accept(value, record.partition, record.offset)
                    continue
            self._ignored_values += 1
        for at in {Position(record.topic, record.partition) for record in records}:
            for merger in self._mergers.values():
                merger.skip_to(at.partition, self._next[at])

    def _merge(self) -> list[Result]:
        results: list[Result] = []
        for merger in self._mergers.values():
            results += merger.take()
        if len(self._mergers) > 1:
            results.sort(key=lambda result: (result.window_end, result.query, result.uid))
        return results

    def _commit(self, results: Sequence[Result]) -> None:
        offsets = dict(self._next)
        marks: dict[MarkKey, Mark | None] = {}
        checkpoints: dict[GroupKey, MergeCheckpoint] = {}
        for key, merger in self._mergers.items():
            for partition, offset in merger.needed().items():
                at = Position(self._topics.partials, partition)
                offsets[at] = min(offsets[at], offset)
            marks.update({(*key, uid): mark for uid, mark in merger.take_changed_marks().items()})
            checkpoints[key] = merger.checkpoint()
        self._committer.commit(Commit(results, offsets, marks, checkpoints))
        self._committed_us = self._clock.now_us()
        for result in results:
            self._written_end[result.uid] = result.window_end
        for (_, _, uid), mark in marks.items():
            if mark is None:
                self._written_end.pop(uid, None)

    def _offer_progress(self) -> None:
        """Tell subscribers how far their queries were read, once the tail has seen all that was written of them."""
        for uid in self._tail.subscribed():
            change = self._queries.get(uid)
            if change is None:
                continue
            frontier_us = self._mergers[change.group, self._generations[change.group]].frontier_of(uid)
            written_end = self._written_end.get(uid)
            if frontier_us is not None and written_end in (None, self._tail.latest_end(uid)):
                self._tail.offer_progress(uid, frontier_us)

    def _find(self, query: str, group: str | None) -> QueryChange:
        by_uid = self._queries.get(query)
        if by_uid is not None:
            return by_uid
        found = [c for c in list(self._queries.values()) if c.query.name == query and group in (None, c.group)]
        if not found:
            where = f" in group {group!r}" if group else ""
            raise NotFoundError(f"no query {query!r}{where}; see the list of queries")
        if len(found) > 1:
            groups = ", ".join(sorted(change.group for change in found))
            raise DefinitionError(f"query {query!r} is in several groups ({groups}); name the group", field="query")
        return found[0]
