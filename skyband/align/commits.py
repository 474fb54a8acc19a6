"""How far the source partitions of one aligner are committed, and how far they may be."""

from collections.abc import Mapping

from skyband.align.notes import note_of
from skyband.align.source import SourceStart
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.record_log import Consumer, Position

__all__ = ["Commits"]


class Commits:
    """Offsets and notes of source partitions on their way to the log.

    *Stated* is how far batches that have been made cover a source partition; it may be committed once these, and all
    before them, are stored, which is for the caller to know. *Committed* is what the log has, as far as is known here.

    A refused commit changes nothing: what it would have stored goes with the next one, or with one after `retry`, or is
    read again by the next owner. `refused` counts them, `refusal` says why the last one was.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._committed: dict[Position, SourceStart | None] = {}
        self._stated: dict[Position, SourceStart] = {}
        self._unsaved: dict[Position, SourceStart] = {}
        self.refused = 0
        self.refusal = ""

    @property
    def is_due(self) -> bool:
        """Whether anything was stated since the last commit."""
        return bool(self._stated)

    @property
    def is_urgent(self) -> bool:
        """Whether a start was stated that must be committed before its partition brings anything."""
        return any(self._committed.get(position) is None for position in self._stated)

    def begin(self, position: Position, start: SourceStart, *, is_committed: bool) -> None:
        """Take a source partition; a start that is not committed yet is stated: from now on it is fixed."""
        self._committed[position] = start if is_committed else None
        if not is_committed:
            self._stated[position] = start

    def forget(self, position: Position) -> None:
        """Commit no more of a source partition."""
        self._committed.pop(position, None)
        self._stated.pop(position, None)
        self._unsaved.pop(position, None)

    def state(self, reached: Mapping[Position, SourceStart]) -> None:
        """Take note of how far the batches made so far go."""
        self._stated.update(reached)

    def retry(self) -> None:
        """State again what was refused."""
        self._stated = self._unsaved | self._stated
        self._unsaved = {}

    def commit(self) -> None:
        """Commit what is stated and moved; everything up to there must be stored. Raises CommitRefusedError."""
        self.retry()
        moved = {p: start for p, start in self._stated.items() if start != self._committed.get(p)}
        self._stated = {}
        if not moved:
            return
        offsets = {position: start.offset for position, start in moved.items()}
        try:
            self._consumer.commit(offsets, {position: note_of(start) for position, start in moved.items()})
        except CommitRefusedError as error:
            self.refused += 1
            self.refusal = str(error)
            self._unsaved = moved
            raise
        self._committed.update(moved)
