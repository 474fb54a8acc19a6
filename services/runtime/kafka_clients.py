"""The clients of librdkafka, with the settings that correctness and speed rest on."""

import math
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from services.runtime.kafka_names import KafkaNames
from services.runtime.settings import KafkaSettings
from services.runtime.topics import MAX_MESSAGE_BYTES
from skyband.errors import LogError

__all__ = ["new_admin", "new_consumer", "new_producer"]

# librdkafka insists on a group, also of a reader that has none; nothing is ever stored for it.
_NO_GROUP = "skyband.readers"

# librdkafka needs 400 bytes for each message that waits, beside its own, and asks for one more fetch of a partition
# while fewer wait of it than these. With its defaults, 16 partitions of 25-byte records take 250 MB; with much less, a
# round trip brings one partition's messages only, and the reader waits.
_MESSAGES_AHEAD, _FEWEST_AHEAD = 100_000, 1_000
_BYTES_AHEAD, _LEAST_FETCHED, _MOST_FETCHED = 4 << 20, 64 << 10, 1 << 20

# Sources are written a few records at a time. With an answer for each of these, a broker and a reader of 16 partitions
# spend a core on 20,000 records a second; so brokers gather what comes for a moment, unless it is much.
_BULK_WORTH_AN_ANSWER, _BULK_WAIT_S = 64 << 10, 0.02

OnError = Callable[[KafkaError], None]


def new_admin(settings: KafkaSettings, on_error: OnError) -> AdminClient:
    """Return a client for questions to the cluster."""
    config: dict[str, Any] = {
        "topic.metadata.refresh.interval.ms": int(settings.metadata_refresh_s * 1000),
        **settings.client(),
        "error_cb": on_error,
    }
    try:
        return AdminClient(config)
    except KafkaException as error:
        raise _wrong(error) from error


def new_consumer(
    settings: KafkaSettings,
    names: KafkaNames,
    on_error: OnError,
    group: str | None,
    is_member: bool,
    *,
    partitions: int,
    is_bulk: bool,
) -> Consumer:
    """Return a consumer: a member of the group, with the process's stable name if it has one, or for itself.

    `partitions`: how many it may come to read, which share what is fetched ahead;
    `is_bulk`: whether they are sources, of many small records.
    """
    config: dict[str, Any] = {
        "queued.max.messages.kbytes": settings.consumer_queue_bytes // 1024,
        "queued.min.messages": max(_FEWEST_AHEAD, _MESSAGES_AHEAD // max(1, partitions)),
        "fetch.message.max.bytes": max(_LEAST_FETCHED, min(_MOST_FETCHED, _BYTES_AHEAD // max(1, partitions))),
        "fetch.min.bytes": _BULK_WORTH_AN_ANSWER if is_bulk else 1,
        "fetch.wait.max.ms": int(min(settings.fetch_wait_s, _BULK_WAIT_S if is_bulk else math.inf) * 1000),
        # By default librdkafka waits 1 s once its queue is full, in which a fast reader has long emptied it.
        "fetch.queue.backoff.ms": 10,
        "topic.metadata.refresh.interval.ms": int(settings.metadata_refresh_s * 1000),
        # Members learn from it that partitions move; librdkafka's 3 s make a move of two steps take 6 s and more.
        "heartbeat.interval.ms": 1_000,
        "session.timeout.ms": int(settings.session_timeout_s * 1000),
        "max.poll.interval.ms": int(settings.max_poll_interval_s * 1000),
        **settings.client(),
        # What follows is not to be chosen.
        "group.id": names.group(group or _NO_GROUP),
        "partition.assignment.strategy": "cooperative-sticky",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "error_cb": on_error,
    }
    if is_member and settings.member:
        config["group.instance.id"] = settings.member
    try:
        return Consumer(config)
    except KafkaException as error:
        raise _wrong(error) from error


def new_producer(
    settings: KafkaSettings,
    names: KafkaNames,
    on_error: OnError,
    on_delivery: Callable[[KafkaError | None, Message], None],
    *,
    transactional_id: str | None,
) -> Producer:
    """Return an idempotent producer that tells failed deliveries only; with an id it is not initialised yet."""
    timeout_s = settings.delivery_timeout_s
    config: dict[str, Any] = {
        "linger.ms": settings.linger_s * 1000,
        "compression.type": "lz4",
        "message.max.bytes": MAX_MESSAGE_BYTES,
        "queue.buffering.max.kbytes": settings.producer_queue_bytes // 1024,
        "queue.buffering.max.messages": 100_000,
        "topic.metadata.refresh.interval.ms": int(settings.metadata_refresh_s * 1000),
        **settings.client(),
        # What follows is not to be chosen.
        "enable.idempotence": True,
        "acks": "all",
        "delivery.report.only.error": True,
        "on_delivery": on_delivery,
        "error_cb": on_error,
    }
    if transactional_id is not None:
        # Kafka wants a record to fail within its transaction.
        timeout_s = min(timeout_s, settings.transaction_timeout_s)
        config["transactional.id"] = names.group(transactional_id)
        config["transaction.timeout.ms"] = int(settings.transaction_timeout_s * 1000)
    config["delivery.timeout.ms"] = int(timeout_s * 1000)
    try:
        return Producer(config)
    except KafkaException as error:
        raise _wrong(error) from error


def _wrong(error: KafkaException) -> LogError:
    return LogError(f"Kafka's client cannot be set up so: {error.args[0].str()}; correct the SKYBAND_KAFKA_… settings")
