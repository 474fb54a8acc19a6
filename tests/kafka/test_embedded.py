"""The embedded Kafka: it starts, keeps what it was given, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from services.runtime.embedded import EmbeddedKafka, broker
from services.runtime.embedded.ports import free_ports
from skyband.errors import LogError

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[2]
STARTED_BY_A_PROCESS = """
import sys, pathlib
from services.runtime.embedded import EmbeddedKafka
kafka = EmbeddedKafka(pathlib.Path(sys.argv[1]))
kafka.start()
print(kafka.pid, flush=True)
sys.stdin.read()
"""


def create(kafka: EmbeddedKafka, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 1)])[topic].result()


def produce(kafka: EmbeddedKafka, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all"})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def read(kafka: EmbeddedKafka, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, 30)
    consumer.close()
    return [message.value() for message in messages]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_started_broker_answers_and_keeps_what_it_is_given(kafka: EmbeddedKafka, topic_name: str) -> None:
    create(kafka, topic_name)
    produce(kafka, topic_name, b"one")
    assert read(kafka, topic_name, 1) == [b"one"]


def test_it_listens_on_this_machine_alone(kafka: EmbeddedKafka) -> None:
    sockets = psutil.Process(kafka.pid).net_connections("tcp")
    assert {each.laddr.ip.removeprefix("::ffff:") for each in sockets if each.status == "LISTEN"} == {"127.0.0.1"}
    brokers = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).brokers.values()
    assert [f"{each.host}:{each.port}" for each in brokers] == [kafka.bootstrap]


def test_a_topic_is_not_made_by_asking_for_it(kafka: EmbeddedKafka, topic_name: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "allow.auto.create.topics": True})
    asked = admin.list_topics(topic_name, timeout=10).topics[topic_name]
    assert asked.error is not None
    assert asked.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic_name not in admin.list_topics(timeout=10).topics


def test_transactions_and_groups_work_on_one_node(kafka: EmbeddedKafka, topic_name: str) -> None:
    create(kafka, topic_name)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic_name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic_name, b"committed")
    producer.commit_transaction(30)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic_name, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic_name])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert message.value() == b"committed"


def test_a_restart_on_the_same_folder_is_the_same_cluster_with_the_same_records(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path) as first:
        create(first, "kept")
        produce(first, "kept", b"before the stop")
        cluster = AdminClient({"bootstrap.servers": first.bootstrap}).list_topics(timeout=10).cluster_id
        pid = first.pid
    assert not is_alive(pid)
    (port,) = free_ports(1)
    second = EmbeddedKafka(tmp_path, port=port)
    second.start()
    assert second.bootstrap == f"127.0.0.1:{port}"
    assert AdminClient({"bootstrap.servers": second.bootstrap}).list_topics(timeout=10).cluster_id == cluster
    produce(second, "kept", b"before the crash")
    second.kill()
    assert not second.is_running()
    second.start()
    assert read(second, "kept", 2) == [b"before the stop", b"before the crash"]
    second.stop()


def test_a_second_broker_on_the_same_folder_is_refused_with_the_owner(kafka: EmbeddedKafka) -> None:
    with pytest.raises(LogError, match=f"another Kafka runs on .* \\(started by process {os.getpid()}\\)"):
        EmbeddedKafka(kafka.folder).start()
    assert kafka.is_running()


def test_a_broker_that_runs_cannot_be_started_again(kafka: EmbeddedKafka) -> None:
    with pytest.raises(LogError, match="already running"):
        kafka.start()


def test_a_broker_that_was_not_started_has_no_address(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="not running; start it first"):
        _ = EmbeddedKafka(tmp_path).bootstrap


def test_a_wanted_port_that_is_in_use_is_named(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(LogError, match=f"port {taken_port} of 127.0.0.1, wanted for Kafka, is in use"):
        EmbeddedKafka(tmp_path, port=taken_port).start()


def test_a_port_taken_by_another_process_just_before_the_start_is_replaced(
    tmp_path: Path, taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = iter([[taken_port, *free_ports(1)], free_ports(2)])
    monkeypatch.setattr(broker, "free_ports", lambda count: next(offered))
    with EmbeddedKafka(tmp_path) as started:
        assert started.bootstrap != f"127.0.0.1:{taken_port}"
        assert next(offered, None) is None


def test_a_broker_that_ends_at_its_start_is_reported_with_its_log(tmp_path: Path) -> None:
    wrong = EmbeddedKafka(tmp_path, jvm_options=["-XX:+NoSuchOption"])
    with pytest.raises(LogError, match=r"Kafka ended at its start \(exit code 1\); see .*broker\.log"):
        wrong.start()
    assert not wrong.is_running()
    assert "NoSuchOption" in (tmp_path / "broker.log").read_text()


def test_a_setting_that_kafka_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"cannot prepare .* for Kafka: .*num\.io\.threads"):
        EmbeddedKafka(tmp_path, properties={"num.io.threads": "0"}).start()


def test_a_killed_parent_leaves_no_broker_and_its_folder_can_be_used_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTED_BY_A_PROCESS, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(signal.SIGKILL)
    began = time.monotonic()
    with EmbeddedKafka(tmp_path) as successor:
        assert not is_alive(pid)
        assert successor.pid != pid
    assert time.monotonic() - began < 60
