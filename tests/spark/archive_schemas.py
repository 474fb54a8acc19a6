"""Schemas that have changed: of the aligned log in the release after this one, and of a user's topic."""

import json
import shutil
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro

from services.runtime.codec_schemas import SCHEMAS
from services.runtime.codecs import Codecs


def next_release(folder: Path) -> Codecs:
    """Return the codecs of a release in which aligned batches have got one more field."""
    shutil.copytree(SCHEMAS, folder, dirs_exist_ok=True)
    schema = json.loads((SCHEMAS / "aligned_batch.avsc").read_text())
    version = schema["version"]
    shutil.copy(SCHEMAS / "aligned_batch.avsc", folder / "old" / f"aligned_batch.{version}.avsc")
    *fields, last = schema["fields"]
    more = {"name": "site", "type": "string", "default": "", "doc": "Where it was written."}
    newer = {**schema, "version": version + 1, "fields": [*fields, more, last]}
    (folder / "aligned_batch.avsc").write_text(json.dumps(newer))
    return Codecs(folder)


def source_schema(*values: str) -> dict[str, Any]:
    """Return the schema of a user's records with these values."""
    fields = [{"name": "object_id", "type": "string"}, {"name": "event_time", "type": "long"}]
    return {
        "type": "record",
        "name": "Observation",
        "fields": [*fields, *({"name": name, "type": "double"} for name in values)],
    }


def framed(schema_id: int, schema: dict[str, Any], **record: Any) -> bytes:
    """Return a record as registries frame it."""
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return struct.pack(">bI", 0, schema_id) + stream.getvalue()
