"""Reads results that lie behind the tail, for whoever asks."""

from collections.abc import Iterator, Sequence
from threading import Lock

from skyband.errors import LogError
from skyband.fanout.resume_token import ResultPosition
from skyband.log.record_log import Consumer, Position, Record, RecordLog
from skyband.model.result import Result

__all__ = ["ResultSearch"]

_FIRST_BLOCK = 2_000
_LARGEST_BLOCK = 16_000


class ResultSearch:
    """One reader of the results, shared by all threads: who holds `lock` reads.

    Initially nothing is assigned. After a failure the reader is made anew.
    """

    def __init__(self, log: RecordLog, results: str, *, poll_timeout_s: float = 1.0) -> None:
        self._log = log
        self._topic = results
        self._poll_timeout_s = poll_timeout_s
        self._consumer: Consumer | None = None
        self.lock = Lock()

    def at(self, position: ResultPosition) -> Result | None:
        """Return the result that lies exactly there, None if it is not kept or there is none."""
        place = Position(self._topic, position.partition)
        try:
            consumer = self._reader()
            if not consumer.begin_offsets([place])[place] <= position.offset < consumer.end_offsets([place])[place]:
                return None
            consumer.assign({place: position.offset})
            records = consumer.poll(1, 5 * self._poll_timeout_s)
        except LogError:
            self.close()
            return None
        if not records or records[0].offset != position.offset or not isinstance(records[0].value, Result):
            return None
        return records[0].value

    def backwards(self, partition: int, below: int) -> Iterator[tuple[int, Sequence[Record]]]:
        """Yield what is kept below an offset, block by block: (offset of the block, its records).

        Ends where the log begins; a block that does not come whole within a poll is yielded as (its end, nothing), and
        asked for again. Raises LogError if the log cannot be read.
        """
        place = Position(self._topic, partition)
        size = _FIRST_BLOCK
        try:
            while below > (begin := self._reader().begin_offsets([place])[place]):
                start = max(begin, below - size)
                records = self._block(place, start, below)
                if records is None:
                    yield below, ()
                    continue
                yield start, records
                below, size = start, min(2 * size, _LARGEST_BLOCK)
        except LogError:
            self.close()
            raise

    def close(self) -> None:
        """Give up the reader; one more read makes a new one."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _reader(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._log.consumer()
        return self._consumer

    def _block(self, place: Position, start: int, end: int) -> list[Record] | None:
        consumer = self._reader()
        consumer.assign({place: start})
        found: list[Record] = []
        while start < end:
            records = consumer.poll(end - start, self._poll_timeout_s)
            if not records:
                return None
            found += [record for record in records if record.offset < end]
            start = records[-1].next_offset
        return found
