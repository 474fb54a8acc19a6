"""One replica of fanout: merges the partitions it is given, and serves every query from the results topic.

::

    partials/0 ─► MergeStage ─┐                          ┌─► ResultTail ─► subscribers of this replica
    partials/3 ─► MergeStage ─┴─► results, marks ────────┤
                                  progress ──────────────┴─► ResultTails of the other replicas
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from skyband.errors import DefinitionError, LogError, NotFoundError
from skyband.fanout.catalog_reader import CatalogReader
from skyband.fanout.committer import GroupKey
from skyband.fanout.log_committer import LogCommitter
from skyband.fanout.merge_stage import MergeStage, ServedGroup
from skyband.fanout.progress_board import ProgressBoard
from skyband.fanout.result_tail import ResultTail
from skyband.fanout.subscription import Mode, Subscription
from skyband.log.clock import Clock
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated
from skyband.model.query import QueryState
from skyband.model.result import Result

__all__ = ["FanoutStage", "FanoutTopics"]

_MAX_RECORDS = 1_000
_COMMIT_EVERY_OFFSETS = 100
# While partials are waited for, so often are the results looked for, of this replica or another, that somebody awaits.
_TAIL_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class FanoutTopics:
    """Names of the topics that fanout reads and writes."""

    partials: str = "partials"
    catalog: str = "catalog"
    results: str = "results"
    marks: str = "marks"
    progress: str = "progress"


class FanoutStage:
    """One fanout process over a log; one thread steps it, subscribers may come from any.

    `groups` are all groups of the catalog, not only those merged here (None: not known yet; `serve` names them, and
    until then nothing is merged). The replicas of one `reader` share the partitions of the partials; `reader` and
    partition make the transactional id, so that one merge of a partition can write. A *step* reads partials, then the
    catalog, merges, commits, tails the results, offers them. The catalog is read up to the revision that an Activated
    names before it is taken: a shard knows it from there, so it is there to be read.

    If `step` or `serve` raises, the stage is *failed*, and writes nothing more: close it, and build a new one, which
    begins from what is committed; subscribers come back with their resume tokens.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        groups: Iterable[ServedGroup] | None = None,
        *,
        topics: FanoutTopics | None = None,
        reader: str = "skyband.fanout",
        commit_every_us: int = 1_000_000,
        tail_offsets: int = 10_000,
        search_us: int = 5_000_000,
    ) -> None:
        self._log = log
        self._clock = clock
        self._topics = topics or FanoutTopics()
        self._reader = reader
        self._commit_every_us = commit_every_us
        self._groups: dict[str, ServedGroup] = {}
        self._generations: dict[str, int] = {}
        self._queries: dict[str, QueryChange] = {}
        self._merges: dict[int, MergeStage] = {}
        self._acknowledged: dict[int, int] = {}
        self._acknowledged_us = clock.now_us()
        self._failed = self._subscribed = False
        self._partitions = log.partitions(self._topics.partials)
        self._board = ProgressBoard(log, self._topics.progress)
        self._tail = ResultTail(
            log, clock, results=self._topics.results, tail_offsets=tail_offsets, search_us=search_us
        )
        self._catalog = CatalogReader(log, self._topics.catalog)
        self._partials = log.consumer(reader)
        self._note_changes(self._catalog.read_to_end())
        if groups is not None:
            self.serve(groups)
        self._tail.poll()

    def serve(self, groups: Iterable[ServedGroup]) -> None:
        """Serve exactly these groups from now on: all that the catalog names. See `MergeStage.serve`."""
        with self._failing():
            self._note_changes(self._catalog.read_to_end())
            ordered = sorted(groups, key=lambda group: group.key)
            self._groups = {group.group: group for group in ordered}
            self._generations = {group.group: group.generation for group in ordered}
            for change in self._queries.values():
                self._show(change)
            for partition, merge in self._merges.items():
                merge.serve(self._groups_of(partition))
            if not self._subscribed:
                self._subscribed = True
                self._partials.subscribe([self._topics.partials], self)

    def step(self, timeout_s: float) -> bool:
        """Do one round, waiting at most `timeout_s` for partials; return whether there was anything to do."""
        with self._failing():
            if self._tail.subscribed():
                timeout_s = min(timeout_s, _TAIL_EVERY_S)
            records = self._partials.poll(_MAX_RECORDS, timeout_s) if self._subscribed else ()
            changes = self._catch_up_with(records)
            self._accept(records)
            merged = [merge.advance() for merge in self._merges.values()]
            self._acknowledge()
            tailed = self._tail.poll()
            self._offer_progress()
            return bool(records or changes or any(merged) or tailed)

    def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
        """Begin the merges of these partitions, and shut out who had them before."""
        starts: dict[Position, int] = {}
        for at in positions:
            merge = self._merges[at.partition] = self._new_merge(at.partition)
            merge.serve(self._groups_of(at.partition))
            starts[at] = merge.begin()
        return starts

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        """End the merges of these partitions; unless they are lost, with a commit of what is complete."""
        for at in positions:
            merge = self._merges.pop(at.partition, None)
            self._acknowledged.pop(at.partition, None)
            if merge is not None:
                if not lost:
                    merge.finish()
                merge.close()

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
        generation = self._generations.get(change.group, 0)
        subscription = self._tail.subscribe(change.uid, generation, resume_token=resume_token, mode=mode, wake=wake)
        # Asked for again: the state may have changed before there was a subscription to tell.
        current = self._queries.get(change.uid)
        if current is not None and current.state is not QueryState.ACTIVE:
            subscription.change_state(current.state)
        frontier_us = self._board.reached((change.group, generation))
        if frontier_us is not None:
            self._tail.offer_progress(change.uid, frontier_us)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Drop a subscription."""
        self._tail.unsubscribe(subscription)

    def get_result(self, query: str, group: str | None = None, window_end: int | None = None) -> Result:
        """Return the latest result of a query, or the one at a window end, as far back as results are kept.

        Raises NotFoundError if there is none, or it is not found in time; else as `subscribe`. From any thread.
        """
        change = self._find(query, group)
        if window_end is None:
            return self._tail.latest(change.uid, change.query.name)
        return self._tail.at(change.uid, change.query.name, window_end)

    @property
    def catalog_to(self) -> int:
        """Up to which offset of the catalog the stage knows the queries."""
        return self._catalog.next_offset

    @property
    def merged_partitions(self) -> list[int]:
        """The partials partitions merged here."""
        return sorted(self._merges)

    @property
    def stopped(self) -> dict[GroupKey, LogError]:
        """Why groups of the partitions merged here have stopped."""
        return {key: error for merge in list(self._merges.values()) for key, error in merge.stopped.items()}

    def statistics(self) -> dict[str, dict[str, int]]:
        """Return the counts of each merge, by ``group.generation``, and of values of groups not served here."""
        merges = list(self._merges.values())
        counts = {name: numbers for merge in merges for name, numbers in merge.statistics().items()}
        return {**counts, "stage": {"ignored_values": sum(merge.ignored_values for merge in merges)}}

    def close(self) -> None:
        """Commit what is complete, unless the stage has failed; end all subscriptions, and give up the log."""
        if not self._failed:
            for merge in self._merges.values():
                merge.finish()
            self._acknowledge(1)
        for merge in self._merges.values():
            merge.close()
        self._merges = {}
        self._tail.close()
        self._board.close()
        self._catalog.close()
        with suppress(LogError):
            self._partials.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Fail for good if the block raises."""
        if self._failed:
            raise LogError("this fanout stage has failed before; close it, and build a new one")
        try:
            yield
        except BaseException:
            self._failed = True
            raise

    def _new_merge(self, partition: int) -> MergeStage:
        committer = LogCommitter(
            self._log,
            self._clock,
            partition,
            transactional_id=f"{self._reader}.{partition}",
            results=self._topics.results,
            marks=self._topics.marks,
            progress=self._topics.progress,
        )
        try:
            return MergeStage(
                self._log,
                self._clock,
                partition,
                committer,
                self._catalog,
                partials=self._topics.partials,
                commit_every_us=self._commit_every_us,
            )
        except BaseException:
            committer.close()
            raise

    def _groups_of(self, partition: int) -> list[ServedGroup]:
        return [group for group in self._groups.values() if partition_of(group.group, self._partitions) == partition]

    def _catch_up_with(self, records: Sequence[Record]) -> int:
        """Read the catalog up to what the shards speak of in `records`, and return how many changes it brought."""
        changes = self._catalog.poll()
        self._note_changes(changes)
        if all(self._knows(record) for record in records):
            return len(changes)
        # Deleted and forgotten, or the catalog's reader is behind the partials': its end decides.
        missing = self._catalog.read_to_end()
        self._note_changes(missing)
        return len(changes) + len(missing)

    def _knows(self, record: Record) -> bool:
        merge = self._merges.get(record.partition)
        return merge is None or not isinstance(record.value, Activated) or merge.knows(record.value)

    def _note_changes(self, records: Iterable[Record]) -> None:
        for record in records:
            change = record.value
            if isinstance(change, QueryChange):
                for merge in self._merges.values():
                    merge.change_query(change, record.offset)
                if change.state is QueryState.DELETED:
                    self._queries.pop(change.uid, None)
                    self._tail.end(change.uid, change.state)
                else:
                    self._queries[change.uid] = change
                    self._show(change)

    def _show(self, change: QueryChange) -> None:
        """Keep results of a query while its group is served."""
        generation = self._generations.get(change.group)
        if generation is None:
            self._tail.end(change.uid, QueryState.DELETED)
        else:
            self._tail.begin(change.uid, generation)
            self._tail.change_state(change.uid, change.state)

    def _accept(self, records: Sequence[Record]) -> None:
        by_partition: dict[int, list[Record]] = {}
        for record in records:
            by_partition.setdefault(record.partition, []).append(record)
        for partition, found in by_partition.items():
            if partition in self._merges:
                self._merges[partition].accept(found)

    def _acknowledge(self, least: int = _COMMIT_EVERY_OFFSETS) -> None:
        """Store for the group of readers how far it needs the partials: for who measures lag, or drops what is read.

        Done once a second, or when it has moved by `least` offsets. A takeover does not use it: the offsets that count
        are in the marks.
        """
        now_us = self._clock.now_us()
        if now_us - self._acknowledged_us >= self._commit_every_us:
            least = 1
        moved = {
            Position(self._topics.partials, partition): needed
            for partition, merge in self._merges.items()
            if (needed := merge.needed()) - self._acknowledged.get(partition, 0) >= least
        }
        if moved:
            # Refused once the partitions are shared out anew, which the next poll tells.
            with suppress(CommitRefusedError):
                self._partials.commit(moved)
            self._acknowledged.update({at.partition: offset for at, offset in moved.items()})
            self._acknowledged_us = now_us

    def _offer_progress(self) -> None:
        """Tell subscribers how far the results of their group go, where this replica has all of them now."""
        reached = self._board.poll(self._generations, self._tail.has_read)
        for uid in self._tail.subscribed() if reached else ():
            change = self._queries.get(uid)
            if change is not None and change.group in reached:
                self._tail.offer_progress(uid, reached[change.group])

    def _find(self, query: str, group: str | None) -> QueryChange:
        known = [change for change in list(self._queries.values()) if change.group in self._generations]
        found = [c for c in known if c.uid == query] or [
            c for c in known if c.query.name == query and group in (None, c.group)
        ]
        if not found:
            where = f" in group {group!r}" if group else ""
            raise NotFoundError(f"no query {query!r}{where}; see the list of queries")
        if len(found) > 1:
            groups = ", ".join(sorted(change.group for change in found))
            raise DefinitionError(f"query {query!r} is in several groups ({groups}); name the group", field="query")
        return found[0]
