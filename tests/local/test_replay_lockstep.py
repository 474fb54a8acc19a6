"""Replay against the oracle, evaluation after evaluation, whatever shards, batches, algorithm and input."""

import itertools
from pathlib import Path
from random import Random
from typing import Any

import pytest

import skyband
from skyband.model.definitions import Definitions
from skyband.model.query import Algorithm
from tests import lockstep
from tests.local.replays import (
    Rows,
    answered_by,
    as_dicts,
    in_one_partition,
    mixed_files,
    promising,
    workload,
    written,
)
from tests.oracle import oracle_results

SHARDS = (1, 2, 8)
BATCH_ROWS = (1, 17, 10_000)


def assert_replayed(definitions: Definitions, rows: Rows, given: Any, **options: Any) -> None:
    """Assert that replay of `given`, which holds `rows`, says what the oracle says of the rows."""
    expected = oracle_results(definitions.group, definitions.queries, rows)
    lockstep.assert_equal(expected, as_dicts(skyband.replay(definitions, given, **options)), rows)


def options_for(definitions: Definitions) -> list[dict[str, Any]]:
    """Return all numbers of shards and rows a batch that the definitions allow."""
    shards = SHARDS[:1] if any(query.window.in_rows for query in definitions.queries) else SHARDS
    return [{"shards": n, "batch_rows": m} for n, m in itertools.product(shards, BATCH_ROWS)]


@pytest.mark.parametrize("seed", range(2, 8))
def test_dict_rows_give_what_the_oracle_gives(seed: int) -> None:
    definitions, rows = workload(seed, 70)
    rows = in_one_partition(rows)
    (given,) = mixed_files(definitions.group, rows, seed)
    for options in options_for(definitions):
        assert_replayed(definitions, rows, given, **options)


@pytest.mark.parametrize("seed", range(100, 106))
def test_files_of_json_lines_give_what_the_oracle_gives(seed: int, tmp_path: Path) -> None:
    definitions, rows = workload(seed, 70)
    paths = written(tmp_path, mixed_files(definitions.group, rows, seed))
    for options in options_for(definitions):
        assert_replayed(definitions, rows, paths, **options)


def answerable(algorithm: Algorithm, seed: int) -> tuple[Definitions, Rows, int]:
    """Return the first workload from `seed` on, in steps, that asks what `algorithm` can answer; and its seed."""
    for tried in itertools.count(seed, 1_000):
        definitions, rows = workload(tried, 150)
        if algorithm is Algorithm.SKYBAND:
            # What an object says once, it never replaces: that is what this algorithm needs.
            definitions, rows = promising(definitions, rows, definitions.group.retention_us)
        definitions = answered_by(definitions, algorithm)
        if definitions.queries and sum(map(len, rows.values())) > 30:
            return definitions, rows, tried
    raise AssertionError


@pytest.mark.parametrize("seed", range(200, 206))
@pytest.mark.parametrize("algorithm", [algorithm for algorithm in Algorithm if algorithm is not Algorithm.AUTO])
def test_every_algorithm_gives_what_the_oracle_gives(algorithm: Algorithm, seed: int, tmp_path: Path) -> None:
    definitions, rows, seed = answerable(algorithm, seed)
    paths = written(tmp_path, mixed_files(definitions.group, rows, seed))
    for options in options_for(definitions)[1::3]:
        assert_replayed(definitions, rows, paths, algorithm=algorithm, **options)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_240, 20))
def test_many_workloads_give_what_the_oracle_gives(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        choose = Random(seed)
        definitions, rows = workload(seed)
        if choose.random() < 0.4:
            definitions, rows = promising(definitions, rows, definitions.group.retention_us)
        algorithm = choose.choice(list(Algorithm))
        definitions = answered_by(definitions, algorithm)
        paths = written(tmp_path, mixed_files(definitions.group, rows, seed))
        count = sum(map(len, rows.values()))
        options = [each for each in options_for(definitions) if each["batch_rows"] > 1 or count < 200]
        assert_replayed(definitions, rows, paths, algorithm=algorithm, **choose.choice(options))
