"""Rows from frames and iterables: the same rows as from files."""

import csv
import sqlite3
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skyband.errors import InputError
from skyband.files.rows import open_rows
from skyband.model.source_rows import Reason
from tests.files.rows_factory import Row, csv_text, expected, factory, pair, read, rejected, single, table, write

GROUP = factory()
ROWS = [
    Row("machine", "物", 1_373_481_600_000_001, (1.0, -0.0)),
    Row("temperature", "o1", 1_373_481_600_000_000, (0.1,)),
    Row("vibration", "", -1, (5e-324,)),
    Row("temperature", "o2", 7, (3.0,)),
]
TABLE = table(ROWS)
DICTS = [row.cells() for row in ROWS]


def retyped(column: str, kind: pa.DataType) -> pa.Table:
    return TABLE.set_column(TABLE.column_names.index(column), column, TABLE[column].cast(kind))


def run_ends() -> pa.Table:
    return TABLE.set_column(0, "stream", pc.run_end_encode(TABLE["stream"].combine_chunks()))


FRAMES: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "record batch": lambda: TABLE.to_batches()[0],
    "record batch reader": lambda: TABLE.to_reader(max_chunksize=3),
    "table in chunks": lambda: pa.concat_tables([TABLE[:1], TABLE[1:1], TABLE[1:]]),
    "table with an offset": lambda: pa.concat_tables([TABLE, TABLE]).combine_chunks()[4:],
    "dictionary of streams": lambda: retyped("stream", pa.dictionary(pa.int8(), pa.string())),
    "dictionary of ids": lambda: retyped("object_id", pa.dictionary(pa.int32(), pa.large_string())),
    "large text": lambda: retyped("object_id", pa.large_string()),
    "text views": lambda: retyped("object_id", pa.string_view()),
    "bytes": lambda: retyped("object_id", pa.binary()),
    "text of times": lambda: retyped("event_time", pa.string()),
    "timestamps": lambda: retyped("event_time", pa.timestamp("us", "America/New_York")),
    "dictionary of times": lambda: retyped("event_time", pa.int64()).set_column(
        2, "event_time", TABLE["event_time"].dictionary_encode()
    ),
    "runs of streams": run_ends,
    "pandas": TABLE.to_pandas,
    "pandas of arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with its own nulls": lambda: TABLE.to_pandas().astype(
        {"stream": "string", "object_id": "string", "event_time": "Int64", "value": "Float64", "x": "Float64"}
    ),
    "pandas of objects": lambda: TABLE.to_pandas().astype(object),
    "pandas with categories": lambda: TABLE.to_pandas().astype({"stream": "category", "object_id": "category"}),
    "pandas with times": lambda: TABLE.to_pandas().assign(
        event_time=lambda f: pd.to_datetime(f.event_time, unit="us", utc=True).dt.tz_convert("Asia/Tokyo")
    ),
    "pandas with an index": lambda: TABLE.to_pandas().set_index(pd.Index([9, 9, 9, 9])),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars in chunks": lambda: pl.concat([pl.from_arrow(TABLE[:3]), pl.from_arrow(TABLE[3:])], rechunk=False),
    "polars, lazy": lambda: pl.from_arrow(TABLE).lazy(),
    "polars with categories": lambda: pl.from_arrow(TABLE).with_columns(
        pl.col("stream", "object_id").cast(pl.Categorical)
    ),
    "polars with times": lambda: pl.from_arrow(TABLE).with_columns(pl.col("event_time").cast(pl.Datetime("us", "UTC"))),
    "a list of frames": lambda: [TABLE],
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("batch_rows", [1, 3, 50_000])
def test_every_frame_gives_the_same_rows(name: str, batch_rows: int) -> None:
    assert read(GROUP, FRAMES[name](), batch_rows) == expected(ROWS, GROUP)


@dataclass
class Reading:
    stream: str
    object_id: str
    event_time: int
    value: float | None = None
    x: float | None = None
    y: float | None = None


Named = namedtuple("Named", ["object_id", "value", "event_time", "stream", "x", "y"], defaults=[None] * 6)


def sqlite_rows() -> Iterator[sqlite3.Row]:
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    base.execute("create table r (stream, object_id, event_time, value, x, y)")
    base.executemany(
        "insert into r values (?, ?, ?, ?, ?, ?)",
        [[row.get(name) for name in ("stream", "object_id", "event_time", "value", "x", "y")] for row in DICTS],
    )
    return iter(base.execute("select * from r"))


ITERABLES: dict[str, Callable[[], Any]] = {
    "mappings": lambda: DICTS,
    "tuples": lambda: [(row.stream, row.object_id, row.event_time, *row.values) for row in ROWS],
    "lists": lambda: iter([[row.stream, row.object_id, row.event_time, *row.values] for row in ROWS]),
    "objects": lambda: (Reading(**row) for row in DICTS),
    "named tuples": lambda: (Named(**row) for row in DICTS),
    "rows of a database": sqlite_rows,
    "rows of csv": lambda: csv.DictReader(csv_text(ROWS).splitlines(keepends=True)),
    "times as text": lambda: [row.cells("iso") for row in ROWS],
    "rows of a frame": lambda: pl.from_arrow(TABLE).iter_rows(named=True),
}


@pytest.mark.parametrize("name", ITERABLES)
@pytest.mark.parametrize("batch_rows", [1, 3, 50_000])
def test_every_iterable_gives_the_same_rows(name: str, batch_rows: int) -> None:
    assert read(GROUP, ITERABLES[name](), batch_rows) == expected(ROWS, GROUP)


@pytest.mark.parametrize(
    ("time", "time_us"),
    [
        (17, 17),
        (np.int32(17), 17),
        (17.0, 17),
        (np.float64(17.0), 17),
        (Decimal("17"), 17),
        ("17", 17),
        (datetime(2013, 7, 10, 18, 40), 1_373_481_600_000_000),  # noqa: DTZ001
        (datetime(2013, 7, 10, 18, 40, tzinfo=UTC), 1_373_481_600_000_000),
        (datetime(2013, 7, 10, 20, 40, tzinfo=timezone(timedelta(hours=2))), 1_373_481_600_000_000),
        (date(2013, 7, 10), 1_373_414_400_000_000),
        (pd.Timestamp("2013-07-10 18:40:00.000000999"), 1_373_481_600_000_000),
        (np.datetime64("2013-07-10T18:40", "ns"), 1_373_481_600_000_000),
        (np.datetime64("2013-07-10T18:40", "s"), 1_373_481_600_000_000),
        (None, None),
        (True, None),
        (1.5, None),
        (float("nan"), None),
        (pd.NaT, None),
        (np.datetime64("NaT"), None),
        (10**30, None),
        pytest.param(10**5000, None, id="huge"),
        ([], None),
    ],
)
@pytest.mark.parametrize("others", [[], [1], ["1970-01-01"], [1, "1970-01-01", 2.0]])
def test_a_python_time_reads_the_same_alone_and_among_others(time: Any, time_us: int | None, others: list[Any]) -> None:
    rows = [{"object_id": "o", "event_time": cell, "value": 1} for cell in [*others, time]]
    (chunk,) = open_rows(single(), rows)
    assert chunk.rows.reason.tolist() == [0] * len(others) + [0 if time_us is not None else Reason.BAD_TIME]
    if time_us is not None:
        assert chunk.rows.event_time_us[-1] == time_us


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        (2**53 + 1, 2.0**53),
        (10**30, 1e30),
        (np.float32(0.5), 0.5),
        (np.int8(5), 5.0),
        (Decimal("0.1"), 0.1),
        ("2.5", 2.5),
        (True, None),
        (None, None),
        ("x", None),
        ({}, None),
        (1j, None),
    ],
)
@pytest.mark.parametrize("others", [[], [1.5], [1.5, "2", None]])
def test_a_python_value_reads_the_same_alone_and_among_others(
    value: Any, number: float | None, others: list[Any]
) -> None:
    rows = [{"object_id": "o", "event_time": 1, "value": cell} for cell in [*others, value]]
    (chunk,) = open_rows(single(), rows)
    assert chunk.rows.reason[-1] == (Reason.ACCEPTED if number is not None else Reason.UNDECODABLE)
    if number is not None:
        assert chunk.rows.values[-1, 0] == number


@pytest.mark.parametrize(
    ("name", "read_as"),
    [
        ("a", "a"),
        (5, "5"),
        (np.int64(-5), "-5"),
        (2**70, str(2**70)),
        ("ä".encode(), "ä"),
        (None, ""),
        (True, None),
        (1.5, None),
        (float("nan"), None),
        (b"\xff", None),
        ("\udc00", None),
        ((), None),
    ],
)
@pytest.mark.parametrize("others", [[], ["o"], [7, "o"]])
def test_a_python_id_reads_the_same_alone_and_among_others(name: Any, read_as: str | None, others: list[Any]) -> None:
    rows = [{"object_id": cell, "event_time": 1, "value": 1} for cell in [*others, name]]
    found = read(single(), rows)
    assert found[-1].reason == (Reason.ACCEPTED if read_as is not None else Reason.UNDECODABLE)
    assert found[-1].object_id == (read_as or "")


def test_a_tuple_may_leave_out_the_only_stream() -> None:
    wanted = expected([Row("temperature", "a", 1, (2.0,)), Row("temperature", "b", 2, (3.0,))], single())
    assert read(single(), [("a", 1, 2.0), ("temperature", "b", 2, 3.0)]) == wanted


def test_an_iterable_is_taken_only_as_far_as_it_is_read() -> None:
    taken = 0

    def endless() -> Iterator[tuple[str, str, int, float]]:
        nonlocal taken
        while True:
            taken += 1
            yield "temperature", "o", taken, 1.0

    source = open_rows(GROUP, endless(), batch_rows=100)
    assert taken == 0
    chunks = iter(source)
    for _ in range(30):
        next(chunks)
    assert taken <= 3_100
    assert (source.total_bytes, source.total_rows, source.read_bytes) == (None, None, 0)
    assert source.read_rows == 3_000


def test_no_rows_are_no_chunks() -> None:
    for rows in ([], iter([]), TABLE[:0], TABLE[:0].to_pandas(), pl.from_arrow(TABLE[:0])):
        assert list(open_rows(GROUP, rows)) == []


def test_frames_and_files_can_be_mixed(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv", csv_text(ROWS))
    assert read(GROUP, [file, TABLE]) == expected(ROWS, GROUP, 0) + expected(ROWS, GROUP, 1)


def test_nan_in_a_frame_of_floats_is_nan_and_an_empty_cell_is_empty() -> None:
    cells = {"object_id": ["a", "b"], "event_time": [1, 2], "value": [float("nan"), 1.0]}
    for frame in (pd.DataFrame(cells), pl.DataFrame(cells), pa.table(cells)):
        assert rejected(open_rows(single(), frame)) == []
    cells["value"] = [None, 1.0]
    for frame in (pd.DataFrame(cells).astype({"value": "Float64"}), pl.DataFrame(cells), pa.table(cells)):
        assert rejected(open_rows(single(), frame)) == [("undecodable", "frame[0]: value is empty")]


def test_a_bad_cell_of_a_frame_is_a_rejected_row() -> None:
    frame = pd.DataFrame({"object_id": ["a", 1.5, None, "d"], "event_time": [1, 2, 3, "noon"], "value": [1, "x", 2, 3]})
    assert rejected(open_rows(single(), frame)) == [
        ("undecodable", "frame[1]: object_id 1.5 is neither text nor a whole number"),
        ("bad_time", "frame[3]: event_time 'noon' is neither microseconds nor ISO 8601"),
    ]


@pytest.mark.parametrize("frame", [TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy()])
def test_the_raw_bytes_of_a_frames_row_are_its_cells(frame: Any) -> None:
    machine = next(chunk for chunk in open_rows(GROUP, frame) if chunk.stream == 2)
    assert (
        machine.rows.raw(0)
        .decode()
        .startswith('{"stream": "machine", "object_id": "物", "event_time": 1373481600000001')
    )


@pytest.mark.parametrize(
    "make", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow, lambda t: pl.from_arrow(t).lazy()]
)
def test_a_frame_without_a_column_is_refused_at_once(make: Callable[[pa.Table], Any]) -> None:
    columns = ["stream", "object", "event_time", "value", "x", "y"]
    sentence = f"frame: there is no column 'object_id' (did you mean 'object'?); columns are {', '.join(columns)}"
    with pytest.raises(InputError) as caught:
        open_rows(GROUP, make(TABLE.rename_columns(columns)))
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (5, "rows cannot be read from what is of type int; give paths, a frame or an iterable of rows"),
        (b"", "rows cannot be read from what is of type bytes; give paths, a frame or an iterable of rows"),
        ({"a": []}, "rows cannot be read from what is of type dict; give paths, a frame or an iterable of rows"),
        (
            [{"stream": "temperature", "object": "a", "event_time": 1, "value": 1}],
            "rows: there is no field 'object_id' (did you mean 'object'?); "
            "fields are stream, object, event_time, value",
        ),
        (
            [("temprature", "a", 1, 1)],
            "rows[0]: 'temprature' is not a stream of group 'factory' (did you mean 'temperature'?); "
            "streams are temperature, vibration",
        ),
        ([(5, "a", 1, 1)], "rows[0]: '5' is not a stream of group 'factory'; streams are temperature, vibration"),
    ],
)
def test_what_holds_no_rows_is_one_sentence(rows: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        list(open_rows(pair(), rows))
    assert str(caught.value) == sentence


def test_a_row_of_no_known_form_is_rejected() -> None:
    rows = [("temperature", "a", 1, 1.0), ("temperature", "a", 1), 5, None, "text", ()]
    tail = "neither a mapping, nor a tuple, nor an object with fields"
    items = "not 4 (stream, object_id, event_time, value)"
    assert [sentence for _, sentence in rejected(open_rows(pair(), rows))] == [
        f"rows[1]: has 3 items, {items}",
        f"rows[2]: is of type int: {tail}",
        f"rows[3]: is of type NoneType: {tail}",
        f"rows[4]: is of type str: {tail}",
        f"rows[5]: has 0 items, {items}",
    ]


def test_an_error_of_the_iterable_itself_passes_through() -> None:
    def broken() -> Iterator[tuple[str, str, int, float]]:
        yield "temperature", "a", 1, 1.0
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        list(open_rows(pair(), broken()))


def test_files_and_arrow_are_read_where_neither_pandas_nor_polars_is_installed(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv", csv_text(ROWS))
    program = f"""
import sys


class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NotInstalled())
from skyband.files.rows import open_rows
from tests.files.rows_factory import Row, factory, table
rows = table([Row("temperature", "a", 1, (1.0,))])
assert list(open_rows(factory(), {str(file)!r}))
assert list(open_rows(factory(), rows))
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_text_that_is_not_utf_8_is_refused() -> None:
    ends = pa.py_buffer(np.array([0, 1], np.int32).tobytes())
    ids = pa.StringArray.from_buffers(1, ends, pa.py_buffer(b"\xff"))
    frame = pa.table({"object_id": ids, "event_time": [1], "value": [1.0]})
    with pytest.raises(InputError, match=r"^frame: column 'object_id' holds text that is not UTF-8$"):
        list(open_rows(single(), frame))
