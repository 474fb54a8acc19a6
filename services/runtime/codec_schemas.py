"""Avro schemas in all their versions: the newest is written, older ones are read.

A record's first byte is the version of its schema; Avro's binary form follows. ``schemas/<stem>.avsc`` is the newest,
with its number under ``version``; ``schemas/old/<stem>.<version>.avsc`` are those before it.
"""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro

from services.runtime.codec_value import AvroRecord
from skyband.errors import LogError

__all__ = ["NAMESPACE", "SCHEMAS", "VersionedSchema"]

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
NAMESPACE = "skyband.v1"
_MOST_VERSIONS = 255


class VersionedSchema:
    """One schema of internal topics, with the versions before it. Any number of threads may use it."""

    def __init__(self, stem: str, folder: Path = SCHEMAS) -> None:
        """Read the schema called `stem`. Raises LogError if a file is missing, or no schema."""
        newest = _load(folder / f"{stem}.avsc")
        self.stem = stem
        self.version: int = newest["version"]
        self.record_name: str = newest["name"]
        if not 1 <= self.version <= _MOST_VERSIONS:
            raise LogError(f"schema {stem} has version {self.version}; number versions from 1 to {_MOST_VERSIONS}")
        self._newest = _parse(newest)
        last = newest["fields"][-1]
        self._last_bytes: str | None = last["name"] if last["type"] == "bytes" else None
        self._head = bytes([self.version])
        older = {version: folder / "old" / f"{stem}.{version}.avsc" for version in range(1, self.version)}
        self._older = {version: _parse(_load(path)) for version, path in older.items()}

    def write(self, record: AvroRecord) -> bytes:
        """Return the bytes of a record, in the newest version."""
        stream = BytesIO()
        stream.write(self._head)
        if self._last_bytes is None:
            fastavro.schemaless_writer(stream, self._newest, record)
            return stream.getvalue()
        last = record[self._last_bytes]
        fastavro.schemaless_writer(stream, self._newest, {**record, self._last_bytes: b""})
        # fastavro takes 80 ns for what is copied in 1 ns if the bytes are many; of none it has written their length, 0.
        return b"".join((stream.getvalue()[:-1], _avro_long(len(last)), last))

    def read(self, data: bytes) -> AvroRecord:
        """Return the record in the form of the newest version, whichever it was written in.

        Of a union of several records the one that it is comes as (full name, record). Raises LogError for a newer
        version, and whatever fastavro likes for damaged bytes.
        """
        if not data:
            raise ValueError("there are no bytes")
        writer, reader = self._schemas_for(data[0])
        stream = BytesIO(data)
        stream.seek(1)
        record = fastavro.schemaless_reader(
            stream, writer, reader, return_record_name=True, return_record_name_override=True
        )
        if stream.tell() != len(data) or not isinstance(record, dict):
            raise ValueError(f"{len(data) - stream.tell()} bytes are left over")
        return record

    def _schemas_for(self, version: int) -> tuple[Any, Any]:
        """Return the schema a record was written in, and the one to read it as, None if it is the same."""
        if version == self.version:
            return self._newest, None
        if version in self._older:
            return self._older[version], self._newest
        raise LogError(
            f"a record has version {version} of schema {self.stem}, this release reads 1 to {self.version}; run the "
            "release that wrote it or a newer one, or see whether something else writes to the topic"
        )


def _avro_long(number: int) -> bytes:
    """Return a number from 0 on as Avro writes a long: zigzag, seven bits to a byte, the lowest first."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _load(path: Path) -> dict[str, Any]:
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
        return {"name": schema["name"], "version": schema["version"], **schema}
    except OSError as error:
        raise LogError(f"schema {path.name} cannot be read ({error}); run from a checkout or an image") from error
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"schema {path.name} is no Avro record with a version ({error}); restore the file") from error


def _parse(schema: dict[str, Any]) -> Any:
    return fastavro.parse_schema(_without_logical_types(schema))


def _without_logical_types(schema: Any) -> Any:
    """Return a schema whose times are read as plain numbers: they are int here, and may lie beyond datetime's years."""
    match schema:
        case dict():
            return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
        case list():
            return [_without_logical_types(item) for item in schema]
        case _:
            return schema
