"""Writing a scenario's records to a broker: all at once, or at a rate beside a test."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence

from confluent_kafka import KafkaError, Message, Producer

from tests.kafka.scenarios import Record

__all__ = ["Feed", "new_producer", "write"]


def _raise(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise AssertionError(f"a record of {message.topic()} was not stored: {error}")


def new_producer(bootstrap: str) -> Producer:
    """Return a stock producer."""
    settings = {"enable.idempotence": True, "linger.ms": 5, "log_level": 1}
    return Producer({"bootstrap.servers": bootstrap, **settings, "on_delivery": _raise})


def write(bootstrap: str, records: Iterable[Record]) -> int:
    """Write records, and return how many when all are stored."""
    producer = new_producer(bootstrap)
    count = 0
    for record in records:
        producer.produce(record.topic, record.value, partition=record.partition)
        producer.poll(0)
        count += 1
    assert producer.flush(60) == 0
    return count


class Feed:
    """Writes records at a rate, on a thread, while a test does something else.

    It goes no further than `allow` says, so that data still flows however slow the machine is that does the rest.
    `written` tells how many are written; `finish` writes what is left at once, `cancel` nothing more.
    """

    def __init__(self, bootstrap: str, records: Sequence[Record], rate: float, allowed: int | None = None) -> None:
        self._producer = new_producer(bootstrap)
        self._records = records
        self._rate = rate
        self._allowed = len(records) if allowed is None else allowed
        self._is_cancelled = False
        self._hurry = threading.Event()
        self._failure: BaseException | None = None
        self.written = 0
        self._thread = threading.Thread(target=self._run, name="feed")

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    @property
    def is_done(self) -> bool:
        """Whether all is written."""
        return self.written == len(self._records)

    def allow(self, rows: int | None = None) -> None:
        """Write up to so many rows in all (None: all), and wait there."""
        self._allowed = len(self._records) if rows is None else rows

    def cancel(self) -> None:
        """Write nothing more."""
        self._is_cancelled = True
        self.finish()

    def finish(self) -> None:
        """Write the rest without waiting, and return when all is stored."""
        self._hurry.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for record in self._paced():
                self._producer.produce(record.topic, record.value, partition=record.partition)
                self._producer.poll(0)
                self.written += 1
            assert self._producer.flush(60) == 0
        except BaseException as error:
            self._failure = error

    def _paced(self) -> Iterator[Record]:
        due = time.monotonic()
        for number, record in enumerate(self._records):
            while number >= self._allowed and not self._hurry.is_set():
                self._producer.flush(0.02)
                self._hurry.wait(0.02)
                due = time.monotonic()
            early = due - time.monotonic()
            if early > 0.01 and not self._hurry.is_set():
                self._producer.poll(0)
                self._hurry.wait(early)
            if self._is_cancelled:
                return
            due += 1 / self._rate
            yield record
