"""How the files of an archive are named and what columns they have.

::

    <archive>/rows/group=<g>/generation=<n>/shard=<s>/hour=<YYYY-MM-DD-HH>/<first>-<token>.parquet
              sections/group=<g>/generation=<n>/shard=<s>/<first>-<token>.parquet
              sources/group=<g>/stream=<name>/partition=<p>/hour=<YYYY-MM-DD-HH>/<first>-<token>.parquet
              commits/<number>.json, commits/<number>.whole.json

`first` is the first aligned offset in the file, of sources the first of their own. Every attempt to write has a token
of its own, so that none overwrites what another has written; only what a commit names belongs to the archive.
"""

import uuid
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "HOUR_US",
    "ROWS",
    "ROW_SCHEMA",
    "SECTIONS",
    "SECTION_SCHEMA",
    "SOURCES",
    "SOURCE_SCHEMA",
    "ArchiveFile",
    "aligned_folder",
    "hour_name",
    "hours_of",
    "new_name",
    "source_folder",
]

HOUR_US = 3_600_000_000
ROWS, SECTIONS, SOURCES = "rows", "sections", "sources"

_TIME = pa.timestamp("us", tz="UTC")
_VALUES = pa.list_(pa.field("element", pa.float64(), nullable=False))

# `place` counts the rows of a batch, `section` its sections; `id_hash` are 64 bits as a signed number.
ROW_SCHEMA = pa.schema(
    [
        pa.field("aligned_offset", pa.int64(), nullable=False),
        pa.field("place", pa.int32(), nullable=False),
        pa.field("section", pa.int32(), nullable=False),
        pa.field("stream", pa.int32(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("source_offset", pa.int64(), nullable=False),
        pa.field("event_time", _TIME, nullable=False),
        pa.field("release_time", _TIME, nullable=False),
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("id_hash", pa.int64(), nullable=False),
        pa.field("values", _VALUES, nullable=False),
    ]
)

# One row a section. Watermark, newest and lease are numbers, for they may lie beyond any calendar. `catalog`, in the
# first section of a batch that has records of the catalog, is an aligned batch of these records alone, as in Kafka.
SECTION_SCHEMA = pa.schema(
    [
        pa.field("aligned_offset", pa.int64(), nullable=False),
        pa.field("section", pa.int32(), nullable=False),
        pa.field("writer", pa.string(), nullable=False),
        pa.field("written_us", pa.int64(), nullable=False),
        pa.field("width", pa.int32(), nullable=False),
        pa.field("stream", pa.int32(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("from_offset", pa.int64(), nullable=False),
        pa.field("to_offset", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("watermark_us", pa.int64(), nullable=False),
        pa.field("newest_us", pa.int64(), nullable=False),
        pa.field("idle_until_us", pa.int64(), nullable=False),
        pa.field("catalog", pa.binary()),
    ]
)

# `reason` is null where the record could be decoded, and the three before it are null where it could not.
SOURCE_SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", _TIME, nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("object_id", pa.string()),
        pa.field("event_time", _TIME),
        pa.field("values", _VALUES),
        pa.field("reason", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFile:
    """A file as commits name it.

    `first` to `last`: its offsets; `oldest_us` to `newest_us`: its event times (of sections, and of records without
    one, when they were written).
    """

    path: str
    kind: str
    folder: str
    first: int
    last: int
    rows: int
    bytes: int
    oldest_us: int
    newest_us: int

    def to_json(self) -> dict[str, Any]:
        """Return the file as plain values."""
        return asdict(self)

    @property
    def hour(self) -> str:
        """The hour in its folder, empty if it has none."""
        last = self.folder.rsplit("/", 1)[-1]
        return last.removeprefix("hour=") if last.startswith("hour=") else ""

    @property
    def shelf(self) -> str:
        """The folder without the hour: one shard, or one source partition."""
        return self.folder.rsplit("/", 1)[0] if self.hour else self.folder


def aligned_folder(kind: str, group: str, generation: int, shard: int) -> str:
    """Return the folder of a shard's rows or sections."""
    return f"{kind}/group={group}/generation={generation}/shard={shard}"


def source_folder(group: str, stream: str, partition: int) -> str:
    """Return the folder of a source partition's records."""
    return f"{SOURCES}/group={group}/stream={stream}/partition={partition}"


def hour_name(hour: int) -> str:
    """Return the name of an hour since the epoch, UTC.

    >>> hour_name(495_660)
    '2026-07-18-12'
    """
    return str(np.datetime64(hour, "h")).replace("T", "-")


def new_name(first: int) -> str:
    """Return a name that no other file has."""
    return f"{first:012}-{uuid.uuid4().hex[:12]}.parquet"


def hours_of(time_us: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the hour since the epoch of each time."""
    return time_us // HOUR_US
