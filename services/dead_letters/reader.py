"""Reads dead letters: the newest ones, all, and those to come."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from skyband.log.record_log import Consumer, Position, Record, RecordLog
from skyband.model.source_rows import DeadLetter

__all__ = ["TOPIC", "Letter", "Letters"]

TOPIC = "dead-letters"
_BATCH = 1_000
_WAIT_S = 0.2
# How much further back each look goes that has not found enough.
_WIDER = 8


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, and when it was written."""

    time_us: int
    at: Position
    offset: int
    letter: DeadLetter


class Letters:
    """The letters of one stream, or of all; one thread owns it.

    Initially nothing is read. `follow` goes on behind what was read before, or at the end.
    """

    def __init__(self, log: RecordLog, stream: str | None = None) -> None:
        """Begin. Raises LogError if there is no such topic."""
        self._stream = stream
        self._consumer: Consumer = log.consumer()
        partitions = log.partitions(TOPIC)
        self._positions = [Position(TOPIC, partition) for partition in range(partitions)]
        self._cursors: dict[Position, int] | None = None

    def newest(self, number: int) -> list[Letter]:
        """Return the newest `number` letters, the oldest of them first. Cost: a few times what is returned, or all."""
        begins = self._consumer.begin_offsets(self._positions)
        ends = self._cursors = self._consumer.end_offsets(self._positions)
        back = max(1, number)
        while True:
            starts = {at: max(begins[at], ends[at] - back) for at in self._positions}
            found = list(self._read(starts, ends))
            each = Counter(letter.at for letter in found)
            # A partition is in order of time, so that the newest of all are among the newest of each.
            if all(starts[at] == begins[at] or each[at] >= number for at in self._positions):
                return heapq.nlargest(number, found, key=_when)[::-1]
            back *= _WIDER

    def all(self) -> Iterator[Letter]:
        """Yield all letters that are kept, in order of time within what one read brings."""
        begins = self._consumer.begin_offsets(self._positions)
        ends = self._cursors = self._consumer.end_offsets(self._positions)
        yield from self._read(begins, ends)

    def follow(self, is_over: Callable[[], bool]) -> Iterator[Letter]:
        """Yield the letters that come, until it is over."""
        starts = self._cursors or self._consumer.end_offsets(self._positions)
        self._consumer.assign(dict(starts))
        while not is_over():
            yield from sorted(self._letters(self._consumer.poll(_BATCH, _WAIT_S)), key=_when)

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()

    def _read(self, starts: Mapping[Position, int], ends: Mapping[Position, int]) -> Iterator[Letter]:
        """Yield the letters at [starts, ends)."""
        cursors = {at: start for at, start in starts.items() if start < ends[at]}
        if not cursors:
            return
        self._consumer.assign(dict(cursors))
        while any(cursor < ends[at] for at, cursor in cursors.items()):
            records = self._consumer.poll(_BATCH, _WAIT_S)
            for record in records:
                cursors[Position(record.topic, record.partition)] = record.next_offset
            inside = [r for r in records if r.offset < ends[Position(r.topic, r.partition)]]
            yield from sorted(self._letters(inside), key=_when)

    def _letters(self, records: Iterable[Record]) -> Iterator[Letter]:
        for record in records:
            letter = record.value
            if isinstance(letter, DeadLetter) and self._stream in (None, letter.stream):
                at = Position(record.topic, record.partition)
                yield Letter(record.timestamp_us, at, record.offset, letter)


def _when(letter: Letter) -> tuple[int, Position, int]:
    return letter.time_us, letter.at, letter.offset
