"""Which Avro schemas serve a stream, which are read in bulk, and what is said of the others."""

import json
from typing import Any

import pytest

from services.runtime.source_avro_schema import read_schema
from services.runtime.source_columns import Roles
from services.runtime.source_decoder import make_decoder
from skyband.errors import DefinitionError, InputError
from skyband.model.source_rows import Reason
from skyband.model.stream import Format, TimeUnit
from tests.services.runtime.source_reference import decode, encode, ids, record, stream

ROLES = Roles.of(stream())
ID, TIME, VALUE = ("object_id", "string"), ("event_time", "long"), ("value", "double")
TREE = record(ID, TIME, VALUE, ("next", ["null", "R"]))
NOTHING = {"type": "record", "name": "Nothing", "fields": [{"name": "a", "type": "null"}]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def deep(levels: int) -> Any:
    kind: Any = "int"
    for _ in range(levels):
        kind = array(kind)
    return kind


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "schema is no Avro schema: JSONDecodeError"),
        ("[" * 100_000, "schema nests too deeply"),
        ('"nope"', "schema is no Avro schema: UnknownType: nope"),
        ("7", "schema is no Avro schema"),
        ('"string"', "schema is no record; source records must be records with named fields"),
        ([record(ID, TIME, VALUE)], "schema is no record"),
        (record(ID, TIME), "schema has no field 'value'; its fields are object_id, event_time"),
        (record(), "schema has no field 'object_id'; its fields are none"),
        (record(("object_id", "double"), TIME, VALUE), "field 'object_id' of the schema is double, which is no id"),
        (record(ID, ("event_time", "boolean"), VALUE), "field 'event_time' of the schema is boolean, which is no time"),
        (record(ID, ("event_time", "float"), VALUE), "field 'event_time' of the schema is float, which is no time"),
        (record(ID, TIME, ("value", "boolean")), "field 'value' of the schema is boolean, which is no value"),
        (record(ID, TIME, ("value", ["null", "string"])), "is null or string, which is no value"),
        (record(ID, TIME, ("value", "bytes")), "field 'value' of the schema is bytes, which is no value"),
        (record(ID, ("event_time", {"type": "int", "logicalType": "time-millis"}), VALUE), "which is no instant"),
        (
            record(
                ID,
                (
                    "event_time",
                    [{"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-millis"}],
                ),
                VALUE,
            ),
            "has whole numbers in two units",
        ),
        (TREE, "schema is recursive: R holds itself"),
        (record(ID, TIME, VALUE, ("others", array("R"))), "schema is recursive"),
        (record(ID, TIME, VALUE, ("holes", array("null"))), "array of items that take no bytes"),
        (record(ID, TIME, VALUE, ("holes", array(NOTHING))), "array of items that take no bytes"),
        (record(ID, TIME, VALUE, ("first", NOTHING), ("holes", array("Nothing"))), "array of items that take no bytes"),
        (record(ID, TIME, VALUE, ("m", {"type": "map", "values": array("null")})), "array of items that take no bytes"),
        (record(ID, TIME, VALUE, ("deep", deep(70))), "schema nests more than 64 levels deep"),
    ],
)
def test_a_schema_that_cannot_serve_is_refused_with_the_reason(schema: Any, words: str) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(InputError, match=r"(?s).*" + words.replace("[", r"\[").replace("'", "'")):
        read_schema(text, ROLES)


def test_a_stream_whose_schema_cannot_serve_has_no_decoder_and_says_so_of_the_stream() -> None:
    with pytest.raises(DefinitionError, match="stream 's': schema has no field 'value'") as caught:
        make_decoder(stream(schema=record(ID, TIME)))
    assert caught.value.field == "schema"


@pytest.mark.parametrize("schema", [None, [], 7, {"x": "string"}, [record(ID, TIME, VALUE)]])
def test_framed_records_need_schemas_by_id_or_a_registry(schema: Any) -> None:
    with pytest.raises(DefinitionError, match="confluent-avro"):
        make_decoder(stream(Format.CONFLUENT_AVRO, schema=schema))


@pytest.mark.parametrize(
    ("schema", "is_flat"),
    [
        (record(ID, TIME, VALUE), True),
        (record(ID, TIME, ("value", ["null", "double"])), True),
        (record(ID, TIME, VALUE, ("h", {"type": "fixed", "name": "H", "size": 4}), ("again", ["H", "null"])), True),
        (record(ID, TIME, VALUE, ("d", {"type": "bytes", "logicalType": "decimal", "precision": 5})), True),
        (record(ID, TIME, VALUE, ("u", {"type": "string", "logicalType": "uuid"})), True),
        (record(ID, TIME, VALUE, ("o", ["null", "string", "int"])), False),
        (record(ID, TIME, VALUE, ("o", ["null"])), False),
        (record(ID, TIME, VALUE, ("o", array("int"))), False),
        (record(ID, TIME, VALUE, ("o", {"type": "map", "values": "int"})), False),
        (record(ID, TIME, VALUE, ("o", record(("a", "int")) | {"name": "Inner"})), False),
        (record(("object_id", {"type": "enum", "name": "E", "symbols": ["A"]}), TIME, VALUE), False),
        (record(ID, TIME, ("value", {"type": "bytes", "logicalType": "decimal", "precision": 5})), False),
    ],
)
def test_flat_records_and_no_others_have_a_plan(schema: Any, is_flat: bool) -> None:
    assert (read_schema(json.dumps(schema), ROLES).plan is not None) is is_flat


def test_logical_types_do_not_change_what_is_read() -> None:
    day = {"type": "int", "logicalType": "date"}
    far = {
        "type": "record",
        "name": "Far",
        "fields": [{"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
    }
    schema = record(
        ("object_id", {"type": "string", "logicalType": "uuid"}),
        ("event_time", {"type": "long", "logicalType": "timestamp-millis"}),
        ("value", {"type": "int", "logicalType": "date"}),
        ("a", far),
        ("b", ["null", "Far"]),
        ("c", array(day)),
    )
    plain = json.loads(json.dumps(schema).replace("logicalType", "unknownType"))
    # Neither is a date that Python has, and the id is no uuid.
    cells = {
        "object_id": "no uuid",
        "event_time": 2**50,
        "value": 2**30,
        "a": {"t": 2**62},
        "b": {"t": -(2**62)},
        "c": [2**31 - 1],
    }
    rows = decode(make_decoder(stream(schema=schema)), [encode(plain, cells)])
    assert rows.reason.tolist() == [0]
    assert (ids(rows), rows.event_time_us.tolist(), rows.values.tolist()) == ([b"no uuid"], [2**50 * 1000], [[2.0**30]])


def test_one_field_may_have_two_roles() -> None:
    its = stream(schema=record(("n", "long")), object_id="n", event_time="n", value="n")
    rows = decode(make_decoder(its), [encode(record(("n", "long")), {"n": 12})])
    assert (ids(rows), rows.event_time_us.tolist(), rows.values.tolist()) == ([b"12"], [12], [[12.0]])


def test_ids_may_be_symbols_and_fixed_bytes() -> None:
    for kind, cell, name in (
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", b"B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"xy", b"xy"),
        ({"type": "fixed", "name": "F", "size": 2}, b"\xff\xff", None),
    ):
        schema = record(("object_id", kind), TIME, VALUE)
        rows = decode(
            make_decoder(stream(schema=schema)), [encode(schema, {"object_id": cell, "event_time": 1, "value": 1.0})]
        )
        assert ids(rows) == [name or b""]
        assert rows.reason.tolist() == [0 if name else Reason.UNDECODABLE]
        assert rows.explain(0) == ("" if name else "object_id b'\\xff\\xff' is not UTF-8")


def test_a_time_that_is_no_field_is_not_asked_of_the_schema() -> None:
    schema = record(ID, VALUE)
    assert decode(make_decoder(stream(unit=TimeUnit.KAFKA, schema=schema)), []).rows == 0
    with pytest.raises(DefinitionError, match="no field 'event_time'"):
        make_decoder(stream(unit=TimeUnit.MS, schema=schema))
