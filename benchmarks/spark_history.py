"""The jobs that read history, at several sizes: archive, statistics and rebuild, each checked for what it made.

Each size is a group of its own with W1's streams, aligned by the services into two shards, which then stop.
"""

import json
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks import workloads
from benchmarks.bench_pipeline import ask
from benchmarks.deployment import Deployment, deployed
from benchmarks.harness import show
from benchmarks.spark_runs import Ran, exponent, ran
from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.align.topics import aligned_topic, consumer_group
from skyband.client import Client
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.log.read_range import read_all
from skyband.log.record_log import Position
from spark.archive_store import ArchiveStore

__all__ = ["JOBS", "measure"]

JOBS = ("archive", "statistics", "rebuild")
NEW_SHARDS = 5
_WORKLOAD = "w1"
_ERRORS = 4
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SPAN = ("--from", "2023-11-14T22:14:00", "--to", "2023-11-14T22:24:00")
_WAIT_S = 300.0

Figures = dict[str, dict[str, float]]


def measure(jobs: Iterable[str], sizes: Sequence[int]) -> Figures:
    """Measure jobs at every size; a job by its name is at the largest one, with what all of them say of its growth.

    Raises RuntimeError if a job made something wrong.
    """
    figures: Figures = {}
    with tempfile.TemporaryDirectory(prefix="skyband-bench-archive-") as archive, deployed(()) as deployment:
        _align(deployment, sizes)
        for size in sizes:
            for job, its in _measure(deployment.bootstrap, archive, _name(size), size, jobs).items():
                figures[f"spark_{job}_{size}"] = its
                show(f"spark_{job}_{size}", its)
    for job in JOBS:
        found = [figures.pop(f"spark_{job}_{size}") for size in sizes if f"spark_{job}_{size}" in figures]
        if found:
            figures |= _grown(f"spark_{job}", found)
    return figures


def log_of(bootstrap: str, prefix: str = "") -> KafkaLog:
    """Return the log of a benchmark's Kafka."""
    settings = KafkaSettings(bootstrap=bootstrap, replication_factor=1, topic_prefix=prefix)
    return KafkaLog(settings, Codecs())


def _name(size: int) -> str:
    return f"n{size}"


def _grown(name: str, found: Sequence[Mapping[str, float]]) -> Figures:
    """Return the figures of all sizes, and at the largest what they say together."""
    largest = dict(found[-1])
    if len(found) > 1:
        rows, seconds = [its["rows"] for its in found], [its["seconds"] for its in found]
        # CPU seconds tell the growth where other work has had the cores too.
        cpu_s = [its["cpu_s_per_m_rows"] * its["rows"] / 1e6 for its in found]
        largest["exponent"], largest["cpu_exponent"] = exponent(rows, seconds), exponent(rows, cpu_s)
        if seconds[-1] > seconds[0]:
            largest["steady_rows_per_s"] = (rows[-1] - rows[0]) / (seconds[-1] - seconds[0])
    return {name: largest, **{f"{name}_{round(its['rows'])}": dict(its) for its in found[:-1]}}


def _align(deployment: Deployment, sizes: Sequence[int]) -> None:
    """Write records of W1, for a group of each size, and have them aligned."""
    for size in sizes:
        workloads.load(deployment.bootstrap, _WORKLOAD, _name(size), workloads.make(_WORKLOAD, size))
    deployment.start(("control", "align"), {})
    with Client(deployment.address("control")) as client:
        for size in sizes:
            ask(client, _WORKLOAD, _name(size))
    log, deadline = log_of(deployment.bootstrap), time.monotonic() + _WAIT_S
    while not all(_is_aligned(log, _name(size)) for size in sizes):
        if time.monotonic() > deadline:
            raise RuntimeError(f"records were not aligned in {_WAIT_S:.0f} s")
        time.sleep(0.5)
    deployment.stop()


def _is_aligned(log: KafkaLog, name: str) -> bool:
    """Return whether aligners have committed all records of a group."""
    topics = [f"{name}-{stream}" for stream in workloads.WORKLOADS[_WORKLOAD].streams]
    places = [Position(topic, partition) for topic in topics for partition in range(workloads.PARTITIONS)]
    with closing(log.consumer(consumer_group(name, 1))) as consumer:
        ends, committed = consumer.end_offsets(places), consumer.committed(places)
    return all(at in committed and committed[at].offset >= ends[at] for at in places)


def _measure(bootstrap: str, archive: str, name: str, rows: int, jobs: Iterable[str]) -> Figures:
    """Run the jobs on one group, and check what each made. The others need the archive."""
    found: Figures = {}
    done = ran(bootstrap, "archive", "--archive", archive, "--group", name, "--no-sources", "--available-now")
    files = ArchiveStore(archive).row_files(name, 1)
    _check(sum(pq.read_metadata(file).num_rows for file in files) == rows, f"archive of {name} has other rows")
    if "archive" in jobs:
        size = sum(Path(file).stat().st_size for file in files)
        found["archive"] = {**done.of(rows), "bytes_per_row": size / rows, "files": len(files)}
    if "statistics" in jobs:
        done = ran(bootstrap, "statistics", "--group", name, "--archive", archive, *_SPAN, "--no-publish", "--json")
        _check_statistics(done, rows)
        found["statistics"] = done.of(rows)
    if "rebuild" in jobs:
        with tempfile.TemporaryDirectory(prefix="skyband-bench-") as folder:
            output = Path(folder, "rebuild.json")
            asked = ("--group", name, "--archive", archive, "--shards", str(NEW_SHARDS))
            done = ran(bootstrap, "rebuild", *asked, "--output", str(output))
            document = json.loads(output.read_text())
        _check(document["is_complete"], f"rebuild of {name} is not complete")
        log = log_of(bootstrap)
        made, was = _sum_of(log, name, 2), _sum_of(log, name, 1)
        _check(made == was and made[0] == rows, f"rebuild of {name} has other rows: {made}, not {was}")
        found["rebuild"] = {**done.of(rows), "shards": len(document["shards"])}
    return found


def _check(is_right: bool, sentence: str) -> None:
    if not is_right:
        raise RuntimeError(sentence)


def _check_statistics(done: Ran, rows: int) -> None:
    """Every row is in the sketches, and each stream has its objects, as far as a sketch can tell."""
    document = json.loads(done.stdout)
    _check(document["rows"] == rows, f"statistics of {document['rows']} rows instead of {rows}")
    records = workloads.make(_WORKLOAD, rows)
    for index, stream in enumerate(document["streams"]):
        there = np.count_nonzero(np.bincount(records.object_id[records.topic == index]))
        told = stream["objects"]
        is_right = abs(told["value"] - there) <= _ERRORS * told["error"]
        _check(is_right, f"statistics tell {told} objects of {stream['stream']} instead of {there}")


def _sum_of(log: KafkaLog, group: str, generation: int) -> tuple[int, int]:
    """Return the rows of an aligned log, and a sum over them that no order and no batches change."""
    rows = total = 0
    for record in read_all(log, aligned_topic(group, generation)):
        batch = record.value
        if isinstance(batch, AlignedBatch):
            rows += batch.rows
            times = batch.event_time_us.view(np.uint64) * _ODD ^ batch.release_time_us.view(np.uint64)
            values = np.ascontiguousarray(batch.values[:, 0]).view(np.uint64)
            mixed = (batch.id_hash ^ values ^ times) * _ODD ^ batch.offset.view(np.uint64)
            total += int(mixed.sum(dtype=np.uint64))
    return rows, total % 2**64
