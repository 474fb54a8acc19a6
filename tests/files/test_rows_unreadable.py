"""Inputs that cannot be read are one sentence, with file and line."""
# ruff: noqa: E501 - sentences as they are shown

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from skyband.errors import InputError
from skyband.files.rows import open_rows
from skyband.model.group import Group
from tests.files.rows_factory import (
    Row,
    factory,
    pair,
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
