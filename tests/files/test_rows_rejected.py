"""Rows that cannot be used are rows with a reason, and never stop the others."""

from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from skyband.files.rows import open_rows
from skyband.model.source_rows import Reason
from tests.files.rows_factory import (
    Row,
    csv_text,
    expected,
    factory,
    ids_of,
    json_text,
    pair,
    read,
    rejected,
    single,
    table,
    write,
    write_parquet,
)

HEADER = "stream,object_id,event_time,value\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name files as one would at a prompt: without folders."""
    monkeypatch.chdir(tmp_path)


def json_line(object_id: str = '"a"', event_time: str = "1", value: str = "1", stream: str = '"temperature"') -> str:
    return f'{{"stream": {stream}, "object_id": {object_id}, "event_time": {event_time}, "value": {value}}}\n'


# line in the file → why
CSV = [
    ("temperature,a,yesterday,2", ("bad_time", "event_time 'yesterday' is neither microseconds nor ISO 8601")),
    ("temperature,a,,2", ("bad_time", "event_time is empty")),
    ("temperature,a,1,abc", ("undecodable", "value 'abc' is not a number")),
    ("temperature,a,1,", ("undecodable", "value is empty")),
    (
        "temperature,a,x,y",
        ("undecodable", "event_time 'x' is neither microseconds nor ISO 8601, value 'y' is not a number"),
    ),
    ("temperature,a,1", ("undecodable", "has 3 cells, where the header has 4")),
    ("temperature,a,1,2,", ("undecodable", "has 5 cells, where the header has 4")),
    ("  ", ("undecodable", "has 1 cell, where the header has 4")),
    (",a,1,2", ("undecodable", "stream is empty")),
    ('temperature,"a,1,2', ("undecodable", "a quoted cell is never closed")),
    (
        "temperature,a\rb,1,2",
        ("undecodable", "a carriage return stands in a cell without quotes"),
    ),
]
JSON = [
    (json_line(event_time='"yesterday"'), ("bad_time", "event_time 'yesterday' is neither microseconds nor ISO 8601")),
    (json_line(event_time="1.5"), ("bad_time", "event_time 1.5 is neither microseconds nor ISO 8601")),
    (json_line(event_time="null"), ("bad_time", "event_time is empty")),
    (
        json_line(event_time="99999999999999999999"),
        ("bad_time", "event_time '99999999999999999999' is neither microseconds nor ISO 8601"),
    ),
    (json_line(value='"abc"'), ("undecodable", "value 'abc' is not a number")),
    (json_line(value="true"), ("undecodable", "value 'true' is not a number")),
    (json_line(value="[1]"), ("undecodable", "value '[1]' is not a number")),
    (json_line(value="null"), ("undecodable", "value is empty")),
    (json_line(object_id="1.5"), ("undecodable", "object_id 1.5 is neither text nor a whole number")),
    (json_line(object_id="false"), ("undecodable", "object_id False is neither text nor a whole number")),
    (json_line(object_id='"\\ud800"'), ("undecodable", r"object_id '\ud800' holds half a character")),
    (json_line(stream="null"), ("undecodable", "stream is empty")),
    ('{"stream": "temperature", "object_id": "a", "event_time": 1}\n', ("undecodable", "value is empty")),
    ('{"stream": "temperat\n', ("undecodable", "is not JSON (column 12: unterminated string)")),
    ("{} {}\n", ("undecodable", "is not JSON (column 4: extra data)")),
    ("17\n", ("undecodable", "is JSON, but no object")),
    ("[" * 5000 + "\n", ("undecodable", "cannot be decoded: it nests too deeply")),
]
GOOD = [Row("vibration", f"o{index}", index, (1.0,)) for index in range(20)]


@pytest.mark.parametrize(("line", "why"), CSV)
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_a_bad_row_of_csv_is_rejected_and_all_others_are_read(line: str, why: tuple[str, str], block: int) -> None:
    lines = csv_text(GOOD, end="\n", names=HEADER.strip().split(",")).splitlines()
    file = write(Path("rows.csv"), "\n".join([*lines[:8], "", line, *lines[8:], ""]))
    with patch("skyband.files.text_blocks._BLOCK_BYTES", block):
        label, sentence = why
        assert rejected(open_rows(pair(), file)) == [(label, f"rows.csv line 10: {sentence}")]
        assert [one for one in read(pair(), file) if one.stream == "vibration"] == expected(GOOD, pair())


@pytest.mark.parametrize(("line", "why"), JSON)
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_a_bad_line_of_json_is_rejected_and_all_others_are_read(line: str, why: tuple[str, str], block: int) -> None:
    lines = json_text(GOOD).splitlines(keepends=True)
    file = write(Path("rows.jsonl"), "".join([*lines[:8], "\n", line, *lines[8:]]))
    with patch("skyband.files.text_blocks._BLOCK_BYTES", block):
        # Among cells of other types a number shows as text.
        found = [(label, text.replace("'1.5'", "1.5")) for label, text in rejected(open_rows(pair(), file))]
        label, sentence = why
        assert found == [(label, f"rows.jsonl line 10: {sentence}")]
        assert [one for one in read(pair(), file) if one.stream == "vibration"] == expected(GOOD, pair())


def test_a_quote_that_does_not_close_loses_its_own_line_only() -> None:
    lines = ['temperature,"a,1,2', 'temperature,b,2,"2"', 'temperature,"c,3,3', "temperature,d,4,4"]
    file = write(Path("rows.csv"), HEADER + "\n".join(lines))
    assert rejected(open_rows(pair(), file)) == [
        ("undecodable", "rows.csv line 2: has 2 cells, where the header has 4"),
        ("undecodable", "rows.csv line 4: a quoted cell is never closed"),
    ]
    assert [one.time for one in read(pair(), file) if not one.reason] == [2, 4]


def test_each_bad_attribute_of_an_object_stream_is_named() -> None:
    file = write(
        Path("rows.csv"), "stream,object_id,event_time,x,y\nmachine,a,1,,2\nmachine,a,1,b,c\nmachine,a,1,1,2\n"
    )
    assert rejected(open_rows(factory(), file)) == [
        ("undecodable", "rows.csv line 2: x is empty"),
        ("undecodable", "rows.csv line 3: x 'b' is not a number, y 'c' is not a number"),
    ]


def test_cells_of_other_streams_do_not_matter() -> None:
    text = "stream,object_id,event_time,x,y,value\nmachine,a,1,1,2,junk\ntemperature,a,1,junk,,3\n"
    assert rejected(open_rows(factory(), write(Path("rows.csv"), text))) == []


def test_a_row_whose_stream_cannot_be_told_counts_for_the_first() -> None:
    file = write(Path("rows.csv"), HEADER + "vibration,a,1,1\nbroken\nvibration,b,2,2\n")
    first, second = open_rows(pair(), file)
    assert (first.stream, first.rows.reason.tolist()) == (0, [Reason.UNDECODABLE])
    assert (second.stream, second.rows.reason.tolist()) == (1, [0, 0])


def test_a_row_without_its_stream_is_of_the_only_one() -> None:
    file = write(Path("rows.csv"), HEADER + ",a,1,1\ntemperature,b,2,2\n")
    assert [ids_of(chunk.rows) for chunk in open_rows(single(), file)] == [["a", "b"]]
    file = write(Path("rows.jsonl"), json_line(stream="null") + json_line(object_id='"b"'))
    assert [ids_of(chunk.rows) for chunk in open_rows(single(), file)] == [["a", "b"]]


def test_long_cells_are_shortened_in_a_sentence() -> None:
    file = write(Path("rows.csv"), HEADER + f"temperature,a,1,{'x' * 1000}\n")
    assert rejected(open_rows(pair(), file)) == [
        ("undecodable", f"rows.csv line 2: value '{'x' * 59}…' is not a number")
    ]


@pytest.mark.parametrize(
    ("column", "cells", "why"),
    [
        ("value", pa.array([None]), ("undecodable", "value is empty")),
        ("value", pa.array([None], pa.float32()), ("undecodable", "value is empty")),
        ("value", pa.array(["x"]), ("undecodable", "value 'x' is not a number")),
        ("event_time", pa.array([None]), ("bad_time", "event_time is empty")),
        ("event_time", pa.array([None], pa.timestamp("ns")), ("bad_time", "event_time is empty")),
        ("event_time", pa.array([1.5]), ("bad_time", "event_time 1.5 is neither microseconds nor ISO 8601")),
        (
            "event_time",
            pa.array([2**63], pa.uint64()),
            ("bad_time", f"event_time {2**63} is neither microseconds nor ISO 8601"),
        ),
        ("event_time", pa.array([2**62], pa.timestamp("ms")), ("bad_time", "event_time is beyond the time line")),
        ("event_time", pa.array([-(2**63)], pa.timestamp("ms")), ("bad_time", "event_time is beyond the time line")),
        ("stream", pa.array([None], pa.string()), ("undecodable", "stream is empty")),
        ("stream", pa.array([None]), ("undecodable", "stream is empty")),
    ],
)
def test_a_bad_cell_of_parquet_is_a_rejected_row(column: str, cells: pa.Array, why: tuple[str, str]) -> None:
    rows = table([Row("temperature", "a", 1, (1.0,))])
    file = write_parquet(Path("rows.parquet"), rows.set_column(rows.column_names.index(column), column, cells))
    label, sentence = why
    assert rejected(open_rows(pair(), file)) == [(label, f"rows.parquet row 1: {sentence}")]


def test_rows_of_parquet_are_counted_from_one_across_batches() -> None:
    rows = table([Row("temperature", "a", 1, (1.0,))] * 10).to_pydict()
    rows["value"][6] = None
    file = write_parquet(Path("rows.parquet"), pa.table(rows), row_group_size=4)
    assert rejected(open_rows(pair(), file, batch_rows=3)) == [("undecodable", "rows.parquet row 7: value is empty")]


def raws(file: Path) -> list[str]:
    return [chunk.rows.raw(row).decode() for chunk in open_rows(single(), file) for row in range(chunk.rows.rows)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_raw_gives_the_bytes_of_the_row(end: str) -> None:
    lines = [json_line().strip(), json_line(value='"ö"').strip(), "junk", json_line().strip()]
    assert raws(write(Path("rows.jsonl"), end.join(lines))) == lines
    for middle in ("temperature,a,1,3", f'temperature,"a{end}b",1,3', "temperature"):
        lines = ["temperature,ö,1,2", middle, 'temperature,"a",1,x']
        assert raws(write(Path("rows.csv"), HEADER + end.join(lines))) == lines


def test_raw_of_parquet_is_the_row_as_json() -> None:
    (chunk,) = open_rows(single(), write_parquet(Path("rows.parquet"), table([Row("temperature", "ö", 1, (2.0,))])))
    assert chunk.rows.raw(0).decode() == '{"stream": "temperature", "object_id": "ö", "event_time": 1, "value": 2.0}'
