"""Rows from Parquet, a part of a row group at a time."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from skyband.errors import InputError
from skyband.files.layout import STREAM, Layout
from skyband.files.row_batch import RowBatch, arrow_batch
from skyband.files.text_blocks import open_file

__all__ = ["ParquetRows"]

# Pages are read through a buffer of this size; without one, whole columns of a row group would be.
_BUFFER_BYTES = 1 << 20


class ParquetRows:
    """The rows of a Parquet file. Raises InputError at once for one that is not Parquet or lacks a column."""

    def __init__(self, path: Path, layout: Layout, batch_rows: int) -> None:
        self.name = str(path)
        self._batch_rows = batch_rows
        self._source = open_file(path)
        self.total_bytes = os.fstat(self._source.fileno()).st_size
        try:
            metadata = pa.parquet.read_metadata(self._source)
            self._wanted = layout.check_columns(self.name, metadata.schema.to_arrow_schema().names)
            self._file = pa.parquet.ParquetFile(
                self._source,
                metadata=metadata,
                buffer_size=_BUFFER_BYTES,
                read_dictionary=[name for name in self._wanted if name == STREAM],
            )
        except (pa.ArrowException, OSError) as error:
            self.close()
            raise InputError(f"{self.name}: is not Parquet, or is damaged ({_first_line(error)})") from None
        except InputError:
            self.close()
            raise
        self.total_rows = self._file.metadata.num_rows
        self._read_rows = 0

    @property
    def read_bytes(self) -> int:
        """Bytes of the file that have been read, by its rows."""
        return self.total_bytes * self._read_rows // self.total_rows if self.total_rows else self.total_bytes

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows, `batch_rows` at a time."""
        parts = self._file.iter_batches(self._batch_rows, columns=self._wanted, use_threads=False)
        while True:
            try:
                part = next(parts, None)
            except (pa.ArrowException, OSError) as error:
                place = f"{self.name} row {self._read_rows + 1}"
                raise InputError(f"{place}: cannot be decoded; the file is damaged ({_first_line(error)})") from None
            if part is None:
                return
            yield self._batch(part, self._read_rows + 1)
            self._read_rows += part.num_rows

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _batch(self, part: pa.RecordBatch, first_row: int) -> RowBatch:
        columns = dict(zip(part.schema.names, part.columns, strict=True))
        return arrow_batch(self.name, columns, part.num_rows, lambda row: f"{self.name} row {first_row + row}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
