"""The experiments of Haghani, Michel and Aberer (CIKM 2009): ``python -m benchmarks.papers.haghani [--quick]``.

Writes tables and charts to benchmarks/results; what is done next is told on stderr. Takes about 4 minutes on one
core, with ``--quick`` 20 seconds.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import harness
from benchmarks.papers import asides, recorded, synthetic
from benchmarks.papers.report import Section, write
from benchmarks.papers.synthetic import Scale

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "run"]

EXPERIMENTS = {**synthetic.EXPERIMENTS, **asides.EXPERIMENTS, **recorded.EXPERIMENTS}
FULL = Scale(windows=8, seeds=2, is_quick=False)
QUICK = Scale(windows=5, seeds=1, is_quick=True)

INTRODUCTION = """\
Generated rows have seeds 1 and 2 (1 where a run is long or quick); recorded ones are replayed with seed 1. Windows
are the last W rows, evaluated every W / 20 rows, so that there are at least 50 evaluations after two windows that do
not count. Without a word: items retained after an evaluation (SLA: tuples; all others: instances), a mean. *Relaxed
EAA* retains what EAA of the paper does (see below), and is exact like it; *expected* is the paper's approximation;
*tail ε* gives an instance up once its chance to be shown falls below ε; *target* steers ε towards a precision. Exact
is what SLA shows; precision is the share of it that is shown, error the mean difference of the scores rank by rank.
Each run checks that both exact forms have a precision of 1. The paper column holds what the paper's text says; its
tables and plots are not part of that.
"""


def run(scale: Scale, names: Sequence[str] = tuple(EXPERIMENTS)) -> list[Section]:
    """Run the named experiments."""
    return [section for name in names for section in EXPERIMENTS[name](scale)]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.haghani", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter cases")
    parser.add_argument("--only", nargs="+", choices=list(EXPERIMENTS), help="experiments to run (none: all)")
    parser.add_argument("--to", type=Path, default=harness.RESULTS, help="folder to write to")
    arguments = parser.parse_args(words)
    began = time.process_time()
    sections = run(QUICK if arguments.quick else FULL, arguments.only or tuple(EXPERIMENTS))
    label = "haghani-quick" if arguments.quick else "haghani"
    title = "Top-k over streams that never line up (Haghani, Michel and Aberer, CIKM 2009)"
    print("written to", write(arguments.to, label, title, INTRODUCTION, sections, time.process_time() - began))
    return 0


if __name__ == "__main__":
    sys.exit(main())
