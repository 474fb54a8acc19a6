"""Writers to the memory log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skyband.errors import LogError
from skyband.log.record_log import Position

if TYPE_CHECKING:
    from skyband.log.memory import MemoryLog

__all__ = ["MemoryProducer", "Sent"]


@dataclass(frozen=True, slots=True)
class Sent:
    """What is to be appended to a partition; `timestamp_us` 0: now."""

    position: Position
    key: bytes | None
    value: object
    timestamp_us: int
    span: int


class MemoryProducer:
    """Appends records of one owner; what is sent outside transactions is stored at once.

    With a transactional id it holds an epoch of that id; it is shut out as soon as there is a later one.
    """

    def __init__(self, log: "MemoryLog", transactional_id: str | None = None) -> None:
        self._log = log
        self._transactional_id = transactional_id
        self._epoch = 0 if transactional_id is None else log._begin_epoch(transactional_id)
        self._transaction: list[Sent] | None = None
        self._closed = False

    def send(
        self,
        topic: str,
        partition: int,
        value: object,
        *,
        key: bytes | None = None,
        timestamp_us: int = 0,
        span: int = 1,
    ) -> None:
        """Append a record (`timestamp_us` 0: now). Raises CapacityError if the partition stays full, else LogError.

        In a transaction the record waits for its end.
        """
        self._check_open()
        sent = Sent(Position(topic, partition), key, value, timestamp_us, span)
        if self._transactional_id is None:
            self._log._append([sent])
        elif self._transaction is None:
            raise LogError(
                f"the producer of transactional id {self._transactional_id!r} sends inside transactions only; begin one"
            )
        else:
            self._log._check_sent(sent)
            self._transaction.append(sent)

    def flush(self) -> None:
        """Return: everything sent outside transactions is stored already."""
        self._check_open()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Append what is sent in the block at its end, all of it or, if the block raises, nothing.

        Raises CapacityError if it does not fit (then nothing is appended), LogError if a later producer of the same
        transactional id has shut this one out.
        """
        self._check_open()
        if self._transactional_id is None:
            raise LogError("the producer has no transactional id; ask the log for one with an id")
        if self._transaction is not None:
            raise LogError("a transaction is open already; end it before the next")
        self._transaction = []
        try:
            yield
            sent = self._transaction
        finally:
            self._transaction = None
        self._check_open()
        self._log._append(sent, self._transactional_id, self._epoch)

    def close(self) -> None:
        """Give up the producer; more sends raise LogError."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise LogError("the producer is closed; ask the log for a new one")
        if self._transactional_id is not None:
            self._log._check_epoch(self._transactional_id, self._epoch)
