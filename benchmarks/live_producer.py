"""Writes W1's kind of records as time goes by: ``python -m benchmarks.live_producer BOOTSTRAP TOPICS RATE SECONDS``.

A process of its own, so that its work is not done by the process that measures. Event time is the time of writing.
A Python object per record would take the core that the services are to be measured on: the messages are laid out in
columns, and given to the C library a hundredth of a second at a time.
"""

import ctypes
import sys
import time

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer

from benchmarks.workloads import PARTITIONS
from services.runtime.librdkafka import ADDRESS_AT, BYTES_AT, PARTITION_AT, RD, WORDS, handle_of

_TICK_S = 0.01
_OBJECTS = 10_000
# Flags of rd_kafka_produce_batch: copy the values; each message says its partition.
_COPY, _HAS_PARTITION = 0x2, 0x8
_KEY_AT, _KEY_BYTES_AT = 5, 6

_WIDTH = 1 + 5 + 6 + 8  # length of the id, id, time, value

RD.rd_kafka_topic_new.restype = ctypes.c_void_p
RD.rd_kafka_topic_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
RD.rd_kafka_produce_batch.restype = ctypes.c_int
RD.rd_kafka_produce_batch.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int, ctypes.c_void_p, ctypes.c_int]


class _Values:
    """Lays out plain Avro of id, time in ms and value, for the objects ``o0`` … ``o9999``."""

    def __init__(self) -> None:
        self._ids = np.array([b"o%d" % number for number in range(_OBJECTS)], "S5").view(np.uint8).reshape(-1, 5)
        self._lengths = (self._ids != 0).sum(axis=1)

    def of(
        self, numbers: npt.NDArray[np.int64], now_ms: int, values: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return uint8[n, 20], a value at the beginning of each row, and the lengths of the ids."""
        out, lengths = np.empty((len(numbers), _WIDTH), np.uint8), self._lengths[numbers]
        zigzag = 2 * now_ms
        tail = np.empty((len(numbers), 14), np.uint8)
        tail[:, :6] = [zigzag >> 7 * place & 0x7F | (0x80 if place < 5 else 0) for place in range(6)]
        tail[:, 6:] = values.astype("<f8").view(np.uint8).reshape(-1, 8)
        out[:, 0] = 2 * lengths
        out[:, 1:6] = self._ids[numbers]
        for length in range(2, 6):
            its = np.flatnonzero(lengths == length)
            out[its, 1 + length : 15 + length] = tail[its]
        return out, lengths


def produce(bootstrap: str, topics: list[str], rate: int, seconds: float) -> float:
    """Write `rate` records a second, spread over the topics, for so long; return the rate that was reached."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "enable.idempotence": True,
        }
    )
    for topic in topics:
        producer.list_topics(topic, 30)
    handles = [RD.rd_kafka_topic_new(handle_of(producer), topic.encode(), None) for topic in topics]
    rng, layout = np.random.default_rng(7), _Values()
    a_tick = max(1, round(rate * _TICK_S / len(topics)))
    began = time.time()
    written = 0
    while time.time() - began < seconds:
        due = began + written / rate
        if due > time.time():
            time.sleep(due - time.time())
        for handle in handles:
            numbers = rng.integers(0, _OBJECTS, a_tick)
            rows, lengths = layout.of(numbers, time.time_ns() // 1_000_000, rng.random(a_tick))
            messages = np.zeros((a_tick, WORDS), np.int64)
            messages[:, ADDRESS_AT] = rows.ctypes.data + np.arange(a_tick) * _WIDTH
            messages[:, BYTES_AT] = lengths + 15
            messages[:, _KEY_AT] = messages[:, ADDRESS_AT] + 1
            messages[:, _KEY_BYTES_AT] = lengths
            messages.view(np.int32)[:, PARTITION_AT] = numbers % PARTITIONS
            taken = RD.rd_kafka_produce_batch(handle, -1, _COPY | _HAS_PARTITION, messages.ctypes.data, a_tick)
            if taken < a_tick:
                raise RuntimeError("the broker is behind by a whole queue; take a lower rate")
            written += a_tick
        producer.poll(0)
    took = time.time() - began
    producer.flush(30)
    return written / took


if __name__ == "__main__":
    reached = produce(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), float(sys.argv[4]))
    print(f"{reached:.0f}")
