"""The workloads that peers were measured on, made from the same seeds: records in Kafka topics, and what is right.

===  =====================================================================================================
W1   topics r0 … r3, 10,000 objects; every second the 10 objects with the largest sums of the last 60 s
W2   topics r0, r1, each object once in each, up to 30 s apart; the 10 best sums of those that have both
W3   topic s, every record an object; the 100 best of the last 60 s, every second
===  =====================================================================================================

Event time covers 600 s however many records there are; records arrive up to a second after it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PARTITIONS", "WORKLOADS", "Records", "Workload", "definitions", "expected", "load", "make"]

PARTITIONS = 4
RECORDS = 4_000_000
_BEGIN_MS = 1_700_000_040_000
_SPAN_MS = 600_000
_DISORDER_MS = 1_000
_SEED = 20240601
_SIZE_MS, _SLIDE_MS = 60_000, 1_000


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload. `seed` is its place in the peers' list of datasets: uniform and skewed W1, W2, W3."""

    seed: int
    streams: tuple[str, ...]
    aggregate: str
    k: int
    require: str


@dataclass(frozen=True, slots=True)
class Records:
    """Records in order of arrival: index of the topic, number of the object, times in ms, value."""

    topic: npt.NDArray[np.int8]
    object_id: npt.NDArray[np.int64]
    event_ms: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    arrival_ms: npt.NDArray[np.int64]

    def first(self, fraction: float) -> "Records":
        """Return those that arrive in about the first `fraction` of the time, at the same rate."""
        if fraction >= 1:
            return self
        cut = int(np.searchsorted(self.arrival_ms, self.arrival_ms[int(len(self.arrival_ms) * fraction)]))
        columns = (self.topic, self.object_id, self.event_ms, self.value, self.arrival_ms)
        return Records(*(column[:cut] for column in columns))


WORKLOADS = {
    "w1": Workload(0, ("r0", "r1", "r2", "r3"), "sum", 10, "any"),
    "w2": Workload(2, ("r0", "r1"), "best", 10, "all"),
    "w3": Workload(3, ("s",), "best", 100, "any"),
}


def definitions(workload: str, name: str) -> dict[str, Any]:
    """Return the definitions of a group `name` over the topics ``<name>-<stream>``."""
    asked = WORKLOADS[workload]
    window = {"size": "60s", "slide": "1s"}
    score = " + ".join(asked.streams)
    query = {"name": "top", "k": asked.k, "score": score, "window": window, "require": asked.require}
    common = {"aggregate": asked.aggregate, "hi": 1, "max_delay": "1s", "fields": {"time_unit": "ms"}}
    listed = [{"name": stream, "topic": f"{name}-{stream}", **common} for stream in asked.streams]
    return {"group": {"name": name, "retention": "60s", "shards": 2, "streams": listed}, "queries": [query]}


def make(name: str, records: int = RECORDS, objects: int = 10_000) -> Records:
    """Return the records of a workload."""
    rng = np.random.default_rng([_SEED, WORKLOADS[name].seed])
    if name == "w1":
        topic = np.tile(np.arange(4, dtype=np.int8), records // 4)
        event = _BEGIN_MS + rng.integers(0, _SPAN_MS, records)
        number = rng.integers(0, objects, records)
    elif name == "w2":
        half = records // 2
        first = _BEGIN_MS + rng.integers(0, _SPAN_MS - 30_000, half)
        second = first + rng.integers(0, 30_001, half)
        swapped = rng.random(half) < 0.5
        event = np.concatenate([np.where(swapped, second, first), np.where(swapped, first, second)])
        number = np.concatenate([np.arange(half), np.arange(half)])
        topic = np.repeat(np.array([0, 1], np.int8), half)
    else:
        topic = np.zeros(records, np.int8)
        event = _BEGIN_MS + rng.integers(0, _SPAN_MS, records)
        number = np.arange(records)
    value = rng.random(len(event))
    arrival = event + rng.random(len(event)) * _DISORDER_MS
    order = np.argsort(arrival, kind="stable")
    number = number.astype(np.int64)
    if name != "w3":  # there objects are numbered as they arrive
        number = number[order]
    return Records(topic[order], number, event[order], value[order], arrival[order].astype(np.int64))


def _tails(records: Records) -> bytes:
    """Return the 14 bytes behind the id of each record: the time as a zig-zag varint of 6 bytes, and the value."""
    zigzag = records.event_ms.astype(np.uint64) << np.uint64(1)
    out = np.empty((len(zigzag), 14), np.uint8)
    for place in range(6):
        out[:, place] = (zigzag >> np.uint64(7 * place)) & np.uint64(0x7F)
        if place < 5:
            out[:, place] |= 0x80
    out[:, 6:] = records.value.astype("<f8").view(np.uint8).reshape(-1, 8)
    return out.tobytes()


def encoded(records: Records) -> Iterator[tuple[int, bytes, bytes, int]]:
    """Yield (topic index, key, value, arrival in ms) of each record: plain Avro of id, time in ms, value."""
    tails = _tails(records)
    rows = zip(records.topic.tolist(), records.object_id.tolist(), records.arrival_ms.tolist(), strict=True)
    for row, (topic, number, arrival) in enumerate(rows):
        key = b"o%d" % number
        yield topic, key, bytes((2 * len(key),)) + key + tails[14 * row : 14 * row + 14], arrival


def load(bootstrap: str, name: str, topics: str, records: Records) -> float:
    """Write records to the topics ``<topics>-<stream>``, keyed by object; return the seconds it took."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    names = [f"{topics}-{stream}" for stream in WORKLOADS[name].streams]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(topic, PARTITIONS, 1, config={"retention.ms": "-1"}) for topic in names]
    for made in admin.create_topics(new).values():
        made.result()
    began = time.perf_counter()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 500_000,
            "enable.idempotence": True,
        }
    )
    for count, (topic, key, value, arrival) in enumerate(encoded(records)):
        while True:
            try:
                producer.produce(names[topic], value, key, timestamp=arrival)
                break
            except BufferError:
                producer.poll(0.05)
        if count % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("records were not delivered")
    return time.perf_counter() - began


def _best(numbers: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], k: int) -> list[tuple[str, float]]:
    if len(scores) > 4 * k:
        kept = np.argpartition(-scores, k)[: k + 5]
        numbers, scores = numbers[kept], scores[kept]
    order = np.lexsort((numbers, -scores))[:k]
    return [(f"o{numbers[i]}", float(scores[i])) for i in order]


def expected(name: str, records: Records) -> dict[int, list[tuple[str, float]]]:
    """Return what is right, by window end in ms: (object, score), best first. Cost: a pass over each window's rows."""
    event, number, value = records.event_ms, records.object_id, records.value
    k = WORKLOADS[name].k
    if name == "w2":
        size = int(number.max()) + 1
        times, values = np.full((2, size), -1, np.int64), np.zeros((2, size))
        for topic in range(2):
            its = records.topic == topic
            times[topic, number[its]], values[topic, number[its]] = event[its], value[its]
        ids = np.nonzero((times >= 0).all(axis=0))[0]
        scores, enters, oldest = values[:, ids].sum(axis=0), times[:, ids].max(axis=0), times[:, ids].min(axis=0)
    else:
        ids, scores, enters, oldest = number, value, event, event
    order = np.argsort(enters, kind="stable")
    ids, scores, enters, oldest = ids[order], scores[order], enters[order], oldest[order]
    last = int(event.max()) // _SLIDE_MS * _SLIDE_MS + _SIZE_MS
    found: dict[int, list[tuple[str, float]]] = {}
    for end in range(int(event.min()) // _SLIDE_MS * _SLIDE_MS + _SLIDE_MS, last + 1, _SLIDE_MS):
        lo, hi = np.searchsorted(enters, [end - _SIZE_MS, end])
        if name == "w1":
            sums = np.bincount(ids[lo:hi], weights=scores[lo:hi])
            there = np.nonzero(np.bincount(ids[lo:hi]))[0]
            best = _best(there, sums[there], k)
        else:
            kept = oldest[lo:hi] >= end - _SIZE_MS
            best = _best(ids[lo:hi][kept], scores[lo:hi][kept], k)
        if best:
            found[end] = best
    return found
