"""Avro records framed by the id of their schema: mixed schemas, unknown ones, and a registry that is down."""

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.source_decoder import make_decoder
from services.runtime.source_registry import BundledSchemas
from skyband.errors import LogError
from skyband.model.source_rows import Reason
from skyband.model.stream import Format
from tests.services.runtime.flat_records import encoded, of_two, shown
from tests.services.runtime.source_reference import bits, decode, encode, record

NESTED = record(
    ("who", "string"), ("tags", {"type": "array", "items": "string"}), ("at", "long"), ("x", "int"), ("y", "int")
)
ONE = record(("who", "string"), ("at", "long"), ("x", "double"), ("y", "double"))
TWO = record(("y", "float"), ("note", ["null", "string"]), ("x", "int"), ("at", "long"), ("who", "long"))


def framed(schema_id: int, data: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + data


def test_framed_records_are_read_each_with_the_schema_that_it_names() -> None:
    bundled = {"7": ONE, "258": json.dumps(TWO), "9": NESTED, "10": record(("who", "string"), ("at", "long"))}
    first = {"who": "first", "at": 1, "x": 0.5, "y": 1.5}
    second = {"who": 22, "at": 2, "x": 3, "y": 2.5, "note": "n"}
    values = [
        framed(7, encode(ONE, first)),
        framed(258, encode(TWO, second)),
        b"\1" + framed(7, encode(ONE, first))[1:],
        framed(8, encode(ONE, first)),
        framed(7, encode(ONE, first | {"who": "third"})),
        framed(10, b"\0\0"),
        b"\0\0\0\7",
        None,
        framed(7, b""),
        framed(-1, b""),
        framed(258, encode(TWO, second | {"who": -5})),
    ]
    rows = decode(make_decoder(of_two(bundled, format=Format.CONFLUENT_AVRO)), values)
    bad = (Reason.UNDECODABLE,)
    unknown = shown(rows).pop(3)
    assert unknown[0] is Reason.UNKNOWN_SCHEMA
    assert [row for index, row in enumerate(shown(rows)) if index != 3] == [
        (Reason.ACCEPTED, 1, b"first", bits(0.5), bits(1.5)),
        (Reason.ACCEPTED, 2, b"22", bits(3.0), bits(2.5)),
        bad,
        (Reason.ACCEPTED, 1, b"third", bits(0.5), bits(1.5)),
        *[bad] * 5,
        (Reason.ACCEPTED, 2, b"-5", bits(3.0), bits(2.5)),
    ]
    assert rows.explain(2) == "record does not begin with a zero byte and the id of a schema"
    assert rows.explain(3).startswith("schema 8 is not known")
    assert rows.explain(5) == "schema 10: schema has no field 'x'; its fields are who, at"
    assert rows.explain(8) == "record ends before its last field"


@given(st.data())
@settings(max_examples=60)
def test_framed_records_are_read_as_plain_ones_of_their_schema(data: st.DataObject) -> None:
    cases = data.draw(st.lists(encoded(), min_size=1, max_size=3))
    values = [(index, value) for index, (_, found) in enumerate(cases) for value in found]
    values = data.draw(st.permutations(values))
    its = of_two({str(index): schema for index, (schema, _) in enumerate(cases)}, format=Format.CONFLUENT_AVRO)
    rows = decode(make_decoder(its), [framed(index, value) for index, value in values])
    plain = [make_decoder(of_two(schema)) for schema, _ in cases]
    assert shown(rows) == [shown(decode(plain[index], [value]))[0] for index, value in values]


class Down:
    def get(self, schema_id: int) -> str | None:
        raise LogError("the registry is down")


def test_a_registry_that_is_down_refuses_no_record() -> None:
    its = of_two({"7": ONE}, format=Format.CONFLUENT_AVRO)
    decoder = make_decoder(its, Down())
    good = framed(7, encode(ONE, {"who": "a", "at": 1, "x": 0.5, "y": 1.5}))
    assert decode(decoder, [good, None, b"\1"]).reason.tolist() == [0, 1, 1]
    with pytest.raises(LogError, match="down"):
        decode(decoder, [good, framed(8, b"")])


def test_a_schema_is_asked_for_once() -> None:
    asked = []

    class Counting:
        def get(self, schema_id: int) -> str | None:
            asked.append(schema_id)
            return BundledSchemas({1: json.dumps(ONE), 2: "no schema"}).get(schema_id)

    decoder = make_decoder(of_two(None, format=Format.CONFLUENT_AVRO), Counting())
    for _ in range(2):
        rows = decode(decoder, [framed(1, b""), framed(2, b""), framed(1, b"")])
    assert rows.reason.tolist() == [1, 1, 1]
    assert asked == [1, 2]
    assert "schema 2: schema is no Avro schema" in rows.explain(1)
