"""Rows that cannot be used are rows with a reason; inputs that cannot be read are one sentence."""
# ruff: noqa: E501 - sentences as they are shown

import gzip
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from skyband.errors import InputError
from skyband.files.rows import open_rows
from skyband.model.group import Group
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


# --- rows with a reason

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
    ("  ", ("undecodable", "has 1 cells, where the header has 4")),
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


# --- inputs that cannot be read


def packed(text: str, cut: slice = slice(None)) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(gzip.compress(text.encode(), mtime=0)[cut])


def text(content: str | bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content.encode() if isinstance(content, str) else content)


def columns(**cells: pa.Array) -> Callable[[Path], object]:
    rows = {"stream": pa.array(["temperature"]), "object_id": pa.array(["a"]), "event_time": pa.array([1])}
    return lambda path: write_parquet(path, pa.table(rows | {"value": pa.array([1.0])} | cells))


KINDS = "these are .parquet, .csv, .jsonl, .ndjson and .json, all but .parquet also with .gz"
NOT_PARQUET = "is not Parquet, or is damaged"
LONG = HEADER + "temperature,a,1,2\n" * 10_000
TWO = "streams are temperature, vibration"
INPUTS: list[tuple[Group, str, Callable[[Path], object], str]] = [
    (pair(), "rows.csv", lambda path: None, "there is no such file"),
    (pair(), "rows.jsonl.gz", lambda path: None, "there is no such file"),
    (pair(), "rows.parquet", lambda path: None, "there is no such file"),
    (pair(), "rows", Path.mkdir, "is a directory; name the files in it"),
    (pair(), "rows.csv", Path.mkdir, "is a directory; name the files in it"),
    (pair(), "rows.parquet", Path.mkdir, "is a directory; name the files in it"),
    (pair(), "rows.txt", text(""), f"is no kind of file that rows are read from; {KINDS}"),
    (pair(), "rows", text(""), f"is no kind of file that rows are read from; {KINDS}"),
    (pair(), "rows.gz", text(""), f"is no kind of file that rows are read from; {KINDS}"),
    (pair(), "rows.parquet.gz", text(""), f"is no kind of file that rows are read from; {KINDS}"),
    (
        pair(),
        "rows.csv",
        text(""),
        "is empty; its first line must name its columns (stream, object_id, event_time, value)",
    ),
    (
        single(),
        "rows.csv",
        text("\n\n"),
        "is empty; its first line must name its columns (object_id, event_time, value)",
    ),
    (
        pair(),
        "rows.csv",
        text(HEADER.replace("_", "")),
        "there is no column 'object_id' (did you mean 'objectid'?); columns are stream, objectid, eventtime, value",
    ),
    (
        pair(),
        "rows.csv",
        text(HEADER.upper()),
        "there is no column 'stream' (did you mean 'STREAM'?); columns are STREAM, OBJECT_ID, EVENT_TIME, VALUE",
    ),
    (
        pair(),
        "rows.csv",
        text(HEADER.replace(",", ";")),
        "there is no column 'stream' (cells are separated by commas here, not by ';'); columns are stream;object_id;event_time;value",
    ),
    (pair(), "rows.csv", text(HEADER.strip() + ",value\n"), "there are 2 columns 'value'; keep one of them"),
    (
        factory(),
        "rows.csv",
        text("object_id,event_time\n"),
        "there is no column 'stream'; columns are object_id, event_time",
    ),
    (
        factory(),
        "rows.csv:2",
        text("stream,object_id,event_time,x\nmachine,a,1,2\n"),
        "there is no column 'y', which stream 'machine' needs; columns are stream, object_id, event_time, x",
    ),
    (
        factory(),
        "rows.csv:3",
        text("stream,object_id,event_time,x,y\nmachine,a,1,2,3\nvibration,a,1,,\n"),
        "there is no column 'value', which stream 'vibration' needs; columns are stream, object_id, event_time, x, y",
    ),
    (
        pair(),
        "rows.csv:3",
        text(HEADER + "temperature,a,1,2\ntemprature,a,1,2\n"),
        f"'temprature' is not a stream of group 'factory' (did you mean 'temperature'?); {TWO}",
    ),
    (
        pair(),
        "rows.csv:4",
        text(HEADER + "temperature,a,1,2\n\nother,a,1,2\n"),
        f"'other' is not a stream of group 'factory'; {TWO}",
    ),
    (
        single(),
        "rows.csv:2",
        text(HEADER + "vibration,a,1,2\n"),
        "'vibration' is not a stream of group 'factory'; streams are temperature",
    ),
    (
        pair(),
        "rows.csv:3",
        text((HEADER + "temperature,a,1,2\ntemperature,ä,1,2\n").encode("latin-1")),
        "is not UTF-8: byte 0xe4 begins no character; save it as UTF-8",
    ),
    (
        pair(),
        "rows.csv:1",
        text(HEADER.encode("utf-16")),
        "is not UTF-8: byte 0xff begins no character; save it as UTF-8",
    ),
    (pair(), "rows.csv:2", text(HEADER + "x" * (17 << 20)), "is longer than 16 MiB"),
    (pair(), "rows.csv:1", text("x" * 200_000), "is no header: field larger than field limit (131072)"),
    (pair(), "rows.csv.gz", packed(LONG, slice(-20)), "ends in the middle of its gzip data; it was cut off"),
    (pair(), "rows.csv.gz", packed(LONG, slice(-4)), "ends in the middle of its gzip data; it was cut off"),
    (pair(), "rows.csv.gz", text(HEADER), "is not gzip, or is damaged (Not a gzipped file (b'st'))"),
    (pair(), "rows.csv.gz", text(""), "is empty, so it is not gzip"),
    (pair(), "rows.jsonl.gz", text(""), "is empty, so it is not gzip"),
    (
        pair(),
        "rows.jsonl.gz",
        packed(json_line() * 9_000, slice(-9)),
        "ends in the middle of its gzip data; it was cut off",
    ),
    (
        pair(),
        "rows.json",
        text('[{"stream": "temperature"}]'),
        "begins with a list; write one JSON object a line, without '[' and commas",
    ),
    (
        pair(),
        "rows.json",
        text("[\n{}\n]\n"),
        "begins with a list; write one JSON object a line, without '[' and commas",
    ),
    (
        pair(),
        "rows.jsonl",
        text(json_line().replace("object_id", "ObjectId") * 3),
        "there is no field 'object_id' (did you mean 'ObjectId'?); fields are stream, ObjectId, event_time, value",
    ),
    (
        factory(),
        "rows.jsonl",
        text('{"stream": "machine", "object_id": "a", "event_time": 1, "X": 1, "y": 2}\n'),
        "there is no field 'x', which stream 'machine' needs (did you mean 'X'?); fields are stream, object_id, event_time, X, y",
    ),
    (
        factory(),
        "rows.jsonl",
        text('{"stream": "vibration", "object_id": "a", "event_time": 1, "vibration": 1}\n'),
        "there is no field 'value', which stream 'vibration' needs; fields are stream, object_id, event_time, vibration",
    ),
    (
        pair(),
        "rows.jsonl:2",
        text(json_line() + json_line(stream='"pressure"')),
        f"'pressure' is not a stream of group 'factory'; {TWO}",
    ),
    (
        pair(),
        "rows.jsonl:2",
        text(json_line() + json_line(stream="5")),
        f"'5' is not a stream of group 'factory'; {TWO}",
    ),
    (
        pair(),
        "rows.jsonl:3",
        text(json_line().encode() + b"\n\xc3(\n"),
        "is not UTF-8: byte 0xc3 begins no character; save it as UTF-8",
    ),
    (
        pair(),
        "rows.parquet",
        text("PAR"),
        f"{NOT_PARQUET} (Parquet file size is 3 bytes, smaller than the minimum file footer (8 bytes))",
    ),
    (
        pair(),
        "rows.parquet",
        text("x" * 100),
        f"{NOT_PARQUET} (Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file)",
    ),
    (pair(), "rows.parquet", columns(value=pa.array([True])), "column 'value' is bool, not numbers"),
    (
        pair(),
        "rows.parquet",
        columns(event_time=pa.array([1], pa.time64("us"))),
        "column 'event_time' is time64[us], not microseconds, timestamps or ISO 8601",
    ),
    (
        pair(),
        "rows.parquet",
        columns(object_id=pa.array([1.5])),
        "column 'object_id' is double, not text or whole numbers",
    ),
    (
        pair(),
        "rows.parquet",
        columns(object_id=pa.array([b"\xff"])),
        "column 'object_id' holds bytes that are not UTF-8",
    ),
    (pair(), "rows.parquet", columns(stream=pa.array([1])), "column 'stream' is int64, not text"),
    (pair(), "rows.parquet#1", columns(stream=pa.array(["temp"])), f"'temp' is not a stream of group 'factory'; {TWO}"),
    (
        pair(),
        "rows.parquet",
        lambda path: write_parquet(path, table([]).drop_columns(["event_time"])),
        "there is no column 'event_time'; columns are stream, object_id, value, x, y",
    ),
]


@pytest.mark.parametrize(("group", "place", "make", "sentence"), INPUTS)
def test_an_input_that_cannot_be_read_is_one_sentence(
    group: Group, place: str, make: Callable[[Path], object], sentence: str
) -> None:
    name, _, line = place.partition(":")
    name, _, row = name.partition("#")
    make(Path(name))
    with pytest.raises(InputError) as caught:
        for _ in open_rows(group, name):
            pass
    where = f" line {line}" if line else f" row {row}" if row else ""
    assert str(caught.value) == f"{name}{where}: {sentence}"


def test_a_damaged_page_of_parquet_names_the_row() -> None:
    rows = [Row("temperature", f"o{n}", n, (float(n),)) for n in range(1_000)]
    file = write_parquet(Path("rows.parquet"), table(rows), compression="gzip", row_group_size=500)
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2_000] = b"\xff" * 2_000
    file.write_bytes(content)
    with pytest.raises(
        InputError, match=r"^rows\.parquet row [1-9]\d*: cannot be decoded; the file is damaged \(.+\)$"
    ):
        list(open_rows(pair(), file, batch_rows=100))


def test_rows_before_a_cut_in_gzip_come_first() -> None:
    make = packed("".join(json_line(value=str(n * n)) for n in range(50_000)), slice(-50))
    make(Path("rows.jsonl.gz"))
    source = open_rows(pair(), "rows.jsonl.gz")
    with pytest.raises(InputError, match="cut off"):
        list(source)
    assert 10_000 < source.read_rows < 50_000


def test_headers_of_all_files_are_checked_before_any_row_is_read() -> None:
    good = write(Path("good.csv"), HEADER + "temperature,a,1,2\n")
    write(Path("bad.csv"), "stream,object_id,value\n")
    with pytest.raises(InputError, match=r"^bad\.csv: there is no column 'event_time'"):
        open_rows(pair(), [good, "bad.csv"])


def test_batch_rows_must_be_positive() -> None:
    with pytest.raises(InputError, match=r"^batch_rows is 0; it must be at least 1$"):
        open_rows(pair(), [], batch_rows=0)


def test_a_source_closes_its_files() -> None:
    file = write(Path("rows.csv"), HEADER + "temperature,a,1,2\n" * 10)
    with open_rows(pair(), [file, file]) as source:
        next(iter(source))
    with pytest.raises(ValueError, match="closed"):
        list(source)
