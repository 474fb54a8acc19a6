"""Records to source topics as any good producer writes them: keyed, each once, in order, compressed, bounded."""

import time

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from services.runtime.kafka_errors import Doing, explain
from services.runtime.kafka_reach import KafkaReach
from services.runtime.settings import KafkaSettings
from skyband.errors import LogError

__all__ = ["Sender"]

_ROOM_S = 0.05
_FLUSH_S = 0.2
# Callbacks are served each so many records: one call costs as much as sending one.
_SERVED_EACH = 500


class Sender:
    """Sends records; one thread owns it.

    A key lies in the partition in which a Java client puts it (murmur2). Records carry the time at which they are sent,
    never an event time: rows far ahead of that are rejected. What waits to be stored is bounded: `write` blocks while
    it is full. A record that cannot be stored makes every later call raise LogError.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._reach = KafkaReach(settings.bootstrap, settings.unreachable_after_s)
        self._failed: LogError | None = None
        self._written = 0
        config: dict[str, object] = {
            "linger.ms": 5,
            "compression.type": "lz4",
            "queue.buffering.max.kbytes": settings.producer_queue_bytes // 1024,
            "queue.buffering.max.messages": 100_000,
            "delivery.timeout.ms": int(settings.delivery_timeout_s * 1000),
            **settings.client(),
            # What follows is not to be chosen.
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "acks": "all",
            "delivery.report.only.error": True,
            "on_delivery": self._on_delivery,
            "error_cb": self._reach.note,
        }
        try:
            self._producer = Producer(config)
        except KafkaException as error:
            raise LogError(
                f"Kafka's client cannot be set up so: {error.args[0].str()}; correct the SKYBAND_KAFKA_… settings"
            ) from error

    def write(self, topic: str, key: bytes, value: bytes) -> None:
        """Append a record; blocks while too much waits to be stored.

        Raises LogError if an earlier record could not be stored, or Kafka has been out of reach for too long.
        """
        self._written += 1
        if self._written % _SERVED_EACH == 0:
            self.serve(0.0)
        while True:
            try:
                self._producer.produce(topic, value, key)
            except BufferError:
                self.serve(_ROOM_S)
            except KafkaException as error:
                raise explain(error.args[0], self._doing(topic)) from error
            else:
                return

    def serve(self, timeout_s: float) -> None:
        """Take in what became of records, waiting at most `timeout_s` for news. Raises as `write`."""
        self._producer.poll(timeout_s)
        if self._failed is not None:
            raise self._failed
        self._reach.check()

    def finish(self) -> int:
        """Wait until all is stored, and return how many records are not. Raises nothing."""
        give_up_s = time.monotonic() + self._settings.delivery_timeout_s
        while len(self._producer) and self._failed is None and time.monotonic() < give_up_s:
            self._producer.flush(_FLUSH_S)
        return len(self._producer) + (self._failed is not None)

    @property
    def failure(self) -> LogError | None:
        """Why a record was not stored, if one was not."""
        return self._failed

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failed is None:
            self._failed = explain(error, self._doing(message.topic()))

    def _doing(self, topic: str | None) -> Doing:
        return Doing("store a record", self._settings.bootstrap, topic=topic)
