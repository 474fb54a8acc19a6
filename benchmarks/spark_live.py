"""The pipeline on Spark beside the services, on the same topics of one Kafka; and an audit of what these wrote."""

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.bench_pipeline import ResultReader, last_complete_us, rows_of, run
from benchmarks.deployment import SERVICES, deployed
from benchmarks.harness import show
from benchmarks.peers import Windows
from benchmarks.spark_history import Figures, log_of
from benchmarks.spark_latency import latency
from benchmarks.spark_runs import ran
from services.runtime import topics
from skyband.client import Client

__all__ = ["JOBS", "RATE", "measure"]

JOBS = ("audit", "pipeline", "latency")
RATE = 20_000
_WORKLOAD = "w1"
_STREAMS = workloads.WORKLOADS[_WORKLOAD].streams
_PREFIX = "spark."
# A micro-batch of as many records as a driver of 1 GiB has at hand.
_MAX_OFFSETS = 1_000_000
_AUDITED_S = 30


def measure(jobs: Iterable[str], rows: int) -> Figures:
    """Measure jobs, the pipeline on `rows` records and a quarter of them. Raises RuntimeError for what is wrong."""
    wanted = set(jobs)
    return (_measure(wanted, rows) if wanted & {"audit", "pipeline"} else {}) | (
        latency(RATE) if "latency" in wanted else {}
    )


def _measure(wanted: set[str], rows: int) -> Figures:
    figures: Figures = {}
    whole = workloads.make(_WORKLOAD, rows)
    parts = {"warm": whole.first(0.1), "small": whole.first(0.25), "large": whole}
    with deployed(()) as deployment:
        topics.apply(log_of(deployment.bootstrap, _PREFIX))
        for name, part in parts.items():
            workloads.load(deployment.bootstrap, _WORKLOAD, name, part)
        deployment.start(SERVICES, {})
        runs, found = {}, {}
        with Client(deployment.address("control"), results=deployment.address("fanout")) as client:
            for name, part in parts.items():
                runs[name], found[name] = run(deployment, client, _WORKLOAD, name, part)
                if name != "large":
                    # What its last windows still bring is no result of the next; the last one is to be audited.
                    client.delete_group(name, force=True)
        deployment.stop()
        figures["spark_beside_services"] = _steady(runs)
        show("spark_beside_services", figures["spark_beside_services"])
        if "audit" in wanted:
            figures["spark_audit"] = _audited(deployment.bootstrap, parts["large"])
            show("spark_audit", figures["spark_audit"])
        if "pipeline" in wanted:
            runs = {}
            for name in ("small", "large"):
                runs[name] = _by_spark(deployment.bootstrap, name, parts[name], found[name])
                show(f"spark_pipeline_{name}", runs[name])
            figures["spark_pipeline"] = _steady(runs)
            show("spark_pipeline", figures["spark_pipeline"])
    return figures


def _steady(runs: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    small, large = runs["small"], runs["large"]
    steady = (large["rows"] - small["rows"]) / (large["seconds"] - small["seconds"])
    wrong = sum(run["windows_wrong"] for run in runs.values())
    return {**large, "steady_rows_per_s": steady, "windows_wrong": wrong}


def _definitions(folder: str, document: Mapping[str, Any]) -> Path:
    path = Path(folder, "definitions.yaml")
    path.write_text(json.dumps(document))
    return path


def _by_spark(bootstrap: str, name: str, records: workloads.Records, right: Windows) -> dict[str, float]:
    """Let Spark read what is there, and compare each window with that of the services, to the last bit."""
    reader, last_us = ResultReader(bootstrap, f"{_PREFIX}results"), last_complete_us(records, len(_STREAMS))
    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as folder:
        asked = ("--definitions", str(_definitions(folder, workloads.definitions(_WORKLOAD, name))))
        options = ("--checkpoint", folder, "--available-now", "--max-offsets", str(_MAX_OFFSETS))
        done = ran(bootstrap, "pipeline", *asked, *options, settings={"SKYBAND_KAFKA_TOPIC_PREFIX": _PREFIX})
    found = rows_of(reader.until(last_us))
    reader.close()
    last_ms = last_us // 1_000
    wrong = sum(found.get(end) != rows for end, rows in right.items() if end <= last_ms)
    wrong += sum(end not in right for end in found if end <= last_ms)
    return {**done.of(len(records.event_ms)), "windows": len(found), "windows_wrong": wrong}


def _audited(bootstrap: str, records: workloads.Records) -> dict[str, float]:
    """Audit half a minute of the services' results; the rows are those of the windows that end in them."""
    low_ms = int(records.event_ms.min()) // 60_000 * 60_000 + 240_000
    high_ms = low_ms + _AUDITED_S * 1_000
    span = ("--from", str(low_ms * 1_000), "--to", str(high_ms * 1_000))
    done = ran(bootstrap, "audit", "--group", "large", *span, "--json")
    (query,) = json.loads(done.stdout)["queries"]
    if query["windows"] != _AUDITED_S:
        raise RuntimeError(f"{query['windows']} windows were audited instead of {_AUDITED_S}")
    rows = int(((records.event_ms >= low_ms - 60_000) & (records.event_ms < high_ms)).sum())
    return {**done.of(rows), "windows": query["windows"]}
