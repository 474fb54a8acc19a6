"""Every value of every topic comes back as it was, and bytes that are no such value are refused in words."""

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.runtime.codecs import Codecs
from services.runtime.topics import Topics
from skyband.errors import LogError
from skyband.model.partials import Progress
from skyband.model.result import Result
from tests.engine.pure_pipeline import PurePipeline, planned
from tests.services.runtime.values import VALUES, assert_same
from tests.workloads import seeded

CODECS = Codecs()


def matching(name: str) -> bool:
    """Return whether there are values for a topic of topics.yaml."""
    pattern = re.compile(re.sub("<[^>]*>", "[^.]+", name))
    return any(pattern.fullmatch(topic) for topic in VALUES)


def test_there_are_values_for_every_topic_and_no_other() -> None:
    assert all(matching(topic.name) for topic in Topics().all)
    assert len(VALUES) == len(Topics().all)


@pytest.mark.parametrize("topic", VALUES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_value_comes_back_as_it_was(topic: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[topic])
    encoded = CODECS.encode(topic, value)
    assert isinstance(encoded, bytes)
    assert_same(value, CODECS.decode(topic, encoded))
    assert CODECS.encode(topic, CODECS.decode(topic, encoded)) == encoded


class BytesPipeline(PurePipeline):
    """A pipeline whose stages hear of each other only through bytes."""

    def flush(self, now_us: int = 0) -> None:
        for batch in self.aligner.flush(now_us):
            shard = self.shards[batch.shard]
            shard.offer(through("aligned.g.1", batch))
            for value in shard.advance():
                self.merger.accept(through("partials", value), 0, self._offset)
                self._offset += 1
            self.results.extend(through("results", result) for result in self.merger.take())


def through(topic: str, value: object) -> Any:
    return CODECS.decode(topic, CODECS.encode(topic, value))


@pytest.mark.parametrize("seed", [1, 7, 12, 30])
def test_stages_that_speak_in_bytes_give_the_same_results(seed: int) -> None:
    group, queries, rows = seeded(seed, 400)
    results = []
    for kind in (PurePipeline, BytesPipeline):
        pipeline = kind(group, sorted(rows), check=True, catalog=True)
        for query in queries:
            pipeline.change(planned(group, query))
        for first in range(0, max(map(len, rows.values())), 50):
            for place, part in rows.items():
                if part[first : first + 50]:
                    pipeline.add(place, part[first : first + 50], first)
            pipeline.flush()
        for place in rows:
            pipeline.aligner.finish(*place)
        pipeline.flush()
        results.append(pipeline.results)
    assert results[0] == results[1]
    assert any(result.rows for result in results[0])


def test_a_tombstone_stays_one() -> None:
    assert CODECS.encode("marks", None) is None
    assert CODECS.decode("marks", None) is None


@pytest.mark.parametrize("topic", VALUES)
@settings(max_examples=40)
@given(data=st.data())
def test_damaged_bytes_raise_log_error_or_are_read_as_another_value(topic: str, data: st.DataObject) -> None:
    encoded = bytearray(CODECS.encode(topic, data.draw(VALUES[topic])) or b"")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(encoded) - 1))
        encoded[place] = data.draw(st.integers(0, 255))
    damaged = bytes(encoded[: data.draw(st.integers(0, len(encoded)))] if data.draw(st.booleans()) else encoded)
    read_or_refuse(topic, damaged)


@pytest.mark.parametrize("topic", VALUES)
@settings(max_examples=40)
@given(data=st.binary(max_size=200))
@example(data=b"")
def test_foreign_bytes_raise_log_error_or_are_read_as_another_value(topic: str, data: bytes) -> None:
    read_or_refuse(topic, data)
    read_or_refuse(topic, b"\1" + data)


def read_or_refuse(topic: str, data: bytes) -> None:
    said = "; see"
    try:
        CODECS.decode(topic, data)
    except LogError as error:
        said = str(error)
    assert re.search(r"; \w+", said), "the message says what to do"


@pytest.mark.parametrize("topic", VALUES)
@settings(max_examples=20)
@given(data=st.data())
def test_no_beginning_of_a_value_is_a_value(topic: str, data: st.DataObject) -> None:
    encoded = CODECS.encode(topic, data.draw(VALUES[topic])) or b""
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(LogError, match=re.escape(topic)):
        CODECS.decode(topic, encoded[:cut])
    with pytest.raises(LogError, match=re.escape(topic)):
        CODECS.decode(topic, encoded + b"\0")


def test_a_value_of_another_topic_is_refused() -> None:
    with pytest.raises(LogError, match="a Result does not belong into topic 'partials', which holds PartialBatch or"):
        CODECS.encode("partials", Result("q", "u", 0, 1, ()))


@pytest.mark.parametrize("topic", ["temperature", "aligned", "aligned.g", "aligned.g.1.2", "result"])
def test_a_topic_of_somebody_else_is_refused(topic: str) -> None:
    with pytest.raises(LogError, match="is no internal topic"):
        CODECS.encode(topic, Progress("g", 1, 0, 0, 0))
    with pytest.raises(LogError, match="is no internal topic"):
        CODECS.decode(topic, b"\1")


@pytest.mark.parametrize(
    ("topic", "value", "why"),
    [
        ("catalog", {"bound": float("inf")}, "cannot be stored as JSON"),
        ("catalog", {"partitions": {1: "a"}}, "JSON gives another value back"),
        ("catalog", {"names": ("a", "b")}, "JSON gives another value back"),
        ("catalog", {"object": object()}, "cannot be stored as JSON"),
        ("checkpoints", {"group": "g", "generation": 1, "shard": 0}, "no aligned_offset"),
        ("partials", Progress("g", 1, 0, 2**64, 0), "cannot be written"),
        ("partials", Progress("g", 1, 0, None, 0), "cannot be written"),  # type: ignore[arg-type]
    ],
)
def test_what_would_come_back_as_something_else_is_not_written(topic: str, value: Any, why: str) -> None:
    with pytest.raises(LogError, match=why):
        CODECS.encode(topic, value)
