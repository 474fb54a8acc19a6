"""Commits of one merge as transactions of a log.

One partition of the partials has one merge, one transactional id, and one partition of the marks::

    results/<by uid>       key <uid>                       Result
    marks/<partition>      key <group>/<generation>/<uid>  Mark             } compacted; no value: forgotten
                           key <group>/<generation>        MergeCheckpoint  }
    progress/0             key <group>                     MergeProgress, in a transaction of its own
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress

from skyband.errors import LogError
from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.fanout.committer import Commit, Committed, GroupKey
from skyband.log.clock import Clock
from skyband.log.partition_of import partition_of
from skyband.log.read_range import read_range
from skyband.log.record_log import Position, Producer, Record, RecordLog
from skyband.model.partials import MergeProgress

__all__ = ["LogCommitter"]


class LogCommitter:
    """The committer of the merge of one partials partition.

    Initially *closed*; `load` opens it and shuts out any other of its transactional id. After a failure it is closed
    for good: the outcome of the transaction is unknown, so a new one has to load what is committed.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        partition: int,
        *,
        transactional_id: str,
        results: str = "results",
        marks: str = "marks",
        progress: str = "progress",
    ) -> None:
        self._log = log
        self._clock = clock
        self._transactional_id = transactional_id
        self._results = [Position(results, number) for number in range(log.partitions(results))]
        self._marks = Position(marks, partition)
        self._progress = Position(progress, 0)
        self._reader = log.consumer()
        self._producer: Producer | None = None
        self._open = False

    def load(self) -> Committed:
        """Shut out whoever wrote before, and read the marks to their end. Cost: as many records as compaction left."""
        # First the producer: what its predecessor has begun is then decided, and nothing more of it can come.
        self._producer = self._log.producer(self._transactional_id)
        self._open = True
        ends = [self._marks]
        begin, end = self._reader.begin_offsets(ends)[self._marks], self._reader.end_offsets(ends)[self._marks]
        committed = Committed()
        for record in read_range(self._reader, self._marks, begin, end):
            if record.key is not None:
                _apply(committed, record.key, record)
        return committed

    def commit(self, commit: Commit) -> None:
        """Store results, marks and checkpoints in one transaction."""
        now_us = self._clock.now_us()
        with self._transaction() as producer:
            for result in commit.results:
                at = self._results[partition_of(result.uid, len(self._results))]
                producer.send(at.topic, at.partition, result, key=result.uid.encode(), timestamp_us=now_us)
            for owner, mark in commit.marks.items():
                self._send_mark(producer, owner, mark, now_us)
            for group, checkpoint in commit.checkpoints.items():
                self._send_mark(producer, group, checkpoint, now_us)

    def tell(self, frontiers: Mapping[GroupKey, int]) -> None:
        """Tell frontiers in `progress`, with the ends of the results: all that was committed lies below them."""
        now_us = self._clock.now_us()
        ends = self._reader.end_offsets(self._results)
        results_to = {at.partition: end for at, end in ends.items()}
        with self._transaction() as producer:
            for (group, generation), frontier_us in frontiers.items():
                told = MergeProgress(group, generation, frontier_us, results_to)
                topic, partition = self._progress.topic, self._progress.partition
                producer.send(topic, partition, told, key=group.encode(), timestamp_us=now_us)

    def close(self) -> None:
        """Close producer and reader."""
        failed, self._open = not self._open, False
        self._reader.close()
        if self._producer is not None:
            with suppress(LogError) if failed else nullcontext():
                self._producer.close()

    @contextmanager
    def _transaction(self) -> Iterator[Producer]:
        if self._producer is None or not self._open:
            raise LogError(
                f"the committer {self._transactional_id!r} is not open, or an earlier commit of it failed; "
                "make a new one, and load what is committed"
            )
        self._open = False
        with self._producer.transaction():
            yield self._producer
        self._open = True

    def _send_mark(self, producer: Producer, owner: tuple[str | int, ...], value: object, now_us: int) -> None:
        key = "/".join(map(str, owner)).encode()
        producer.send(self._marks.topic, self._marks.partition, value, key=key, timestamp_us=now_us)


def _apply(committed: Committed, key: bytes, record: Record) -> None:
    """Take a record of the marks; a later one of the same key replaces it."""
    group, generation, *uid = key.decode().split("/", 2)
    owner = group, int(generation)
    value = record.value
    if not uid:
        committed.checkpoints.pop(owner, None)
        if isinstance(value, MergeCheckpoint):
            committed.checkpoints[owner] = value
    else:
        committed.marks.pop((*owner, uid[0]), None)
        if isinstance(value, Mark):
            committed.marks[(*owner, uid[0])] = value
