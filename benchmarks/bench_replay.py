"""`skyband replay` as a user runs it: a file in, a file out, one core, start of the process included.

The work is W1: four streams of 10,000 objects, 6,667 rows a second of event time, disorder below 1 s; every second the
ten objects with the largest sums over the last 60 s.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ROWS = 5_000_000
OBJECTS = 10_000
ROWS_PER_SECOND = 6_667
DEFINITIONS = """
group:
  name: w1
  retention: 60s
  streams:
    - {name: r0, aggregate: sum, max_delay: 1s}
    - {name: r1, aggregate: sum, max_delay: 1s}
    - {name: r2, aggregate: sum, max_delay: 1s}
    - {name: r3, aggregate: sum, max_delay: 1s}
queries:
  - {name: top, k: 10, score: r0 + r1 + r2 + r3, window: {size: 60s, slide: 1s}}
"""
_FOLDER = Path(tempfile.gettempdir()) / f"skyband-bench-{os.getuid()}"


def _table(rows: int) -> pa.Table:
    rng = np.random.default_rng(20240601)
    event = 1_700_000_000_000_000 + rng.integers(0, rows * 1_000 // ROWS_PER_SECOND, rows) * 1_000
    order = np.argsort(event + rng.integers(0, 1_000_000, rows), kind="stable")
    names = pa.array(["r0", "r1", "r2", "r3"])
    ids = pa.array([f"o{i}" for i in range(OBJECTS)])
    return pa.table(
        {
            "stream": pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 4, rows).astype(np.int32)), names),
            "object_id": ids.take(pa.array(rng.integers(0, OBJECTS, rows))),
            "event_time": pa.array(event[order]),
            "value": pa.array(rng.random(rows)),
        }
    )


def _input(kind: str, rows: int) -> Path:
    """Return the input, written once and kept beside the machine's other temporary files."""
    _FOLDER.mkdir(exist_ok=True)
    path = _FOLDER / f"w1-{rows}.{kind}"
    if not path.exists():
        table = _table(rows)
        if kind == "parquet":
            pyarrow.parquet.write_table(table, path)
        else:
            pyarrow.csv.write_csv(table.set_column(0, "stream", table.column(0).cast(pa.string())), path)
    (_FOLDER / "w1.yaml").write_text(DEFINITIONS)
    return path


def replay(kind: str, rows: int = ROWS) -> dict[str, float]:
    """Replay one file on one core; the peak of memory is that of the process."""
    command = [str(Path(sys.executable).with_name("skyband")), "replay"]
    command += ["--definitions", str(_FOLDER / "w1.yaml"), "--input", str(_input(kind, rows))]
    command += ["--output", str(_FOLDER / "out.jsonl")]
    core = max(os.sched_getaffinity(0))
    began = perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    _, errors = process.communicate()
    seconds = perf_counter() - began
    if process.returncode:
        raise RuntimeError(errors.decode())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    return {"rows": rows, "seconds": seconds, "rows_per_s": rows / seconds, "peak_mb_so_far": peak}


CASES = {
    "replay_parquet": lambda: replay("parquet"),
    "replay_csv": lambda: replay("csv"),
}
