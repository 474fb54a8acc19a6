"""The engine gives the same bits with its kernels compiled and interpreted, and no arithmetic that warns."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import skyband
from tests.engine.pure_pipeline import run
from tests.engine.variants import falling_leaders, fitting, siblings
from tests.workloads import Seeded, seeded

# Between them: count windows, row identity, sums, lowest first, gaps, all algorithms.
SEEDS = (1, 7, 12, 201, 286, 313)


def digest() -> str:
    """Return a hash of all results of a few small workloads, to the last bit."""
    found = hashlib.sha256()
    for group, queries, rows in (*(seeded(seed, 150) for seed in SEEDS), falling_leaders(600)):
        asked = [query for _, query in fitting(group, [s for q in queries for s in siblings(Seeded(1), group, q, 1)])]
        shards = 1 if any(query.window.in_rows for query in asked) else 2
        for result in run(group, asked, rows, shards=shards, batch_rows=17):
            found.update(repr((result["query"], result["window_end"], result["rows"])).encode())
    return found.hexdigest()


def test_compiled_and_interpreted_kernels_give_the_same_results() -> None:
    root = str(Path(skyband.__file__).parent.parent)
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error::RuntimeWarning", __file__],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for disabled in ("0", "1")
    ]
    assert [words[0] for words in printed] == ["compiled", "interpreted"]
    assert printed[0][1] == printed[1][1]


if __name__ == "__main__":
    print("interpreted" if os.environ["NUMBA_DISABLE_JIT"] == "1" else "compiled", digest())
