"""Reads the files of one shelf in the order of their offsets, a little of each at a time."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyband.errors import LogError
from spark.archive_files import ArchiveFiles
from spark.archive_layout import ArchiveFile

__all__ = ["FileCursor", "OffsetMerge", "chunks"]

_ROWS = 65_536


def chunks(files: ArchiveFiles, file: ArchiveFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of a file in order, in the columns of `schema`; one that an old file lacks is null.

    Cost: one row group in memory at a time.
    """
    with files.open_input(file.path) as source:
        try:
            parquet = pq.ParquetFile(source)
            names = [name for name in schema.names if name in parquet.schema_arrow.names]
            # One by one: a reader of several row groups keeps the bytes of all that it has read.
            for group in range(parquet.num_row_groups):
                for batch in parquet.iter_batches(_ROWS, row_groups=[group], columns=names):
                    yield fitted(pa.Table.from_batches([batch]), schema)
        except (pa.ArrowException, OSError) as error:
            raise LogError(f"{file.path} of the archive {files.uri} is damaged ({error}); restore it") from error


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table in the columns of `schema`, as an older or newer release may have written others."""
    if table.schema.equals(schema):
        return table
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(dict(zip(schema.names, columns, strict=True)))


class FileCursor:
    """One file, sorted by its column of offsets, read from its beginning on.

    Invariant: what `take` returned lies before all that it will return.
    """

    def __init__(self, files: ArchiveFiles, file: ArchiveFile, schema: pa.Schema, order: str) -> None:
        self.file = file
        self._order = order
        self._chunks = chunks(files, file, schema)
        self._head: pa.Table | None = None

    def take(self, last: int) -> list[pa.Table]:
        """Return all rows up to and including offset `last` that are not taken yet."""
        taken: list[pa.Table] = []
        while (head := self._next()) is not None:
            offsets = head.column(self._order).chunk(0).to_numpy()
            stop = int(np.searchsorted(offsets, last, side="right"))
            if stop:
                taken.append(head.slice(0, stop))
            if stop < head.num_rows:
                self._head = head.slice(stop)
                break
            self._head = None
        return taken

    def close(self) -> None:
        """Give the file back."""
        self._chunks.close()  # type: ignore[attr-defined]

    def _next(self) -> pa.Table | None:
        if self._head is None:
            self._head = next((chunk.combine_chunks() for chunk in self._chunks if chunk.num_rows), None)
        return self._head


class OffsetMerge:
    """Several files of one shelf as if they were one, in order of offset and, within one, of `then`.

    Files are open from their first offset to their last. Memory: a row group of each open file.
    """

    def __init__(
        self,
        files: ArchiveFiles,
        listed: Sequence[ArchiveFile],
        schema: pa.Schema,
        order: str,
        then: str | None = None,
    ) -> None:
        self._files, self._schema = files, schema
        self._order, self._then = order, then
        self._waiting = sorted(listed, key=lambda its: (its.first, its.path), reverse=True)
        self._open: list[FileCursor] = []

    def take(self, last: int) -> pa.Table:
        """Return the rows up to and including offset `last` that are not taken yet, in one chunk."""
        while self._waiting and self._waiting[-1].first <= last:
            self._open.append(FileCursor(self._files, self._waiting.pop(), self._schema, self._order))
        parts: list[pa.Table] = []
        sorted_already = 0
        for cursor in self._open:
            found = cursor.take(last)
            parts += found
            sorted_already += bool(found)
        self._close(last)
        if not parts:
            return self._schema.empty_table()
        table = pa.concat_tables(parts).combine_chunks()
        return table if sorted_already == 1 else table.take(pa.array(self._sorting(table)))

    def close(self) -> None:
        """Close all files."""
        with ExitStack() as stack:
            for cursor in self._open:
                stack.callback(cursor.close)

    def _close(self, last: int) -> None:
        for cursor in self._open:
            if cursor.file.last <= last:
                cursor.close()
        self._open = [cursor for cursor in self._open if cursor.file.last > last]

    def _sorting(self, table: pa.Table) -> np.ndarray:
        first = table.column(self._order).to_numpy()
        if self._then is None:
            return np.argsort(first, kind="stable")
        return np.lexsort((table.column(self._then).to_numpy(), first))
