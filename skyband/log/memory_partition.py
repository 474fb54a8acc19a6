"""One partition of a topic in memory. It knows neither locks nor waiting: see `memory.py`."""

from bisect import bisect_right
from collections.abc import Iterable

from skyband.log.record_log import Committed, Record

__all__ = ["MemoryPartition"]


class MemoryPartition:
    """Records of one partition, and the offsets that groups have committed.

    Initially empty, with the given readers at offset 0. Invariant: the kept records follow each other in offsets, from
    `begin_offset` to `end_offset`; with `truncate`, no kept record ends at or below the least position of a reader.

    Dropped records leave a gap at the head of a list, which is closed once it is half of it: constant time a record.
    """

    def __init__(self, capacity: int, truncate: bool, readers: Iterable[str]) -> None:
        self._capacity = capacity
        self._truncate = truncate
        self._records: list[Record | None] = []
        self._offsets: list[int] = []
        self._head = 0
        self._committed: dict[str, Committed] = {}
        self._positions = dict.fromkeys(readers, 0)
        self.begin_offset = 0
        self.end_offset = 0
        self.peak = 0

    @property
    def size(self) -> int:
        """Number of records kept."""
        return len(self._records) - self._head

    @property
    def room(self) -> int:
        """Number of records that fit."""
        return self._capacity - self.size

    @property
    def waits_for(self) -> str:
        """What keeps the records, in words that follow "records that"."""
        if not self._truncate:
            return "are kept for good"
        if not self._positions:
            return "no reader has committed"
        slowest = min(self._positions, key=self._positions.__getitem__)
        return f"group {slowest!r} has not committed (it is at offset {self._positions[slowest]})"

    def append(self, record: Record) -> None:
        """Keep a record, which begins at `end_offset`."""
        self._records.append(record)
        self._offsets.append(record.offset)
        self.end_offset = record.next_offset
        self.peak = max(self.peak, self.size)

    def read(self, offset: int, limit: int) -> list[Record]:
        """Return up to `limit` records from the one that holds `offset` on. Cost: a binary search and the records."""
        if offset >= self.end_offset:
            return []
        first = max(self._head, bisect_right(self._offsets, offset, lo=self._head) - 1)
        return [record for record in self._records[first : first + limit] if record is not None]

    def register(self, group: str) -> None:
        """Keep what `group` has not committed from now on."""
        self._positions.setdefault(group, self.begin_offset)

    def committed(self, group: str | None) -> Committed | None:
        """Return what `group` has committed, or None."""
        return None if group is None else self._committed.get(group)

    def commit(self, group: str, offset: int, note: str = "") -> None:
        """Store the next offset of `group` and a note; with `truncate`, drop what all readers are past."""
        self._committed[group] = Committed(offset, note)
        self._positions[group] = offset
        if self._truncate:
            self._drop_below(min(self._positions.values()))

    def _drop_below(self, offset: int) -> None:
        while self._head < len(self._records):
            record = self._records[self._head]
            if record is not None and record.next_offset > offset:
                break
            self._records[self._head] = None
            self._head += 1
        self.begin_offset = self._offsets[self._head] if self._head < len(self._records) else self.end_offset
        if 2 * self._head >= len(self._records):
            del self._records[: self._head], self._offsets[: self._head]
            self._head = 0

    def _check(self) -> None:
        """Assert the invariants."""
        kept = self._records[self._head :]
        assert len(self._records) == len(self._offsets)
        assert all(record is None for record in self._records[: self._head])
        at = self.begin_offset
        for record, offset in zip(kept, self._offsets[self._head :], strict=True):
            assert record is not None
            assert record.offset == offset == at
            at = record.next_offset
        assert at == self.end_offset
        assert self.size <= self.peak <= self._capacity
        if self._truncate and self._positions and kept and kept[0] is not None:
            assert kept[0].next_offset > min(self._positions.values())
