"""Avro records: the bulk path against fastavro, record by record, on good and on broken bytes."""

import json
import struct
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.runtime.payloads import Payloads
from services.runtime.source_avro import AvroRecords
from services.runtime.source_columns import Roles
from services.runtime.source_decoder import default_schema, make_decoder
from services.runtime.source_times import UNIT_SCALES, real_time, whole_time
from skyband.model.source_rows import Reason
from skyband.model.stream import Format, TimeUnit
from tests.services.runtime.flat_records import (
    COLOURS,
    TIME_UNITS,
    encoded,
    expected,
    flat_schemas,
    of_two,
    resolved,
    shown,
)
from tests.services.runtime.source_reference import (
    Careful,
    RefusedError,
    bits,
    decode,
    encode,
    fastavro_reads,
    ids,
    record,
    stream,
)

_MAX = 2**63 - 1


def is_flat(schema: Any) -> bool:
    return AvroRecords(json.dumps(schema), Roles.of(of_two(schema)))._schema.plan is not None


@given(encoded(), st.sampled_from(TIME_UNITS))
@settings(max_examples=150)
def test_what_fastavro_has_written_is_read_bit_for_bit(case: tuple[Any, list[bytes]], unit: TimeUnit) -> None:
    schema, values = case
    assert is_flat(schema)
    rows = decode(make_decoder(of_two(schema, unit)), values)
    assert shown(rows) == [expected(fastavro_reads(schema, value), unit) for value in values]


def broken(value: bytes, change: tuple[str, int, int]) -> bytes:
    how, place, byte = change
    match how:
        case "cut":
            return value[: place % (len(value) + 1)]
        case "longer":
            return value + bytes([byte])
        case "flip" if value:
            place %= len(value)
            return value[:place] + bytes([value[place] ^ byte]) + value[place + 1 :]
        case "insert":
            place %= len(value) + 1
            return value[:place] + bytes([byte]) * 10 + value[place:]
    return value


CHANGES = st.tuples(st.sampled_from(["cut", "longer", "flip", "insert"]), st.integers(0, 99), st.integers(0, 255))


@given(encoded(), st.lists(CHANGES, min_size=6, max_size=6), st.sampled_from(TIME_UNITS))
@settings(max_examples=150)
def test_broken_bytes_get_fastavros_verdict_or_a_stricter_one_for_a_named_cause(
    case: tuple[Any, list[bytes]], changes: list[tuple[str, int, int]], unit: TimeUnit
) -> None:
    schema, values = case
    values = [broken(value, change) for value, change in zip(values, changes, strict=False)]
    right = []
    for value in values:
        careful, lenient = Careful(value), fastavro_reads(schema, value)
        try:
            found = careful.read(resolved(schema))
        except RefusedError:
            assert lenient is None or careful.is_strict
            right.append(expected(None, unit))
        else:
            assert lenient is not None
            right.append(expected(lenient, unit))
            assert expected(found, unit) == right[-1]
    assert shown(decode(make_decoder(of_two(schema, unit)), values)) == right


@given(st.lists(st.binary(max_size=40), max_size=8), flat_schemas())
def test_any_bytes_at_all_are_read_as_the_careful_reader_does(values: list[bytes], schema: Any) -> None:
    def careful(value: bytes) -> dict[str, Any] | None:
        try:
            return Careful(value).read(resolved(schema))
        except RefusedError:
            return None

    assert shown(decode(make_decoder(of_two(schema)), values)) == [
        expected(careful(value), TimeUnit.US) for value in values
    ]


@given(st.lists(st.binary(max_size=6), max_size=20))
@example([b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xe0\x9f\xbf", b"\xf5\x80\x80\x80"])
@example([b"\xed\x9f\xbf", b"\xf4\x8f\xbf\xbf", b"\xf0\x90\x80\x80", b"\xe0\xa0\x80", b"\xdf\xbf", b"\xdf", b"a\x80"])
def test_text_is_utf8_exactly_where_python_says_so(texts: list[bytes]) -> None:
    values = [bytes([2 * len(text)]) + text + b"\2" + struct.pack("<d", 1.5) for text in texts]

    def is_utf8(text: bytes) -> bool:
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
        return True

    rows = decode(make_decoder(stream()), values)
    assert [not reason for reason in rows.reason.tolist()] == [is_utf8(text) for text in texts]
    assert ids(rows) == [text if is_utf8(text) else b"" for text in texts]


@pytest.mark.parametrize("unit", [TimeUnit.US, TimeUnit.MS, TimeUnit.S, TimeUnit.ISO])
def test_times_at_the_edges_are_those_of_the_slow_way(unit: TimeUnit) -> None:
    scale = UNIT_SCALES[unit]
    edges = {sign * (_MAX // by) + by_one for sign in (1, -1) for by in (1, 1_000, 1_000_000) for by_one in (-1, 0, 1)}
    wholes = sorted(edge for edge in edges if -_MAX <= edge <= _MAX)
    reals = [2.0**53, 2.0**53 + 2, -(2.0**53), 9007199254.740992, 9007199254.740994, -9007199254.740994]
    reals += [0.5, 2.5e-6, 3.5e-6, -2.5e-6, 0.0005, 0.0015, float("inf"), float("-inf"), float("nan"), 1e300]
    for kind, counts, right in (
        ("long", wholes, [whole_time(count, scale) for count in wholes]),
        ("double", reals, [real_time(count, scale) for count in reals]),
    ):
        schema = record(("who", "string"), ("at", kind), ("x", "double"), ("y", "double"))
        values = [encode(schema, {"who": "a", "at": count, "x": 1.0, "y": 2.0}) for count in counts]
        rows = decode(make_decoder(of_two(schema, unit)), values)
        found = [
            None if bad else time_us for bad, time_us in zip(rows.reason, rows.event_time_us.tolist(), strict=True)
        ]
        assert found == right
        assert set(rows.reason.tolist()) <= {0, Reason.BAD_TIME}


STRICT = record(
    ("who", "string"), ("at", "long"), ("x", "double"), ("y", ["null", "double"]), ("e", COLOURS), ("t", "string")
)


@pytest.mark.parametrize(
    ("at", "branch", "symbol", "text", "words"),
    [
        (b"\x02", b"\x02", b"\x04", b"\x02t", ""),
        # As many bytes as a number may have, though one would do.
        (b"\x82" + b"\x80" * 8 + b"\0", b"\x82\0", b"\x84\0", b"\x82\0t", ""),
        (b"\xfe" + b"\xff" * 8 + b"\x01", b"\x02", b"\x04", b"\x02t", ""),
        (b"\xff" * 9 + b"\x02", b"\x02", b"\x04", b"\x02t", "out of range"),
        (b"\xfe" + b"\xff" * 8 + b"\x7f", b"\x02", b"\x04", b"\x02t", "out of range"),
        (b"\x82" + b"\x80" * 9 + b"\0", b"\x02", b"\x04", b"\x02t", "out of range"),
        (b"\x02", b"\x01", b"\x04", b"\x02t", "out of range"),
        (b"\x02", b"\x04", b"\x04", b"\x02t", "index that no union or enum"),
        (b"\x02", b"\x02", b"\x01", b"\x02t", "out of range"),
        (b"\x02", b"\x02", b"\x06", b"\x02t", "index that no union or enum"),
        (b"\x02", b"\x02", b"\x04", b"\x02\xff", "not UTF-8"),
        (b"\x02", b"\x02", b"\x04", b"\x01", "ends before its last field"),
        (b"\x02", b"\x02", b"\x04", b"\xff" * 9 + b"\x01", "ends before its last field"),
        (b"\x02", b"\x02", b"\x04", b"\xfe" + b"\xff" * 8 + b"\x01t", "ends before its last field"),
        (b"\x02", b"\x02", b"\x04", b"\x02tt", "1 bytes more"),
    ],
)
def test_a_record_is_held_to_its_schema_to_the_last_bit(
    at: bytes, branch: bytes, symbol: bytes, text: bytes, words: str
) -> None:
    one = struct.pack("<d", 1.0)
    value = b"\x02a" + at + one + branch + one + symbol + text
    rows = decode(make_decoder(of_two(STRICT)), [value, value])
    assert rows.reason.tolist() == [Reason.UNDECODABLE if words else Reason.ACCEPTED] * 2
    assert words in rows.explain(1)


NESTED = record(
    ("who", ["null", "string", "long"]),
    ("tags", {"type": "array", "items": "string"}),
    ("at", ["null", "long", "string"]),
    ("x", ["double", "boolean", "null", "string"]),
    ("y", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
)


def test_a_schema_that_is_not_flat_is_read_record_by_record_with_the_same_meaning() -> None:
    good = {"who": "a", "tags": ["t"], "at": 5, "x": 1.5, "y": Decimal("-12.25")}
    values = [
        encode(NESTED, good),
        encode(NESTED, good | {"who": 17, "at": "1970-01-01T00:00:01Z"}),
        encode(NESTED, good | {"who": None}),
        encode(NESTED, good | {"at": None}),
        encode(NESTED, good | {"x": True}),
        encode(NESTED, good | {"x": None}),
        encode(NESTED, good | {"x": "1.5"}),
        encode(NESTED, good) + b"\0",
        encode(NESTED, good)[:-1],
        None,
    ]
    rows = decode(make_decoder(of_two(NESTED)), values)
    assert not is_flat(NESTED)
    first = (bits(1.5), bits(-12.25))
    assert shown(rows) == [
        (Reason.ACCEPTED, 5, b"a", *first),
        (Reason.ACCEPTED, 1_000_000, b"17", *first),
        (Reason.ACCEPTED, 5, b"", *first),
        (Reason.BAD_TIME, b"a", *first),
        *[(Reason.UNDECODABLE,)] * 6,
    ]
    assert [rows.explain(row) for row in range(3, 10)] == [
        "at is empty",
        "x true is not a number",
        "x is empty",
        "x '1.5' is not a number",
        "record has 1 bytes more than its schema says",
        "record ends before its last field",
        "record has no value",
    ]


@given(encoded())
@settings(max_examples=60)
def test_the_bulk_path_and_the_path_record_by_record_agree(case: tuple[Any, list[bytes]]) -> None:
    schema, values = case
    quick = AvroRecords(json.dumps(schema), Roles.of(of_two(schema)))
    slow = AvroRecords(json.dumps(schema), Roles.of(of_two(schema)))
    slow._schema = replace(slow._schema, plan=None)
    rows = decode(make_decoder(of_two(schema)), values)
    a, b = quick.columns(Payloads.of(values)), slow.columns(Payloads.of(values))
    assert a.reason.tolist() == b.reason.tolist() == rows.reason.tolist()
    good = a.reason == 0
    assert a.time_us[good].tolist() == b.time_us[good].tolist()
    assert a.id_ends.tolist() == b.id_ends.tolist()
    assert a.id_bytes.tobytes() == b.id_bytes.tobytes()
    assert [bits(v) for v in a.values[good].ravel()] == [bits(v) for v in b.values[good].ravel()]


@pytest.mark.parametrize(
    ("kind", "cell", "time_us"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, 1_500, 1_500_000),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1_500, 1_500),
        ({"type": "long", "logicalType": "timestamp-nanos"}, -1, -1),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, -3, -3_000),
        ({"type": "int", "logicalType": "date"}, 2, 172_800_000_000),
        (["null", {"type": "long", "logicalType": "timestamp-millis"}], 1, 1_000),
        ({"type": "long", "logicalType": "something-else"}, 5, 5_000_000),
        ("long", 5, 5_000_000),
        ("double", 5.25, 5_250_000),
        ("double", -0.1, -100_000),
        ("string", "5.25", 5_250_000),
        ("string", "-7", -7_000_000),
        ("string", "1970-01-01T01:00:00.0000019+01:00", 1),
        ("string", "1969-12-31T23:59:59.5Z", -500_000),
    ],
)
def test_a_logical_type_says_the_unit_of_whole_numbers_and_the_stream_that_of_all_others(
    kind: Any, cell: Any, time_us: int
) -> None:
    schema = record(("at", kind), ("who", "string"), ("x", "double"), ("y", "double"))
    plain = json.loads(json.dumps(schema).replace("logicalType", "unknownType"))
    value = encode(plain, {"who": "a", "at": cell, "x": 1.0, "y": 2.0})
    rows = decode(make_decoder(of_two(schema, TimeUnit.S)), [value])
    assert shown(rows) == [(Reason.ACCEPTED, time_us, b"a", bits(1.0), bits(2.0))]


@pytest.mark.parametrize(
    ("unit", "kind", "cell", "words"),
    [
        (TimeUnit.ISO, "string", "1690000000000", "at '1690000000000' is no time in ISO 8601"),
        (TimeUnit.ISO, "long", 5, "at 5 is no time in ISO 8601"),
        (TimeUnit.MS, "long", 2**62, "at 4611686018427387904 is no time in milliseconds or ISO 8601"),
        (TimeUnit.US, "double", 0.5, "at 0.5 is no time in microseconds or ISO 8601"),
        (TimeUnit.S, "double", float("nan"), "at nan is no time in seconds or ISO 8601"),
        (TimeUnit.MS, "string", "soon", "at 'soon' is no time in milliseconds or ISO 8601"),
        (TimeUnit.MS, "string", " ", "at is empty"),
        (TimeUnit.MS, ["null", "long"], None, "at is empty"),
    ],
)
def test_a_time_that_is_none_is_a_bad_time_and_says_what_it_is(
    unit: TimeUnit, kind: Any, cell: Any, words: str
) -> None:
    schema = record(("who", "string"), ("at", kind), ("x", "double"), ("y", "double"))
    rows = decode(make_decoder(of_two(schema, unit)), [encode(schema, {"who": "a", "at": cell, "x": 1.0, "y": 2.0})])
    assert rows.reason.tolist() == [Reason.BAD_TIME]
    assert rows.explain(0) == words


@pytest.mark.parametrize("unit", list(TimeUnit))
def test_without_a_schema_the_default_record_is_read(unit: TimeUnit) -> None:
    its = stream(unit=unit, object_id="key", event_time="when", value="how_much")
    cells: dict[str, Any] = {"key": "k1", "how_much": 2.5}
    cells["when"] = "1970-01-01T00:00:03Z" if unit is TimeUnit.ISO else 3
    plain = json.loads(default_schema(its).replace("logicalType", "unknownType"))
    rows = decode(make_decoder(its), [encode(plain, cells)])
    scale = {TimeUnit.US: 1, TimeUnit.MS: 1_000, TimeUnit.S: 1_000_000, TimeUnit.ISO: 1_000_000}
    assert rows.reason.tolist() == [0]
    assert rows.event_time_us.tolist() == [7 if unit is TimeUnit.KAFKA else 3 * scale[unit]]
    assert (ids(rows), rows.values.tolist()) == ([b"k1"], [[2.5]])


def test_where_the_records_timestamp_is_the_event_time_one_without_has_a_bad_time() -> None:
    its = stream(unit=TimeUnit.KAFKA)
    values = [encode(json.loads(default_schema(its)), {"object_id": "a", "value": 1.0}), b"\1", None]
    rows = decode(make_decoder(its), values, timestamp_us=-1)
    assert rows.reason.tolist() == [Reason.BAD_TIME, Reason.UNDECODABLE, Reason.UNDECODABLE]
    assert "has no timestamp" in rows.explain(0)


def test_records_of_another_format_are_recognised_in_words() -> None:
    framed = b"\0\0\0\0\7" + encode(
        json.loads(default_schema(stream())), {"object_id": "a", "event_time": 1, "value": 1.0}
    )
    rows = decode(make_decoder(stream()), [framed, b'{"object_id": "a"}', b""])
    assert rows.reason.tolist() == [Reason.UNDECODABLE] * 3
    assert "confluent-avro" in rows.explain(0)
    assert "like JSON" in rows.explain(1)


def test_no_records_are_no_rows() -> None:
    for its in (of_two(None), of_two(NESTED), of_two({"7": NESTED}, format=Format.CONFLUENT_AVRO)):
        assert decode(make_decoder(its), []).values.shape == (0, 2)


def test_whole_numbers_at_both_ends_are_ids_in_decimal() -> None:
    schema = record(("who", "long"), ("at", "long"), ("x", "double"), ("y", "double"))
    numbers = [0, 9, 10, -1, -10, 99, 100, 2**63 - 1, -(2**63), 10**18, -(10**18) + 1]
    values = [encode(schema, {"who": number, "at": 1, "x": 1.0, "y": 1.0}) for number in numbers]
    rows = decode(make_decoder(of_two(schema)), values)
    assert ids(rows) == [str(number).encode() for number in numbers]
    assert np.all(rows.reason == 0)
