"""The jobs on Spark over a real Kafka on this machine, each checked for what it made.

``python -m benchmarks.bench_spark [JOB …] [--rows N] [--label NAME]``

===========  ============================================================================================
archive      aligned topic → Parquet, `--available-now`
statistics   the sketches over all that is archived
rebuild      archive → aligned log of the next generation, 2 → 5 shards
audit        half a minute of results recomputed
pipeline     W1 from topics to results, by Spark and by the services on the same topics
latency      how old the results of both are when they come, at a steady rate
===========  ============================================================================================

The first three run at N, N/2, N/5 and N/10 rows, the last two at N/2.5. Each is a process of its own, as its command
is; *seconds* and *rows_per_s* are of the work, from the open session to its end, *command_…* of the whole process.
Memory is the largest of the driver's Python, of the JVM, of one Python worker, and of all workers at a time.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import harness, spark_history, spark_live

JOBS = ("archive", "statistics", "rebuild", "audit", "pipeline", "latency")
ROWS = 10_000_000
_SHARES = (0.1, 0.2, 0.5, 1.0)
_LIVE_SHARE = 0.4
_COLUMNS = {
    "rows": "rows",
    "seconds": "s of work",
    "command_seconds": "s of command",
    "rows_per_s": "rows/s of work",
    "command_rows_per_s": "rows/s of command",
    "cpu_s_per_m_rows": "CPU s per M rows",
    "jvm_mb": "JVM MB",
    "worker_mb": "a worker MB",
    "workers_mb": "workers MB",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "steady_rows_per_s": "steady rows/s",
    "exponent": "exponent",
    "cpu_exponent": "of CPU s",
}


def table(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return figures as a page of Markdown."""
    named = ", ".join(f"{key} {value}" for key, value in harness.machine().items())
    lines = [f"# Jobs on Spark\n\nOn one machine with its Kafka: {named}.\n", f"| | {' | '.join(_COLUMNS.values())} |"]
    lines.append(f"| --- |{' ---: |' * len(_COLUMNS)}")
    for name, its in figures.items():
        lines.append(f"| {name} | {' | '.join(_shown(key, its.get(key)) for key in _COLUMNS)} |")
    return "\n".join(lines) + "\n"


def _shown(key: str, value: float | None) -> str:
    if value is None:
        return ""
    is_small = key in ("exponent", "cpu_exponent", "seconds", "command_seconds", "cpu_s_per_m_rows")
    return f"{value:,.2f}" if is_small else f"{value:,.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_spark", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []], help="jobs to measure (none: all)")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the largest size")
    parser.add_argument("--label", default="spark", help="name of the results files, after the date")
    arguments = parser.parse_args()
    jobs = arguments.jobs or JOBS
    print("  ".join(f"{key}: {value}" for key, value in harness.machine().items()))
    figures: dict[str, dict[str, float]] = {}
    if set(jobs) & set(spark_history.JOBS):
        figures |= spark_history.measure(jobs, [round(arguments.rows * share) for share in _SHARES])
    if set(jobs) & set(spark_live.JOBS):
        figures |= spark_live.measure(jobs, round(arguments.rows * _LIVE_SHARE))
    path = harness.save(figures, arguments.label)
    Path(path).with_suffix(".md").write_text(table(figures))
    print("written to", path)
    # What a process begins with is most of what few rows take.
    broken = harness.broken_bounds(figures) if arguments.rows == ROWS else []
    for sentence in broken:
        print("BOUND BROKEN", sentence)
    return 1 if broken or any(its.get("windows_wrong") for its in figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
