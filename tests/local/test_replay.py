"""Replay: golden cases, every form of input, its rules, what it counts and what it refuses."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import skyband
from skyband.errors import DefinitionError, InputError, NotServedError
from skyband.files.definitions import load_definitions
from skyband.files.rows import open_rows
from skyband.local import replay as module
from skyband.local.replay import Replay, prepare
from skyband.log.memory import MemoryLog
from skyband.model.query import Algorithm
from skyband.model.stream import IdleThen
from tests import golden_cases
from tests.local.replays import as_text, workload, written
from tests.workloads import input_files

S = 1_000_000
ONE_STREAM = """\
group: {name: g, streams: [{name: a, lo: 0, hi: 100, max_delay: 2s}]}
queries: [{name: q, k: 2, score: a, window: {size: 10s, slide: 2s}}]
"""
TWO_STREAMS = """\
group:
  name: g
  retention_rows: 10
  streams: [{name: a, lo: 0, hi: 100, late: drop}, {name: b, lo: 0, hi: 100, max_delay: 1s}]
queries:
  - {name: time, k: 2, score: a + b, window: {size: 10s, slide: 2s}}
  - {name: rows, k: 2, score: a + b, window: {count: 4, slide: 2}}
  - {name: others, k: 1, score: a - b, window: {count: 3, slide: 1}}
"""

Line = tuple[str, str, int, float]


def summed_up(definitions: str, rows: Any, **options: Any) -> tuple[list[skyband.Result], Replay]:
    made = prepare(definitions)
    replay = Replay(made, open_rows(made.group, rows, **options), **options)
    return list(replay), replay


def ends(results: list[skyband.Result], query: str = "q") -> list[int]:
    return [result.window_end // S for result in results if result.query == query]


# --- golden cases


def golden(name: str) -> tuple[Path, list[Path], str]:
    folder = golden_cases.FOLDER / name
    inputs = sorted(folder.glob("input*.jsonl"))
    return folder / "definitions.yaml", inputs, (folder / "expected.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", golden_cases.names())
def test_a_golden_case_gives_its_lines_to_the_byte(name: str) -> None:
    definitions, inputs, expected = golden(name)
    assert as_text(skyband.replay(definitions, inputs)) == expected


@pytest.mark.parametrize("name", golden_cases.names())
@pytest.mark.parametrize(("shards", "batch_rows"), [(1, 1), (3, 2), (8, 7)])
def test_shards_and_batches_change_no_byte_of_a_golden_case(name: str, shards: int, batch_rows: int) -> None:
    definitions, inputs, expected = golden(name)
    if any(query.window.in_rows for query in prepare(definitions).queries):
        shards = 1
    assert as_text(skyband.replay(definitions, inputs, shards=shards, batch_rows=batch_rows)) == expected


# --- forms of input


@pytest.fixture(scope="module")
def factory() -> tuple[Path, list[dict[str, Any]], str]:
    definitions, (file,), expected = golden("factory")
    return definitions, [json.loads(line) for line in file.read_text().splitlines()], expected


def test_frames_and_iterables_give_the_same_as_the_file(factory: tuple[Path, list[dict[str, Any]], str]) -> None:
    definitions, rows, expected = factory
    forms = {
        "dicts": rows,
        "generator": (row for row in rows),
        "tuples": [(row["stream"], row["object_id"], row["event_time"], row["value"]) for row in rows],
        "pandas": pd.DataFrame(rows),
        "pandas times": pd.DataFrame(rows).assign(
            event_time=lambda f: pd.to_datetime(f.event_time, unit="us", utc=True)
        ),
        "polars": pl.DataFrame(rows),
        "arrow": pa.Table.from_pylist(rows),
    }
    assert {name: as_text(skyband.replay(definitions, form)) for name, form in forms.items()} == dict.fromkeys(
        forms, expected
    )


def test_files_of_every_kind_give_the_same(factory: tuple[Path, list[dict[str, Any]], str], tmp_path: Path) -> None:
    definitions, rows, expected = factory
    table = pa.Table.from_pylist(rows)
    (lines,) = written(tmp_path, [rows])
    paths = {name: tmp_path / name for name in ("rows.csv", "rows.csv.gz", "rows.parquet", "rows.ndjson.gz")}
    pa.csv.write_csv(table, paths["rows.csv"])
    pa.parquet.write_table(table, paths["rows.parquet"])
    paths["rows.csv.gz"].write_bytes(gzip.compress(paths["rows.csv"].read_bytes()))
    paths["rows.ndjson.gz"].write_bytes(gzip.compress(lines.read_bytes()))
    assert {name: as_text(skyband.replay(str(definitions), path)) for name, path in paths.items()} == dict.fromkeys(
        paths, expected
    )


def test_a_file_is_a_source_partition_of_every_stream(tmp_path: Path) -> None:
    # b is 9 s behind a: late behind it in one file, on time in a file of its own.
    early: list[dict[str, object]] = [{"object_id": "a", "event_time": t * S, "value": 5} for t in (1, 10, 11)]
    behind: list[dict[str, object]] = [{"object_id": "b", "event_time": t * S, "value": 9} for t in (1, 2)]
    one, two = (written(folder, files) for folder, files in folders(tmp_path, [[*early, *behind]], [early, behind]))
    lines = [list(skyband.replay(ONE_STREAM, paths)) for paths in (one, two)]
    assert [[(r.window_end // S, [row.object_id for row in r.rows]) for r in results][:2] for results in lines] == [
        [(2, ["a"]), (4, ["a"])],
        [(2, ["b", "a"]), (4, ["b", "a"])],
    ]
    assert as_text(lines[1]) == as_text(skyband.replay(ONE_STREAM, two[::-1]))


def folders(tmp_path: Path, *inputs: Any) -> Iterator[tuple[Path, Any]]:
    for number, files in enumerate(inputs):
        folder = tmp_path / str(number)
        folder.mkdir()
        yield folder, files


def test_a_generator_is_consumed_as_results_are_asked_for() -> None:
    taken = Counter[str]()

    def rows() -> Iterator[tuple[str, int, float]]:
        for i in range(20_000):
            taken["rows"] += 1
            yield f"o{i % 7}", i * 100_000, float(i % 10)

    results = skyband.replay(ONE_STREAM, rows(), batch_rows=100)
    assert taken["rows"] == 0
    next(results)
    assert 0 < taken["rows"] <= 1_200
    for _ in range(200):
        next(results)
    assert 4_000 < taken["rows"] <= 5_500
    assert sum(1 for _ in results) == 1_000 - 201
    assert taken["rows"] == 20_000


def test_a_file_that_has_ended_holds_no_results_back(tmp_path: Path) -> None:
    short: list[dict[str, object]] = [{"object_id": "x", "event_time": t * S, "value": 1} for t in range(5)]
    long = [{"object_id": "y", "event_time": t * S, "value": 2} for t in range(3_000)]
    made = prepare(ONE_STREAM)
    replay = Replay(made, open_rows(made.group, written(tmp_path, [short, long]), batch_rows=100), batch_rows=100)
    results: list[int] = []
    replay.on_chunk = lambda: results.append(replay.summary.results)
    assert len(list(replay)) == 1_500
    assert results[len(results) // 2] > 600


def test_rows_are_read_once_and_results_come_once() -> None:
    made = prepare(ONE_STREAM)
    replay = Replay(made, open_rows(made.group, [("x", S, 1.0)]))
    assert len(list(replay)) == 1
    assert list(replay.source) == []


# --- rules


def test_evaluations_end_with_the_first_after_the_last_accepted_row() -> None:
    accepted = [("a", "x", S, 3.0), ("a", "x", 6 * S, 4.0)]
    rejected = [("a", "y", 30 * S, 500.0), ("a", "", 31 * S, 1.0), ("a", "y", 40 * S, float("nan"))]
    results = list(skyband.replay(ONE_STREAM, accepted))
    assert ends(results) == [2, 4, 6, 8]
    assert as_text(skyband.replay(ONE_STREAM, accepted + rejected)) == as_text(results)
    assert as_text(skyband.replay(ONE_STREAM, accepted + rejected, batch_rows=1)) == as_text(results)


def test_evaluations_begin_with_the_first_accepted_row() -> None:
    rejected = [("a", "y", -30 * S, 500.0), ("a", "", -20 * S, 1.0)]
    assert ends(list(skyband.replay(ONE_STREAM, [*rejected, ("a", "x", 8 * S, 3.0)]))) == [10]


def test_only_rejected_rows_give_no_results_and_are_counted() -> None:
    results, replay = summed_up(ONE_STREAM, [("a", "y", S, 500.0), ("a", "", 2 * S, 1.0)])
    assert results == []
    assert (replay.summary.rows, replay.summary.accepted) == (2, 0)
    assert replay.summary.rejected == {"out_of_range": 1, "missing_id": 1}


def test_an_empty_window_is_told_once_and_an_empty_stretch_is_jumped() -> None:
    results = list(skyband.replay(ONE_STREAM, [("x", S, 3.0), ("x", 1_000_000_000 * S, 4.0)]))
    assert ends(results) == [2, 4, 6, 8, 10, 12, 1_000_000_002]
    assert [len(result.rows) for result in results] == [1, 1, 1, 1, 1, 0, 1]


def test_count_windows_come_after_time_windows_in_order_of_row_number_and_query() -> None:
    rows = [("ab"[i % 2], f"o{i % 5}", i * S, float(i % 7)) for i in range(60)]
    results = list(skyband.replay(TWO_STREAMS, rows))
    by_count = [result for result in results if result.query != "time"]
    by_time = results[: len(results) - len(by_count)]
    assert {result.query for result in by_time} == {"time"}
    expected = [(n, q) for n in range(1, 61) for q in ("others", "rows") if q == "others" or n % 2 == 0]
    assert [(result.window_end, result.query) for result in by_count] == expected
    assert [result.window_start for result in by_count[:3]] == [-2, -1, -2]


@pytest.mark.parametrize("asked", [5, 4, 3])
def test_count_windows_are_in_order_however_many_there_are(asked: int) -> None:
    # More than the stages read at once: what ends at one row comes in two parts.
    names = "edcba"[-asked:]
    window = {"count": 3, "slide": 1}
    queries = [{"name": name, "k": 1, "score": f"a + {n + 1}*b", "window": window} for n, name in enumerate(names)]
    streams = [{"name": "a", "hi": 10}, {"name": "b", "hi": 10}]
    definitions = load_definitions({"group": {"name": "g", "streams": streams}, "queries": queries})
    rows = [("ab"[i % 2], f"o{i % 5}", i * S, float(i % 7)) for i in range(500)]
    results = list(skyband.replay(definitions, rows))
    expected = [(n, name) for n in range(1, len(rows) + 1) for name in sorted(names)]
    assert [(result.window_end, result.query) for result in results] == expected


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_idleness_changes_nothing(seed: int) -> None:
    made, rows = workload(seed, 150)
    files = input_files(made.group, rows)
    expected = as_text(skyband.replay(made, files[0], batch_rows=17))
    for then in IdleThen:
        streams = tuple(replace(stream, idle_after_us=0, idle_then=then) for stream in made.group.streams)
        other = replace(made, group=replace(made.group, streams=streams))
        assert as_text(skyband.replay(other, files[0], batch_rows=17)) == expected


def test_the_log_holds_nothing_at_the_end_but_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[MemoryLog] = []

    class Kept(MemoryLog):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            logs.append(self)

    for name in ("skyband.local.replay.MemoryLog", "skyband.local.pipeline.MemoryLog"):
        monkeypatch.setattr(name, Kept, raising=False)
    rows = [("ab"[i % 2], f"o{i % 5}", i * S, float(i % 7)) for i in range(600)]
    assert list(skyband.replay(TWO_STREAMS, [*rows, ("a", "", 0, 1.0)], batch_rows=10))
    (log,) = logs
    held = {at.topic: found.records for at, found in log.statistics().items() if found.records}
    assert set(held) <= {"catalog"}
    peaks = {at.topic: found.peak_records for at, found in log.statistics().items()}
    assert peaks["aligned.g.1"] <= 4
    assert peaks["source.a"] <= 2


# --- what it counts


def test_the_summary_counts_rows_by_what_became_of_them() -> None:
    rows: list[Line] = [("a", f"o{i}", i * S, 1.0) for i in range(10)]
    rows += [("b", "o1", 0, 1.0), ("b", "o2", 9 * S, 1.0), ("b", "o3", 3 * S, 1.0)]  # late by 5 s: counts
    rows += [("a", "o4", S, 1.0)]  # late by 8 s: dropped
    rows += [
        ("a", "", 9 * S, 1.0),
        ("a", "o5", 9 * S, 101.0),
        ("b", "o6", 9 * S, -1.0),
        ("b", "o6", 9 * S, float("nan")),
    ]
    results, replay = summed_up(TWO_STREAMS, rows)
    summary = replay.summary
    assert (summary.rows, summary.accepted, summary.late) == (18, 13, 1)
    assert summary.rejected == {"missing_id": 1, "out_of_range": 2, "not_finite": 1, "late": 1}
    assert summary.results == len(results)
    assert summary.evaluations == len(results)
    assert summary.objects == 10
    assert summary.held > 0
    assert summary.state_bytes > 0


def test_the_first_dead_letters_are_kept_with_their_place_and_the_row() -> None:
    rows = [{"object_id": "x", "event_time": i * S, "value": 1.0 if i % 2 else 1000.0 + i} for i in range(40)]
    _, replay = summed_up(ONE_STREAM, rows, batch_rows=3)
    letters = replay.summary.examples
    assert replay.summary.rejected == {"out_of_range": 20}
    assert [(letter.stream, letter.partition, letter.offset) for letter in letters] == [
        ("a", 0, offset) for offset in (0, 2, 4, 6, 8)
    ]
    assert b"1004.0" in letters[2].raw
    assert "1004" in letters[2].error
    assert "100" in letters[2].error


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"object_id": "x", "event_time": "yesterday", "value": 1.0}, "bad_time"),
        ({"object_id": "x", "event_time": None, "value": 1.0}, "bad_time"),
        ({"object_id": None, "event_time": S, "value": 1.0}, "missing_id"),
        ({"object_id": "", "event_time": S, "value": 1.0}, "missing_id"),
        ({"object_id": "x", "event_time": S, "value": "warm"}, "undecodable"),
        ({"object_id": "x", "event_time": S, "value": float("inf")}, "not_finite"),
        ({"object_id": "x", "event_time": S, "value": 100.5}, "out_of_range"),
        (17, "undecodable"),
    ],
)
def test_a_bad_row_is_counted_with_its_reason_and_changes_nothing(row: object, reason: str) -> None:
    good = [{"object_id": "x", "event_time": t * S, "value": 1.0} for t in (0, 1, 2, 3)]
    expected = as_text(skyband.replay(ONE_STREAM, good))
    results, replay = summed_up(ONE_STREAM, [*good[:2], row, *good[2:]], batch_rows=2)
    assert as_text(results) == expected
    assert replay.summary.rejected == {reason: 1}
    assert replay.summary.rows == 5
    assert replay.summary.accepted == 4


def test_a_chunk_is_told_and_the_source_shows_how_far_it_is() -> None:
    made = prepare(ONE_STREAM)
    replay = Replay(
        made, open_rows(made.group, [("x", i * S, 1.0) for i in range(3_000)], batch_rows=500), batch_rows=500
    )
    seen: list[tuple[int, int]] = []
    replay.on_chunk = lambda: seen.append((replay.source.read_rows, replay.summary.results))
    list(replay)
    assert [rows for rows, _ in seen] == [500, 1_000, 1_500, 2_000, 2_500, 3_000]
    assert seen[1][1] > seen[0][1] > 100


# --- what it refuses


def test_what_is_wrong_is_said_before_the_first_result(tmp_path: Path) -> None:
    rows: list[object] = []
    with pytest.raises(DefinitionError, match="no_such"):
        skyband.replay(ONE_STREAM.replace("score: a", "score: no_such"), rows)
    with pytest.raises(DefinitionError, match="there is no such file"):
        skyband.replay(tmp_path / "none.yaml", rows)
    with pytest.raises(NotServedError, match="shards"):
        skyband.replay(TWO_STREAMS, rows, shards=2)
    with pytest.raises(NotServedError, match="skyband"):
        skyband.replay(ONE_STREAM, rows, algorithm="skyband")
    with pytest.raises(ValueError, match="no-such"):
        skyband.replay(ONE_STREAM, rows, algorithm="no-such")
    with pytest.raises(InputError, match="batch_rows"):
        skyband.replay(ONE_STREAM, rows, batch_rows=0)
    with pytest.raises(InputError, match=r"rows\.txt"):
        skyband.replay(ONE_STREAM, tmp_path / "rows.txt")
    with pytest.raises(InputError):
        skyband.replay(ONE_STREAM, tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="int"):
        skyband.replay(ONE_STREAM, 17)
    with pytest.raises(DefinitionError):
        skyband.replay(ONE_STREAM, rows, shards=0)


def test_a_field_of_another_name_is_an_error_and_not_a_bad_row() -> None:
    with pytest.raises(InputError, match="event_time"):
        next(skyband.replay(ONE_STREAM, [{"object_id": "x", "time": S, "value": 1.0}]))


def test_an_error_of_the_rows_themselves_reaches_the_caller() -> None:
    def rows() -> Iterator[tuple[str, int, float]]:
        yield from (("x", i * S, 1.0) for i in range(2_000))
        raise OSError("the sensor is gone")

    seen: list[skyband.Result] = []
    with pytest.raises(OSError, match="the sensor is gone"):
        seen.extend(skyband.replay(ONE_STREAM, rows(), batch_rows=100))
    assert len(seen) > 900


def test_another_algorithm_for_all_queries_or_other_shards_leave_the_definitions_alone() -> None:
    made = prepare(ONE_STREAM)
    other = prepare(made, algorithm=Algorithm.VIEW, shards=4)
    assert other.group.shards == 4
    assert [query.algorithm for query in other.queries] == [Algorithm.VIEW]
    assert made.group.shards == 1
    assert [query.algorithm for query in made.queries] == [Algorithm.AUTO]
    assert module.prepare(made) == made
