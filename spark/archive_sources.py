"""Writes the records of source partitions: as they came, and decoded where that can be done."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from services.runtime.payloads import Payloads
from services.runtime.source_decoder import SourceDecoder
from skyband.model.source_rows import Reason, SourceRows
from spark.archive_files import ArchiveFiles
from spark.archive_layout import SOURCE_SCHEMA, SOURCES, ArchiveFile, source_folder
from spark.archive_parquet import HourWriter, total_bytes

__all__ = ["NOT_DECODED", "SourceRecords", "SourceWriter", "payloads_of", "times_of"]

# The reason of records for whose format no decoder is to be had, as without the registry of their schemas.
NOT_DECODED = "not_decoded"
_GROUP_ROWS = 131_072
_GROUP_BYTES = 64 << 20
_DECODED = ("object_id", "event_time", "values")
_LABELS = pa.array([reason.label for reason in Reason])


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """Consecutive records of one partition: int64[n] offsets and timestamps, Arrow columns of keys and values."""

    offset: npt.NDArray[np.int64]
    timestamp_us: npt.NDArray[np.int64]
    key: pa.Array
    value: pa.Array


class SourceWriter:
    """Writes one source partition, in order; one thread owns it. Without a decoder records are kept as bytes alone.

    An hour is that of the event time where there is one, else that in which the record was written.
    """

    def __init__(
        self, files: ArchiveFiles, group: str, stream: str, partition: int, decoder: SourceDecoder | None
    ) -> None:
        self._decoder = decoder
        shelf = source_folder(group, stream, partition)
        self._hours = HourWriter(files, SOURCES, shelf, SOURCE_SCHEMA, "offset")
        self._waiting: list[tuple[pa.Table, npt.NDArray[np.int64]]] = []
        self._rows = self._bytes = 0
        self.rows = 0

    def add(self, records: SourceRecords) -> None:
        """Write records. Raises LogError if a schema cannot be asked for."""
        if not len(records.offset):
            return
        if self._decoder is None:
            table, hour_us = _undecoded(records)
        else:
            values = payloads_of(pa.chunked_array([records.value]))
            table, hour_us = _decoded(records, self._decoder.decode(records.offset, records.timestamp_us, values))
        self._waiting.append((table, hour_us))
        self._rows += table.num_rows
        self._bytes += total_bytes(table.column("value"))
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write()

    def close(self) -> list[ArchiveFile]:
        """Complete the files and return them."""
        self._write()
        return self._hours.close()

    def abandon(self) -> None:
        """Close the files; nobody will be told of them."""
        self._hours.abandon()

    def _write(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables([table for table, _ in self._waiting]).combine_chunks()
        self._hours.write(table, np.concatenate([times for _, times in self._waiting]))
        self._waiting.clear()
        self.rows += self._rows
        self._rows = self._bytes = 0


def _decoded(records: SourceRecords, rows: SourceRows) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    is_bad = rows.reason != Reason.ACCEPTED
    count, width = rows.values.shape
    bounds = np.zeros(count + 1, np.int32)
    bounds[1:] = rows.id_ends
    ids = pa.Array.from_buffers(
        pa.string(),
        count,
        [_validity(~is_bad), pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(rows.id_bytes))],
    )
    times = pa.array(rows.event_time_us, mask=is_bad).view(SOURCE_SCHEMA.field("event_time").type)
    values = pa.ListArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(width)),
        pa.array(np.ascontiguousarray(rows.values).ravel()),
        type=SOURCE_SCHEMA.field("values").type,
        mask=pa.array(is_bad),
    )
    reason = _LABELS.take(pa.array(rows.reason.astype(np.int32), mask=~is_bad))
    table = _table(records, ids, times, values, reason)
    return table, np.where(is_bad, records.timestamp_us, rows.event_time_us)


def _undecoded(records: SourceRecords) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    count = len(records.offset)
    ids, times, values = (pa.nulls(count, SOURCE_SCHEMA.field(name).type) for name in _DECODED)
    return _table(records, ids, times, values, pa.repeat(NOT_DECODED, count)), records.timestamp_us


def _table(records: SourceRecords, ids: pa.Array, times: pa.Array, values: pa.Array, reason: pa.Array) -> pa.Table:
    columns = {
        "offset": records.offset,
        "timestamp": pa.array(records.timestamp_us).view(SOURCE_SCHEMA.field("timestamp").type),
        "key": records.key,
        "value": records.value,
        "object_id": ids,
        "event_time": times,
        "values": values,
        "reason": reason,
    }
    return pa.table(columns, schema=SOURCE_SCHEMA)


def payloads_of(column: pa.ChunkedArray) -> Payloads:
    """Return a column of bytes as payloads. Cost: a copy if it has several chunks, else of the ends alone."""
    binary = column.combine_chunks()
    if isinstance(binary, pa.ChunkedArray):
        binary = pa.concat_arrays(binary.chunks) if binary.num_chunks else pa.array([], pa.binary())
    if not len(binary):
        return Payloads.of([])
    _, ends, data = binary.buffers()
    kind = np.int64 if pa.types.is_large_binary(binary.type) else np.int32
    bounds = np.frombuffer(ends, kind)[binary.offset : binary.offset + len(binary) + 1].astype(np.int64)
    joined = np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]
    return Payloads(joined, bounds[1:] - bounds[0], binary.is_null().to_numpy(zero_copy_only=False))


def times_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return a column of times as microseconds."""
    parts = [chunk.view(pa.int64()).to_numpy() for chunk in column.chunks]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _validity(is_valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    return None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
