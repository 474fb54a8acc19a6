"""Readers of Kafka: a Consumer of the record log on librdkafka."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from services.runtime.kafka_admin import KafkaAdmin
from services.runtime.kafka_bulk import Chunk, Event, KafkaBulk
from services.runtime.kafka_clients import new_consumer
from services.runtime.kafka_commits import store_commits
from services.runtime.kafka_errors import MISSING, OUT_OF_RANGE, UNREACHABLE, Doing, cause_of, explain, lost_offset
from services.runtime.kafka_names import KafkaNames
from services.runtime.kafka_reach import KafkaReach
from services.runtime.kafka_records import RecordReader
from services.runtime.kafka_watch import TopicWatch
from services.runtime.settings import KafkaSettings
from skyband.errors import LogError
from skyband.log.note_length import check_note
from skyband.log.record_log import Committed, Member, Position, Record

__all__ = ["KafkaConsumer"]

_MOST_MESSAGES = 1_000_000
_MOST_IN_BULK = 50_000
# While a reader waits for the rows of sources, it looks so often for all else.
_LOOK_EVERY_S = 0.02


class KafkaConsumer:
    """Reads partitions in offset order, committed transactions only; one thread owns it.

    Words: the *cursor* of a partition is the offset behind the last record that a poll has returned; it, not a position
    of librdkafka's, is where reading goes on. A *fault* is an error after which this consumer is of no use: its poll
    raises it again and again; discard it then.

    Initially it reads nothing, and is not connected; `assign` and `subscribe` connect.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        admin: KafkaAdmin,
        reach: KafkaReach,
        names: KafkaNames,
        reader: RecordReader,
        group: str | None,
    ) -> None:
        self._settings = settings
        self._admin = admin
        self._reach = reach
        self._names = names
        self._reader = reader
        self._group = group
        self._consumer: Consumer | None = None
        self._bulk: KafkaBulk | None = None
        self._member: Member | None = None
        self._fault: LogError | None = None
        self._watch = TopicWatch(admin, settings.metadata_refresh_s)
        self._released: set[Position] = set()
        self._closed = False

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        """Read exactly these partitions from these offsets (None: the committed one).

        Raises LogError for a topic or partition that does not exist, and for one without a commit. An offset that is
        not there to be read is found out by `poll`.
        """
        self._check()
        facts = self._admin.check_positions(list(positions))
        starts = self._starts(positions)
        if self._member is not None:
            self._disconnect()
        self._open([at.topic for at in positions], is_member=False)
        self._watch.begin(facts)
        self._reader.begin(list(facts))
        self._reader.cursors.update(starts)
        self._take_over(list(starts))
        self._call(
            "read these partitions",
            lambda c: c.assign([self._part(position, offset) for position, offset in starts.items()]),
        )

    def subscribe(self, topics: Sequence[str], member: Member) -> None:
        """Share the partitions of these topics, also those to come, with the other members of the group.

        The member's callbacks run inside `poll`; `close` does not call them. Raises LogError without a group, and for
        a topic that does not exist.
        """
        self._check()
        self._own_group("share partitions")
        facts = {topic: self._admin.facts(topic) for topic in topics}
        self._disconnect()
        self._open([topic for topic, fact in facts.items() for _ in range(fact.partitions)], is_member=True)
        self._watch.begin(facts)
        self._reader.begin(topics)
        self._member = member
        self._call(
            "join the group",
            lambda c: c.subscribe(
                [self._names.topic(topic) for topic in topics],
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            ),
        )

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """Return up to `max_records` records, waiting at most `timeout_s` for the first; 0 never waits.

        A chunk of a source topic counts as so many records as it holds. Raises LogError: for a fault; if Kafka has been
        out of reach for too long (polls may go on); if a record or a schema cannot be read (the next poll tries again).
        """
        self._check()
        give_up_s = time.monotonic() + timeout_s
        most = min(max_records, _MOST_MESSAGES)
        while True:
            records = self._read(most, timeout_s)
            self._fault = self._watch.look() or self._fault
            if not records:
                self._raise_fault()
                self._reach.check()
            timeout_s = give_up_s - time.monotonic()
            # There may have been news of partitions only, such as their ends.
            if records or timeout_s <= 0 or self._consumer is None:
                return records

    def pause(self, positions: Sequence[Position]) -> None:
        """Stop delivering these partitions until `resume`."""
        self._check_assigned(positions)
        self._call("pause partitions", lambda c: c.pause([self._part(position) for position in positions]))

    def resume(self, positions: Sequence[Position]) -> None:
        """Deliver these partitions again."""
        self._check_assigned(positions)
        self._call("resume partitions", lambda c: c.resume([self._part(position) for position in positions]))

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the lowest offset of each partition that can be read; see `end_offsets`."""
        return self._admin.begin_offsets(positions)

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the high watermark of each partition, asked for now, in one request for all of them (1–2 ms).

        Not what librdkafka remembers from its last fetch: that stands still while a partition is paused, its queue is
        full or its broker is away, and who takes an old end for the end would take a source for idle.
        While Kafka is out of reach it waits, up to `unreachable_after_s`; then it raises LogError.
        """
        return self._admin.end_offsets(positions)

    def offsets_at(self, positions: Sequence[Position], time_us: int) -> dict[Position, int]:
        """Return the first offset of each partition whose record is not older than a time, or its end."""
        return self._admin.offsets_at(positions, time_us)

    def committed(self, positions: Sequence[Position]) -> dict[Position, Committed]:
        """Return what this reader's group has stored of each partition, if anything."""
        return self._admin.committed(self._own_group("look for commits"), positions)

    def commit(self, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None) -> None:
        """Store next offsets for this reader's group, each with its note, and wait until they are stored.

        Raises CommitRefusedError if the group has shared its partitions out anew and this member does not know yet
        (nothing is stored; poll), LogError for all else.
        """
        self._check()
        group = self._own_group("commit")
        notes = notes or {}
        for position, note in notes.items():
            check_note(group, position, note)
        if offsets:
            self._open([], is_member=False)
            parts = [self._part(p, offset, notes.get(p, "")) for p, offset in offsets.items()]
            store_commits(self._native, parts, self._settings.unreachable_after_s, self._doing("commit"))
            self._reach.well()

    def close(self) -> None:
        """Leave the group, whose commits stay. A member with a stable name keeps its partitions for a while."""
        self._closed = True
        self._disconnect()

    def __del__(self) -> None:
        # A member that is given up without being closed can make librdkafka wait for its own end for ever.
        with suppress(Exception):
            self._disconnect()

    # Messages and faults

    def _read(self, most: int, timeout_s: float) -> list[Record]:
        """Return the records of what is there, else wait for something; take in the events that come along."""
        messages = self._consume(most, timeout_s if self._bulk is None else 0.0)
        chunks: list[Chunk] = []
        events: list[Event] = []
        if self._bulk is not None:
            chunks, events = self._bulk.take(most, 0.0 if messages else min(timeout_s, _LOOK_EVERY_S))
        good = messages
        if any(map(Message.error, messages)):
            good = [message for message in messages if message.error() is None]
            events += [self._event(message, error) for message in messages if (error := message.error()) is not None]
        try:
            records = self._reader.read(good, chunks)
        except BaseException:
            self._go_back({self._position(message) for message in good} | {self._at(chunk) for chunk in chunks})
            raise
        if good or chunks:
            self._reach.well()
        for event in events:
            self._take(event, records)
        return records

    def _consume(self, most: int, timeout_s: float) -> list[Message]:
        """Return what is there, else wait for one message and return it with those that came along."""
        if self._consumer is None:
            return []
        try:
            messages = self._consumer.consume(most, 0.0)
            if not messages and timeout_s > 0:
                messages = self._consumer.consume(1, timeout_s)
                if messages and most > 1:
                    self._released.clear()
                    more = self._consumer.consume(most - 1, 0.0)
                    if self._released:
                        # Given up, and perhaps taken again from elsewhere, since this message came.
                        messages = [m for m in messages if m.topic() is None or self._position(m) not in self._released]
                    messages += more
        except (KafkaException, SystemError) as error:
            self._fault = explain(cause_of(error), self._doing("read"))
            raise self._fault from error
        return messages

    def _take(self, event: Event, records: list[Record]) -> None:
        """Take in an event of a partition or of the whole consumer; faults are raised once the records are out."""
        error = event.error
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            record = self._reader.reach(self._at(event), event.offset)
            if record is not None:
                records.append(record)
        elif code in UNREACHABLE or (error.retriable() and not error.fatal()):
            self._reach.note(error)
        elif self._fault is None:
            self._fault = self._fault_of(event)

    def _fault_of(self, event: Event) -> LogError | None:
        error = event.error
        if not event.topic:
            return explain(error, self._doing("read"))
        position = self._at(event)
        if error.code() in OUT_OF_RANGE:
            at = self._reader.cursors.get(position)
            return None if at is None else lost_offset(position.topic, position.partition, at, self._kept(position))
        if error.code() in MISSING:
            # The brokers' knowledge of a new topic spreads; librdkafka says this but once.
            return None if self._admin.find(position.topic) else self._watch.gone(position.topic)
        return explain(error, self._doing("read", position.topic))

    def _kept(self, position: Position) -> tuple[int, int] | None:
        try:
            return self.begin_offsets([position])[position], self.end_offsets([position])[position]
        except LogError:
            return None

    def _go_back(self, positions: Iterable[Position]) -> None:
        """Let the next poll read these partitions from their cursors on again."""
        for position in positions:
            cursor = self._reader.cursors.get(position)
            if cursor is not None:
                part = self._part(position, cursor)
                self._call("read again", partial(Consumer.seek, partition=part))

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise type(self._fault)(*self._fault.args)

    # The group

    def _on_assign(self, _: Consumer, parts: list[TopicPartition]) -> None:
        if self._member is None or self._consumer is None:
            return
        positions = sorted(self._at(part) for part in parts)
        try:
            starts = self._member.on_assigned(positions)
            missing = next((position for position in positions if position not in starts), None)
            if missing is not None:
                raise LogError(
                    f"the member was assigned topic {missing.topic!r} partition {missing.partition} and said no offset "
                    "for it; return one for each"
                )
        except BaseException as error:
            self._fault = self._fault or LogError(f"this member could not take its partitions: {error}")
            raise
        self._reader.cursors.update({position: starts[position] for position in positions})
        self._take_over(positions)
        self._consumer.incremental_assign([self._part(position, starts[position]) for position in positions])

    def _on_revoke(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        self._release(consumer, parts, lost=False)

    def _on_lost(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        self._release(consumer, parts, lost=True)

    def _release(self, consumer: Consumer, parts: list[TopicPartition], *, lost: bool) -> None:
        positions = sorted(self._at(part) for part in parts)
        try:
            if self._member is not None:
                self._member.on_revoked(positions, lost=lost)
        except BaseException as error:
            self._fault = self._fault or LogError(f"this member could not give up its partitions: {error}")
            raise
        finally:
            self._reader.forget(positions)
            self._released.update(positions)
            consumer.incremental_unassign(parts)

    # The connection

    def _take_over(self, positions: Sequence[Position]) -> None:
        """Have the rows of sources brought in chunks; to be called before the partitions are assigned."""
        for position in positions:
            if self._reader.is_bulk(position.topic):
                self._bulk = self._bulk or KafkaBulk(self._native, _MOST_IN_BULK)
                self._bulk.add(self._names.topic(position.topic), position.partition)

    def _open(self, topics: Sequence[str], *, is_member: bool) -> None:
        """Make librdkafka's consumer, unless there is one; `topics` names a topic once for each partition of it."""
        is_bulk, group = any(map(self._reader.is_bulk, topics)), self._group
        self._consumer = self._consumer or new_consumer(
            self._settings, self._names, self._reach.note, group, is_member, partitions=len(topics), is_bulk=is_bulk
        )

    @property
    def _native(self) -> Consumer:
        if self._consumer is None:
            raise LogError("nothing is assigned to this consumer; assign partitions, or subscribe, before")
        return self._consumer

    def _disconnect(self) -> None:
        consumer, self._consumer, self._member = self._consumer, None, None
        bulk, self._bulk = self._bulk, None
        if bulk is not None:
            bulk.close()
        if consumer is not None:
            consumer.close()

    def _call(self, what: str, call: Callable[[Consumer], object]) -> None:
        try:
            call(self._native)
        except KafkaException as error:
            raise explain(cause_of(error), self._doing(what)) from error

    def _starts(self, positions: Mapping[Position, int | None]) -> dict[Position, int]:
        starts = {position: offset for position, offset in positions.items() if offset is not None}
        unknown = [position for position, offset in positions.items() if offset is None]
        if unknown:
            stored = self.committed(unknown)
            for position in unknown:
                if position not in stored:
                    raise LogError(
                        f"group {self._group!r} has committed no offset of topic {position.topic!r} partition "
                        f"{position.partition}; assign one"
                    )
                starts[position] = stored[position].offset
        return starts

    # Checks and names

    def _check(self) -> None:
        if self._closed:
            raise LogError("the consumer is closed; ask the log for a new one")

    def _check_assigned(self, positions: Sequence[Position]) -> None:
        self._check()
        for position in positions:
            if position not in self._reader.cursors:
                raise LogError(
                    f"topic {position.topic!r} partition {position.partition} is not assigned to this consumer; "
                    "assign it before"
                )

    def _own_group(self, purpose: str) -> str:
        if self._group is None:
            raise LogError(f"a consumer without a group cannot {purpose}; ask the log for a consumer of a group")
        return self._group

    def _doing(self, what: str, topic: str | None = None) -> Doing:
        return Doing(what, self._settings.bootstrap, topic=topic, group=self._group, member=self._settings.member)

    def _part(self, position: Position, offset: int = OFFSET_INVALID, note: str = "") -> TopicPartition:
        return TopicPartition(self._names.topic(position.topic), position.partition, offset, note)

    def _at(self, part: TopicPartition | Chunk | Event) -> Position:
        return Position(self._names.topic_here(part.topic), part.partition)

    def _position(self, message: Message) -> Position:
        return Position(self._names.topic_here(message.topic() or ""), message.partition() or 0)

    @staticmethod
    def _event(message: Message, error: KafkaError) -> Event:
        return Event(message.topic() or "", message.partition() or 0, message.offset() or 0, error)
