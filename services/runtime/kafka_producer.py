"""Writers to Kafka: a Producer of the record log on librdkafka."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from services.runtime.kafka_admin import KafkaAdmin
from services.runtime.kafka_clients import new_producer
from services.runtime.kafka_errors import UNREACHABLE, Doing, cause_of, explain, too_few_partitions
from services.runtime.kafka_names import KafkaNames
from services.runtime.kafka_reach import KafkaReach
from services.runtime.kafka_records import ValueCodecs
from services.runtime.settings import KafkaSettings
from skyband.errors import LogError

__all__ = ["KafkaProducer"]

_Value = TypeVar("_Value")

_FLUSH_S = 0.2
_ROOM_S = 0.05


class KafkaProducer:
    """Appends records, each once and in order; one thread owns it.

    What is sent waits in a bounded queue; `send` blocks while it is full. A record that is not stored within
    `delivery_timeout_s` makes the producer *broken*, as does an end of a transaction that fails: every later call
    raises what went wrong. What happened to the records that waited then is unknown: discard the producer.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        admin: KafkaAdmin,
        reach: KafkaReach,
        names: KafkaNames,
        codecs: ValueCodecs,
        transactional_id: str | None,
    ) -> None:
        self._settings = settings
        self._admin = admin
        self._reach = reach
        self._names = names
        self._codecs = codecs
        self._transactional_id = transactional_id
        self._partitions: dict[str, int] = {}
        self._broken: LogError | None = None
        self._in_transaction = False
        producer = new_producer(settings, names, reach.note, self._on_delivery, transactional_id=transactional_id)
        self._producer: Producer | None = producer
        if transactional_id is not None:
            self._take_over(producer)

    def send(
        self,
        topic: str,
        partition: int,
        value: object,
        *,
        key: bytes | None = None,
        timestamp_us: int = 0,
        span: int = 1,
    ) -> None:
        """Append a record (`timestamp_us` 0: now; kept in milliseconds); blocks while the queue is full.

        Raises LogError if an earlier record was not stored, the topic or partition does not exist, or the codec does
        not know the value.
        """
        producer = self._usable()
        if span != 1:
            raise LogError(f"a record for topic {topic!r} spans {span} offsets; on Kafka each has one")
        if self._transactional_id is not None and not self._in_transaction:
            raise LogError(
                f"the producer of transactional id {self._transactional_id!r} sends inside transactions only; begin one"
            )
        self._check_partition(topic, partition)
        data = self._codecs.encode(topic, value)
        name = self._names.topic(topic)
        while True:
            try:
                producer.produce(name, data, key, partition, timestamp=timestamp_us // 1_000)
                break
            except BufferError:
                self._poll(producer, _ROOM_S)
            except (KafkaException, SystemError) as error:
                raise self._break(error, "send", topic) from error
        self._poll(producer, 0.0)

    def flush(self) -> None:
        """Return once everything sent is stored. Raises LogError if something is not, within its delivery timeout."""
        producer = self._usable()
        while self._guard("flush", lambda: producer.flush(_FLUSH_S)):
            self._usable()
        self._usable()
        self._reach.well()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make what is sent in the block visible at once at its end, or, if the block raises, never.

        Raises LogError if the end does not succeed; its outcome is then unknown and the producer broken.
        """
        producer = self._usable()
        if self._transactional_id is None:
            raise LogError("the producer has no transactional id; ask the log for one with an id")
        if self._in_transaction:
            raise LogError("a transaction is open already; end it before the next")
        self._guard("begin a transaction", producer.begin_transaction)
        self._in_transaction = True
        try:
            yield
        except BaseException:
            self._in_transaction = False
            self._abort(producer)
            raise
        self._in_transaction = False
        self._usable()
        self._guard("commit a transaction", lambda: producer.commit_transaction(self._settings.transaction_timeout_s))
        self._reach.well()

    def close(self) -> None:
        """Flush, unless broken, and give up the producer. Raises LogError if something is not stored."""
        producer = self._producer
        try:
            if producer is not None and self._broken is None:
                self.flush()
        finally:
            self._producer = None
            if producer is not None:
                # What a broken producer still holds would keep its end waiting.
                producer.purge()

    def _take_over(self, producer: Producer) -> None:
        """Shut out whoever has the same transactional id, and end what it left open."""
        try:
            self._guard("begin to write", lambda: producer.init_transactions(self._settings.unreachable_after_s))
        except LogError:
            self._producer = None
            producer.purge()
            raise

    def _check_partition(self, topic: str, partition: int) -> None:
        """Ask, since Kafka would queue the record until it times out, or make the topic."""
        if partition >= self._partitions.get(topic, 0):
            self._partitions[topic] = self._admin.facts(topic).partitions
        if not 0 <= partition < self._partitions[topic]:
            raise too_few_partitions(topic, partition, self._partitions[topic])

    def _poll(self, producer: Producer, timeout_s: float) -> None:
        self._guard("send", lambda: producer.poll(timeout_s))
        if self._broken is not None:
            raise self._again(self._broken)

    def _abort(self, producer: Producer) -> None:
        if self._broken is not None:
            return
        try:
            self._guard("abort a transaction", lambda: producer.abort_transaction(self._settings.transaction_timeout_s))
        except LogError:
            return  # it is broken now, and says so at its next use; what made the block fail goes first

    def _guard(self, what: str, call: Callable[[], _Value]) -> _Value:
        try:
            return call()
        except (KafkaException, SystemError) as error:
            raise self._break(error, what) from error

    def _break(self, error: BaseException, what: str, topic: str | None = None) -> LogError:
        cause = cause_of(error)
        if cause.code() in (KafkaError._FATAL, KafkaError._INCONSISTENT) and self._broken is not None:
            return self._again(self._broken)
        self._broken = self._explained(cause, what, topic)
        return self._broken

    def _explained(self, cause: KafkaError, what: str, topic: str | None = None) -> LogError:
        if cause.code() in UNREACHABLE and self._reach.detail:
            cause = KafkaError(KafkaError._TRANSPORT, self._reach.detail)
        return explain(
            cause, Doing(what, self._settings.bootstrap, topic=topic, transactional_id=self._transactional_id)
        )

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        """Remember the first failed delivery. librdkafka may call this with an exception pending: see `cause_of`."""
        if error is None or self._broken is not None or error.code() == KafkaError._PURGE_QUEUE:
            return
        self._broken = self._explained(error, "store a record", self._names.topic_here(message.topic() or ""))

    def _usable(self) -> Producer:
        if self._producer is None:
            raise LogError("the producer is closed; ask the log for a new one")
        if self._broken is not None:
            raise self._again(self._broken)
        return self._producer

    @staticmethod
    def _again(error: LogError) -> LogError:
        return type(error)(*error.args)
