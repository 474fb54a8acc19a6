"""The newest letters of all partitions, of one stream, all of them, and those to come."""

import pytest

from services.dead_letters.reader import TOPIC, Letters
from skyband.errors import LogError
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.model.source_rows import DeadLetter, Reason

S = 1_000_000


class Log(MemoryLog):
    """A log with letters of two streams: those of stream rare are few, in partition 1."""

    def __init__(self) -> None:
        self.clock = ManualClock(0)
        super().__init__(self.clock)
        self.create_topic(TOPIC, 2)
        self.writer = self.producer()
        self.number = 0

    def fill(self, letters: int, rare: int = 0) -> "Log":
        for number in range(letters):
            self.add("often", 0)
            if number < rare:
                self.add("rare", 1)
        return self

    def add(self, stream: str, partition: int) -> None:
        self.number += 1
        letter = DeadLetter(stream, f"topic.{stream}", 0, self.number, Reason.LATE, "why", b"raw")
        self.writer.send(TOPIC, partition, letter, timestamp_us=self.number * S)


def numbers(found: object) -> list[int]:
    return [letter.letter.offset for letter in found]  # type: ignore[attr-defined]


def test_the_newest_come_in_order_of_time_over_all_partitions() -> None:
    assert numbers(Letters(Log().fill(5, rare=2)).newest(4)) == [4, 5, 6, 7]
    assert numbers(Letters(Log().fill(5, rare=5)).newest(4)) == [7, 8, 9, 10]


def test_those_of_one_stream_are_found_however_far_back() -> None:
    assert numbers(Letters(Log().fill(3_000, rare=2), "rare").newest(2)) == [2, 4]


def test_there_may_be_fewer_or_none() -> None:
    assert numbers(Letters(Log().fill(2)).newest(10)) == [1, 2]
    assert numbers(Letters(Log()).newest(10)) == []
    assert numbers(Letters(Log().fill(2)).newest(0)) == []
    assert numbers(Letters(Log().fill(2), "other").newest(10)) == []


def test_all_of_them_come_from_the_beginning() -> None:
    assert sorted(numbers(Letters(Log().fill(2_500, rare=3)).all())) == list(range(1, 2_504))


def test_what_comes_is_followed_without_a_gap_or_a_repeat() -> None:
    log = Log().fill(3)
    letters = Letters(log)
    assert numbers(letters.newest(2)) == [2, 3]
    log.add("often", 0)
    log.add("rare", 1)
    following = letters.follow(lambda: log.number >= 6)
    assert [next(following).letter.offset, next(following).letter.offset] == [4, 5]
    log.add("rare", 1)
    assert numbers(following) == []


def test_without_the_topic_there_is_nothing_to_read() -> None:
    with pytest.raises(LogError):
        Letters(MemoryLog(ManualClock(0)))
