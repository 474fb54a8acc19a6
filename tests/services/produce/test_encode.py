"""What is written is what the decoders read."""

import json

import numpy as np
import pytest

from services.produce.encode import make_encoder
from services.runtime.payloads import Payloads
from services.runtime.source_decoder import make_decoder
from skyband.errors import DefinitionError
from skyband.model.stream_form import read_stream

NOON = 1_782_907_200_123_456
SCHEMA = {
    "type": "record",
    "name": "Measured",
    "fields": [
        {"name": "site", "type": "string", "default": "here"},
        {"name": "machine", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "value", "type": ["null", "double"], "default": None},
    ],
}
FIELDS = {"object_id": "machine", "event_time": "at"}


@pytest.mark.parametrize(
    ("document", "step_us"),
    [
        ({}, 1),
        ({"format": "json"}, 1),
        ({"format": "json", "fields": {"time_unit": "ms"}}, 1_000),
        ({"format": "json", "fields": {"time_unit": "s"}}, 1_000_000),
        ({"format": "json", "fields": {"time_unit": "iso"}}, 1),
        ({"format": "avro", "fields": {"time_unit": "ms"}}, 1_000),
        ({"format": "avro", "fields": {"time_unit": "s"}}, 1_000_000),
        ({"format": "avro", "fields": {"time_unit": "iso"}}, 1),
        ({"format": "avro", "schema": json.dumps(SCHEMA), "fields": FIELDS}, 1_000),
        ({"format": "confluent-avro", "schema": json.dumps({"17": SCHEMA}), "fields": FIELDS}, 1_000),
        ({"attributes": [{"name": "a"}, {"name": "b"}]}, 1),
        ({"format": "json", "attributes": [{"name": "a"}, {"name": "b"}]}, 1),
    ],
    ids=str,
)
def test_every_format_reads_back(document: dict[str, object], step_us: int) -> None:
    stream = read_stream({"name": "heat", **document})
    values = [1.5, -2.25][: len(stream.attributes)]
    encode = make_encoder(stream)
    written = [encode("m1", NOON, values), encode("größe 2", NOON + 3_000_000, values)]
    rows = make_decoder(stream).decode(np.arange(2), np.array([5, 6]), Payloads.of(written))
    assert rows.reason.tolist() == [0, 0]
    assert rows.values.tolist() == [values, values]
    assert rows.id_bytes.tobytes().decode() == "m1größe 2"
    assert rows.event_time_us.tolist() == [(us // step_us) * step_us for us in (NOON, NOON + 3_000_000)]


def test_a_time_that_kafka_gives_is_not_written() -> None:
    stream = read_stream({"name": "heat", "format": "json", "fields": {"time_unit": "kafka"}})
    assert json.loads(make_encoder(stream)("m1", NOON, [1.0])) == {"object_id": "m1", "value": 1.0}


def test_a_field_that_rows_do_not_know_needs_a_default() -> None:
    schema = {**SCHEMA, "fields": [{"name": "who", "type": "string"}, *SCHEMA["fields"]]}
    stream = read_stream({"name": "heat", "schema": json.dumps(schema), "fields": FIELDS})
    with pytest.raises(DefinitionError, match="field 'who' of its schema has no default"):
        make_encoder(stream)


def test_ids_of_a_registry_are_the_registry_s() -> None:
    with pytest.raises(DefinitionError, match="with a producer that knows the registry"):
        make_encoder(read_stream({"name": "heat", "format": "confluent-avro"}))


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(DefinitionError, match="schema is no Avro record"):
        make_encoder(read_stream({"name": "heat", "schema": '{"type": "long"}'}))
