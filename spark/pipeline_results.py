"""What a micro-batch has brought, written to Kafka: results and marks at once, dead letters before them."""

import time
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import MemberDescription

from services.runtime.kafka_clients import new_admin
from services.runtime.kafka_errors import UNREACHABLE, Doing, cause_of, explain
from services.runtime.kafka_log import KafkaLog
from services.runtime.kafka_names import KafkaNames
from services.runtime.settings import KafkaSettings
from skyband.errors import LogError, TakenOverError
from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.fanout.committer import Commit, Committed, GroupKey, MarkKey
from skyband.fanout.log_committer import LogCommitter
from skyband.log.clock import SystemClock
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Producer, RecordLog
from skyband.model.duration import MIN_TIME_US
from skyband.model.result import Result
from skyband.model.source_rows import DeadLetter
from spark.pipeline_codecs import codecs
from spark.pipeline_merge import CHECKPOINT, FRONTIER, MARKS, NO_PARTITION, RESULTS
from spark.pipeline_messages import LETTERS, Message, unpack

__all__ = ["ResultWriter", "check_no_fanout"]

_DEAD_LETTERS, _PARTIALS = "dead-letters", "partials"
_FANOUT = "skyband.fanout"
_ATTEMPTS = 3
_ASK_AGAIN_S = 0.1
_PASSING = UNREACHABLE | {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}


def check_no_fanout(log: KafkaLog, group: str) -> None:
    """Raise LogError if a fanout merges the partials among which those of this group would be."""
    names, settings = KafkaNames(log.settings.topic_prefix), log.settings
    wanted = names.topic(_PARTIALS), partition_of(group, log.partitions(_PARTIALS))
    for member in _members(settings, names.group(_FANOUT)):
        assigned = member.assignment.topic_partitions
        if wanted in {(part.topic, part.partition) for part in assigned}:
            raise LogError(
                f"fanout {member.group_instance_id or member.client_id!r} merges group {group!r}, and two cannot; stop "
                "align, engine and fanout, or let this pipeline have a SKYBAND_KAFKA_TOPIC_PREFIX of its own"
            )


def _members(settings: KafkaSettings, group: str) -> Sequence[MemberDescription]:
    """Return who is in a consumer group, patiently: a cluster that has just begun must first find who knows."""
    admin = new_admin(settings, lambda error: None)
    deadline = time.monotonic() + settings.unreachable_after_s
    while True:
        try:
            asked = admin.describe_consumer_groups([group], request_timeout=settings.request_timeout_s)[group]
            return list(asked.result().members)
        except KafkaException as error:
            cause = cause_of(error)
            if time.monotonic() > deadline or cause.code() not in _PASSING:
                raise explain(cause, Doing("ask who merges", settings.bootstrap, group=group)) from error
            time.sleep(_ASK_AGAIN_S)


class ResultWriter:
    """Writes the results of a group's generation, each once; one thread owns it.

    What is written goes into a transaction with its marks, in the key space of fanout, so that each of them goes on
    behind the other. Results up to the mark of their query are dropped: they were written before. After a transaction
    whose outcome is unknown the marks are read again. Another pipeline of the group that begins shuts this one out.

    Initially it has read the marks.
    """

    def __init__(self, log: RecordLog, group: str, generation: int) -> None:
        self._log = log
        self._key: GroupKey = group, generation
        self._partition = partition_of(group, log.partitions(_PARTIALS))
        self._letters: Producer | None = None
        self._told_us = MIN_TIME_US
        self.results = 0
        self.frontier_us: int | None = None
        self._committer, self._stored = self._open()

    def carried(self) -> dict[str, Mark]:
        """Return what was decided of each query, in this generation or before."""
        group, generation = self._key
        marks: dict[str, Mark] = {}
        for number in sorted({key[1] for key in self._stored.marks if key[0] == group and key[1] <= generation}):
            marks |= self._stored.marks_of((group, number))
        return marks

    def write(self, messages: Iterable[Message]) -> None:
        """Write what a micro-batch has brought. Raises LogError if Kafka does not take it; all may be written again."""
        parts: dict[str, list[Message]] = {}
        for message in messages:
            parts.setdefault(message.key, []).append(message)
        self._write_letters(parts.get(LETTERS, ()))
        results = [codecs().decode("results", data) for its in parts.get(RESULTS, ()) for data in unpack(its.data)]
        marks = _marks(parts.get(MARKS, ()))
        checkpoints = [codecs().decode("marks", its.data) for its in parts.get(CHECKPOINT, ())]
        if results or marks or checkpoints:
            self._commit([its for its in results if isinstance(its, Result)], marks, checkpoints)
        for its in parts.get(FRONTIER, ()):
            self._tell(its.time_us)

    def close(self) -> None:
        """Give up the producers."""
        self._committer.close()
        if self._letters is not None:
            self._letters.close()

    def _open(self) -> tuple[LogCommitter, Committed]:
        name = f"skyband.spark.{self._key[0]}"
        committer = LogCommitter(self._log, SystemClock(), self._partition, transactional_id=name)
        return committer, committer.load()

    def _commit(
        self, results: Sequence[Result], marks: Mapping[str, Mark | None], checkpoints: Sequence[object]
    ) -> None:
        for attempt in range(_ATTEMPTS):
            commit = self._new(results, marks, checkpoints)
            try:
                self._committer.commit(commit)
                break
            except TakenOverError:
                # Who was shut out must not shut out in turn.
                raise
            except LogError:
                if attempt + 1 == _ATTEMPTS:
                    raise
                self._committer.close()
                self._committer, self._stored = self._open()
        self.results += len(commit.results)
        for key, mark in commit.marks.items():
            self._stored.marks.pop(key, None)
            if mark is not None:
                self._stored.marks[key] = mark
        for owner, checkpoint in commit.checkpoints.items():
            self._stored.checkpoints.pop(owner, None)
            if checkpoint is not None:
                self._stored.checkpoints[owner] = checkpoint

    def _new(
        self, results: Sequence[Result], marks: Mapping[str, Mark | None], checkpoints: Sequence[object]
    ) -> Commit:
        """Return what of all this is not written yet, and what of older generations is to be forgotten."""
        stored = self._stored.marks
        changed: dict[MarkKey, Mark | None] = {}
        for uid, mark in marks.items():
            before = stored.get((*self._key, uid))
            if mark != before and (mark is None or before is None or mark.window_end >= before.window_end):
                changed[*self._key, uid] = mark
        changed |= {key: None for key in stored if key[0] == self._key[0] and key[1] < self._key[1]}
        owners: dict[GroupKey, MergeCheckpoint | None] = {
            key: None for key in self._stored.checkpoints if key[0] == self._key[0] and key[1] < self._key[1]
        }
        own = self._stored.checkpoints.get(self._key)
        for checkpoint in checkpoints:
            # A fanout's own checkpoint says where it goes on, should it get the group back.
            if isinstance(checkpoint, MergeCheckpoint) and (own is None or NO_PARTITION in own.needed):
                owners[self._key] = checkpoint
        new = [its for its in results if its.window_end > self._end_of(its.uid)]
        return Commit(new, changed, owners)

    def _end_of(self, uid: str) -> int:
        mark = self._stored.marks.get((*self._key, uid))
        return MIN_TIME_US if mark is None else mark.window_end

    def _tell(self, frontier_us: int) -> None:
        self.frontier_us = frontier_us
        if frontier_us > self._told_us:
            self._committer.tell({self._key: frontier_us})
            self._told_us = frontier_us

    def _write_letters(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        if self._letters is None:
            self._letters = self._log.producer()
        partitions = self._log.partitions(_DEAD_LETTERS)
        for message in messages:
            letter = codecs().decode(_DEAD_LETTERS, message.data)
            if isinstance(letter, DeadLetter):
                partition = letter.partition % partitions
                now_us = time.time_ns() // 1_000
                self._letters.send(_DEAD_LETTERS, partition, letter, key=letter.stream.encode(), timestamp_us=now_us)
        self._letters.flush()


def _marks(messages: Iterable[Message]) -> dict[str, Mark | None]:
    marks: dict[str, Mark | None] = {}
    for message in messages:
        parts = unpack(message.data)
        for uid, data in zip(parts[::2], parts[1::2], strict=True):
            mark = codecs().decode("marks", data or None)
            marks[uid.decode()] = mark if isinstance(mark, Mark) else None
    return marks
