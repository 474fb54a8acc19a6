"""``skyband replay``: its output, its sentences, its exit codes."""

import gzip
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, START, Answer

Call = Callable[..., Answer]

DEFINITIONS = """\
group:
  name: factory
  streams:
    - {name: temperature, lo: 0, hi: 100}
    - {name: vibration, lo: 0, hi: 10}
queries:
  - {name: hottest, k: 2, score: temperature + vibration, window: {size: 5s, slide: 2s}}
"""
ROWS = [
    {"stream": "temperature", "object_id": "m1", "event_time": 1_000_000, "value": 80},
    {"stream": "vibration", "object_id": "m2", "event_time": 2_000_000, "value": 9.5},
    {"stream": "temperature", "object_id": "mé", "event_time": 3_000_000, "value": 0.1},
]
EXPECTED = (
    '{"query": "hottest", "window_start": -3000000, "window_end": 2000000, "rows": '
    '[{"rank": 1, "object_id": "m1", "score": 80.0, "attributes": {"temperature": 80.0}}]}\n'
    '{"query": "hottest", "window_start": -1000000, "window_end": 4000000, "rows": '
    '[{"rank": 1, "object_id": "m1", "score": 80.0, "attributes": {"temperature": 80.0}}, '
    '{"rank": 2, "object_id": "m2", "score": 9.5, "attributes": {"vibration": 9.5}}]}\n'
)


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    file = tmp_path / "factory.yaml"
    file.write_text(DEFINITIONS)
    return file


def written(path: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines))
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return written(tmp_path / "rows.jsonl", *ROWS)


# --- output


def test_the_worked_example_gives_the_golden_results(call: Call, examples: Path) -> None:
    answer = call("replay", "--definitions", examples / "factory.yaml", "--input", examples / "factory.jsonl")
    assert answer.code == 0
    assert answer.out == (ROOT / "tests/golden/factory/expected.jsonl").read_text()


def test_results_are_json_lines_on_stdout_and_all_else_on_stderr(call: Call, definitions: Path, rows: Path) -> None:
    answer = call("replay", "--definitions", definitions, "--input", rows)
    assert (answer.code, answer.out) == (0, EXPECTED)
    assert "read      3 rows" in answer.err
    assert "accepted  3 rows, 0 of them late" in answer.err
    assert "results   2 evaluations written" in answer.err
    assert "rejected" not in answer.err
    assert answer.err.count("next ") == 1


def test_a_dash_is_stdout(call: Call, definitions: Path, rows: Path) -> None:
    assert call("replay", "--definitions", definitions, "--input", rows, "--output", "-").out == EXPECTED


def test_a_file_is_written_with_the_permissions_of_any_new_file(
    call: Call, definitions: Path, rows: Path, tmp_path: Path
) -> None:
    output, other = tmp_path / "out.jsonl", tmp_path / "other"
    other.touch()
    answer = call("replay", "--definitions", definitions, "--input", rows, "--output", output)
    assert (answer.code, answer.out) == (0, "")
    assert output.read_text() == EXPECTED
    assert stat.S_IMODE(output.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["factory.yaml", "other", "out.jsonl", "rows.jsonl"]


def test_an_older_file_is_replaced_and_a_link_stays_one(
    call: Call, definitions: Path, rows: Path, tmp_path: Path
) -> None:
    output, link = tmp_path / "out.jsonl", tmp_path / "link.jsonl"
    output.write_text("old")
    output.chmod(0o600)
    link.symlink_to(output)
    assert call("replay", "--definitions", definitions, "--input", rows, "--output", link).code == 0
    assert link.is_symlink()
    assert output.read_text() == EXPECTED
    assert stat.S_IMODE(output.stat().st_mode) == 0o600


def test_a_device_is_written_to_and_stays_one(call: Call, definitions: Path, rows: Path) -> None:
    assert call("replay", "--definitions", definitions, "--input", rows, "--output", os.devnull).code == 0
    assert not Path(os.devnull).is_file()


def test_a_run_that_fails_leaves_the_older_file_and_nothing_else(
    call: Call, definitions: Path, rows: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("old")
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in ROWS * 2000))[:-50])
    before = sorted(tmp_path.iterdir())
    answer = call("replay", "--definitions", definitions, "--input", rows, cut, "--output", output)
    assert answer.code == 1
    assert "cut.jsonl.gz: ends in the middle of its gzip data" in answer.err
    assert output.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


def test_a_table_shows_the_last_evaluation_of_each_query(call: Call, examples: Path) -> None:
    answer = call(
        *("replay", "--definitions", examples / "factory.yaml", "--input", examples / "factory.jsonl", "-o", "table")
    )
    first, second = answer.out.strip().split("\n\n")
    assert first.startswith("hottest · the 2 highest by 0.7*temperature + 3*vibration")
    assert [line.split() for line in first.splitlines()[2:]] == [
        ["#", "object", "score", "temperature", "vibration"],
        ["1", "m5", "35", "50", "–"],
        ["2", "m3", "26", "20", "4"],
    ]
    assert [line.split() for line in second.splitlines()[3:]] == [["1", "m3", "26", "20", "4"]]


def test_several_inputs_are_partitions_in_the_order_given(
    call: Call, definitions: Path, rows: Path, tmp_path: Path
) -> None:
    parts = [written(tmp_path / f"{name}.jsonl", row) for name, row in zip("cab", ROWS, strict=True)]
    for inputs in (["--input", *parts], [x for part in parts for x in ("--input", part)]):
        assert call("replay", "--definitions", definitions, *inputs).out == EXPECTED


@pytest.mark.parametrize(
    "options",
    [["--shards", 3], ["--batch-rows", 1], ["--algorithm", "view"], ["--algorithm", "two-tier", "--shards", 2]],
    ids=str,
)
def test_how_it_is_computed_does_not_change_a_byte(
    call: Call, definitions: Path, rows: Path, options: list[object]
) -> None:
    assert call("replay", "--definitions", definitions, "--input", rows, *options).out == EXPECTED


# --- brute force


def test_check_compares_every_evaluation(call: Call, examples: Path) -> None:
    answer = call(
        *("replay", "--definitions", examples / "factory.yaml", "--input", examples / "factory.jsonl", "--check")
    )
    assert answer.code == 0
    assert "checked   12 evaluations against brute force: all equal" in answer.err


def test_check_refuses_what_may_miss_rows(call: Call, definitions: Path, rows: Path) -> None:
    words = ("--definitions", definitions, "--input", rows, "--algorithm", "eaa-tail")
    refused = call("replay", *words, "--check")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        "--check: compares exact results, and query 'hottest' is answered by eaa-tail, which may miss rows; without "
        "--check the replay tells what share of them it shows\n"
    )
    assert "recall    hottest: unknown yet: " in call("replay", *words).err


def test_check_leaves_out_rows_that_are_rejected(call: Call, definitions: Path, tmp_path: Path) -> None:
    bad = ['{"stream": "temperature"', {**ROWS[0], "object_id": ""}, {**ROWS[0], "value": 500}]
    mixed = written(tmp_path / "mixed.jsonl", ROWS[0], *bad, *ROWS[1:])
    answer = call("replay", "--definitions", definitions, "--input", mixed, "--check")
    assert (answer.code, answer.out) == (0, EXPECTED)
    assert "checked   2 evaluations" in answer.err


def test_check_fails_at_the_first_difference(
    call: Call, definitions: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skyband.cli import comparison

    found = comparison.partitions_of

    def changed(source: object) -> object:
        return {place: [row._replace(values=(1.0,)) for row in part] for place, part in found(source).items()}  # type: ignore[arg-type]

    monkeypatch.setattr(comparison, "partitions_of", changed)
    output = tmp_path / "out.jsonl"
    answer = call("replay", "--definitions", definitions, "--input", rows, "--check", "--output", output)
    assert answer.code == 1
    assert "differs at rank 1: m1 with 80.0" in answer.err
    assert "by brute force m1 with 1.0" in answer.err
    assert not output.exists()


# --- what is asked wrongly


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--shards", 0], "--shards 0: shards must be 1 to 4096"),
        (["--batch-rows", 0], "--batch-rows 0: must be at least 1"),
        (["--algorithm", "fast"], "--algorithm fast: no such algorithm; use auto, two-tier, view, skyband, "),
        (["--algorithm", "skyband"], "--algorithm skyband: query 'hottest' cannot use skyband"),
        (["-o", "xml"], "-o xml: no such format; use table or json"),
        (["-o", "table", "--output", "x.jsonl"], "--output x.jsonl: a table is for the screen"),
    ],
    ids=str,
)
def test_an_option_that_is_wrong_is_named(
    call: Call, definitions: Path, rows: Path, options: list[object], said: str
) -> None:
    answer = call("replay", "--definitions", definitions, "--input", rows, *options)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith(said)
    assert answer.err.count("\n") == 1


def test_a_count_window_refuses_shards(call: Call, rows: Path, tmp_path: Path) -> None:
    definitions = tmp_path / "count.yaml"
    definitions.write_text(DEFINITIONS.replace("{size: 5s, slide: 2s}", "{count: 2, slide: 1}"))
    assert call("replay", "--definitions", definitions, "--input", rows).code == 0
    answer = call("replay", "--definitions", definitions, "--input", rows, "--shards", 2)
    assert answer.code == 2
    assert answer.err.startswith("--shards 2: ")
    assert "needs one shard" in answer.err


@pytest.mark.parametrize("output", ["factory.yaml", "rows.jsonl", "link.jsonl", ".", "none/out.jsonl"])
def test_an_output_that_must_not_be_written_is_refused(
    call: Call, definitions: Path, rows: Path, tmp_path: Path, output: str
) -> None:
    (tmp_path / "link.jsonl").hardlink_to(rows)
    answer = call("replay", "--definitions", definitions, "--input", rows, "--output", tmp_path / output)
    assert answer.code == 2
    assert answer.err.startswith(f"--output {tmp_path / output}: ")
    assert rows.read_text().startswith("{")
    assert definitions.read_text() == DEFINITIONS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("temperature + vibration", "temperature + vibraton"), "score uses 'vibraton', which is not a stream"),
        (("k: 2", "k: 0"), "k must be at least 1"),
        (("k: 2", f"k: {2**63}"), "k must be at most"),
        (("size: 5s", "size: 0s"), "size"),
        (("slide: 2s", "slide: 700ms"), "slide 700ms is no multiple of the group's pane 1s; use 1s"),
        (("queries:", "querys:"), "'querys'"),
    ],
    ids=["unknown attribute", "k 0", "k 2^63", "window 0", "slide no multiple of pane", "typo in a key"],
)
def test_definitions_that_are_wrong_exit_with_2_and_a_mark(
    call: Call, rows: Path, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(DEFINITIONS.replace(*change))
    answer = call("replay", "--definitions", file, "--input", rows)
    assert answer.code == 2
    assert answer.out == ""
    sentence, _, marks = answer.err.splitlines()
    assert sentence.startswith(f"{file}:")
    assert said in sentence
    assert set(marks.strip()) == {"^"}


# --- inputs that cannot be read, and rows that cannot be used


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.jsonl", None, "there is no such file"),
        ("rows.txt", b"x", "is no kind of file that rows are read from"),
        ("empty.csv", b"", "is empty"),
        ("no-time.csv", b"stream,object_id,value\ntemperature,m1,1\n", "there is no column 'event_time'"),
        ("typo.csv", b"stream,object_id,event_tme,value\ntemperature,m1,1,1\n", "did you mean 'event_tme'?"),
        ("no-value.jsonl", b'{"stream": "temperature", "object_id": "m1", "event_time": 1}\n', "no field 'value'"),
        ("other.csv", b"stream,object_id,event_time,value\nspeed,m1,1,1\n", "'speed' is not a stream of group"),
        ("cut.csv.gz", gzip.compress(b"stream,object_id,event_time,value\n" * 9)[:-9], "ends in the middle"),
        ("text.csv.gz", b"stream,object_id\n", "is not gzip"),
        ("text.parquet", b"PAR0", "is not Parquet"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_an_input_that_cannot_be_read_exits_with_1_and_one_sentence(
    call: Call, definitions: Path, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    answer = call("replay", "--definitions", definitions, "--input", file)
    assert answer.code == 1
    assert answer.out == ""
    assert str(file) in answer.err
    assert said in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**ROWS[0], "event_time": "yesterday"}, "bad_time"),
        ({**ROWS[0], "event_time": 2**62}, "bad_time"),
        ({**ROWS[0], "value": "NaN"}, "not_finite"),
        ('{"stream": "temperature", "object_id": "m9", "event_time": 1000000, "value": NaN}', "not_finite"),
        ({**ROWS[0], "object_id": ""}, "missing_id"),
        ({**ROWS[0], "value": 101}, "out_of_range"),
        ('{"stream": "temperature", "object_id": ', "undecodable"),
    ],
    ids=["bad time", "time beyond the line", "NaN as text", "NaN", "empty id", "out of range", "half a line"],
)
def test_a_row_that_cannot_be_used_is_counted_with_its_reason_and_explained(
    call: Call, definitions: Path, tmp_path: Path, row: object, reason: str
) -> None:
    mixed = written(tmp_path / "mixed.jsonl", ROWS[0], row, *ROWS[1:])
    answer = call("replay", "--definitions", definitions, "--input", mixed)
    assert (answer.code, answer.out) == (0, EXPECTED)
    assert "read      4 rows" in answer.err
    assert "accepted  3 rows" in answer.err
    assert f"rejected  1 row: 1 {reason}" in answer.err
    assert f"          {reason}: " in answer.err


@pytest.mark.parametrize("name", ["empty.jsonl", "header.csv"])
def test_an_input_without_rows_has_no_results_and_says_so(
    call: Call, definitions: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.write_text("stream,object_id,event_time,value\n" if name == "header.csv" else "")
    answer = call("replay", "--definitions", definitions, "--input", file)
    assert (answer.code, answer.out) == (0, "")
    assert "none, because no row was accepted" in answer.err


# --- as a process


def test_a_process_writes_the_same_and_exits_with_0(start: Call, definitions: Path, rows: Path) -> None:
    answer = start("replay", "--definitions", definitions, "--input", rows)
    assert (answer.code, answer.out) == (0, EXPECTED)
    assert "\x1b" not in answer.err


def test_errors_have_no_traceback_and_their_code_reaches_the_shell(start: Call, definitions: Path, rows: Path) -> None:
    failed = start("replay", "--definitions", definitions, "--input", "none.csv")
    assert (failed.code, failed.err) == (1, "none.csv: there is no such file\n")
    wrong = start("replay", "--definitions", "none.yaml", "--input", rows)
    assert wrong.code == 2
    assert "Traceback" not in failed.err + wrong.err


def test_a_reader_that_has_enough_is_no_traceback(definitions: Path, tmp_path: Path) -> None:
    many = [{**ROWS[0], "event_time": 2_000_000 * second, "object_id": f"m{second}"} for second in range(3_000)]
    file = written(tmp_path / "many.jsonl", *many)
    command = [sys.executable, "-c", START, "replay", "--definitions", str(definitions), "--input", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 1
    assert said == ""
