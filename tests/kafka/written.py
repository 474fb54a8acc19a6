"""The results topic as anybody may read it: a stock consumer, read_committed, and the schema's file."""

import io
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.runtime.codec_schemas import SCHEMAS
from tests.kafka.cluster import FOREVER_S, Cluster
from tests.kafka.scenarios import Answer, Scenario

__all__ = ["Written"]

_PASSING = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT)


def _plain(schema: Any) -> Any:
    """Return the schema with times as the numbers they are: they may lie outside of what datetime knows."""
    match schema:
        case dict():
            return {key: _plain(value) for key, value in schema.items() if key != "logicalType"}
        case list():
            return [_plain(item) for item in schema]
    return schema


_SCHEMA = fastavro.parse_schema(_plain(json.loads((SCHEMAS / "result.avsc").read_text(encoding="utf-8"))))


@dataclass
class Written:
    """What was read of the results so far: every answer of each (uid, window end), and when it came.

    Use `wait_for` and `check`; both read on.
    """

    cluster: Cluster
    answers: dict[tuple[str, int], list[Answer]] = field(default_factory=dict)
    came_at: dict[tuple[str, int], float] = field(default_factory=dict)
    stored_ms: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        topic = f"{self.cluster.prefix}results"
        self._consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "anybody",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "log_level": 1,
            }
        )
        self._parts = len(self._consumer.list_topics(topic, 30).topics[topic].partitions)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(self._parts)])

    def poll(self, timeout_s: float = 0.1) -> int:
        """Read on; return at the ends of how many partitions the reader has been."""
        ends = 0
        for message in self._consumer.consume(1_000, timeout_s):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    ends += 1
                elif not error.retriable() and error.code() not in _PASSING:
                    raise KafkaException(error)
                continue
            self._take(message.value() or b"", message.timestamp()[1])
        return ends

    def _take(self, value: bytes, stored_ms: int) -> None:
        assert value[0] == 2, "not version 2 of the schema"
        found: Any = fastavro.schemaless_reader(io.BytesIO(value[1:]), _SCHEMA, None)
        rows = tuple(
            (r["rank"], r["object_id"], r["score"], tuple(sorted(r["attributes"].items())), r["event_time"])
            for r in found["rows"]
        )
        key = (found["uid"], found["window_end"])
        self.answers.setdefault(key, []).append(rows)
        self.came_at.setdefault(key, time.monotonic())
        self.stored_ms.setdefault(key, stored_ms)

    def wait_until(self, is_enough: Callable[[], bool], what: Callable[[], str], seconds: float = FOREVER_S) -> None:
        """Read until it is enough; fail after a deadline."""
        deadline = time.monotonic() + seconds
        while not is_enough():
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what()}"
            self.poll()

    def wait_for_some(self, uids: Mapping[str, str], count: int, seconds: float = FOREVER_S) -> None:
        """Read until there are so many results of these queries."""
        wanted = set(uids.values())
        self.wait_until(
            lambda: sum(uid in wanted for uid, _ in self.answers) >= count,
            lambda: f"{count} results of {sorted(uids)}\n{self.cluster.said()}",
            seconds,
        )

    def wait_for(self, scenario: Scenario, uids: Mapping[str, str], expected: Mapping[tuple[str, int], Answer]) -> None:
        """Read until every expected answer is there."""
        wanted = {(uids[query], end) for query, end in expected}

        def missing() -> str:
            left = sorted(wanted - self.answers.keys(), key=lambda key: key[1])
            some = f"{len(left)} of {len(wanted)} results of {scenario.group.name}, first {left[:3]}"
            return f"{some}\n{self.cluster.said()}"

        self.wait_until(lambda: wanted <= self.answers.keys(), missing)

    def to_end(self) -> None:
        """Read up to what is there now."""
        topic = f"{self.cluster.prefix}results"
        ends = {n: self._consumer.get_watermark_offsets(TopicPartition(topic, n), 30)[1] for n in range(self._parts)}
        deadline = time.monotonic() + FOREVER_S
        while any(self._at(topic, number) < end for number, end in ends.items()):
            assert time.monotonic() < deadline, f"the end of {topic} was not reached"
            self.poll()

    def _at(self, topic: str, number: int) -> int:
        (part,) = self._consumer.position([TopicPartition(topic, number)])
        return max(0, part.offset)

    def check(self, scenario: Scenario, uids: Mapping[str, str], expected: Mapping[tuple[str, int], Answer]) -> int:
        """Check that the results are exactly these, each once, and return how many there are.

        What lies behind the last expected window end of a query is of later rows, and not looked at.
        """
        self.wait_for(scenario, uids, expected)
        self.to_end()
        names = {uid: query for query, uid in uids.items()}
        lasts: Counter[str] = Counter()
        for query, end in expected:
            lasts[query] = max(lasts.get(query, end), end)
        found = {
            (names[uid], end): answers
            for (uid, end), answers in self.answers.items()
            if uid in names and end <= lasts[names[uid]]
        }
        repeated = {key: len(answers) for key, answers in found.items() if len(answers) > 1}
        assert not repeated, f"results that came more than once: {repeated}"
        extra = sorted(found.keys() - expected.keys(), key=lambda key: key[1])
        assert not extra, f"{len(extra)} results that nobody expects, first {extra[:3]}"
        wrong = [key for key, answer in expected.items() if found[key][0] != answer]
        assert not wrong, _difference(wrong, found, expected)
        return len(found)


def _difference(
    wrong: list[tuple[str, int]],
    found: Mapping[tuple[str, int], list[Answer]],
    expected: Mapping[tuple[str, int], Answer],
) -> str:
    first = min(wrong, key=lambda key: key[1])
    return f"{len(wrong)} results are wrong, first {first}:\nfound    {found[first][0]}\nexpected {expected[first]}"
