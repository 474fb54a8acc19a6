"""What the benchmark of the Spark jobs says of its figures."""

import json

import pytest

from benchmarks.bench_spark import ROWS, table
from benchmarks.harness import HERE
from benchmarks.spark_runs import exponent


def test_work_that_grows_as_the_rows_has_exponent_one_and_as_their_square_two() -> None:
    rows = [1e6, 2e6, 5e6, 1e7]
    assert exponent(rows, [its * 3e-6 for its in rows]) == pytest.approx(1)
    assert exponent(rows, [its**2 for its in rows]) == pytest.approx(2)


def test_the_table_leaves_empty_what_was_not_measured() -> None:
    last = table({"a": {"rows": 1000.0, "seconds": 1.234}}).splitlines()[-1]
    assert last.startswith("| a | 1,000 | 1.23 |  |")


def test_bounds_are_of_jobs_that_are_measured() -> None:
    bounds = json.loads((HERE / "bounds.json").read_text())
    assert {name for name in bounds if name.startswith("spark_")} == {
        "spark_archive",
        "spark_statistics",
        "spark_rebuild",
        "spark_pipeline",
    }
    assert ROWS == 10_000_000
