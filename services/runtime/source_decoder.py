"""What turns the records of a user's topic into rows, by the format of its stream.

What is what in a record (`fields` of the stream; in an object stream each attribute is a field of its name):

- *object id*: text, bytes of UTF-8, or a whole number, which counts as its decimal text. Missing, null or empty: the
  row has an empty id, and align says ``missing_id``.
- *event time*: a whole or fractional number of `time_unit`, or text, ISO 8601 or such a number; with unit ``iso`` only
  ISO 8601; with ``kafka`` the record's timestamp, and no field. An Avro logical type says the unit of whole numbers,
  whatever `time_unit` says. Anything else is ``bad_time``.
- *value*: a number. Null, missing, text, true and false are ``undecodable``, as in files; NaN and the infinities are
  numbers here, which align rejects.

A record without value (a tombstone), and one that is longer than its schema says, is ``undecodable``.
"""

import json
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from services.runtime.payloads import Payloads
from services.runtime.source_avro import AvroDecoder, ConfluentDecoder
from services.runtime.source_columns import Roles
from services.runtime.source_json import JsonDecoder
from services.runtime.source_registry import BundledSchemas, SchemaSource
from skyband.errors import DefinitionError, InputError
from skyband.model.source_rows import SourceRows
from skyband.model.stream import Format, Stream, TimeUnit

__all__ = ["SourceDecoder", "default_schema", "make_decoder"]


class SourceDecoder(Protocol):
    """Turns consecutive records of one source partition into rows. Threads may share it."""

    def decode(
        self,
        offsets: npt.NDArray[np.int64],
        timestamps_us: npt.NDArray[np.int64],
        values: Payloads,
    ) -> SourceRows:
        """Return n records as rows; a timestamp below 0 is none.

        Raises LogError if a schema cannot be asked for; the same records are then to be decoded again later. The rows
        keep `values`, for `raw` and `explain`.
        """


def make_decoder(stream: Stream, schemas: SchemaSource | None = None) -> SourceDecoder:
    """Return the decoder of a stream's records; `schemas` knows those that framed records name.

    `Stream.schema` is, for ``avro``, the text of an Avro schema (empty: `default_schema`); for ``confluent-avro``, the
    text of a JSON object of schemas by id, which go before `schemas` (or empty); ``json`` needs none.
    Raises DefinitionError if the schema is none, or cannot serve the stream.
    """
    roles = Roles.of(stream)
    match stream.format:
        case Format.JSON:
            return JsonDecoder(roles)
        case Format.AVRO:
            try:
                return AvroDecoder(stream.schema or default_schema(stream), roles)
            except InputError as error:
                raise DefinitionError(f"stream {stream.name!r}: {error}", field="schema") from None
        case Format.CONFLUENT_AVRO:
            bundled = _bundled(stream)
            if not bundled and schemas is None:
                raise DefinitionError(
                    f"stream {stream.name!r} has format confluent-avro, but no schema registry is set; set one, or "
                    "give the schemas by id in schema",
                    field="schema",
                )
            return ConfluentDecoder(BundledSchemas(bundled, schemas), roles)


def default_schema(stream: Stream) -> str:
    """Return the schema of a stream's records if it gives none: id, time if it is a field, value or attributes."""
    fields = stream.fields
    times: dict[TimeUnit, Any] = {
        TimeUnit.US: {"type": "long", "logicalType": "timestamp-micros"},
        TimeUnit.MS: {"type": "long", "logicalType": "timestamp-millis"},
        TimeUnit.S: "long",
        TimeUnit.ISO: "string",
    }
    roles = Roles.of(stream)
    columns = [{"name": fields.object_id, "type": "string"}]
    if roles.event_time is not None:
        columns.append({"name": roles.event_time, "type": times[fields.time_unit]})
    columns += [{"name": name, "type": "double"} for name in roles.values]
    return json.dumps({"type": "record", "name": "Observation", "fields": columns})


def _bundled(stream: Stream) -> dict[int, str]:
    """Return the schemas by id that a stream gives."""
    if not stream.schema:
        return {}
    try:
        found = json.loads(stream.schema)
        return {int(key): value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}
    except (ValueError, AttributeError):
        raise DefinitionError(
            f"stream {stream.name!r} has format confluent-avro: schema must be a JSON object of schemas by id, like "
            '{"17": {"type": "record", …}}',
            field="schema",
        ) from None
