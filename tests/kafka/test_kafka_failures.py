"""What fails on a real Kafka says what, where, and what to do; what passes is waited for, within bounds."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.runtime.embedded import EmbeddedKafka
from services.runtime.embedded.ports import free_ports
from services.runtime.kafka_log import KafkaLog
from skyband.errors import LogError
from skyband.log.record_log import Position
from tests.kafka.logs import delete_records, delete_topic, log_at, moments, read_to_end, read_until, values

pytestmark = pytest.mark.kafka


USER = {"sasl_username": "bob", "sasl_password": "secret"}


@pytest.fixture
def log(kafka: EmbeddedKafka, topic_name: str) -> KafkaLog:
    log = log_at(kafka.bootstrap, metadata_refresh_s=0.2)
    log.create_topic(topic_name, 2)
    return log


@pytest.fixture(scope="module")
def stoppable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    (port,) = free_ports(1)
    with EmbeddedKafka(tmp_path_factory.mktemp("stoppable"), port=port) as broker:
        yield broker


@pytest.fixture
def own_kafka(stoppable: EmbeddedKafka) -> EmbeddedKafka:
    """A broker that a test may stop, and start at the same address again."""
    if not stoppable.is_running():
        stoppable.start()
    return stoppable


def send(log: KafkaLog, topic: str, *sent: object, partition: int = 0) -> None:
    producer = log.producer()
    for value in sent:
        producer.send(topic, partition, value)
    producer.close()


# What is not there (any more) ────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_assigned_must_exist(log: KafkaLog, topic_name: str) -> None:
    with pytest.raises(LogError, match=f"topic '{topic_name}' has partitions 0 to 1, not 2; it was made anew with few"):
        log.consumer().assign({Position(topic_name, 2): 0})
    with pytest.raises(LogError, match=f"topic '{topic_name}x' does not exist; create it before, or correct the name"):
        log.consumer().assign({Position(topic_name + "x", 0): 0})


def test_an_assigned_topic_that_is_deleted_is_named_from_then_on(
    log: KafkaLog, topic_name: str, kafka: EmbeddedKafka
) -> None:
    send(log, topic_name, "a")
    consumer = log.consumer()
    consumer.assign({Position(topic_name, 0): 0})
    assert values(read_until(consumer, bool)) == ["a"]
    delete_topic(kafka.bootstrap, topic_name)
    for _ in range(2):
        with pytest.raises(LogError, match=f"topic '{topic_name}' was deleted while it was read"):
            read_until(consumer, lambda records: False)
    consumer.close()


def test_an_assigned_topic_that_is_made_anew_is_named(log: KafkaLog, topic_name: str, kafka: EmbeddedKafka) -> None:
    consumer = log.consumer()
    consumer.assign({Position(topic_name, 0): 0})
    consumer.poll(1, 0.1)
    delete_topic(kafka.bootstrap, topic_name)
    for _ in moments():
        if log.is_missing(topic_name):
            break
    log.create_topic(topic_name, 2)
    with pytest.raises(LogError, match=f"topic '{topic_name}' was deleted"):
        read_until(consumer, lambda records: False)
    consumer.close()


def test_offsets_that_were_deleted_are_named_with_what_is_left(
    log: KafkaLog, topic_name: str, kafka: EmbeddedKafka
) -> None:
    send(log, topic_name, *range(5))
    at = Position(topic_name, 0)
    delete_records(kafka.bootstrap, at, 3)
    consumer = log.consumer()
    consumer.assign({at: 1, Position(topic_name, 1): 0})
    words = f"offset 1 of topic '{topic_name}' partition 0 was deleted before it was read, the lowest left is 3; regen"
    for _ in range(2):
        with pytest.raises(LogError, match=words):
            read_until(consumer, lambda records: False)
    assert values(read_to_end(log.consumer(), {at: 3})) == [3, 4]


def test_offsets_that_were_deleted_under_a_reader_are_named(
    log: KafkaLog, topic_name: str, kafka: EmbeddedKafka
) -> None:
    at = Position(topic_name, 0)
    consumer = log.consumer()
    consumer.assign({at: 0})
    consumer.pause([at])
    send(log, topic_name, *range(5))
    delete_records(kafka.bootstrap, at, 4)
    consumer.resume([at])
    with pytest.raises(LogError, match=f"offset 0 of topic '{topic_name}' partition 0 was deleted before it was read"):
        read_until(consumer, lambda records: False)


def test_offsets_beyond_the_end_are_named(log: KafkaLog, topic_name: str) -> None:
    send(log, topic_name, "a")
    consumer = log.consumer()
    consumer.assign({Position(topic_name, 0): 7})
    with pytest.raises(LogError, match=f"offset 7 of topic '{topic_name}' partition 0 is beyond its end 1: the topic"):
        read_until(consumer, lambda records: False)


# Who cannot get in ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_wrong_port_is_named_with_what_to_do() -> None:
    (port,) = free_ports(1)
    log = log_at(f"127.0.0.1:{port}", request_timeout_s=0.5, unreachable_after_s=0.5)
    words = rf"cannot reach Kafka at 127\.0\.0\.1:{port} \(.*Connection refused.*\)\. Is it running\? `skyband up`"
    for call in (
        lambda: log.partitions("results"),
        lambda: log.create_topic("results", 1),
        lambda: log.consumer().end_offsets([Position("results", 0)]),
        lambda: log.producer("skyband.control"),
    ):
        with pytest.raises(LogError, match=words):
            call()
    assert log.trouble is not None
    assert "Is it running?" in log.trouble


def test_a_host_that_does_not_exist_is_named() -> None:
    log = log_at("no-such-host.invalid:9092", request_timeout_s=1.0)
    with pytest.raises(LogError, match=r"cannot reach Kafka at no-such-host\.invalid:9092 \(.*resolve"):
        log.partitions("results")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"security_protocol": "SSL"}, "speaks plain text, not the security protocol that is set"),
        (
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_username": "u",
                "sasl_password": "p",
            },
            "speaks plain text, not the security protocol that is set",
        ),
    ],
)
def test_a_wrong_security_protocol_is_named(kafka: EmbeddedKafka, settings: dict[str, str], words: str) -> None:
    log = log_at(kafka.bootstrap, request_timeout_s=1.5, **settings)
    with pytest.raises(LogError, match=words):
        log.partitions("results")


def test_settings_that_the_client_refuses_are_named() -> None:
    with pytest.raises(LogError, match=r"Kafka's client cannot be set up so: .*socket\.timeout\.ms"):
        log_at("127.0.0.1:9092", extra={"socket.timeout.ms": "long"})


@pytest.mark.slow
def test_denied_access_and_bad_credentials_are_named(tmp_path: Path) -> None:
    port, secured = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{port},SECURED://127.0.0.1:{secured}"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="secret";'
    properties = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{free_ports(1)[0]}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secured.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    properties["controller.quorum.voters"] = "1@" + properties["listeners"].rpartition("//")[2]
    user = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "bob"}
    with EmbeddedKafka(tmp_path, port=port, properties=properties) as broker:
        log_at(broker.bootstrap).create_topic("rows", 1)
        denied = log_at(f"127.0.0.1:{secured}", sasl_password="secret", **user)
        with pytest.raises(LogError, match="denies this user access to topic 'rows'; let an administrator grant it"):
            denied.partitions("rows")
        with pytest.raises(LogError, match="denies this user access to topic 'new'"):
            denied.create_topic("new", 1)
        with pytest.raises(LogError, match="denies this user access to consumer group 'readers'"):
            denied.consumer("readers").committed([Position("rows", 0)])
        with pytest.raises(LogError, match=r"denies this user access to transactional id 'skyband\.control'"):
            denied.producer("skyband.control")
        stranger = log_at(f"127.0.0.1:{secured}", sasl_password="guessed", request_timeout_s=2.0, **user)
        with pytest.raises(LogError, match="does not accept the user and password"):
            stranger.partitions("rows")
        plain = log_at(f"127.0.0.1:{secured}", request_timeout_s=2.0)
        with pytest.raises(LogError, match=r"hangs up .*, which it does when its listener wants SSL or SASL"):
            plain.partitions("rows")


# What passes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_readers_and_writers_outlast_a_broker_that_comes_back(own_kafka: EmbeddedKafka, topic_name: str) -> None:
    log = log_at(own_kafka.bootstrap, metadata_refresh_s=0.5, request_timeout_s=1.0)
    log.create_topic(topic_name, 1)
    at = Position(topic_name, 0)
    consumer, producer, group = log.consumer(), log.producer(), log.consumer(topic_name)
    consumer.assign({at: 0})
    producer.send(topic_name, 0, "before")
    producer.flush()
    assert values(read_until(consumer, bool)) == ["before"]
    own_kafka.stop()
    for _ in moments():
        assert consumer.poll(10, 0.1) == []
        if log.trouble:
            break
    assert "cannot reach Kafka" in (log.trouble or "")
    producer.send(topic_name, 0, "while it was away")
    own_kafka.start()
    producer.flush()
    assert consumer.end_offsets([at]) == {at: 2}
    assert values(read_until(consumer, bool)) == ["while it was away"]
    group.commit({at: 2})
    for _ in moments():
        consumer.poll(10, 0.1)
        if log.trouble is None:
            break


@pytest.mark.slow
def test_a_broker_that_stays_away_is_named_by_readers_and_writers_in_time(
    own_kafka: EmbeddedKafka, topic_name: str
) -> None:
    log = log_at(
        own_kafka.bootstrap, request_timeout_s=1.0, unreachable_after_s=2.0, delivery_timeout_s=2.0, linger_s=0.0
    )
    log.create_topic(topic_name, 1)
    at = Position(topic_name, 0)
    consumer, producer, fresh = log.consumer(), log.producer(), log.producer()
    consumer.assign({at: 0})
    producer.send(topic_name, 0, "before")
    producer.flush()
    own_kafka.stop()
    with pytest.raises(LogError, match=r"cannot reach Kafka at .* Is it running"):
        read_until(consumer, lambda records: len(records) > 1)
    with pytest.raises(LogError, match=r"cannot reach Kafka at .* Is it running"):
        consumer.end_offsets([at])
    producer.send(topic_name, 0, "lost")
    with pytest.raises(LogError, match="cannot reach Kafka"):
        producer.flush()
    with pytest.raises(LogError, match="cannot reach Kafka"):
        producer.send(topic_name, 0, "not taken")
    producer.close()
    with pytest.raises(LogError, match="cannot reach Kafka"):
        fresh.send(topic_name, 0, "not taken")
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 10.0


@pytest.mark.slow
def test_what_waits_to_be_sent_is_bounded_and_a_full_queue_blocks(own_kafka: EmbeddedKafka, topic_name: str) -> None:
    log = log_at(
        own_kafka.bootstrap,
        request_timeout_s=1.0,
        delivery_timeout_s=4.0,
        producer_queue_bytes=1 << 20,
        extra={"queue.buffering.max.messages": "500"},
    )
    log.create_topic(topic_name, 1)
    producer = log.producer()
    native = producer._producer
    assert native is not None
    peak = 0
    for i in range(5_000):
        producer.send(topic_name, 0, i)
        peak = max(peak, len(native))
    producer.flush()
    assert 0 < peak <= 500
    assert values(read_to_end(log.consumer(), {Position(topic_name, 0): 0})) == list(range(5_000))
    own_kafka.stop()
    began = time.monotonic()
    sent = 0

    def fill() -> None:
        nonlocal sent
        for _ in moments():
            producer.send(topic_name, 0, sent)
            sent += 1

    with pytest.raises(LogError, match="cannot reach Kafka"):
        fill()
    # The queue filled up, then the send waited for the first record to be given up.
    assert sent <= 500
    assert 3.0 < time.monotonic() - began < 15.0
    producer.close()
