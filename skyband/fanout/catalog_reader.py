"""Follows the catalog: which queries there are, in which revision."""

from collections.abc import Sequence

from skyband.log.read_range import read_range
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.catalog import QueryChange

__all__ = ["CatalogReader"]

_MAX_RECORDS = 1_000


class CatalogReader:
    """Reads the catalog's changes of queries once, in order; one thread owns it.

    Initially nothing is read. Invariant: every change below `next_offset` was returned by `poll` or `read_to_end`.
    """

    def __init__(self, log: RecordLog, topic: str = "catalog") -> None:
        self._log = log
        self._at = Position(topic, 0)
        self._consumer = log.consumer()
        self._begin = self._consumer.begin_offsets([self._at])[self._at]
        self.next_offset = self._begin
        self._consumer.assign({self._at: self._begin})

    def poll(self) -> list[Record]:
        """Return the changes that are there, without waiting."""
        return self._take(self._consumer.poll(_MAX_RECORDS, 0.0))

    def read_to_end(self) -> list[Record]:
        """Return all changes up to where the catalog ends now. Raises LogError if they do not come."""
        end = self._consumer.end_offsets([self._at])[self._at]
        if self.next_offset >= end:
            return []
        records = list(read_range(self._consumer, self._at, self.next_offset, end))
        self.next_offset = end
        self._consumer.assign({self._at: end})
        return _changes(records)

    def read_again(self, offset: int) -> list[Record]:
        """Return the changes from `offset` on that were read before."""
        consumer = self._log.consumer()
        try:
            return _changes(list(read_range(consumer, self._at, max(offset, self._begin), self.next_offset)))
        finally:
            consumer.close()

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()

    def _take(self, records: Sequence[Record]) -> list[Record]:
        if records:
            self.next_offset = records[-1].next_offset
        return _changes(records)


def _changes(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if isinstance(record.value, QueryChange)]
