"""Changes of queries, documents of the catalog, checkpoints of the engine."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from services.runtime.codec_value import AvroRecord, ValueCodec
from skyband.errors import LogError
from skyband.model.catalog import QueryChange
from skyband.model.query import Query, QueryState
from skyband.model.query_form import dump_query, read_query

__all__ = ["CATALOG", "CHECKPOINT", "read_change", "write_change"]

_PLACE = ("group", "generation", "shard", "aligned_offset")


def write_change(change: QueryChange) -> AvroRecord:
    """Return the record QueryChange."""
    return {
        "uid": change.uid,
        "revision": change.revision,
        "group": change.group,
        "query": _dump(change.query),
        "state": change.state.value,
    }


def read_change(record: AvroRecord) -> QueryChange:
    """Return the change that a record QueryChange holds."""
    return QueryChange(
        uid=record["uid"],
        revision=record["revision"],
        group=record["group"],
        query=_read(record["query"]),
        state=QueryState(record["state"]),
    )


# Marks repeat the queries of their group, often once a second; queries are values, so one text and one object do.
@lru_cache(maxsize=10_000)
def _dump(query: Query) -> str:
    return _json(dump_query(query))


@lru_cache(maxsize=10_000)
def _read(text: str) -> Query:
    return read_query(json.loads(text))


def _json(document: Mapping[str, Any]) -> str:
    """Return plain values as JSON; LogError for what JSON would give back as something else."""
    plain = dict(document)
    try:
        text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
        if json.loads(text) == plain:
            return text
        why = "JSON gives another value back; use text as keys, lists for sequences"
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    raise LogError(f"a document of {', '.join(map(str, plain))} cannot be stored as JSON: {why}")


def _write_document(document: Mapping[str, Any]) -> AvroRecord:
    return {"document": _json(document)}


def _read_document(record: AvroRecord) -> dict[str, Any]:
    return _mapping(record["document"])


def _write_checkpoint(checkpoint: Mapping[str, Any]) -> AvroRecord:
    missing = [name for name in _PLACE if name not in checkpoint]
    if missing:
        raise LogError(f"a checkpoint has no {', '.join(missing)}; name all of {', '.join(_PLACE)}")
    place = {name: checkpoint[name] for name in _PLACE}
    rest = {name: value for name, value in checkpoint.items() if name not in _PLACE}
    if isinstance(rest.get("chunk"), bytes):
        return {**place, "state": "", "chunk": rest["chunk"]}
    return {**place, "state": _json(rest), "chunk": b""}


def _read_checkpoint(record: AvroRecord) -> dict[str, Any]:
    place = {name: record[name] for name in _PLACE}
    return {**place, **_mapping(record["state"])} if record["state"] else {**place, "chunk": record["chunk"]}


def _mapping(text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError(f"{text[:50]!r} is no JSON object")
    return document


CATALOG = (
    ValueCodec("QueryChange", QueryChange, write_change, read_change),
    ValueCodec("CatalogDocument", Mapping, _write_document, _read_document),
)
CHECKPOINT = (ValueCodec("Checkpoint", Mapping, _write_checkpoint, _read_checkpoint),)
