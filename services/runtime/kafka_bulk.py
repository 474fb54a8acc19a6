"""Many messages of a consumer at once, as columns."""

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, KafkaError

from services.runtime.kafka_bulk_kernel import FIELDS, copy_messages, sort_messages
from services.runtime.librdkafka import ERROR_AT, OFFSET_AT, PARTITION_AT, RD, TOPIC_AT, WORDS, handle_of
from services.runtime.payloads import Payloads

__all__ = ["Chunk", "Event", "KafkaBulk"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages of one partition, in order: int64[n] offsets, int64[n] timestamps (us, below 0: none), and values."""

    topic: str
    partition: int
    offset: npt.NDArray[np.int64]
    time_us: npt.NDArray[np.int64]
    values: Payloads


@dataclass(frozen=True, slots=True)
class Event:
    """What the library says of a partition instead of a message."""

    topic: str
    partition: int
    offset: int
    error: KafkaError


class KafkaBulk:
    """A queue of its own for the messages of some partitions of a consumer; one thread owns both.

    A partition is taken over before it is assigned, and from then on nothing of it comes through the consumer itself:
    no message is overtaken. What is outdated (by a seek, a pause, a new assignment) the library drops by itself, as it
    does for the consumer. Initially no partition is taken over.

    It must be closed before the consumer, whose end would wait for it for ever; it sees to that itself if nobody does.
    """

    def __init__(self, consumer: Consumer, most: int) -> None:
        """Take at most `most` messages at once."""
        self._queue = 0
        self._consumer = consumer
        self._handle = handle_of(consumer)
        self._queue = RD.rd_kafka_queue_new(self._handle)
        self._messages = np.zeros(most, np.int64)
        self._heads = np.zeros((most, FIELDS), np.int64)
        self._group_of = np.zeros(most, np.int64)
        self._groups = np.zeros((most, 4), np.int64)
        self._words = np.zeros(WORDS, np.int64)

    def add(self, topic: str, partition: int) -> None:
        """Take over a partition, which is not assigned yet or has been taken over before."""
        its = RD.rd_kafka_queue_get_partition(self._handle, topic.encode(), partition)
        RD.rd_kafka_queue_forward(its, self._queue)
        RD.rd_kafka_queue_destroy(its)

    def take(self, most: int, timeout_s: float) -> tuple[list[Chunk], list[Event]]:
        """Return what is there, at most so many messages; if nothing is, wait for it.

        Cost: 0.2 us a message, hardly any of it under Python's lock.
        """
        most = min(most, len(self._messages))
        count = self._consume(0, most)
        if count == 0 and timeout_s > 0:
            message = RD.rd_kafka_consume_queue(self._queue, max(1, round(1_000 * timeout_s)))
            if message:
                self._messages[0] = message
                count = 1 + self._consume(1, most - 1)
        return self._columns(count)

    def close(self) -> None:
        """Give the queue back."""
        queue, self._queue = self._queue, 0
        if queue:
            RD.rd_kafka_queue_destroy(queue)

    def __del__(self) -> None:
        self.close()

    def _consume(self, first: int, most: int) -> int:
        if most == 0:
            return 0
        into = self._messages.ctypes.data + 8 * first
        return max(0, int(RD.rd_kafka_consume_batch_queue(self._queue, 0, into, most)))

    def _columns(self, count: int) -> tuple[list[Chunk], list[Event]]:
        messages, heads, group_of = self._messages[:count], self._heads[:count], self._group_of[:count]
        found = sort_messages(messages, self._words, self._words.view(np.int32), heads, group_of, self._groups)
        groups = self._groups[:found]
        events = [self._event(int(messages[place])) for place in np.flatnonzero(group_of < 0)]
        rows, at = np.cumsum(groups[:, 2]), np.cumsum(groups[:, 3])
        starts, begins = rows - groups[:, 2], at - groups[:, 3]
        total, size = (int(rows[-1]), int(at[-1])) if found else (0, 0)
        offset, time_us, ends = (np.empty(total, np.int64) for _ in range(3))
        data, is_none = np.empty(size, np.uint8), np.empty(total, np.bool_)
        copy_messages(
            messages, heads, group_of, starts.copy(), begins.copy(), offset, time_us, data, ends, is_none.view(np.uint8)
        )
        chunks = []
        for group, (topic, partition, _, _) in enumerate(groups.tolist()):
            first, last = int(starts[group]), int(rows[group])
            values = Payloads(data[begins[group] : at[group]], ends[first:last], is_none[first:last])
            chunks.append(Chunk(_name(topic), partition, offset[first:last], time_us[first:last], values))
        return chunks, events

    def _event(self, message: int) -> Event:
        """Return an event as Python values, and destroy it."""
        words = np.ctypeslib.as_array((ctypes.c_int64 * WORDS).from_address(message))
        halves = words.view(np.int32)
        text = RD.rd_kafka_message_errstr(message)
        error = KafkaError(int(halves[ERROR_AT]), (text or b"").decode(errors="replace"))
        event = Event(_name(int(words[TOPIC_AT])), int(halves[PARTITION_AT]), int(words[OFFSET_AT]), error)
        RD.rd_kafka_message_destroy(message)
        return event


def _name(topic: int) -> str:
    return (RD.rd_kafka_topic_name(topic) or b"").decode() if topic else ""
