"""Rows as records of their stream's format: what the decoders of services.runtime read back."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import fastavro
from fastavro.schema import parse_schema

from services.runtime.source_decoder import default_schema
from skyband.errors import DefinitionError
from skyband.model.stream import Format, Stream, TimeUnit

__all__ = ["Encode", "make_encoder"]

# Object id, event time in microseconds, values in order of the stream's attributes: the record's bytes.
Encode = Callable[[str, int, list[float]], bytes]

_UNITS: dict[TimeUnit, Callable[[int], Any]] = {
    TimeUnit.US: lambda us: us,
    TimeUnit.MS: lambda us: us // 1_000,
    TimeUnit.S: lambda us: us // 1_000_000,
    TimeUnit.ISO: lambda us: datetime.fromtimestamp(us / 1_000_000, UTC).isoformat(),
}


def make_encoder(stream: Stream) -> Encode:
    """Return what turns rows of `stream` into records.

    Raises DefinitionError for a schema that has other fields without a default, or no id for its framing.
    """
    match stream.format:
        case Format.JSON:
            document = _document(stream)
            return lambda object_id, event_us, values: json.dumps(document(object_id, event_us, values)).encode()
        case Format.AVRO:
            return _avro(stream, stream.schema or default_schema(stream), b"")
        case Format.CONFLUENT_AVRO:
            if not stream.schema:
                raise DefinitionError(
                    f"stream {stream.name!r} has format confluent-avro and no schemas of its own, so that the ids are "
                    "the registry's; write to it with a producer that knows the registry",
                    field="schema",
                )
            number, schema = next(iter(json.loads(stream.schema).items()))
            text = schema if isinstance(schema, str) else json.dumps(schema)
            return _avro(stream, text, b"\0" + int(number).to_bytes(4, "big"))


def _document(stream: Stream) -> Callable[[str, int, list[float]], dict[str, Any]]:
    fields = stream.fields
    unit = None if fields.time_unit is TimeUnit.KAFKA else _UNITS[fields.time_unit]
    names = [attribute.name for attribute in stream.attributes] if stream.is_object_stream else [fields.value]

    def document(object_id: str, event_us: int, values: list[float]) -> dict[str, Any]:
        record: dict[str, Any] = {fields.object_id: object_id}
        if unit is not None:
            record[fields.event_time] = unit(event_us)
        record.update(zip(names, values, strict=True))
        return record

    return document


def _avro(stream: Stream, text: str, prefix: bytes) -> Encode:
    try:
        parsed: Any = parse_schema(json.loads(text))
        fields = {field["name"]: field for field in parsed["fields"]}
    except (ValueError, KeyError, TypeError, fastavro.schema.SchemaParseException) as error:
        raise DefinitionError(f"stream {stream.name!r}: schema is no Avro record ({error})", field="schema") from None
    document = _document(stream)
    known = document("x", 0, [0.0] * len(stream.attributes))
    unknown = [name for name, field in fields.items() if name not in known and "default" not in field]
    if unknown:
        raise DefinitionError(
            f"stream {stream.name!r}: field {unknown[0]!r} of its schema has no default, and rows say nothing of it; "
            "give it a default",
            field="schema",
        )
    stamped = _stamped(fields.get(stream.fields.event_time, {}))

    def encode(object_id: str, event_us: int, values: list[float]) -> bytes:
        record = document(object_id, event_us, values)
        if stamped and stream.fields.event_time in record:
            record[stream.fields.event_time] = event_us if stamped == "timestamp-micros" else event_us // 1_000
        out = io.BytesIO(prefix)
        out.seek(len(prefix))
        fastavro.schemaless_writer(out, parsed, record)
        return out.getvalue()

    return encode


def _stamped(field: dict[str, Any]) -> str:
    """Return the logical type of a time field, which goes before the stream's unit."""
    kind = field.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return next((str(k["logicalType"]) for k in kinds if isinstance(k, dict) and "logicalType" in k), "")
