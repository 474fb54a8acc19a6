"""Replay's memory is that of the retention: it does not grow with the input."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Objects, retention and the rows of a batch are the same for every length; every tenth row is rejected.
REPLAY = """\
import resource, sys
import skyband
definitions = '''
group: {name: g, streams: [{name: a, hi: 100, max_delay: 1s}, {name: b, hi: 100, max_delay: 1s}]}
queries: [{name: q, k: 20, score: a + b, window: {size: 10s, slide: 1s}}]
'''
def rows(n):
    for i in range(n):
        yield "ab"[i % 2], f"object {i * 7919 % 2003}", i * 1_000, float(i % 10 * 11.2)
results = sum(1 for _ in skyband.replay(definitions, rows(int(sys.argv[1])), batch_rows=5_000))
print(results, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def replayed(rows: int) -> tuple[int, int]:
    """Return the number of results and the peak of resident memory, in kB, of a process that replays so many rows."""
    answer = subprocess.run(
        [sys.executable, "-c", REPLAY, str(rows)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    results, peak = answer.stdout.split()
    return int(results), int(peak)


@pytest.mark.slow
def test_four_times_the_rows_need_no_more_memory() -> None:
    replayed(20_000)  # compiles what is not compiled yet, which takes memory too
    short, long = replayed(200_000), replayed(800_000)
    assert (short[0], long[0]) == (200, 800)
    assert long[1] < 1.15 * short[1]
