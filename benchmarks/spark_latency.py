"""How old results are when they come, from the services and from the pipeline on Spark, one after the other.

W1's question every 100 ms over 10 s, as in ``bench_pipeline --latency``: records are in order, so that a window is
complete when each partition has a record of after its end. Both write their results to a topic of Kafka, whose reader
tells the age: from the window's end to the result, committed, in a consumer's hands.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import workloads
from benchmarks.deployment import SERVICES, deployed
from benchmarks.harness import show
from benchmarks.spark_history import Figures, log_of
from benchmarks.spark_runs import running
from services.runtime import topics
from services.runtime.codecs import Codecs
from skyband.client import Client
from skyband.model.result import Result

__all__ = ["latency"]

_PREFIX = "spark."
_RESULTS = "results"
_WARM_S, _LATENCY_S = 75, 30


def latency(rate: int) -> Figures:
    """Measure both at so many records a second, each with topics of its own."""
    figures: Figures = {}
    with deployed(()) as deployment, tempfile.TemporaryDirectory(prefix="skyband-bench-") as folder:
        bootstrap = deployment.bootstrap
        topics.apply(log_of(bootstrap, _PREFIX))
        deployment.start(SERVICES, {})
        with (
            Client(deployment.address("control")) as client,
            _produced(bootstrap, _make(bootstrap, "services"), rate) as began_us,
        ):
            _ask(client, "services")
            figures["services_latency"] = _ages(bootstrap, _RESULTS, began_us, rate)
        deployment.stop()
        show("services_latency", figures["services_latency"])
        definitions = Path(folder, "definitions.yaml")
        definitions.write_text(json.dumps(_definitions("spark")))
        names = _make(bootstrap, "spark")
        asked = ("--definitions", str(definitions), "--checkpoint", f"{folder}/state", "--trigger", "0s")
        with (
            running(bootstrap, "pipeline", asked, {"SKYBAND_KAFKA_TOPIC_PREFIX": _PREFIX}),
            _produced(bootstrap, names, rate) as began_us,
        ):
            figures["spark_latency"] = _ages(bootstrap, _PREFIX + _RESULTS, began_us, rate)
        show("spark_latency", figures["spark_latency"])
    return figures


def _definitions(name: str) -> dict[str, Any]:
    common = {"aggregate": "sum", "hi": 1, "fields": {"time_unit": "ms"}}
    listed = [{"name": f"r{i}", "topic": f"{name}-r{i}", **common} for i in range(4)]
    query = {"name": "top", "k": 10, "score": "r0 + r1 + r2 + r3", "window": {"size": "10s", "slide": "100ms"}}
    group = {"name": name, "retention": "10s", "pane": "100ms", "shards": 2, "streams": listed}
    return {"group": group, "queries": [query]}


def _make(bootstrap: str, name: str) -> list[str]:
    """Make the topics of a group, and return their names."""
    names = [f"{name}-r{i}" for i in range(4)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, workloads.PARTITIONS, 1) for topic in names]).values():
        made.result()
    return names


def _ask(client: Client, name: str) -> None:
    streams = [f"{name}_r{i}" for i in range(4)]
    for i, stream in enumerate(streams):
        client.create_stream(stream, topic=f"{name}-r{i}", aggregate="sum", hi=1.0, fields={"time_unit": "ms"})
    client.create_group(name, streams=streams, retention="10s", pane="100ms", shards=2)
    client.create_query(name, name="top", k=10, score=" + ".join(streams), window="10s", slide="100ms")


@contextmanager
def _produced(bootstrap: str, names: list[str], rate: int) -> Iterator[int]:
    """Let records come for a block, long enough to measure; yield when they began."""
    command = [sys.executable, "-m", "benchmarks.live_producer", bootstrap, ",".join(names)]
    began_us = time.time_ns() // 1_000
    process = subprocess.Popen([*command, str(rate), str(_WARM_S + _LATENCY_S + 5)], stdout=subprocess.DEVNULL)
    try:
        yield began_us
    finally:
        process.terminate()
        process.wait()


def _ages(bootstrap: str, topic: str, began_us: int, rate: int) -> dict[str, float]:
    """Return the ages of the results of windows that end after the time to warm up."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_committed"})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    codecs, low_us = Codecs(), began_us + _WARM_S * 1_000_000
    high_us, ages = low_us + _LATENCY_S * 1_000_000, list[float]()
    try:
        while time.time_ns() // 1_000 < high_us:
            message = consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            result = codecs.decode(_RESULTS, message.value())
            if isinstance(result, Result) and result.window_end > low_us:
                ages.append((time.time_ns() // 1_000 - result.window_end) / 1e3)
    finally:
        consumer.close()
    if len(ages) < 100:
        raise RuntimeError(f"{len(ages)} results came in {_LATENCY_S} s")
    return {
        "rate": rate,
        "windows": len(ages),
        "p50_ms": statistics.median(ages),
        "p99_ms": statistics.quantiles(ages, n=100)[98],
    }
