"""Records join up whatever order messages come in, and what raises moves no cursor."""

import random

import numpy as np
import pytest
from confluent_kafka import Message

from services.runtime.kafka_bulk import Chunk
from services.runtime.kafka_names import KafkaNames
from services.runtime.kafka_records import RecordReader
from services.runtime.payloads import Payloads
from skyband.errors import LogError
from skyband.log.record_log import Position, Record
from skyband.model.source_rows import SourceRows
from tests.kafka.logs import JsonCodecs, RawRows


def message(topic: str, partition: int, offset: int, value: bytes | None = b"1", time_ms: int = 7) -> Message:
    return Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=b"k",
        value=value,
        timestamp=(1 if time_ms >= 0 else 0, time_ms),
    )


def rows(partition: int, *offsets: int, time_ms: int = 7) -> Chunk:
    times = np.full(len(offsets), 1_000 * time_ms)
    return Chunk("rows", partition, np.array(offsets), times, Payloads.of([b"1"] * len(offsets)))


def reader_at(*topics: str, **cursors: int) -> RecordReader:
    """Return a reader that decodes `rows` as source rows; cursors by topic_partition."""
    reader = RecordReader(KafkaNames(""), JsonCodecs(), {"rows": RawRows()})
    reader.begin(topics)
    for name, cursor in cursors.items():
        topic, _, partition = name.partition("_")
        reader.cursors[Position(topic, int(partition))] = cursor
    return reader


def offsets(record: Record) -> list[int]:
    assert isinstance(record.value, SourceRows)
    return list(record.value.offset.tolist())


def test_a_chunk_spans_from_the_cursor_to_behind_its_last_message() -> None:
    reader = reader_at("rows", rows_0=3)
    (record,) = reader.read([], [rows(0, 5, 6, 9, time_ms=9)])
    assert (record.offset, record.span, record.timestamp_us) == (3, 7, 9_000)
    assert offsets(record) == [5, 6, 9]
    assert reader.cursors == {Position("rows", 0): 10}


def test_messages_below_the_cursor_and_of_partitions_without_one_are_dropped() -> None:
    reader = reader_at("rows", "other", rows_0=3, other_0=2)
    assert reader.read([message("other", 0, 1), message("other", 1, 5)], [rows(0, 1, 2), rows(1, 0)]) == []
    single, record = reader.read([message("other", 0, offset) for offset in (1, 2)], [rows(0, 2, 3)])
    assert (record.offset, record.span, offsets(record)) == (3, 1, [3])
    assert single == Record("other", 0, 2, b"k", 1, 7_000)


def test_a_time_that_is_none_is_told_to_the_decoder_and_not_to_readers() -> None:
    (record,) = reader_at("rows", rows_0=0).read([], [rows(0, 0, time_ms=-1)])
    assert isinstance(record.value, SourceRows)
    assert (record.timestamp_us, record.value.timestamp_us[0] < 0) == (0, True)
    assert reader_at("other", other_0=0).read([message("other", 0, 0, time_ms=-1)])[0].timestamp_us == 0


def test_the_end_of_what_can_be_read_is_a_record_only_beyond_the_cursor() -> None:
    reader = reader_at("rows", rows_0=3)
    assert reader.reach(Position("rows", 0), 3) is None
    assert reader.reach(Position("rows", 1), 3) is None
    assert reader.reach(Position("rows", 0), 5) == Record("rows", 0, 3, None, None, 0, 2)
    assert reader.cursors == {Position("rows", 0): 5}


def test_what_raises_moves_no_cursor() -> None:
    reader = reader_at("rows", "other", rows_0=0, other_0=0)
    bad = message("other", 0, 4, b"no JSON")
    with pytest.raises(LogError, match="the record at offset 4 of topic 'other' partition 0 cannot be read"):
        reader.read([message("other", 0, 3), bad], [rows(0, 0)])
    assert set(reader.cursors.values()) == {0}
    assert len(reader.read([message("other", 0, 3)], [rows(0, 0)])) == 2


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_order_of_partitions_every_message_comes_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    places = [("third", 1), ("third", 2), ("other", 0), ("other", 7), ("third", 0)][: chance.randrange(1, 6)]
    reader = reader_at("rows", "other", "third", **{f"{topic}_{partition}": 0 for topic, partition in places})
    ends = dict.fromkeys(places, 0)
    seen: dict[tuple[str, int], list[int]] = {place: [] for place in places}
    for _ in range(30):
        messages = []
        for _ in range(chance.randrange(1, 6)):
            topic, partition = place = chance.choice(places)
            for _ in range(chance.randrange(1, 5)):
                messages.append(message(topic, partition, ends[place]))
                ends[place] += chance.choice((1, 1, 1, 3))
        for record in reader.read(messages):
            seen[record.topic, record.partition].append(record.offset)
            assert record.span == 1
        for place in places:
            assert seen[place] == sorted(set(seen[place]))
    total = sum(len(found) for found in seen.values())
    assert total > 0
    for topic, partition in places:
        found = seen[topic, partition]
        assert reader.cursors[Position(topic, partition)] == (found[-1] + 1 if found else 0)
