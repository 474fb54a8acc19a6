"""The merge of one partition of the partials: values of all its groups in, results out, each once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skyband.errors import LogError
from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.fanout.catalog_reader import CatalogReader
from skyband.fanout.committer import Commit, Committer, GroupKey, MarkKey
from skyband.fanout.merger import Merger
from skyband.log.clock import Clock
from skyband.log.read_range import read_range
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.result import Result

__all__ = ["MergeStage", "ServedGroup"]


@dataclass(frozen=True, slots=True)
class ServedGroup:
    """A generation of a group that runs."""

    group: str
    generation: int
    shards: int

    @property
    def key(self) -> GroupKey:
        """Group and generation."""
        return self.group, self.generation


class MergeStage:
    """Merges what one partials partition brings; whoever owns it reads the partition and the catalog for it.

    Words: a generation of a group is *served* while `serve` names it, in the newest generation that it names of the
    group; *stored* with its marks while it is not, or not any more; *stopped* if values that it needs are no longer in
    the log: it is then left as it was stored, for a next generation to carry on. Values of a generation that is neither
    served nor older than the served one are *unserved*: the first of them is remembered, and read again once it is.

    Initially (after the committer was loaded) nothing is served. If a call raises, discard the stage.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        partition: int,
        committer: Committer,
        catalog: CatalogReader,
        *,
        partials: str = "partials",
        commit_every_us: int = 1_000_000,
    ) -> None:
        self._log = log
        self._clock = clock
        self._at = Position(partials, partition)
        self._committer = committer
        self._catalog = catalog
        self._commit_every_us = commit_every_us
        self._committed_us = self._told_us = clock.now_us()
        self._stored = committer.load()
        self._checkpoints: dict[GroupKey, MergeCheckpoint] = dict(self._stored.checkpoints)
        self._mergers: dict[GroupKey, Merger] = {}
        self._unserved: dict[GroupKey, int] = {
            key: known.needed[partition]
            for key, known in self._checkpoints.items()
            if not (known.progress or known.catalog_to or self._stored.marks_of(key))
        }
        self._gone: dict[str, int] = {}  # newest generation of each group that is not to be heard of again
        self._forgotten: dict[MarkKey, Mark | None] = {}
        self._told: dict[GroupKey, int] = {}
        self.stopped: dict[GroupKey, LogError] = {}
        self._begin = self._begin_offset()
        read_to = [known.read_to.get(partition, 0) for known in self._checkpoints.values()]
        self._next = max([self._begin, *read_to])
        self._has_begun = False
        self._ignored = 0

    def begin(self) -> int:
        """Return the offset from which on the partition is to be read: the least that is needed by what is served."""
        self._has_begun = True
        return self._next

    def needed(self) -> int:
        """Return the least offset that a restart would need."""
        partition = self._at.partition
        merged = [merger.needed()[partition] for merger in self._mergers.values()]
        return min([self._next, *self._unserved.values(), *merged])

    def serve(self, groups: Iterable[ServedGroup]) -> None:
        """Merge exactly these groups from now on, of each the newest generation named.

        A group served before and not named any more is forgotten with its marks, as are the generations older than one
        that is served. What has come of a new one is read again, and all that the catalog says of it.
        """
        newest = {group.group: group for group in sorted(groups, key=lambda group: group.generation)}
        for key in [*self._mergers, *self.stopped]:
            if key[0] not in newest:
                self._forget(key)
        merged = dict(sorted(self._mergers.keys() | self.stopped.keys()))
        begun = [group for group in newest.values() if group.generation > merged.get(group.group, -1)]
        self._begin = self._begin_offset() if begun else self._begin
        mergers = [merger for group in begun if (merger := self._begin_merge(group)) is not None]
        if not mergers:
            return
        for record in self._catalog.read_again(min(merger.catalog_to for merger in mergers)):
            if isinstance(record.value, QueryChange):
                for merger in mergers:
                    merger.change_query(record.value, record.offset)
        self._read_again(mergers)

    def change_query(self, change: QueryChange, offset: int) -> None:
        """Take a change of a query, read at `offset` of the catalog."""
        for merger in self._mergers.values():
            merger.change_query(change, offset)

    def knows(self, activated: Activated) -> bool:
        """Return whether the catalog has told of what a shard has begun, if it matters here."""
        merger = self._mergers.get((activated.group, activated.generation))
        return merger is None or merger.knows(activated.uid, activated.revision)

    def accept(self, records: Iterable[Record]) -> None:
        """Take records of the partition, in order, once the catalog has told of what they begin."""
        for record in records:
            self._next = record.next_offset
            if isinstance(record.value, PartialBatch | Progress | Activated):
                self._accept(record.value, record.offset)
            else:
                self._ignored += record.value is not None
        for merger in self._mergers.values():
            merger.skip_to(self._at.partition, self._next)

    def advance(self) -> bool:
        """Commit the results that have become complete, if any or if it is time; return whether there were any."""
        results = self._merge()
        now_us = self._clock.now_us()
        if results or now_us - self._committed_us >= self._commit_every_us:
            self._commit(results)
            self._committed_us = now_us
        if now_us - self._told_us >= self._commit_every_us and self._tell():
            self._told_us = now_us
        return bool(results)

    def finish(self) -> None:
        """Commit all that is complete; nothing is to be called after it but `close`."""
        self._commit(self._merge())

    def close(self) -> None:
        """Give up the committer."""
        self._committer.close()

    def statistics(self) -> dict[str, dict[str, int]]:
        """Return the counts of each merge, by ``group.generation``."""
        return {f"{group}.{generation}": merger.statistics() for (group, generation), merger in self._mergers.items()}

    @property
    def ignored_values(self) -> int:
        """How many values were of groups and generations not served."""
        return self._ignored

    def _begin_merge(self, group: ServedGroup) -> Merger | None:
        """Begin or resume the merge of a generation, and end that of an older one; None if it must stop."""
        partition, key = self._at.partition, group.key
        checkpoint = self._checkpoints.get(key)
        start = self._next if checkpoint is None else checkpoint.needed.get(partition, 0)
        start = self._unserved.pop(key, start)
        if start < self._begin:
            self.stopped[key] = LogError(
                f"group {group.group!r} needs partition {partition} of the partials from offset {start} on, which is "
                f"kept from {self._begin} on; give the group a new generation"
            )
            return None
        merger = Merger(group.group, group.generation, group.shards, partitions=[partition])
        marks = self._stored.marks_of(key)
        self._gone[group.group] = min(group.generation - 1, self._gone.get(group.group, -1))
        if checkpoint is not None and (checkpoint.progress or marks):
            merger.restore(checkpoint, marks)
        else:
            merger.begin_at(partition, start)
            merger.carry_over(self._end_older(group))
        self._mergers[key] = merger
        for uid in marks:
            del self._stored.marks[(*key, uid)]
        return merger

    def _end_older(self, group: ServedGroup) -> dict[str, Mark]:
        """Forget the older generations of a group, and return the newest mark of each query."""
        known = self._checkpoints.keys() | self._mergers.keys() | self._unserved.keys() | self.stopped.keys()
        marks: dict[str, Mark] = {}
        for key in sorted(known):
            if key[0] == group.group and key[1] < group.generation:
                merger = self._mergers.get(key)
                marks |= self._stored.marks_of(key) if merger is None else merger.marks()
                self._forget(key)
        return marks

    def _forget(self, key: GroupKey) -> None:
        merger = self._mergers.pop(key, None)
        stored = self._stored.marks_of(key)
        marks = stored if merger is None else {**merger.marks(), **merger.take_changed_marks()}
        for uid in marks:
            self._forgotten[(*key, uid)] = None
        for uid in stored:
            del self._stored.marks[(*key, uid)]
        for known in (self._unserved, self._told, self.stopped):
            known.pop(key, None)
        self._gone[key[0]] = max(key[1], self._gone.get(key[0], -1))

    def _begin_offset(self) -> int:
        consumer = self._log.consumer()
        try:
            return consumer.begin_offsets([self._at])[self._at]
        finally:
            consumer.close()

    def _read_again(self, mergers: Sequence[Merger]) -> None:
        """Read the values of new mergers that lie before the next offset; before the beginning, begin there."""
        partition = self._at.partition
        start = min(merger.needed()[partition] for merger in mergers)
        if not self._has_begun:
            self._next = min(self._next, start)
            return
        consumer = self._log.consumer()
        try:
            for record in read_range(consumer, self._at, start, self._next):
                if isinstance(record.value, PartialBatch | Progress | Activated):
                    for merger in mergers:
                        merger.accept(record.value, partition, record.offset)
        finally:
            consumer.close()
        for merger in mergers:
            merger.skip_to(partition, self._next)

    def _accept(self, value: PartialBatch | Progress | Activated, offset: int) -> None:
        key = value.group, value.generation
        merger = self._mergers.get(key)
        if merger is not None:
            merger.accept(value, self._at.partition, offset)
            return
        self._ignored += 1
        if key not in self.stopped and key not in self._checkpoints and self._gone.get(key[0], -1) < key[1]:
            self._unserved.setdefault(key, offset)

    def _merge(self) -> list[Result]:
        results: list[Result] = []
        for merger in self._mergers.values():
            results += merger.take()
        if len(self._mergers) > 1:
            results.sort(key=lambda result: (result.window_end, result.query, result.uid))
        return results

    def _commit(self, results: Sequence[Result]) -> None:
        marks, checkpoints = self._changes()
        if not (results or marks or checkpoints):
            return
        self._committer.commit(Commit(results, marks, checkpoints))
        self._forgotten = {}
        for key, checkpoint in checkpoints.items():
            if checkpoint is None:
                del self._checkpoints[key]
            else:
                self._checkpoints[key] = checkpoint

    def _changes(self) -> tuple[dict[MarkKey, Mark | None], dict[GroupKey, MergeCheckpoint | None]]:
        """Return what differs from what is stored."""
        marks = dict(self._forgotten)
        gone = [key for key in self._checkpoints if key[1] <= self._gone.get(key[0], -1)]
        checkpoints: dict[GroupKey, MergeCheckpoint | None] = dict.fromkeys(gone)
        for key, merger in self._mergers.items():
            marks.update({(*key, uid): mark for uid, mark in merger.take_changed_marks().items()})
            checkpoint = merger.checkpoint()
            if checkpoint != self._checkpoints.get(key):
                checkpoints[key] = checkpoint
        for key, offset in self._unserved.items():
            if key not in self._checkpoints:
                at = self._at.partition
                checkpoints[key] = MergeCheckpoint(*key, read_to={at: self._next}, needed={at: offset})
        return marks, checkpoints

    def _tell(self) -> bool:
        """Tell how far the results go, if they go further than told; all those that are taken are committed."""
        frontiers = {}
        for key, merger in self._mergers.items():
            written_to_us = merger.written_to_us
            if written_to_us is not None and written_to_us > self._told.get(key, MIN_TIME_US):
                frontiers[key] = written_to_us
        if frontiers:
            self._committer.tell(frontiers)
            self._told.update(frontiers)
        return bool(frontiers)
