"""The memory log keeps offsets, commits and bounds as a real log does."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from skyband.errors import CapacityError, LogError
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryConsumer, MemoryLog
from skyband.log.record_log import Position, Record, RecordLog

ROWS = Position("rows", 0)
OTHER = Position("rows", 1)
# Nobody waits that long: it is the time after which a test has failed.
FOREVER_S = 60.0


def log_with(*, partitions: int = 2, records: int = 0, **options: object) -> MemoryLog:
    log = MemoryLog(ManualClock(7_000))
    log.create_topic("rows", partitions, **options)
    send(log, *range(records))
    return log


def send(log: MemoryLog, *values: object, partition: int = 0) -> None:
    producer = log.producer()
    for value in values:
        producer.send("rows", partition, value)


def reader(log: MemoryLog, group: str | None = None, offset: int | None = 0) -> MemoryConsumer:
    consumer = log.consumer(group)
    consumer.assign({ROWS: offset})
    return consumer


def values(records: list[Record]) -> list[object]:
    return [record.value for record in records]


def test_the_memory_log_is_a_record_log() -> None:
    log: RecordLog = MemoryLog(ManualClock())
    log.create_topic("rows", 3)
    log.create_topic("rows", 3)
    assert log.partitions("rows") == 3
    with pytest.raises(LogError, match="topic 'rows' has 3 partitions, not 4"):
        log.create_topic("rows", 4)
    with pytest.raises(LogError, match="'results' does not exist"):
        log.partitions("results")


def test_a_record_keeps_what_was_sent_and_gets_an_offset_and_a_time() -> None:
    log = log_with()
    producer = log.producer()
    producer.send("rows", 0, "a", key=b"k", timestamp_us=5, span=3)
    producer.send("rows", 0, "b")
    producer.flush()
    assert reader(log).poll(10, 0) == [
        Record("rows", 0, 0, b"k", "a", 5, 3),
        Record("rows", 0, 3, None, "b", 7_000, 1),
    ]


def test_a_position_inside_a_record_delivers_it_whole() -> None:
    log = log_with()
    producer = log.producer()
    for value in "abc":
        producer.send("rows", 0, value, span=10)
    assert values(reader(log, offset=9).poll(10, 0)) == ["a", "b", "c"]
    assert values(reader(log, offset=10).poll(10, 0)) == ["b", "c"]
    assert values(reader(log, offset=30).poll(10, 0)) == []


def test_polls_serve_partitions_in_turn() -> None:
    log = log_with()
    send(log, *"abcdef")
    send(log, *"uvwxyz", partition=1)
    consumer = log.consumer()
    consumer.assign({ROWS: 0, OTHER: 0})
    assert [values(consumer.poll(4, 0)) for _ in range(4)] == [list("abcd"), list("uvwx"), list("efyz"), []]


def test_paused_partitions_are_not_delivered_until_resumed() -> None:
    log = log_with()
    send(log, "a")
    send(log, "u", partition=1)
    consumer = log.consumer()
    consumer.assign({ROWS: 0, OTHER: 0})
    consumer.pause([ROWS])
    assert values(consumer.poll(9, 0)) == ["u"]
    consumer.resume([ROWS])
    assert values(consumer.poll(9, 0)) == ["a"]
    with pytest.raises(LogError, match="topic 'rows' partition 2 is not assigned"):
        consumer.pause([Position("rows", 2)])


def test_a_group_goes_on_where_it_committed() -> None:
    log = log_with(records=5)
    first = reader(log, "engine")
    assert len(first.poll(3, 0)) == 3
    first.commit({ROWS: 3})
    first.close()
    assert values(reader(log, "engine", offset=None).poll(9, 0)) == [3, 4]
    with pytest.raises(LogError, match="group 'sketch' has committed no offset of topic 'rows' partition 0"):
        reader(log, "sketch", offset=None)
    with pytest.raises(LogError, match="without a group has committed no offset"):
        reader(log, offset=None)


def test_commits_are_checked() -> None:
    log = log_with(records=5)
    with pytest.raises(LogError, match="without a group cannot commit"):
        reader(log).commit({ROWS: 1})
    with pytest.raises(LogError, match="commits offset 6 of topic 'rows' partition 0, which ends at 5"):
        reader(log, "engine").commit({ROWS: 6})


def test_offsets_beyond_the_end_are_refused() -> None:
    log = log_with(records=5)
    with pytest.raises(LogError, match="offset 6 of topic 'rows' partition 0 is beyond its end 5"):
        reader(log, offset=6)
    with pytest.raises(LogError, match="has partitions 0 to 1, not 2"):
        log.consumer().end_offsets([Position("rows", 2)])
    assert log.consumer().end_offsets([ROWS, OTHER]) == {ROWS: 5, OTHER: 0}


# Bounds ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_truncating_topic_drops_what_all_its_readers_have_committed() -> None:
    log = log_with(records=6, truncate=True, readers=("engine", "sketch"))
    engine, sketch = reader(log, "engine"), reader(log, "sketch")
    engine.commit({ROWS: 5})
    assert engine.begin_offsets([ROWS]) == {ROWS: 0}
    sketch.commit({ROWS: 2})
    assert engine.begin_offsets([ROWS]) == {ROWS: 2}
    assert log.statistics()[ROWS].records == 4


def test_a_reader_that_is_named_but_has_not_come_keeps_everything() -> None:
    log = log_with(records=3, truncate=True, readers=("late",))
    reader(log, "engine").commit({ROWS: 3})
    assert values(reader(log, "late").poll(9, 0)) == [0, 1, 2]


def test_a_topic_that_does_not_truncate_keeps_what_was_committed() -> None:
    log = log_with(records=3)
    reader(log, "engine").commit({ROWS: 3})
    assert values(reader(log).poll(9, 0)) == [0, 1, 2]


def test_reading_below_what_is_kept_names_topic_partition_and_offsets() -> None:
    log = log_with(records=6, truncate=True)
    lagging = reader(log)
    reader(log, "engine").commit({ROWS: 4})
    words = "offset 0 of topic 'rows' partition 0 is below 4, the lowest that is kept"
    with pytest.raises(LogError, match=words):
        lagging.poll(1, 0)
    with pytest.raises(LogError, match=words):
        lagging.poll(1, FOREVER_S)
    with pytest.raises(LogError, match=words):
        reader(log)


def test_a_record_goes_only_when_its_whole_span_is_committed() -> None:
    log = log_with(truncate=True)
    producer = log.producer()
    producer.send("rows", 0, "a", span=10)
    engine = reader(log, "engine")
    engine.commit({ROWS: 9})
    assert values(reader(log, "engine", offset=None).poll(1, 0)) == ["a"]
    engine.commit({ROWS: 10})
    assert log.statistics()[ROWS].records == 0
    assert engine.begin_offsets([ROWS]) == {ROWS: 10}


def test_memory_is_flat_while_readers_keep_up() -> None:
    log = log_with(capacity=100, truncate=True, readers=("engine",))
    engine = reader(log, "engine")
    for step in range(2_000):
        send(log, *range(10))
        assert len(engine.poll(100, 0)) == 10
        engine.commit({ROWS: 10 * (step + 1)})
    statistics = log.statistics()[ROWS]
    assert (statistics.records, statistics.peak_records) == (0, 10)
    assert (statistics.begin_offset, statistics.end_offset) == (20_000, 20_000)
    assert len(log._partition(ROWS)._records) <= 20


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "are kept for good"),
        ({"truncate": True}, "no reader has committed"),
        ({"truncate": True, "readers": ("engine",)}, r"group 'engine' has not committed \(it is at offset 0\)"),
    ],
)
def test_a_full_partition_refuses_and_says_who_keeps_it_full(options: dict[str, object], reason: str) -> None:
    log = log_with(records=3, capacity=3, **options)
    with pytest.raises(CapacityError, match=f"topic 'rows' partition 0 is full with 3 records that {reason}"):
        send(log, "one too many")
    send(log, "elsewhere", partition=1)
    assert log.statistics()[ROWS].end_offset == 3


@pytest.mark.parametrize("close", [lambda log: log.close(), None])
def test_what_is_closed_says_so(close: Callable[[MemoryLog], None] | None) -> None:
    log = log_with(records=1)
    producer, consumer = log.producer(), reader(log)
    if close:
        close(log)
    else:
        producer.close()
        consumer.close()
    with pytest.raises(LogError, match="is closed"):
        producer.send("rows", 0, "x")
    with pytest.raises(LogError, match="is closed"):
        consumer.poll(1, 0)


# Threads ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Waits:
    """Tells when a thread begins to wait on a log, so that a test need not sleep until it does."""

    def __init__(self, log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        wait = log._changed.wait

        def tell_and_wait(timeout: float | None = None) -> bool:
            self.begun.release()  # the lock is held: who takes it next finds the thread waiting
            return wait(timeout)

        monkeypatch.setattr(log._changed, "wait", tell_and_wait)

    def for_one(self) -> None:
        assert self.begun.acquire(timeout=FOREVER_S)


def test_a_poll_that_waits_gets_what_is_sent_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_with()
    waits, consumer = Waits(log, monkeypatch), reader(log)
    with ThreadPoolExecutor() as threads:
        polled = threads.submit(consumer.poll, 10, FOREVER_S)
        waits.for_one()
        send(log, "a")
        assert values(polled.result(FOREVER_S)) == ["a"]


def test_a_poll_is_not_woken_for_a_paused_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_with()
    waits, consumer = Waits(log, monkeypatch), log.consumer()
    consumer.assign({ROWS: 0, OTHER: 0})
    consumer.pause([ROWS])
    with ThreadPoolExecutor() as threads:
        polled = threads.submit(consumer.poll, 10, FOREVER_S)
        waits.for_one()
        send(log, "a")
        waits.for_one()
        send(log, "u", partition=1)
        assert values(polled.result(FOREVER_S)) == ["u"]


def test_closing_the_log_wakes_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog(ManualClock(), send_timeout_s=FOREVER_S)
    log.create_topic("rows", 2, capacity=1)
    send(log, "a")
    waits, consumer = Waits(log, monkeypatch), log.consumer()
    consumer.assign({OTHER: 0})
    with ThreadPoolExecutor() as threads:
        polled = threads.submit(consumer.poll, 10, FOREVER_S)
        waits.for_one()
        sent = threads.submit(send, log, "b")
        waits.for_one()
        log.close()
        assert polled.result(FOREVER_S) == []
        with pytest.raises(LogError, match="the log is closed"):
            sent.result(FOREVER_S)


def test_a_send_waits_for_room_and_goes_on_when_a_reader_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog(ManualClock(), send_timeout_s=FOREVER_S)
    log.create_topic("rows", 1, capacity=1, truncate=True, readers=("engine",))
    send(log, "a")
    waits, engine = Waits(log, monkeypatch), reader(log, "engine")
    with ThreadPoolExecutor() as threads:
        sent = threads.submit(send, log, "b")
        waits.for_one()
        engine.commit({ROWS: 1})
        sent.result(FOREVER_S)
    assert values(reader(log, "engine", offset=None).poll(9, 0)) == ["b"]
    assert log.statistics()[ROWS].peak_records == 1


def test_many_threads_lose_and_repeat_nothing() -> None:
    log = MemoryLog(ManualClock(), send_timeout_s=FOREVER_S)
    log.create_topic("rows", 2, capacity=16, truncate=True, readers=("left", "right"))
    each, writers = 500, 4

    def write(writer: int) -> None:
        producer = log.producer()
        for i in range(each):
            producer.send("rows", i % 2, (writer, i))

    def read_all(group: str) -> list[tuple[int, int]]:
        consumer, seen = log.consumer(group), []
        consumer.assign({ROWS: 0, OTHER: 0})
        while len(seen) < each * writers:
            records = consumer.poll(7, FOREVER_S)
            seen += [record.value for record in records]
            consumer.commit({Position(r.topic, r.partition): r.next_offset for r in records})
        return seen

    with ThreadPoolExecutor() as threads:
        readers = [threads.submit(read_all, group) for group in ("left", "right")]
        done = [threads.submit(write, writer) for writer in range(writers)]
        for future in (*done, *readers):
            future.result(FOREVER_S)
    for future in readers:
        seen = future.result()
        assert sorted(seen) == [(writer, i) for writer in range(writers) for i in range(each)]
        for writer in range(writers):
            for parity in (0, 1):
                own = [i for w, i in seen if w == writer and i % 2 == parity]
                assert own == sorted(own)
    for statistics in log.statistics().values():
        assert statistics.records == 0
        assert statistics.peak_records <= 16
