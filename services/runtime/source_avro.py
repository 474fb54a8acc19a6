"""Avro records of users' topics: flat ones in bulk, all others record by record, plain or framed as Confluent does.

A record must be used up to its last byte; one that is none has no bytes, and no record of a schema is that short. What
the kernel refuses stays refused; fastavro is then asked for words.
"""

import io
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from fastavro import schemaless_reader

from services.runtime.payloads import Payloads
from services.runtime.source_avro_kernel import decode_flat
from services.runtime.source_avro_schema import read_schema
from services.runtime.source_cells import Cells
from services.runtime.source_columns import Columns, Roles, in_order, source_rows
from services.runtime.source_registry import SchemaSource
from services.runtime.source_times import text_times
from skyband.errors import InputError
from skyband.model.source_rows import Reason, SourceRows

__all__ = ["AvroDecoder", "AvroRecords", "ConfluentDecoder"]

_FRAME_BYTES = 5
_LONGEST_WHOLE = 20


class AvroRecords:
    """Decodes records of one schema; the first `skipped` bytes of each are left out. Raises InputError: read_schema."""

    def __init__(self, schema: str, roles: Roles, *, skipped: int = 0) -> None:
        self._schema = read_schema(schema, roles)
        self._roles = roles
        self._cells = Cells(roles, self._schema.scale)
        self._skipped = skipped

    def columns(self, records: Payloads) -> Columns:
        """Return all records in columns. Cost: about 40 ns a flat record, else 3 to 10 us."""
        plan = self._schema.plan
        if plan is None:
            return self._cells.columns([self._read(value or b"")[0] for value in records])
        data, ends, count = records.data, records.ends, len(records.ends)
        found = Columns.refused(count, len(self._roles.values), Reason.ACCEPTED)
        id_bytes = np.empty(len(data) + count * _LONGEST_WHOLE * plan.has_whole_id, np.uint8)
        text_bytes = np.empty(len(data) * plan.has_text_time, np.uint8)
        text_ends = np.empty(count, np.int64)
        decode_flat(
            data,
            ends,
            self._skipped,
            plan.fields,
            self._schema.scale,
            self._roles.scale,
            found.time_us,
            id_bytes,
            found.id_ends,
            text_bytes,
            text_ends,
            found.values,
            found.reason,
        )
        time_us = found.time_us
        if plan.has_text_time:
            offsets = pa.py_buffer(np.concatenate(([0], text_ends)))
            texts = pa.LargeStringArray.from_buffers(count, offsets, pa.py_buffer(text_bytes))
            time_us, bad = text_times(texts, self._roles.scale)
            found.reason[bad & (found.reason == 0)] = Reason.BAD_TIME
        used = int(found.id_ends[-1]) if count else 0
        return Columns(time_us, id_bytes[:used].copy(), found.id_ends, found.values, found.reason)

    def explain(self, value: bytes) -> str:
        """Return what is wrong with a record."""
        record, problem = self._read(value)
        if record is None:
            return problem if self._skipped else problem + _hint(value)
        # The reader takes numbers that do not fit and indexes below 0; see the kernel.
        return self._cells.explain(record) or "record holds a whole number or an index that is out of range"

    def _read(self, value: bytes) -> tuple[Mapping[str, Any] | None, str]:
        """Return a record, or None and why it cannot be decoded."""
        data = io.BytesIO(value)
        data.seek(self._skipped)
        try:
            record = cast(Mapping[str, Any], schemaless_reader(data, self._schema.parsed, None))
        except EOFError:
            return None, "record ends before its last field"
        except UnicodeDecodeError:
            return None, "record holds text that is not UTF-8"
        except IndexError:
            return None, "record holds an index that no union or enum of its schema has"
        # On bytes of another schema the reader fails in any way.
        except Exception as error:
            return None, f"record cannot be decoded: {type(error).__name__}: {error}"
        rest = len(value) - data.tell()
        if rest:
            return None, f"record has {rest} bytes more than its schema says"
        return record, ""


class AvroDecoder:
    """Decodes plain binary Avro of one schema."""

    def __init__(self, schema: str, roles: Roles) -> None:
        self._roles = roles
        self._records = AvroRecords(schema, roles)

    def decode(
        self,
        offsets: npt.NDArray[np.int64],
        timestamps_us: npt.NDArray[np.int64],
        values: Payloads,
    ) -> SourceRows:
        """Return the records of a chunk as rows."""
        columns = self._records.columns(values)
        return source_rows(
            self._roles,
            offsets,
            timestamps_us,
            values,
            columns,
            lambda index: self._records.explain(values[index] or b""),
        )


class ConfluentDecoder:
    """Decodes Avro framed by a zero byte and the 4-byte id of its schema, which `schemas` knows.

    Raises LogError while a schema cannot be asked for: the same chunk is to be decoded again later.
    """

    def __init__(self, schemas: SchemaSource, roles: Roles) -> None:
        self._schemas = schemas
        self._roles = roles
        # A text is why the schema of that id cannot serve. Only ids that the registry knows are kept.
        self._known: dict[int, AvroRecords | str] = {}

    def decode(
        self,
        offsets: npt.NDArray[np.int64],
        timestamps_us: npt.NDArray[np.int64],
        values: Payloads,
    ) -> SourceRows:
        """Return the records of a chunk as rows, whatever schemas they have."""
        ids = _schema_ids(values)
        parts = []
        used: dict[int, AvroRecords | str] = {}
        for schema_id in np.unique(ids).tolist():
            where = np.flatnonzero(ids == schema_id)
            is_all = len(where) == len(ids)
            chosen = values if is_all else values.at(where)
            columns, used[schema_id] = self._columns(schema_id, chosen)
            parts.append((where, columns))
        columns = in_order(parts) if parts else Columns.refused(0, len(self._roles.values), Reason.ACCEPTED)

        def explain(index: int) -> str:
            found = used[int(ids[index])]
            return found if isinstance(found, str) else found.explain(values[index] or b"")

        return source_rows(self._roles, offsets, timestamps_us, values, columns, explain)

    def _columns(self, schema_id: int, records: Payloads) -> tuple[Columns, AvroRecords | str]:
        """Return records of one schema in columns, and what decoded them or why nothing could."""
        count, width = len(records.ends), len(self._roles.values)
        if schema_id < 0:
            problem = "record does not begin with a zero byte and the id of a schema"
            return Columns.refused(count, width, Reason.UNDECODABLE), problem
        found = self._known.get(schema_id) or self._ask(schema_id)
        if found is None:
            problem = f"schema {schema_id} is not known; is its registry the right one?"
            return Columns.refused(count, width, Reason.UNKNOWN_SCHEMA), problem
        if isinstance(found, str):
            return Columns.refused(count, width, Reason.UNDECODABLE), found
        return found.columns(records), found

    def _ask(self, schema_id: int) -> AvroRecords | str | None:
        text = self._schemas.get(schema_id)
        if text is None:
            return None
        try:
            self._known[schema_id] = AvroRecords(text, self._roles, skipped=_FRAME_BYTES)
        except InputError as error:
            self._known[schema_id] = f"schema {schema_id}: {error}"
        return self._known[schema_id]


def _schema_ids(records: Payloads) -> npt.NDArray[np.int64]:
    """Return the schema ids that stand before records, -1 where there is none."""
    starts = records.ends - np.diff(records.ends, prepend=0)
    is_framed = records.ends - starts >= _FRAME_BYTES
    starts[~is_framed] = 0
    data = records.data if len(records.data) >= _FRAME_BYTES else np.full(_FRAME_BYTES, 0xFF, np.uint8)
    ids = np.zeros(len(starts), np.int64)
    for place in range(1, _FRAME_BYTES):
        ids = ids << 8 | data[starts + place]
    return np.where(is_framed & (data[starts] == 0) & (ids < 2**31), ids, -1)


def _hint(value: bytes) -> str:
    """Return what a broken record looks like, in brackets."""
    if value[:1] == b"\0" and len(value) > _FRAME_BYTES:
        return " (it begins like one of format confluent-avro)"
    return " (it begins like JSON)" if value[:1] == b"{" else ""
