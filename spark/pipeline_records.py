"""Records on their way to align, packed: many of a source partition in one row of Spark's.

A stateful operator is given its rows one by one, each a Python object, at 20 us a record; a row of ten thousand records
costs no more than one of them. Workers that pack need nothing else of the pipeline, and import nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from spark.pipeline_align import Records

__all__ = ["PACKED_SCHEMA", "pack_records", "unpack_records"]

PACKED_SCHEMA = "key string, first long, data binary"
_SCHEMA = pa.schema({"key": pa.string(), "first": pa.int64(), "data": pa.binary()})


def pack_records(streams: Mapping[str, Sequence[int]], frames: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield frames with a row for each stretch of one partition, and each of the `streams` that its topic brings.

    Columns of `frames` are topic, partition, offset, time_us and value, of each partition in order of offsets; `first`
    is a stretch's first offset. Cost: a copy of the bytes.
    """
    for frame in frames:
        if not frame.num_rows:
            continue
        topics = frame.column("topic").dictionary_encode()
        place = np.stack([topics.indices.to_numpy(), frame.column("partition").to_numpy()])
        changes = np.flatnonzero((np.diff(place) != 0).any(axis=0)) + 1
        packed = []
        for low, high in pairwise([0, *changes.tolist(), frame.num_rows]):
            number, partition = place[:, low].tolist()
            stretch = _packed(frame.slice(low, high - low))
            packed += [
                {"key": f"{stream}/{partition}", **stretch} for stream in streams[topics.dictionary[number].as_py()]
            ]
        yield pa.RecordBatch.from_pylist(packed, _SCHEMA)


def unpack_records(packed: Iterable[bytes]) -> Records:
    """Return the records of one source partition in order of offsets, from rows in any order."""
    from spark.archive_sources import payloads_of
    from spark.pipeline_align import Records

    tables = [pa.ipc.open_stream(data).read_all() for data in packed]
    tables.sort(key=lambda its: its.column("offset")[0].as_py())
    table = pa.concat_tables(tables)
    return Records(
        table.column("offset").to_numpy(), table.column("time_us").to_numpy(), payloads_of(table.column("value"))
    )


def _packed(frame: pa.RecordBatch) -> dict[str, object]:
    columns = frame.select(["offset", "time_us", "value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, columns.schema) as writer:
        writer.write_batch(columns)
    return {"first": columns.column("offset")[0].as_py(), "data": sink.getvalue().to_pybytes()}
