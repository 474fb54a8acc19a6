"""Aligned batches as Avro records; see schemas/aligned_batch.avsc."""

import numpy as np

from services.runtime.codec_columns import column_bytes, read_column
from services.runtime.codec_queries import read_change, write_change
from services.runtime.codec_rows import PACKED, ROWS, PackedRows, RowColumns, SectionTable, pack_rows, unpack_rows
from services.runtime.codec_sections import SECTION_FIELDS, section_numbers, section_of
from services.runtime.codec_value import AvroRecord, ValueCodec
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord
from skyband.errors import LogError

__all__ = ["ALIGNED_BATCH"]


def _write(batch: AlignedBatch) -> AvroRecord:
    sections = section_numbers(batch.sections)
    rows = int(sections[:, ROWS].sum())
    if rows != batch.rows:
        raise LogError(f"a batch of {batch.rows} rows has sections of {rows}; its writer {batch.writer!r} is at fault")
    return {
        "group": batch.group,
        "generation": batch.generation,
        "shard": batch.shard,
        "writer": batch.writer,
        "written_us": batch.written_us,
        "sections": column_bytes(sections, np.int64),
        "width": batch.values.shape[1],
        **_write_rows(batch, sections),
        "catalog": [
            {"offset": record.offset, "change": record.change and write_change(record.change)}
            for record in batch.catalog
        ],
    }


def _write_rows(batch: AlignedBatch, sections: SectionTable) -> AvroRecord:
    if not batch.rows:
        return {"packing": b"", "columns": b""}
    columns = RowColumns(
        batch.offset,
        batch.event_time_us,
        batch.release_time_us,
        batch.id_ends,
        batch.id_bytes,
        batch.id_hash,
        batch.values,
    )
    packed = pack_rows(sections, columns)
    return {"packing": column_bytes(packed.packing, np.int64), "columns": packed.columns.data}


def _read(record: AvroRecord) -> AlignedBatch:
    sections = read_column(record["sections"], np.int64).reshape(-1, len(SECTION_FIELDS))
    columns = _read_rows(record, sections)
    return AlignedBatch(
        group=record["group"],
        generation=record["generation"],
        shard=record["shard"],
        writer=record["writer"],
        written_us=record["written_us"],
        sections=tuple([section_of(*numbers) for numbers in sections.tolist()]),
        offset=columns.offset,
        event_time_us=columns.event_time_us,
        release_time_us=columns.release_time_us,
        id_bytes=columns.id_bytes,
        id_ends=columns.id_ends,
        id_hash=columns.id_hash,
        values=columns.values,
        catalog=tuple(
            CatalogRecord(its["offset"], None if its["change"] is None else read_change(its["change"]))
            for its in record["catalog"]
        ),
    )


def _read_rows(record: AvroRecord, sections: SectionTable) -> RowColumns:
    width, rows = record["width"], sections[:, ROWS]
    if rows.any():
        # Each is checked, for a sum may hide a negative number, or wrap.
        if rows.min() < 0 or rows.max() > len(record["columns"]):
            raise ValueError("a section has a number of rows that cannot be")
        packing = read_column(record["packing"], np.int64).reshape(PACKED, 2)
        return unpack_rows(sections, width, PackedRows(packing, np.frombuffer(record["columns"], np.uint8)))
    if record["columns"]:
        raise ValueError("there are columns of no rows")
    return RowColumns(
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.uint8),
        np.zeros(0, np.uint64),
        np.zeros((0, width), np.float64),
    )


ALIGNED_BATCH = (ValueCodec("AlignedBatch", AlignedBatch, _write, _read),)
