"""All benchmarks: ``python -m benchmarks [CASE …] [--repeats N] [--label NAME]``; exits 1 if a bound is broken."""

import argparse
import sys

from benchmarks import bench_align, bench_engine, bench_incomplete, bench_replay, harness

CASES = {**bench_align.CASES, **bench_engine.CASES, **bench_incomplete.CASES, **bench_replay.CASES}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="cases to run (none: all)")
    parser.add_argument("--repeats", type=int, default=3, help="measured runs of each case, after one to warm up")
    parser.add_argument("--label", default="all", help="name of the results file, after the date")
    arguments = parser.parse_args()
    chosen = {name: CASES[name] for name in (arguments.cases or CASES)}
    print("  ".join(f"{key}: {value}" for key, value in harness.machine().items()))
    print("min / median / max of", arguments.repeats, "runs")
    figures = harness.run(chosen, arguments.repeats)
    print("written to", harness.save(figures, arguments.label))
    broken = harness.broken_bounds(figures)
    for sentence in broken:
        print("BOUND BROKEN", sentence)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
