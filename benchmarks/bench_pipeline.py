"""The whole pipeline over a real Kafka: records in topics, results in a topic, every window checked.

``python -m benchmarks.bench_pipeline [W …] [--serve] [--records N] [--label NAME] [--peer NAME]``

The records lie in their topics before the group is made; time runs from then to the last window that the records'
own time completes. *steady* is the difference of records over the difference of seconds between the two sizes, so that
start and end cancel out; a first run warms up and does not count. Cost is CPU time of the services' processes; the
broker on the same cores is told apart.
A peer reads the same topics afterwards, when the services have stopped, and its windows are checked in the same way.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, TopicPartition

from benchmarks import harness, workloads
from benchmarks.deployment import SERVICES, Deployment, deployed
from benchmarks.peers import PEERS, Peer, PeerError, Trial, Windows
from services.runtime.codecs import Codecs
from skyband.client import Client
from skyband.model.result import Result

__all__ = ["measure"]

FRACTIONS = (0.25, 1.0)
_RESULTS = "results"
_WAIT_S = 600.0
_TOLERANCE = 1e-9
_WARM_S, _LATENCY_S = 40, 30


def ask(client: Client, workload: str, name: str) -> None:
    """Make the streams, the group and the query of a workload."""
    document = workloads.definitions(workload, name)
    streams = document["group"]["streams"]
    for stream in streams:
        options = {key: value for key, value in stream.items() if key != "name"}
        client.create_stream(f"{name}_{stream['name']}", **options)
    asked = document["queries"][0]
    names = [f"{name}_{stream['name']}" for stream in streams]
    client.create_group(name, streams=names, retention="60s", shards=document["group"]["shards"])
    window = asked["window"]
    client.create_query(
        name,
        name="top",
        k=asked["k"],
        score=" + ".join(names),
        window=window["size"],
        slide=window["slide"],
        require=asked["require"],
    )


class ResultReader:
    """Reads results as any consumer may, and notes when each came."""

    def __init__(self, bootstrap: str, topic: str = _RESULTS) -> None:
        self._codecs = Codecs()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        partitions = self._consumer.list_topics(topic, 30).topics[topic].partitions
        ends = [self._consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1] for p in partitions]
        self._consumer.assign([TopicPartition(topic, p, end) for p, end in zip(partitions, ends, strict=True)])

    def until(self, last_us: int) -> dict[int, tuple[Result, float]]:
        """Return the results up to the window that ends at `last_us`, each with when it came."""
        found: dict[int, tuple[Result, float]] = {}
        deadline = time.monotonic() + _WAIT_S
        while last_us not in found:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no result for {last_us}; the last is {max(found, default=None)}")
            for message in self._consumer.consume(1_000, 0.2):
                if message.error() is not None:
                    raise RuntimeError(str(message.error()))
                result = self._codecs.decode(_RESULTS, message.value())
                assert isinstance(result, Result)
                if result.window_end in found:
                    raise RuntimeError(f"two results for window end {result.window_end}")
                found[result.window_end] = (result, time.monotonic())
        return found

    def close(self) -> None:
        self._consumer.close()


def rows_of(found: Mapping[int, tuple[Result, float]]) -> Windows:
    """Return what the results say, by window end in ms."""
    return {
        end_us // 1_000: [(row.object_id, row.score) for row in result.rows] for end_us, (result, _) in found.items()
    }


def wrong_windows(found: Windows, right: Windows) -> int:
    """Return how many windows are wrong or missing, up to the last one found."""
    wrong = 0
    last = max(found)
    for end_ms, rows in right.items():
        if end_ms > last:
            continue
        got = found.get(end_ms, [])
        is_same = len(got) == len(rows) and all(abs(a[1] - b[1]) <= _TOLERANCE for a, b in zip(got, rows, strict=True))
        # Of equal scores within the tolerance, either object may come first.
        is_same = is_same and {a[0] for a in got[:-1]} <= {b[0] for b in rows}
        wrong += not is_same
    return wrong + sum(end not in right for end in found)


def last_complete_us(records: workloads.Records, streams: int) -> int:
    """Return the last window end that the slowest topic's time passes; topics' partitions advance alike."""
    newest = min(int(records.event_ms[records.topic == topic].max()) for topic in range(streams))
    return ((newest - 1_000) // 1_000 - 1) * 1_000_000


def run(
    deployment: Deployment, client: Client, workload: str, name: str, records: workloads.Records
) -> tuple[dict[str, float], Windows]:
    """Ask a workload's question of records that are there; return what answering took, and the windows."""
    reader = ResultReader(deployment.bootstrap)
    last = last_complete_us(records, len(workloads.WORKLOADS[workload].streams))
    before, began = deployment.cost(), time.monotonic()
    ask(client, workload, name)
    found = reader.until(last)
    seconds, after = found[last][1] - began, deployment.cost()
    reader.close()
    windows = rows_of(found)
    cpu = after.since(before)
    broker = cpu.pop("kafka")
    rows = len(records.event_ms)
    figures = {
        "rows": rows,
        "seconds": seconds,
        "rows_per_s": rows / seconds,
        "cpu_s_per_m_rows": sum(cpu.values()) / rows * 1e6,
        "broker_cpu_s_per_m_rows": broker / rows * 1e6,
        "peak_process_mb": max(peak for name, peak in after.peak_mb.items() if name != "kafka"),
        **{f"peak_mb_{name}": peak for name, peak in after.peak_mb.items() if name != "kafka"},
        "windows": len(windows),
        "windows_wrong": wrong_windows(windows, workloads.expected(workload, records)),
        **{f"cpu_share_{name}": seconds_of / seconds for name, seconds_of in cpu.items()},
    }
    return figures, windows


def measure(
    workload: str,
    *,
    serve: bool = False,
    records: int = workloads.RECORDS,
    repeats: int = 2,
    peer: Peer | None = None,
) -> dict[str, dict[str, float]]:
    """Measure one workload with fresh processes; the figures are those of the larger size, medians over repeats.

    They are by name: ``pipeline_<workload>``, and ``<peer>_<form>`` for each form that a peer has of the workload.
    """
    whole = workloads.make(workload, records)
    names = ["serve"] if serve else list(SERVICES)
    with deployed(names) as deployment:
        parts = {fraction: whole.first(fraction) for fraction in FRACTIONS}
        control = deployment.address("serve" if serve else "control")
        results = deployment.address("serve" if serve else "fanout")
        runs: list[dict[str, float]] = []
        trials: list[Trial] = []
        with Client(control, results=results) as client:
            # The broker's compiler takes as much of the processor as the first million rows: this run does not count.
            small = parts[FRACTIONS[0]]
            workloads.load(deployment.bootstrap, workload, f"{workload}warm", small)
            run(deployment, client, workload, f"{workload}warm", small)
            client.delete_group(f"{workload}warm", force=True)
            for repeat in range(repeats):
                for fraction, part in parts.items():
                    name = f"{workload}n{repeat}f{round(fraction * 100)}"
                    workloads.load(deployment.bootstrap, workload, name, part)
                    runs.append(run(deployment, client, workload, name, part)[0])
                    client.delete_group(name, force=True)
                    last_us = last_complete_us(part, len(workloads.WORKLOADS[workload].streams))
                    trials.append(Trial(name, part, last_us // 1_000))
        own = f"pipeline_{workload}{'_serve' if serve else ''}"
        figures = {own: _summary(runs)}
        harness.show(own, figures[own])
        if peer is not None:
            deployment.stop()
            figures |= _beside(peer, deployment.bootstrap, workload, trials, figures[own]["steady_rows_per_s"])
    return figures


def _summary(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the figures of runs, whose sizes take turns as in FRACTIONS."""
    small, large = (
        {key: statistics.median(run[key] for run in runs[place :: len(FRACTIONS)]) for key in runs[0]}
        for place in range(len(FRACTIONS))
    )
    steady = (large["rows"] - small["rows"]) / (large["seconds"] - small["seconds"])
    wrong = sum(run["windows_wrong"] for run in runs)
    return {**large, "steady_rows_per_s": steady, "windows_wrong": wrong}


def _beside(
    peer: Peer, bootstrap: str, workload: str, trials: Sequence[Trial], own_steady: float
) -> dict[str, dict[str, float]]:
    """Measure each form that a peer has of a workload; a form that fails is told and left out."""
    figures: dict[str, dict[str, float]] = {}
    for form in peer.forms(workload):
        name = f"{peer.name}_{form.name}"
        try:
            runs = peer.run(bootstrap, workload, form, trials)
        except PeerError as error:
            print(f"{name}: {error}", flush=True)
            continue
        found = []
        for trial, run in zip(trials, runs, strict=True):
            rows = len(trial.records.event_ms)
            found.append(
                {
                    "rows": rows,
                    "seconds": run.seconds,
                    "rows_per_s": rows / run.seconds,
                    "cpu_s_per_m_rows": run.cpu_s / rows * 1e6,
                    "peak_process_mb": run.peak_mb,
                    "windows": len(run.windows),
                    "windows_wrong": wrong_windows(run.windows, form.right(trial.records)),
                }
            )
        figures[name] = _summary(found)
        steady = figures[name]["steady_rows_per_s"]
        if own_steady > 0 and steady > 0:
            figures[name]["skyband_to_peer_steady"] = own_steady / steady
        harness.show(name, figures[name])
    return figures


def latency(rate: int, *, serve: bool = False) -> dict[str, float]:
    """Measure how long after a window's end its result is at a subscriber, while `rate` records a second come.

    W1's question every 100 ms over 10 s; records are in order, so that a window is complete as soon as each partition
    has a record of after its end: at this rate within a millisecond. While the broker's compiler has the processor to
    itself it does not count.
    """
    names = ["serve"] if serve else list(SERVICES)
    with deployed(names, {"SKYBAND_CONTROL_CREATE_TOPICS": str(workloads.PARTITIONS)}) as deployment:
        control = deployment.address("serve" if serve else "control")
        results = deployment.address("serve" if serve else "fanout")
        with Client(control, results=results) as client:
            streams = [f"live_r{i}" for i in range(4)]
            for stream in streams:
                client.create_stream(stream, aggregate="sum", hi=1.0, fields={"time_unit": "ms"})
            client.create_group("live", streams=streams, retention="10s", pane="100ms", shards=2)
            score = " + ".join(streams)
            query = client.create_query("live", name="top", k=10, score=score, window="10s", slide="100ms")
            command = [sys.executable, "-m", "benchmarks.live_producer", deployment.bootstrap, ",".join(streams)]
            with subprocess.Popen(
                [*command, str(rate), str(_WARM_S + _LATENCY_S + 5)], stdout=subprocess.PIPE, text=True
            ) as producer:
                ages: list[float] = []
                begin_us = time.time_ns() // 1_000 + _WARM_S * 1_000_000
                before = None
                for update in query.watch():
                    now_us = time.time_ns() // 1_000
                    if now_us > begin_us + _LATENCY_S * 1_000_000:
                        break
                    if update.window_end > begin_us:
                        before = before or deployment.cost()
                        ages.append((now_us - update.window_end) / 1e3)
                after = deployment.cost()
                reached, _ = producer.communicate()
    assert before is not None
    cpu = after.since(before)
    return {
        "rate": float(reached),
        "windows": len(ages),
        "p50_ms": statistics.median(ages),
        "p99_ms": statistics.quantiles(ages, n=100)[98],
        "cores": sum(seconds_of for name, seconds_of in cpu.items() if name != "kafka") / _LATENCY_S,
        "broker_cores": cpu["kafka"] / _LATENCY_S,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_pipeline", description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[*workloads.WORKLOADS, []], help="workloads (none: all)")
    parser.add_argument("--serve", action="store_true", help="all stages in one process")
    parser.add_argument("--records", type=int, default=workloads.RECORDS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--latency", type=int, metavar="RATE", help="measure the latency at so many records a second")
    parser.add_argument("--peer", choices=list(PEERS), help="measure another system too, on the same topics")
    parser.add_argument("--label", default="pipeline", help="name of the results file, after the date")
    arguments = parser.parse_args()
    peer = PEERS[arguments.peer] if arguments.peer else None
    try:
        if peer is not None:
            peer.prepare()
    except PeerError as error:
        print(error, file=sys.stderr)
        return 2
    print("  ".join(f"{key}: {value}" for key, value in harness.machine().items()))
    figures: dict[str, dict[str, float]] = {}
    if arguments.latency:
        name = f"latency_{arguments.latency}{'_serve' if arguments.serve else ''}"
        figures[name] = latency(arguments.latency, serve=arguments.serve)
        harness.show(name, figures[name])
        arguments.workloads = arguments.workloads or ["none"]
    for workload in [w for w in arguments.workloads or workloads.WORKLOADS if w in workloads.WORKLOADS]:
        figures |= measure(
            workload, serve=arguments.serve, records=arguments.records, repeats=arguments.repeats, peer=peer
        )
    print("written to", harness.save(figures, arguments.label))
    # Fewer records are thinner in time, and another question.
    broken = harness.broken_bounds(figures) if arguments.records == workloads.RECORDS else []
    for sentence in broken:
        print("BOUND BROKEN", sentence)
    return 1 if broken or any(figure.get("windows_wrong") for figure in figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
