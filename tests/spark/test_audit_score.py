"""Scores as Spark expressions against the product's own evaluation, bit for bit where the C library is not asked."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from skyband.errors import DefinitionError
from skyband.model.score import parse_score
from skyband.structures.score_kernel import evaluate_rows
from spark.audit_score import ScoreColumn, is_finite
from tests.workloads import Seeded, _score

pytestmark = pytest.mark.spark

NAMES = ("a", "b", "c")
ODD = (0.0, 1.0, -1.0, 0.5, 3.0, -2.5, 1e300, -1e300, 1e-300, 710.0, 49.0, 7.0)
WRITTEN = (
    "a / b",
    "1 / (a - a)",
    "-1 / (a - b)",
    "exp(log1p(a))",
    "min(a / b, c)",
    "max(sqrt(a), c)",
    "min(a, b, c) + max(a, b, c)",
    "pow(a, 1/3) + b**-2 - (c)**0.5",
    "a / 49 - 1 + +b",
    "0 / -a",
    "sqrt(1 - a / b)",
    "a * b / c - -c",
    "pow(1 / max(-a, -a), -1)",
)


def test_a_score_is_what_the_product_computes(spark: SparkSession) -> None:
    choose = Seeded(7)
    drawn = [_score(choose, NAMES, 3) for _ in range(24)]
    texts = [*WRITTEN, *(text for text in drawn if set(text) & set(NAMES))]
    values = np.array([[choose.pick(ODD) for _ in NAMES] for _ in range(200)])
    frame = spark.createDataFrame(values.tolist(), "a double, b double, c double").coalesce(1)
    columns = {name: sql.col(name) for name in NAMES}
    for number, text in enumerate(texts):
        frame = ScoreColumn(text, columns).add(frame, f"s{number}")
    finite = [is_finite(sql.col(f"s{number}")).alias(f"f{number}") for number in range(len(texts))]
    found = frame.select("*", *finite).collect()
    for number, text in enumerate(texts):
        expected = evaluated(text, values)
        for row, due in zip(found, expected, strict=True):
            got = row[f"s{number}"]
            assert row[f"f{number}"] == math.isfinite(due)
            assert same(got, due, exact=not any(word in text for word in ("exp", "log1p", "pow", "**"))), (text, row)


def evaluated(text: str, values: np.ndarray) -> Sequence[float]:
    score = parse_score(text, NAMES, owner="group 'g'")
    return [float(its) for its in evaluate_rows(score.code, score.constants, score.stack_size, values)]


def same(got: float, due: float, *, exact: bool) -> bool:
    if math.isnan(due) or math.isinf(due) or exact:
        return str(got) == str(due)
    return math.isclose(got, due, rel_tol=1e-9)


def test_nested_divisions_stay_small(spark: SparkSession) -> None:
    text = "a"
    for _ in range(30):
        text = f"1/(1 + {text})"
    frame = ScoreColumn(text, {"a": sql.col("a")}).add(spark.createDataFrame([(1.0,)], "a double"), "score")
    row = frame.where(is_finite(sql.col("a"))).first()
    assert row is not None
    assert row.score == evaluated(text, np.array([[1.0, 0.0, 0.0]]))[0]


@pytest.mark.parametrize("text", ["a +", "sin(a)", "d", "a ** b", "a if b else c", "max(a)"])
def test_what_is_not_known_is_refused(spark: SparkSession, text: str) -> None:
    with pytest.raises(DefinitionError, match="does not know"):
        ScoreColumn(text, {name: sql.lit(1.0) for name in NAMES})
