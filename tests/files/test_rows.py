"""Rows of every format: the same rows, whatever file, block or batch they come in."""

import gzip
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skyband.files.csv_rows import CsvRows
from skyband.files.json_lines import JsonLines
from skyband.files.rows import open_rows
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.source_rows import Reason
from tests.files.rows_factory import (
    FIELDS_OF,
    NAMES,
    Row,
    Seen,
    csv_text,
    expected,
    factory,
    in_order,
    json_text,
    pair,
    read,
    single,
    table,
    write,
    write_parquet,
)

GROUP = factory()
# From year 2 to year 9998: what datetime can write with any offset.
ISO_TIMES = st.integers(-62_100_000_000_000_000, 253_300_000_000_000_000)
FLOATS = st.floats(allow_nan=False) | st.integers(-(10**6), 10**6).map(float)
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["", "o1", "ärger", "物", "🙂", 'say "hi"', "a,b", "line\nbreak", "\r", "\r\n", " space ", "{", "}\n{", "null", "5"]
)


@st.composite
def some_rows(draw: st.DrawFn, times: st.SearchStrategy[int] = ISO_TIMES) -> list[Row]:
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        stream = draw(st.sampled_from(sorted(FIELDS_OF)))
        values = tuple(draw(FLOATS) for _ in FIELDS_OF[stream])
        rows.append(Row(stream, draw(IDS), draw(times), values))
    return rows


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with patch("skyband.files.text_blocks._BLOCK_BYTES", size):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


HARD = [
    Row("temperature", "", 0, (-0.0,)),
    Row("machine", "物\r\n", -1, (math.inf, 5e-324)),
    Row("vibration", '"', 1_700_000_000_000_000, (0.1,)),
    Row("machine", "a,b", 3, (1.7976931348623157e308, -0.0)),
]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=some_rows(),
    time=st.sampled_from(["us", "iso", "naive", "offset"]),
    end=st.sampled_from(["\n", "\r\n"]),
    block=st.integers(20, 400),
    batch_rows=st.integers(1, 5),
)
@example(rows=HARD, time="us", end="\n", block=30, batch_rows=2)
@example(rows=HARD * 5, time="iso", end="\r\n", block=300, batch_rows=50)
def test_all_formats_give_the_same_rows(
    folder: Path, rows: list[Row], time: str, end: str, block: int, batch_rows: int
) -> None:
    wanted = expected(rows, GROUP)
    lines, cells = json_text(rows, time), csv_text(rows, time, end)
    files = [
        write(folder / "rows.csv", cells),
        write(folder / "packed.csv.gz", cells),
        write(folder / "rows.jsonl", lines.replace("\n", end)),
        write(folder / "unescaped.ndjson", json_text(rows, time, is_ascii=False)),
        write(folder / "packed.json.gz", lines),
        write_parquet(folder / "rows.parquet", table(rows), row_group_size=4),
    ]
    with blocks_of(block):
        for file in files:
            assert read(GROUP, file, batch_rows) == wanted, file.name


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_block_read_at_once_is_what_it_is_row_by_row(tmp_path: Path, name: str) -> None:
    chance = random.Random(1)
    rows = []
    for index in range(5_000):
        stream = chance.choice(sorted(FIELDS_OF))
        values = tuple(
            chance.choice([chance.gauss(0, 1), chance.random() * 10 ** chance.randint(-300, 300), 7.0, -0.0])
            for _ in FIELDS_OF[stream]
        )
        rows.append(Row(stream, f"o{chance.randint(0, 99)}é", index * 1_000_003, values))
    text = csv_text(rows) if name.endswith("csv") else json_text(rows)
    file = write(tmp_path / name, text)
    kind, slow = (CsvRows, "_row_by_row") if name.endswith("csv") else (JsonLines, "_line_by_line")
    with blocks_of(4096):
        with patch.object(kind, slow, autospec=True, side_effect=getattr(kind, slow)) as slowly:
            at_once = read(GROUP, file)
        assert slowly.call_count <= 1
        with patch.object(kind, "_at_once", return_value=None):
            one_by_one = read(GROUP, file)
    assert at_once == one_by_one == expected(rows, GROUP)


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "",
        '{"stream": "vibration", "object_id": "o", "event_time": "1970-01-01", "value": 1}',
        '{"stream": "vibration", "object_id": 5, "event_time": 1.0, "value": 1e0}',
        '{"stream": "vibration", "object_id": "o", "event_time": 1, "value": NaN, "more": [{"a": [1]}]}',
        '{"stream": "vibration", "object_id": "o", "event_time": 1, "value": 1e999}',
        '{"stream": "vibration", "object_id": "\\ud800", "event_time": 1, "value": 1}',
        '{"stream": "vibration", "object_id": "o", "object_id": "p", "event_time": 1, "value": 1}',
        '{"stream": "vibration", "object_id": "o", "event_time": 1, "value": 1}{"stream": "vibration"}',
        '{"stream": "vibration", "object_id": "o", "event_time": 1, "value":\n1}',
        '{"stream": "vibration", "object_id": null, "event_time": null, "value": true}',
        '{"stream": "vibration", "object_id": "o", "event_time": 1, "value": "1"} ',
        '{"stream": "vibration", "object_id": "o", "event_time": 99999999999999999999, "value": 123456789012345678901}',
        "[" * 3_000,
        '{"a":' * 3_000 + "1" + "}" * 3_000,
        "[1]",
    ],
)
def test_an_unusual_json_line_is_read_alike_in_any_block(tmp_path: Path, line: str) -> None:
    rows = [Row("temperature", f"o{index}", index, (index / 7,)) for index in range(40)]
    lines = json_text(rows).splitlines()
    file = write(tmp_path / "rows.jsonl", "\n".join([*lines[:30], line, *lines[30:]]))
    seen = set()
    for block in (200, 1_000, 4_096, 1 << 20):
        with blocks_of(block):
            seen.add(tuple(read(pair(), file)))
    assert len(seen) == 1
    good = [(one.object_id, one.time, one.values) for one in seen.pop() if one.object_id.startswith("o")]
    wanted = [(one.object_id, one.time, one.values) for one in expected(rows, pair())]
    assert [one for one in good if one in wanted] == wanted


def test_nan_stays_nan_for_align_to_reject(tmp_path: Path) -> None:
    rows = [Row("temperature", "o1", 1, (math.nan,)), Row("temperature", "o2", 2, (1.0,))]
    frame = pa.table({"object_id": ["o1", "o2"], "event_time": [1, 2], "value": [math.nan, 1.0]})
    files = [
        write(tmp_path / "rows.jsonl", json_text(rows)),
        write(tmp_path / "rows.csv", csv_text(rows)),
        write(tmp_path / "more.csv", "object_id,event_time,value\no1,1,NaN\no2,2,1\n"),
        write_parquet(tmp_path / "rows.parquet", frame),
    ]
    for file in files:
        (chunk,) = open_rows(single(), file)
        assert chunk.rows.reason.tolist() == [Reason.ACCEPTED, Reason.ACCEPTED]
        assert math.isnan(chunk.rows.values[0, 0])
        assert chunk.rows.values[1, 0] == 1.0


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:30"])
def test_parquet_timestamps_of_every_unit_and_zone_are_microseconds(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    rows = [Row("temperature", "a", seconds * 10**6, (1.0,)) for seconds in (-86_400, 0, 1_373_481_600)]
    file = write_parquet(tmp_path / "rows.parquet", table(rows, pa.timestamp(unit, zone)))
    assert read(GROUP, file) == expected(rows, GROUP)


def test_whole_numbers_as_ids_are_decimal_text(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "rows.csv", "object_id,event_time,value\n17,1,2\n-5,2,3\n"),
        write(
            tmp_path / "rows.jsonl",
            '{"object_id": 17, "event_time": 1, "value": 2}\n{"object_id": -5, "event_time": 2, "value": 3}\n',
        ),
        write(
            tmp_path / "mixed.jsonl",
            '{"object_id": 17, "event_time": 1, "value": 2}\n{"object_id": "-5", "event_time": "2", "value": 3.0}\n',
        ),
        write_parquet(
            tmp_path / "rows.parquet", pa.table({"object_id": [17, -5], "event_time": [1, 2], "value": [2, 3]})
        ),
    ]
    wanted = expected([Row("temperature", "17", 1, (2.0,)), Row("temperature", "-5", 2, (3.0,))], single())
    for file in files:
        assert read(single(), file) == wanted, file.name


def test_an_empty_id_is_an_empty_id_for_align_to_reject(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "rows.csv", "object_id,event_time,value\n,1,2\no,2,3\n"),
        write(
            tmp_path / "rows.jsonl",
            '{"object_id": null, "event_time": 1, "value": 2}\n{"object_id": "o", "event_time": 2, "value": 3}\n',
        ),
        write_parquet(
            tmp_path / "r.parquet", pa.table({"object_id": [None, "o"], "event_time": [1, 2], "value": [2, 3]})
        ),
    ]
    wanted = expected([Row("temperature", "", 1, (2.0,)), Row("temperature", "o", 2, (3.0,))], single())
    for file in files:
        assert read(single(), file) == wanted, file.name


def test_columns_come_in_any_order_and_others_do_not_matter(tmp_path: Path) -> None:
    rows = [Row("machine", "a", 5, (1.0, 2.0)), Row("temperature", "b", 6, (3.0,))]
    names = ["note", "y", "value", "event_time", "x", "note", "object_id", "stream"]
    file = write(tmp_path / "rows.csv", "\ufeff" + csv_text(rows, names=names))
    assert read(GROUP, file) == expected(rows, GROUP)
    wide = table(rows).append_column("note", pa.array([{"a": [1]}, None])).select(["note", *reversed(NAMES)])
    assert read(GROUP, write_parquet(tmp_path / "rows.parquet", wide)) == expected(rows, GROUP)
    lines = '\ufeff{"note": [1, {"a": 2}], "y": 2, "x": 1, "event_time": 5, "object_id": "a", "stream": "machine"}\n\n'
    file = write(tmp_path / "rows.jsonl", lines + json_text(rows[1:]))
    assert read(GROUP, file) == expected(rows, GROUP)


def test_a_file_needs_only_the_columns_of_the_streams_that_it_holds(tmp_path: Path) -> None:
    machines = [Row("machine", "a", 5, (1.0, 2.0))]
    values = [Row("vibration", "a", 5, (1.0,)), Row("temperature", "a", 5, (1.0,))]
    files = [
        write(tmp_path / "machines.csv", csv_text(machines, names=("stream", "object_id", "event_time", "x", "y"))),
        write(tmp_path / "values.csv", csv_text(values, names=("stream", "object_id", "event_time", "value"))),
        write_parquet(tmp_path / "values.parquet", table(values).drop_columns(["x", "y"])),
        write(tmp_path / "machines.jsonl", json_text(machines)),
    ]
    wanted = [
        one for number, rows in enumerate((machines, values, values, machines)) for one in expected(rows, GROUP, number)
    ]
    assert read(GROUP, files) == wanted


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.csv.gz", "rows.jsonl.gz"])
def test_a_file_without_rows_has_no_chunks_but_its_partitions(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, "stream,object_id,event_time,value" if "csv" in name else "")
    source = open_rows(pair(), file)
    assert source.partitions == ((0, 0), (1, 0))
    assert list(source) == []


def test_a_last_line_needs_no_end(tmp_path: Path) -> None:
    rows = [Row("temperature", "a", 5, (1.0,)), Row("temperature", "b", 6, (1.0,))]
    for name, text in (("rows.csv", csv_text(rows)), ("rows.jsonl", json_text(rows))):
        assert read(GROUP, write(tmp_path / name, text.rstrip("\r\n"))) == expected(rows, GROUP)


def test_gzip_of_several_members_is_one_file(tmp_path: Path) -> None:
    rows = [Row("temperature", f"o{n}", n, (1.0,)) for n in range(9)]
    packed = b"".join(gzip.compress(part.encode()) for part in json_text(rows).splitlines(keepends=True))
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(packed)
    assert read(GROUP, file) == expected(rows, GROUP)


def test_files_advance_together(tmp_path: Path) -> None:
    """Each file is read when its newest time is the oldest of all, so none is more than a chunk ahead of another."""
    spans = {"a": (0, 1_000), "b": (200, 400), "c": (0, 500)}
    files = [
        write(tmp_path / f"{name}.csv", csv_text([Row("temperature", name, t, (1.0,)) for t in range(*span)]))
        for name, span in spans.items()
    ]
    newest = dict.fromkeys(range(3), MIN_TIME_US)
    total = 0
    for chunk in open_rows(GROUP, files, batch_rows=10):
        assert newest[chunk.partition] == min(newest.values())
        newest[chunk.partition] = int(chunk.rows.event_time_us[-1])
        for partition, (_, stop) in enumerate(spans.values()):
            if newest[partition] == stop - 1:
                newest[partition] = MAX_TIME_US
        total += chunk.rows.rows
    assert total == sum(stop - start for start, stop in spans.values())


def test_the_same_path_twice_is_two_partitions(tmp_path: Path) -> None:
    rows = [Row("temperature", "a", 5, (1.0,))]
    file = write(tmp_path / "rows.csv", csv_text(rows))
    assert read(GROUP, [str(file), file]) == expected(rows, GROUP, 0) + expected(rows, GROUP, 1)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.jsonl", "rows.jsonl.gz", "rows.parquet"])
def test_progress_ends_at_the_total(tmp_path: Path, name: str) -> None:
    rows = [Row("temperature", "a", n, (1.0,)) for n in range(500)]
    text = csv_text(rows) if "csv" in name else json_text(rows)
    file = tmp_path / name
    file = write_parquet(file, table(rows)) if name.endswith("parquet") else write(file, text)
    with blocks_of(1_000):
        source = open_rows(GROUP, file, batch_rows=50)
        before = [source.read_bytes for _ in source]
    assert before == sorted(before)
    assert source.total_bytes == file.stat().st_size == source.read_bytes
    assert source.read_rows == 500
    assert source.total_rows == (500 if name.endswith("parquet") else None)


def test_chunks_of_a_batch_are_in_stream_order() -> None:
    rows = [
        ("machine", "a", 1, 1.0, 2.0),
        ("temperature", "a", 2, 1.0),
        ("vibration", "a", 3, 1.0),
        ("machine", "b", 4, 1, 2),
    ]
    source = open_rows(GROUP, rows)
    assert [(chunk.stream, chunk.from_offset, chunk.to_offset) for chunk in source] == [(0, 0, 1), (1, 0, 1), (2, 0, 2)]


def test_order_of_seen_is_by_partition_stream_and_offset() -> None:
    seen = [
        Seen("vibration", 0, 0, "", 0, b"", Reason.ACCEPTED),
        Seen("temperature", 0, 0, "", 0, b"", Reason.ACCEPTED),
    ]
    assert in_order(seen, GROUP) == seen[::-1]
