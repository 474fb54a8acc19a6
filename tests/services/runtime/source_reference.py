"""Streams for the tests of decoders, and a slow reader of flat Avro records, to be checked by eye."""

import io
import itertools
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from services.runtime.payloads import Payloads
from services.runtime.source_decoder import SourceDecoder
from skyband.model.source_rows import SourceRows
from skyband.model.stream import Attribute, Fields, Format, Stream, TimeUnit


def stream(
    format: Format = Format.AVRO,
    unit: TimeUnit = TimeUnit.US,
    schema: Any = None,
    attributes: Sequence[str] = (),
    **fields: str,
) -> Stream:
    """Return an attribute stream, or with attributes an object stream, whose schema is given as a value."""
    return Stream(
        name="s",
        attributes=tuple(Attribute(name=name) for name in attributes or ("s",)),
        is_object_stream=bool(attributes),
        format=format,
        schema="" if schema is None else json.dumps(schema),
        fields=Fields(time_unit=unit, **fields),
    )


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def encode(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def decode(decoder: SourceDecoder, values: Sequence[bytes | None], timestamp_us: int = 7) -> SourceRows:
    count = len(values)
    rows = decoder.decode(np.arange(count) + 5, np.full(count, timestamp_us), Payloads.of(values))
    _check(rows, values)
    return rows


def _check(rows: SourceRows, values: Sequence[bytes | None]) -> None:
    count = len(values)
    assert rows.offset.tolist() == list(range(5, 5 + count))
    assert [rows.raw(row) for row in range(count)] == [value or b"" for value in values]
    columns = (rows.event_time_us, rows.id_ends, rows.reason, rows.timestamp_us)
    assert [(len(column), column.dtype) for column in columns] == [
        (count, np.int64),
        (count, np.int64),
        (count, np.uint8),
        (count, np.int64),
    ]
    assert rows.values.shape[0] == count
    assert rows.values.dtype == np.float64
    for column in (rows.event_time_us, rows.id_bytes, rows.id_ends, rows.values, rows.reason):
        assert column.flags.writeable
        assert column.flags.c_contiguous
    ends = [0, *rows.id_ends.tolist()]
    assert ends == sorted(ends)
    assert ends[-1] == len(rows.id_bytes)
    # A refused row says why, a good one has nothing to say.
    assert [bool(rows.explain(row)) for row in range(count)] == (rows.reason > 0).tolist()


def ids(rows: SourceRows) -> list[bytes]:
    ends = [0, *rows.id_ends.tolist()]
    return [rows.id_bytes[a:b].tobytes() for a, b in itertools.pairwise(ends)]


def bits(value: float) -> bytes:
    return b"nan" if value != value else struct.pack("<d", value)


def fastavro_reads(schema: Any, data: bytes) -> dict[str, Any] | None:
    """Return the record that fastavro reads from all of `data`, or None."""
    source = io.BytesIO(data)
    try:
        found = schemaless_reader(source, parse_schema(schema), None)
    except Exception:
        return None
    return found if source.tell() == len(data) else None


class RefusedError(Exception):
    """A record is not what its schema says."""


class Careful:
    """Reads one flat record, and is strict where fastavro is not: `is_strict` then says that this was why."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.is_strict = False

    def read(self, schema: dict[str, Any]) -> dict[str, Any]:
        found = {field["name"]: self._value(field["type"]) for field in schema["fields"]}
        if self._data:
            raise RefusedError("longer than the record")
        return found

    def _take(self, size: int) -> bytes:
        if size > len(self._data) or size < 0:
            raise RefusedError("too short")
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    def _whole(self) -> int:
        number, shift = 0, 0
        while True:
            (byte,) = self._take(1)
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if number >= 2**64 or shift > 70:
            self.is_strict = True
            raise RefusedError("more than 64 bits")
        return (number >> 1) ^ -(number & 1)

    def _index(self, count: int) -> int:
        index = self._whole()
        if not 0 <= index < count:
            self.is_strict = -count <= index < 0
            raise RefusedError("no such branch or symbol")
        return index

    def _value(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return self._value(kind[self._index(len(kind))])
        if isinstance(kind, dict) and kind["type"] == "enum":
            return kind["symbols"][self._index(len(kind["symbols"]))]
        if isinstance(kind, dict) and kind["type"] == "fixed":
            return self._take(kind["size"])
        match kind["type"] if isinstance(kind, dict) else kind:
            case "null":
                return None
            case "boolean":
                return self._take(1) != b"\0"
            case "int" | "long":
                return self._whole()
            case "float":
                return struct.unpack("<f", self._take(4))[0]
            case "double":
                return struct.unpack("<d", self._take(8))[0]
            case "bytes":
                return self._take(self._whole())
            case "string":
                try:
                    return self._take(self._whole()).decode()
                except UnicodeDecodeError:
                    raise RefusedError("not UTF-8") from None
        raise AssertionError(kind)
