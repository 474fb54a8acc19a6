"""Schemas are whole, documented, and change only as their README says."""

import json
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form

from services.runtime.codec_schemas import SCHEMAS, VersionedSchema
from services.runtime.codecs import VALUES, Codecs
from skyband.errors import LogError
from skyband.model.result import Candidate, Result, ResultRow

RESULT = Result(
    query="hottest",
    uid="u-1",
    window_start=1_760_000_000_000_000,
    window_end=1_760_000_060_000_000,
    rows=(
        ResultRow(1, "sensor-7", 81.25, {"temperature": 90.5}, 1_760_000_030_000_000, 95.5, 1_760_000_090_000_000),
        ResultRow(2, "ü", 0.1, {}),
    ),
    frontier_us=1_760_000_061_000_000,
    revision=2,
    candidates=(
        Candidate("sensor-8", None, 90.0, ("vibration",), 1_760_000_080_000_000),
        Candidate("sensor-9", 0.05, None, (), 1_760_000_080_000_000),
    ),
)

# Of every version that was ever written. A line is added for a new version, and none ever changes.
FINGERPRINTS: dict[tuple[str, int], str] = {
    ("aligned_batch", 1): "ffb494fbc28eafdc",
    ("catalog_event", 1): "89ee6ec0049e3fca",
    ("checkpoint", 1): "72a52d4135ca1533",
    ("checkpoint", 2): "8f7f2ca7e17f9439",
    ("dead_letter", 1): "71fd4c4ba82597a3",
    ("mark", 1): "c8bece483785f6c5",
    ("partial", 1): "c07e5ebbc453b7d6",
    ("partial", 2): "03a268a4292e675f",
    ("progress", 1): "ce2c622dcb3f82d0",
    ("progress", 2): "44e5a49f29eff7bf",
    ("result", 1): "ec2a8593f8f2cd13",
    ("result", 2): "dde1ff2fb15fb219",
    ("statistics", 1): "1a44e640b08984d0",
}


def load(stem: str) -> Any:
    return json.loads((SCHEMAS / f"{stem}.avsc").read_text())


def records(schema: Any) -> list[dict[str, Any]]:
    """Return every record that a schema defines, itself first."""
    if isinstance(schema, list):
        return [record for item in schema for record in records(item)]
    if not isinstance(schema, dict):
        return []
    found = [schema] if schema["type"] == "record" else []
    inner = [schema.get("items"), schema.get("values"), *(field["type"] for field in schema.get("fields", ()))]
    inner += [schema["type"]] if not isinstance(schema["type"], str) else []
    return found + records(inner)


def test_the_files_are_the_schemas_that_codecs_know() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.avsc")} == set(VALUES)


@pytest.mark.parametrize("stem", VALUES)
def test_a_schema_stands_alone_and_has_a_doc_for_every_record_and_field(stem: str) -> None:
    schema = load(stem)
    fastavro.parse_schema(schema)
    assert schema["namespace"] == "skyband.v1"
    missing = [
        f"{record['name']}.{field['name']}"
        for record in records(schema)
        for field in record["fields"]
        if not field.get("doc", "").endswith(".")
    ]
    assert not missing
    assert all(record["doc"].endswith(".") for record in records(schema))


@pytest.mark.parametrize("stem", VALUES)
def test_a_schema_defines_the_records_of_its_values(stem: str) -> None:
    schema = load(stem)
    names = {codec.name for codec in VALUES[stem]}
    if {schema["name"]} != names:
        assert [field["name"] for field in schema["fields"]] == ["value"]
        assert {record["name"] for record in schema["fields"][0]["type"]} == names


def test_a_record_of_one_name_is_the_same_in_all_schemas() -> None:
    seen: dict[str, Any] = {}
    for stem in VALUES:
        for record in records(load(stem)):
            assert seen.setdefault(record["name"], record) == record


@pytest.mark.parametrize("stem", VALUES)
def test_a_schema_does_not_change_without_a_new_version(stem: str) -> None:
    version = load(stem)["version"]
    files = {version: SCHEMAS / f"{stem}.avsc"}
    files |= {older: SCHEMAS / "old" / f"{stem}.{older}.avsc" for older in range(1, version)}
    for number, path in files.items():
        canonical = to_parsing_canonical_form(json.loads(path.read_text()))
        found = fingerprint(canonical, "CRC-64-AVRO")
        assert FINGERPRINTS.get((stem, number)) == found, "see schemas/README.md: how a schema changes"


# --- what others do


def test_a_stock_reader_reads_results_and_times_as_times() -> None:
    data = Codecs().encode("results", RESULT) or b""
    found: Any = fastavro.schemaless_reader(BytesIO(data[1:]), fastavro.parse_schema(load("result")), None)
    assert data[0] == load("result")["version"]
    assert (found["query"], found["window_end"]) == ("hottest", 1_760_000_060_000_000)
    assert [row["object_id"] for row in found["rows"]] == ["sensor-7", "ü"]
    assert found["rows"][0]["event_time"].isoformat() == "2025-10-09T08:53:50+00:00"
    assert found["rows"][0]["attributes"] == {"temperature": 90.5}
    assert found["rows"][1]["event_time"] is None


# --- versions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The schemas, after a release that gave results a revision."""
    shutil.copytree(SCHEMAS, tmp_path, dirs_exist_ok=True)
    schema = load("result")
    older = {**schema, "fields": [field for field in schema["fields"] if field["name"] != "revision"]}
    version = schema["version"]
    (tmp_path / "old").mkdir(exist_ok=True)
    (tmp_path / "old" / f"result.{version}.avsc").write_text(json.dumps(older))
    (tmp_path / "result.avsc").write_text(json.dumps({**schema, "version": version + 1}))
    return tmp_path


def test_an_older_version_is_read_with_defaults(folder: Path) -> None:
    version = load("result")["version"]
    older = fastavro.parse_schema(json.loads((folder / "old" / f"result.{version}.avsc").read_text()))
    stream = BytesIO()
    record = {"query": "q", "uid": "u", "window_start": 0, "window_end": 5, "rows": [], "frontier_us": 6}
    fastavro.schemaless_writer(stream, older, record)
    codecs = Codecs(folder)
    written = bytes([version]) + stream.getvalue()
    assert codecs.decode("results", written) == Result("q", "u", 0, 5, (), 6, revision=0)
    assert codecs.decode("results", codecs.encode("results", RESULT)) == RESULT


def test_results_written_before_there_were_candidates_are_read() -> None:
    older = fastavro.parse_schema(json.loads((SCHEMAS / "old" / "result.1.avsc").read_text()))
    row = {"rank": 1, "object_id": "a", "score": 2.5, "attributes": {"x": 1.0}, "event_time": None}
    record = {"query": "q", "uid": "u", "revision": 3, "window_start": 0, "window_end": 5, "rows": [row]}
    stream = BytesIO()
    fastavro.schemaless_writer(stream, older, {**record, "frontier_us": None})
    found = Codecs().decode("results", b"\1" + stream.getvalue())
    assert found == Result("q", "u", 0, 5, (ResultRow(1, "a", 2.5, {"x": 1.0}),), None, 3)


def test_checkpoints_written_before_there_were_snapshots_are_read() -> None:
    older = fastavro.parse_schema(json.loads((SCHEMAS / "old" / "checkpoint.1.avsc").read_text()))
    place = {"group": "g", "generation": 1, "shard": 2, "aligned_offset": 7}
    stream = BytesIO()
    fastavro.schemaless_writer(stream, older, {**place, "state": '{"version":1}'})
    assert Codecs().decode("checkpoints", b"\1" + stream.getvalue()) == {**place, "version": 1}


def test_an_older_reader_refuses_a_newer_version_in_words(folder: Path) -> None:
    newer = Codecs(folder).encode("results", RESULT)
    known = load("result")["version"]
    words = f"version {known + 1} of schema result, this release reads 1 to {known}; run the release that"
    with pytest.raises(LogError, match=words):
        Codecs().decode("results", newer)


def test_a_missing_older_version_is_named(folder: Path) -> None:
    (folder / "old" / "result.1.avsc").unlink()
    with pytest.raises(LogError, match=r"schema result\.1\.avsc cannot be read"):
        Codecs(folder)


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "record", "name": "Result"}'])
def test_a_file_that_is_no_schema_is_named(folder: Path, text: str) -> None:
    (folder / "result.avsc").write_text(text)
    with pytest.raises(LogError, match=r"schema result\.avsc is no Avro record with a version"):
        Codecs(folder)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 127, 128, 8_191, 8_192, 100_000])
def test_bytes_at_the_end_of_a_record_are_written_as_avro_does(length: int) -> None:
    record = {
        "stream": "s",
        "topic": "t",
        "partition": 0,
        "offset": 1,
        "reason": "late",
        "error": "e",
        "raw": b"x" * length,
    }
    stream = BytesIO(b"\1")
    stream.seek(1)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(load("dead_letter")), record)
    assert VersionedSchema("dead_letter").write(record) == stream.getvalue()
