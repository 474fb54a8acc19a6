"""A transaction of the memory log is there as a whole or not at all, and one producer of an id can write."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from skyband.errors import CapacityError, LogError
from skyband.log import ManualClock, MemoryLog, Position
from skyband.log.memory import MemoryProducer

ROWS = Position("rows", 0)
FOREVER_S = 60.0


def log_with(**options: object) -> MemoryLog:
    log = MemoryLog(ManualClock(7))
    log.create_topic("rows", 2, **options)  # type: ignore[arg-type]
    return log


def values(log: MemoryLog, partition: int = 0) -> list[object]:
    consumer = log.consumer()
    consumer.assign({Position("rows", partition): 0})
    return [record.value for record in consumer.poll(100, 0)]


def test_a_transaction_is_visible_at_its_end_and_not_before() -> None:
    log = log_with()
    producer = log.producer("writer")
    with producer.transaction():
        producer.send("rows", 0, "a")
        producer.send("rows", 1, "b", key=b"k", timestamp_us=5, span=2)
        producer.flush()
        assert values(log) == values(log, 1) == []
    assert (values(log), values(log, 1)) == (["a"], ["b"])
    assert log.consumer().end_offsets([ROWS, Position("rows", 1)]) == {ROWS: 1, Position("rows", 1): 2}


def test_a_transaction_whose_block_raises_leaves_nothing_and_the_next_one_succeeds() -> None:
    log = log_with()
    producer = log.producer("writer")

    def fail() -> None:
        with producer.transaction():
            producer.send("rows", 0, "never")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    with producer.transaction():
        producer.send("rows", 0, "a")
    assert values(log) == ["a"]


def test_a_newer_producer_of_the_same_id_shuts_the_older_out() -> None:
    log = log_with()
    older = log.producer("writer")
    other = log.producer("other writer")
    newer: list[MemoryProducer] = []

    def be_overtaken() -> None:
        with older.transaction():
            older.send("rows", 0, "never")
            newer.append(log.producer("writer"))

    with pytest.raises(LogError, match="another producer with the transactional id 'writer' has taken over"):
        be_overtaken()
    for call in (older.flush, lambda: older.send("rows", 0, 1), lambda: older.transaction().__enter__()):
        with pytest.raises(LogError, match="has taken over"):
            call()
    for producer in (*newer, other):
        with producer.transaction():
            producer.send("rows", 0, "a")
    assert values(log) == ["a", "a"]


def test_transactions_need_an_id_and_an_id_transactions() -> None:
    log = log_with()
    with pytest.raises(LogError, match="has no transactional id"), log.producer().transaction():
        pass
    producer = log.producer("writer")
    with pytest.raises(LogError, match="sends inside transactions only"):
        producer.send("rows", 0, "a")
    with producer.transaction(), pytest.raises(LogError, match="is open already"), producer.transaction():
        pass
    producer.close()
    with pytest.raises(LogError, match="is closed"), producer.transaction():
        pass


def test_a_wrong_send_is_refused_at_once() -> None:
    log = log_with()
    producer = log.producer("writer")
    with pytest.raises(LogError, match="has partitions 0 to 1, not 2"), producer.transaction():
        producer.send("rows", 2, "a")
    with pytest.raises(LogError, match="spans 0 offsets"), producer.transaction():
        producer.send("rows", 0, "a", span=0)


def test_a_transaction_that_does_not_fit_appends_nothing() -> None:
    log = log_with(capacity=2)
    producer = log.producer("writer")

    def write(fitting: int, other: int) -> None:
        with producer.transaction():
            for _ in range(fitting):
                producer.send("rows", 1, "fits")
            for _ in range(other):
                producer.send("rows", 0, "too many")

    with pytest.raises(CapacityError, match="topic 'rows' partition 0 is full"):
        write(1, 3)
    assert values(log) == values(log, 1) == []
    with producer.transaction():
        producer.send("rows", 0, "a")
        producer.send("rows", 0, "b")
    assert values(log) == ["a", "b"]


def test_a_transaction_waits_for_room() -> None:
    log = MemoryLog(ManualClock(7), send_timeout_s=FOREVER_S)
    log.create_topic("rows", 1, capacity=2, truncate=True, readers=("engine",))
    producer = log.producer("writer")
    with producer.transaction():
        producer.send("rows", 0, "a")

    def write() -> None:
        with producer.transaction():
            producer.send("rows", 0, "b")
            producer.send("rows", 0, "c")

    with ThreadPoolExecutor() as threads:
        written = threads.submit(write)
        engine = log.consumer("engine")
        engine.assign({ROWS: 0})
        assert [record.value for record in engine.poll(9, FOREVER_S)] == ["a"]
        engine.commit({ROWS: 1})
        written.result(FOREVER_S)
        assert [record.value for record in engine.poll(9, FOREVER_S)] == ["b", "c"]
