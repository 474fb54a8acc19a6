"""The workloads as Flink SQL jobs: from the records' topics to a topic of results in JSON.

A job is unbounded, as in production, and cancelled when it has given the last window that the records' own time
completes. Seconds run from the job's RUNNING, by the job manager's word, to that window's last row, by the time at
which the broker appended it: neither planning nor the reading of results is in them.
"""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import workloads
from benchmarks.peers.flink.cluster import Cluster, running_cluster
from benchmarks.peers.flink.distribution import ensure_distribution
from benchmarks.peers.peer import Form, PeerError, Run, Trial, Windows
from services.runtime.embedded.jars import tell
from skyband.errors import SkybandError

__all__ = ["Flink"]

_HERE = Path(__file__).parent
_WAIT_S = 1_800.0
# An interval join holds its watermark back by the width of its interval.
_HELD_BACK_MS = {"w2_simplified": 30_000}


def _simplified(records: workloads.Records) -> Windows:
    """Return what is right when an object of W2 counts from the time of its record in r0, as W3's records do."""
    first = records.topic == 0
    size = int(records.object_id.max()) + 1
    event, value = np.full((2, size), -1, np.int64), np.zeros((2, size))
    for side, its in enumerate((first, ~first)):
        event[side, records.object_id[its]] = records.event_ms[its]
        value[side, records.object_id[its]] = records.value[its]
    both = np.nonzero((event >= 0).all(axis=0))[0]
    topic = np.zeros(len(both), np.int8)
    joined = workloads.Records(topic, both, event[0, both], value[:, both].sum(axis=0), event[0, both])
    return {end: rows[: workloads.WORKLOADS["w2"].k] for end, rows in workloads.expected("w3", joined).items()}


class Flink:
    """Apache Flink SQL; W2 in two forms, of which the first asks what Skyband is asked."""

    name = "flink"

    def prepare(self) -> None:
        """Fetch Flink if it is not there."""
        try:
            ensure_distribution()
        except SkybandError as error:
            raise PeerError(str(error)) from None

    def forms(self, workload: str) -> Sequence[Form]:
        """Return the workload's own form, and for W2 a simpler one."""
        forms = [Form(workload, lambda records: workloads.expected(workload, records))]
        return [*forms, Form("w2_simplified", _simplified)] if workload == "w2" else forms

    def run(self, bootstrap: str, workload: str, form: Form, trials: Sequence[Trial]) -> list[Run]:
        """Run a form on each trial in one JVM, after one run on the first of them that does not count."""
        try:
            with running_cluster(ensure_distribution()) as cluster:
                tell(f"flink: warming up with {len(trials[0].records.event_ms):,} records of {form.name}")
                runs = [
                    self._run(cluster, bootstrap, workload, form, trial, f"flink-{form.name}-{number}")
                    for number, trial in enumerate([trials[0], *trials])
                ]
        except (KafkaException, OSError, SkybandError, psutil.Error) as error:
            raise PeerError(f"Flink did not finish {form.name}: {error}") from error
        return runs[1:]

    def _run(self, cluster: Cluster, bootstrap: str, workload: str, form: Form, trial: Trial, results: str) -> Run:
        topic = NewTopic(results, 1, 1, config={"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"})
        # Its futures fail if the client is gone before they are done.
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([topic])[results].result()
        streams = [
            _filled("stream", stream=stream, topic=f"{trial.topics}-{stream}", bootstrap=bootstrap)
            for stream in workloads.WORKLOADS[workload].streams
        ]
        sink = _filled("results", topic=results, bootstrap=bootstrap)
        last_ms = trial.last_ms - _HELD_BACK_MS.get(form.name, 0)
        right = form.right(trial.records)
        before = cluster.cost()
        job = cluster.submit("\n".join([*streams, sink, _filled(form.name)]))
        began_ms = cluster.began_ms(job)
        windows, ended_ms = _read(cluster, job, bootstrap, results, last_ms, len(right[last_ms]))
        after = cluster.cost()
        cluster.cancel(job)
        cpu_s = sum(after.since(before).values())
        return Run((ended_ms - began_ms) / 1e3, cpu_s, max(after.peak_mb.values()), windows)


def _filled(name: str, **words: str) -> str:
    text = (_HERE / f"{name}.sql").read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return text


def _read(cluster: Cluster, job: str, bootstrap: str, topic: str, last_ms: int, rows: int) -> tuple[Windows, int]:
    """Return the windows up to `last_ms`, which has so many rows, and when the last of them was written, in ms."""
    servers = {"bootstrap.servers": bootstrap, "group.id": "bench-flink", "enable.auto.commit": False}
    consumer = Consumer(servers)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: dict[int, list[tuple[int, str, float]]] = {}
    ended_ms = 0
    give_up_s = time.monotonic() + _WAIT_S
    try:
        while len(found.get(last_ms, [])) < rows:
            if time.monotonic() > give_up_s:
                raise PeerError(f"Flink gave no window {last_ms} in {_WAIT_S:g} s; the last is {max(found, default=0)}")
            messages = consumer.consume(10_000, 1.0)
            if not messages:
                cluster.began_ms(job)
            for message in messages:
                if message.error() is not None:
                    raise PeerError(f"Flink's results cannot be read: {message.error()}")
                row = json.loads(message.value() or b"")
                end = datetime.fromisoformat(row["window_end"]).replace(tzinfo=UTC)
                end_ms = round(end.timestamp() * 1e3)
                found.setdefault(end_ms, []).append((row["place"], row["object_id"], row["score"]))
                if end_ms == last_ms:
                    ended_ms = message.timestamp()[1]
    finally:
        consumer.close()
    kept = {end: [(name, score) for _, name, score in sorted(rows)] for end, rows in found.items() if end <= last_ms}
    return kept, ended_ms
