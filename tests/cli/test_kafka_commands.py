"""Produce, dead-letters, doctor and serve as processes, on a real Kafka."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from services.runtime import topics
from services.runtime.codecs import Codecs
from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.control.commands import CreateGroup, CreateStream
from skyband.control.stage import ControlStage
from skyband.log.clock import SystemClock
from skyband.model.resources import GroupSpec, SourceStart
from skyband.model.source_rows import DeadLetter, Reason
from skyband.model.stream_form import read_stream
from skyband.structures.hashing import shards_of
from tests.cli.conftest import ROOT, START
from tests.kafka.logs import FOREVER_S, moments

pytestmark = pytest.mark.kafka

Run = Callable[..., "subprocess.CompletedProcess[str]"]
S = 1_000_000
ROWS = 300


class Place:
    """One test's own part of the cluster: prefix of Skyband's topics, name of a source topic, environment."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.prefix = f"t{uuid.uuid4().hex[:8]}-"
        self.topic = f"{self.prefix}heat"
        self.environment = {
            **os.environ,
            "XDG_CONFIG_HOME": str(folder),
            "SKYBAND_KAFKA_BOOTSTRAP": bootstrap,
            "SKYBAND_KAFKA_TOPIC_PREFIX": self.prefix,
            "SKYBAND_KAFKA_REPLICATION_FACTOR": "1",
            "SKYBAND_SERVER": "127.0.0.1:1",
        }
        self.log = KafkaLog(KafkaSettings(bootstrap=bootstrap, topic_prefix=self.prefix), Codecs())
        self.definitions = folder / "factory.yaml"
        self.definitions.write_text(
            "group:\n  name: factory\n  retention: 10m\n  max_drift: 1h\n"
            f"  streams: [{{name: heat, lo: 0, hi: 100, topic: {self.topic}, format: json, idle: {{after: 1s}}}}]\n"
            "queries:\n  - {name: hottest, k: 3, score: heat, window: {size: 1m, slide: 10s}}\n"
        )

    def command(self, *words: object) -> list[str]:
        return [sys.executable, "-c", START, *map(str, words)]

    def run(self, *words: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*words),
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=FOREVER_S,
            check=False,
        )

    def start(self, *words: object, **settings: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(*words),
            cwd=ROOT,
            env={**self.environment, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def messages(self, partitions: int) -> list[Message]:
        """Return what the source topic holds."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "none", "auto.offset.reset": "error"})
        places = [TopicPartition(self.topic, partition, 0) for partition in range(partitions)]
        wanted = sum(consumer.get_watermark_offsets(place)[1] for place in places)
        consumer.assign(places)
        found: list[Message] = []
        for _ in moments():
            found += consumer.consume(1_000, 0.1)
            if len(found) >= wanted:
                break
        consumer.close()
        return found


@pytest.fixture
def place(kafka: EmbeddedKafka, tmp_path: Path) -> Place:
    return Place(kafka.bootstrap, tmp_path)


def rows_file(place: Place, first_us: int = 1_000 * S) -> Path:
    """Write rows of three seconds each, of ten machines."""
    path = place.folder / "rows.jsonl"
    with path.open("w") as file:
        for number in range(ROWS):
            row = {"object_id": f"m{number % 10}", "event_time": first_us + 3 * S * number, "value": number % 90}
            file.write(json.dumps(row) + "\n")
    return path


def findings(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_rows_lie_where_a_java_client_puts_them_with_the_time_of_sending(place: Place) -> None:
    before_ms = time.time_ns() // 1_000_000 - 1
    done = place.run("produce", "--definitions", place.definitions, "--input", rows_file(place), "--create-topics", 3)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert (said["rows"], said["skipped"], said["not_stored"], said["streams"]) == (ROWS, 0, 0, {"heat": ROWS})
    found = place.messages(3)
    assert len(found) == ROWS
    ids = [(message.key() or b"").decode() for message in found]
    ends = np.cumsum([len(name) for name in ids])
    partitions = shards_of(np.frombuffer("".join(ids).encode(), np.uint8), ends, 3).tolist()
    assert [message.partition() for message in found] == partitions
    assert set(partitions) == {0, 1, 2}
    assert all(before_ms <= message.timestamp()[1] for message in found)
    sent = {(name, json.loads(message.value() or b"")["event_time"]) for name, message in zip(ids, found, strict=True)}
    assert sent == {(f"m{number % 10}", 1_000 * S + 3 * S * number) for number in range(ROWS)}


def test_a_topic_that_is_missing_is_named_with_what_to_do(place: Place) -> None:
    done = place.run("produce", "--definitions", place.definitions, "--input", rows_file(place))
    assert done.returncode == 1
    assert done.stderr.startswith(f"topic '{place.topic}' does not exist; ")
    assert "`skyband produce --create-topics N` makes it" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_interrupted_run_tells_exactly_what_it_has_stored(place: Place) -> None:
    words = ("--definitions", place.definitions, "--generate", "--rate", 500, "--create-topics", 1)
    running = place.start("produce", *words, "-o", "json")
    try:
        for _ in moments():
            assert running.poll() is None
            if not place.log.is_missing(place.topic) and place.messages(1):
                break
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=FOREVER_S)
    finally:
        running.kill()
    assert running.returncode == 130
    assert json.loads(out)["rows"] == len(place.messages(1)) > 0


def test_kafka_that_is_not_there_is_said_in_one_sentence(place: Place) -> None:
    place.environment |= {"SKYBAND_KAFKA_REQUEST_TIMEOUT_S": "0.5", "SKYBAND_KAFKA_UNREACHABLE_AFTER_S": "0.5"}
    for words in (
        ("produce", "--definitions", place.definitions, "--input", rows_file(place)),
        ("dead-letters", "tail"),
        ("doctor", "align"),
    ):
        done = place.run(*words, "--kafka", "127.0.0.1:1")
        said = done.stderr if words[0] != "doctor" else findings(done)[0]["text"]
        assert done.returncode == 1
        assert said.startswith("cannot reach Kafka at 127.0.0.1:1 (")
        assert len(said.splitlines()) == 1


def test_a_wrong_setting_is_said_in_one_sentence(place: Place) -> None:
    place.environment["SKYBAND_KAFKA_SECURITY_PROTOCOL"] = "TLS"
    done = place.run("dead-letters", "tail")
    assert done.returncode == 2
    assert done.stderr.startswith("a setting SKYBAND_KAFKA_… is wrong: ")


def test_dead_letters_are_shown_the_newest_last(place: Place) -> None:
    done = place.run("dead-letters", "tail")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Kafka at {place.bootstrap} has no topic 'dead-letters': Skyband has never run there; see --kafka\n"
    )
    topics.apply(place.log)
    assert (
        place.run("dead-letters", "tail", "-o", "table").stderr == "there are no dead letters: all records were used\n"
    )
    writer, now_s = place.log.producer(), int(time.time())
    for number in range(12):
        stream = "heat" if number % 2 else "shake"
        letter = DeadLetter(stream, place.topic, 0, number, Reason.OUT_OF_RANGE, "too hot", b'{"value": 900}')
        # Kafka deletes old ones, at any moment.
        writer.send("dead-letters", number % 4, letter, timestamp_us=(now_s + number) * S)
    writer.close()
    newest = findings(place.run("dead-letters", "tail", "-n", 3))
    assert [(one["stream"], one["offset"]) for one in newest] == [("heat", 9), ("shake", 10), ("heat", 11)]
    assert newest[0]["value"] == '{"value": 900}'
    heat = findings(place.run("dead-letters", "tail", "--stream", "heat", "-n", 2))
    assert [one["offset"] for one in heat] == [9, 11]
    assert len(findings(place.run("dead-letters", "tail", "--from-beginning"))) == 12


def test_a_doctor_tells_what_there_is_not(place: Place) -> None:
    done = place.run("doctor", "align")
    assert done.returncode == 1
    assert [(one["level"], one["text"]) for one in findings(done)] == [
        ("ok", f"Kafka at {place.bootstrap} answers"),
        ("wrong", "there is no topic of Skyband's: it has never run on this Kafka"),
    ]
    topics.apply(place.log)
    done = place.run("doctor", "align", "-o", "table")
    assert done.returncode == 0
    assert "topics of Skyband's are as they should be" in done.stdout
    assert done.stdout.splitlines()[-1] == "all is well (4 findings)"
    stream = read_stream({"name": "heat", "topic": place.topic})
    control = ControlStage(place.log, SystemClock(), lambda: uuid.uuid4().hex)
    control.execute(CreateStream(stream))
    spec = GroupSpec(name="factory", streams=("heat",), retention_us=60 * S)
    control.execute(CreateGroup(spec, (SourceStart("heat", 0, 0, "gone"),)))
    control.close()
    done = place.run("doctor", "align", "engine")
    assert done.returncode == 1
    assert [one["text"] for one in findings(done) if one["level"] == "wrong"] == [
        f"factory/heat: its topic {place.topic} does not exist",
        "factory, shard 0 of 1: has not reported in this generation",
    ]
    place.log.create_topic(place.topic, 2)
    wrong = [one["text"] for one in findings(place.run("doctor", "align")) if one["level"] == "wrong"]
    assert f"factory/heat: topic {place.topic} was made anew since this generation began" in wrong
    assert "factory/heat, partition 0: its reader has not reported" in wrong


@pytest.fixture
def serving(place: Place) -> Iterator[Place]:
    """A place with all of Skyband running in one process."""
    ready = place.folder / "ready.json"
    settings = {"SKYBAND_READY_FILE": str(ready), "SKYBAND_FANOUT_SEARCH_S": "1"}
    running = place.start("serve", "--listen", "127.0.0.1:0", "--create-topics", "2", **settings)
    try:
        for _ in moments():
            assert running.poll() is None
            if ready.exists():
                break
        place.environment["SKYBAND_SERVER"] = json.loads(ready.read_text())["address"]
        yield place
    finally:
        running.terminate()
        try:
            running.wait(FOREVER_S)
        finally:
            running.kill()


@pytest.mark.slow
def test_a_question_is_asked_fed_answered_and_examined(serving: Place) -> None:
    made = findings(serving.run("apply", "-f", serving.definitions))
    assert [(one["kind"], one["outcome"]) for one in made] == [
        ("stream", "created"),
        ("group", "created"),
        ("query", "created"),
    ]
    assert made[0]["detail"] == f"topic {serving.topic}, 2 partitions, json"
    rows = rows_file(serving)
    with rows.open("a") as file:
        file.write('{"object_id": "m1", "event_time": 1000000000, "value": 900}\n')
    assert serving.run("produce", "--group", "factory", "--input", rows).returncode == 0
    end_us = (1_000 + 3 * (ROWS - 1)) * S // (10 * S) * (10 * S) + 10 * S
    watching = serving.start("queries", "watch", "factory/hottest", "--snapshots")
    try:
        assert watching.stdout is not None
        last = next(found for line in watching.stdout if (found := json.loads(line))["window_end"] >= end_us)
    finally:
        watching.kill()
    inside = range(max(0, -(-(end_us - 60 * S - 1_000 * S) // (3 * S))), ROWS)
    best: dict[str, int] = {}
    for number in inside:
        best[f"m{number % 10}"] = max(best.get(f"m{number % 10}", 0), number % 90)
    expected = sorted(best.items(), key=lambda item: (-item[1], item[0]))[:3]
    assert [(row["object_id"], row["score"]) for row in last["rows"]] == [(name, float(v)) for name, v in expected]
    (letter,) = findings(serving.run("dead-letters", "tail"))
    assert (letter["stream"], letter["reason"]) == ("heat", "out_of_range")
    for _ in moments():
        done = serving.run("doctor")
        if done.returncode == 0:
            break
    levels = {one["part"]: one["level"] for one in findings(done)}
    assert set(levels) == {"kafka", "align", "engine", "fanout", "control"}


@pytest.mark.slow
def test_the_demo_goes_through_kafka_and_leaves_nothing_behind(place: Place) -> None:
    del place.environment["SKYBAND_KAFKA_TOPIC_PREFIX"]
    running = place.start("demo", "--kafka", place.bootstrap)
    try:
        out, _ = running.communicate(timeout=10 * FOREVER_S)
    finally:
        running.kill()
    assert (running.returncode, out) == (0, "4,468 evaluations checked against brute force: all equal.\n")
    names = AdminClient({"bootstrap.servers": place.bootstrap}).list_topics(timeout=FOREVER_S).topics
    assert not [name for name in names if name.startswith("demo-")]
