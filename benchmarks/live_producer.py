"""Writes W1's kind of records as time goes by: ``python -m benchmarks.live_producer BOOTSTRAP TOPICS RATE SECONDS``.

A process of its own, so that its work is not done by the process that measures. Event time is the time of writing.
"""

import sys
import time

import numpy as np
from confluent_kafka import Producer

from benchmarks.workloads import Records, encoded

_TICK_S = 0.01


def produce(bootstrap: str, topics: list[str], rate: int, seconds: float) -> float:
    """Write `rate` records a second, spread over the topics, for so long; return the rate that was reached."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
        }
    )
    rng = np.random.default_rng(7)
    a_tick = max(1, round(rate * _TICK_S))
    began = time.time()
    written = 0
    while time.time() - began < seconds:
        due = began + written / rate
        if due > time.time():
            time.sleep(due - time.time())
        now_ms = np.full(a_tick, time.time_ns() // 1_000_000, np.int64)
        topic = rng.integers(0, len(topics), a_tick).astype(np.int8)
        records = Records(topic, rng.integers(0, 10_000, a_tick), now_ms, rng.random(a_tick), now_ms)
        for place, key, value, _ in encoded(records):
            while True:
                try:
                    producer.produce(topics[place], value, key)
                    break
                except BufferError:
                    # The broker is behind: the rate that was reached will say so.
                    producer.poll(0.01)
        producer.poll(0)
        written += a_tick
    took = time.time() - began
    producer.flush(30)
    return written / took


if __name__ == "__main__":
    reached = produce(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), float(sys.argv[4]))
    print(f"{reached:.0f}")
