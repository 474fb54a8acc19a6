"""The writing half of align: batches and dead letters into the log, and commits only behind them."""

from collections.abc import Mapping
from contextlib import suppress

from skyband.align.aligner import Aligner
from skyband.align.commits import Commits
from skyband.align.outbox import Outbox
from skyband.align.source import SourceKey
from skyband.errors import CapacityError
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.record_log import Consumer, Position, Producer, RecordLog

__all__ = ["BatchWriter"]


class BatchWriter:
    """Writes what an aligner made, in order, and commits how far it goes once all of it is stored.

    A commit that is refused because the group has been shared out anew is no failure: what is committed then is less
    than what is written, and so still true. Any other failure is one.
    """

    def __init__(
        self,
        log: RecordLog,
        producer: Producer,
        consumer: Consumer,
        topic: str,
        dead_letter_topic: str,
        commit_interval_us: int,
    ) -> None:
        self._log = log
        self._producer = producer
        self._topic = topic
        self._dead_letter_topic = dead_letter_topic
        self._commit_interval_us = commit_interval_us
        self._committed_us: int | None = None
        self.outbox = Outbox(producer)
        self.commits = Commits(consumer)

    def make(self, aligner: Aligner, positions: Mapping[SourceKey, Position], now_us: int) -> None:
        """Turn all that waits in the aligner into messages, and state how far they go."""
        topic = self._dead_letter_topic
        for letter in aligner.drain_dead_letters():
            partition = letter.partition % self._log.partitions(topic)
            self.outbox.put(topic, partition, letter.stream.encode(), letter)
        for batch in aligner.flush(now_us):
            self.outbox.put(self._topic, batch.shard, b"%d" % batch.shard, batch)
        self.commits.state({positions[key]: aligner.reached(key) for key in aligner.keys})

    def deliver(self, now_us: int) -> bool:
        """Send what waits and, if that is all and it is time, commit behind it.

        Return False if the log is too full to take it.
        """
        if not self.outbox.send(now_us):
            return False
        is_time = self._committed_us is None or now_us - self._committed_us >= self._commit_interval_us
        if self.commits.is_due and (is_time or self.commits.is_urgent):
            self._producer.flush()
            self._commit(now_us)
        return True

    def deliver_patiently(self, now_us: int) -> bool:
        """Deliver, also if that takes flushes in between. Return False if the log stays full: nothing is committed."""
        if not self.outbox.store(now_us):
            return False
        self._commit(now_us)
        return True

    def report(self, topic: str, report: object, now_us: int) -> None:
        """Send a report, if the log has room: the next one says it all again."""
        with suppress(CapacityError):
            self._producer.send(topic, 0, report, timestamp_us=now_us)

    def _commit(self, now_us: int) -> None:
        self._committed_us = now_us
        with suppress(CommitRefusedError):
            self.commits.commit()
