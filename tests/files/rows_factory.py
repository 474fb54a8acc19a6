"""A group, rows of it written in every format, and rows as they are read."""

import csv
import gzip
import io
import json
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyband.files.rows import RowSource, open_rows
from skyband.model.group import Group
from skyband.model.source_rows import Reason, SourceRows
from skyband.model.stream import Attribute, Stream

NAMES = ("stream", "object_id", "event_time", "value", "x", "y")
FIELDS_OF = {"temperature": ("value",), "vibration": ("value",), "machine": ("x", "y")}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """A row as it is written."""

    stream: str
    object_id: str
    event_time: int
    values: tuple[float, ...]

    def cells(self, time: str = "us") -> dict[str, Any]:
        cells = {"stream": self.stream, "object_id": self.object_id, "event_time": time_cell(self.event_time, time)}
        return cells | dict(zip(FIELDS_OF[self.stream], self.values, strict=True))


class Seen(NamedTuple):
    """A row as it is read."""

    stream: str
    partition: int
    offset: int
    object_id: str
    time: int
    values: bytes
    reason: Reason


def attribute_stream(name: str) -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name),))


def factory() -> Group:
    """Two attribute streams and an object stream."""
    machine = Stream(name="machine", attributes=(Attribute(name="x"), Attribute(name="y")), is_object_stream=True)
    streams = (attribute_stream("temperature"), attribute_stream("vibration"), machine)
    return Group(name="factory", streams=streams, retention_us=60_000_000)


def pair() -> Group:
    """Two attribute streams."""
    streams = (attribute_stream("temperature"), attribute_stream("vibration"))
    return Group(name="factory", streams=streams, retention_us=60_000_000)


def single() -> Group:
    """One attribute stream."""
    return Group(name="factory", streams=(attribute_stream("temperature"),), retention_us=60_000_000)


def time_cell(time_us: int, form: str) -> Any:
    if form == "us":
        return time_us
    moment = EPOCH + timedelta(microseconds=time_us)
    match form:
        case "iso":
            return moment.isoformat().replace("+00:00", "Z")
        case "naive":
            return moment.replace(tzinfo=None).isoformat(sep=" ")
        case "offset":
            return (moment + timedelta(hours=2)).replace(tzinfo=None).isoformat() + "+02:00"
    raise AssertionError(form)


def expected(rows: Sequence[Row], group: Group, partition: int = 0) -> list[Seen]:
    offsets: dict[str, int] = {}
    seen = []
    for row in rows:
        offset = offsets.get(row.stream, 0)
        offsets[row.stream] = offset + 1
        bits = struct.pack(f"<{len(row.values)}d", *row.values)
        seen.append(Seen(row.stream, partition, offset, row.object_id, row.event_time, bits, Reason.ACCEPTED))
    return in_order(seen, group)


def in_order(seen: list[Seen], group: Group) -> list[Seen]:
    return sorted(seen, key=lambda one: (one.partition, group.stream_index(one.stream), one.offset))


def ids_of(rows: SourceRows) -> list[str]:
    ends = rows.id_ends.tolist()
    return [rows.id_bytes[a:b].tobytes().decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def read(group: Group, inputs: Any, batch_rows: int = 50_000) -> list[Seen]:
    """Read all rows, and check that chunks keep their promises."""
    seen = []
    source = open_rows(group, inputs, batch_rows=batch_rows)
    nexts = dict.fromkeys(source.partitions, 0)
    for chunk in source:
        rows = chunk.rows
        assert chunk.from_offset == nexts[chunk.stream, chunk.partition]
        nexts[chunk.stream, chunk.partition] = chunk.to_offset
        assert rows.offset.tolist() == list(range(chunk.from_offset, chunk.to_offset))
        assert 1 <= rows.rows <= batch_rows
        check_arrays(rows, len(group.streams[chunk.stream].attributes))
        for index, name in enumerate(ids_of(rows)):
            seen.append(
                Seen(
                    group.streams[chunk.stream].name,
                    chunk.partition,
                    int(rows.offset[index]),
                    name,
                    int(rows.event_time_us[index]),
                    rows.values[index].tobytes(),
                    Reason(int(rows.reason[index])),
                )
            )
    assert source.read_rows == len(seen)
    return in_order(seen, group)


def rejected(source: RowSource) -> list[tuple[str, str]]:
    """Read all rows; return label and explanation of those that could not be decoded."""
    return [
        (Reason(int(chunk.rows.reason[index])).label, chunk.rows.explain(index))
        for chunk in source
        for index in np.flatnonzero(chunk.rows.reason).tolist()
    ]


def check_arrays(rows: SourceRows, width: int) -> None:
    """Assert the exact types that kernels are compiled for."""
    count = rows.rows
    for array, kind, shape in (
        (rows.offset, np.int64, (count,)),
        (rows.event_time_us, np.int64, (count,)),
        (rows.id_bytes, np.uint8, rows.id_bytes.shape),
        (rows.id_ends, np.int64, (count,)),
        (rows.values, np.float64, (count, width)),
        (rows.reason, np.uint8, (count,)),
    ):
        assert array.dtype == kind
        assert array.shape == shape
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned
    assert len(rows.id_bytes) == rows.id_ends[-1]


# --- writers


def csv_text(rows: Sequence[Row], time: str = "us", end: str = "\r\n", names: Sequence[str] = NAMES) -> str:
    text = io.StringIO()
    # A lone carriage return needs quotes; not every version of the writer gives it any.
    quoting = csv.QUOTE_ALL if any("\r" in row.object_id for row in rows) else csv.QUOTE_MINIMAL
    writer = csv.writer(text, lineterminator=end, quoting=quoting)
    writer.writerow(names)
    for row in rows:
        cells = {name: repr(cell) if isinstance(cell, float) else cell for name, cell in row.cells(time).items()}
        writer.writerow([cells.get(name, "") for name in names])
    return text.getvalue()


def json_text(rows: Sequence[Row], time: str = "us", is_ascii: bool = True) -> str:
    return "".join(json.dumps(row.cells(time), ensure_ascii=is_ascii) + "\n" for row in rows)


def table(rows: Sequence[Row], time: pa.DataType | None = None) -> pa.Table:
    time = time or pa.int64()
    cells = [row.cells() for row in rows]
    kinds = {"stream": pa.string(), "object_id": pa.string(), "event_time": pa.int64()}
    found = pa.table(
        {name: pa.array([row.get(name) for row in cells], kinds.get(name, pa.float64())) for name in NAMES}
    )
    if time == pa.int64():
        return found
    times = found["event_time"].cast(pa.timestamp("us")).cast(time)
    return found.set_column(2, "event_time", times)


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def write_parquet(path: Path, content: pa.Table, **options: Any) -> Path:
    pq.write_table(content, path, **options)
    return path
