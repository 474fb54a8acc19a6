"""Which partitions of a consumer are paused."""

from collections.abc import Iterable, Set

from skyband.log.record_log import Consumer, Position

__all__ = ["Pauses"]


class Pauses:
    """Makes a consumer's paused partitions those that are wanted, with one call for each change.

    Logs differ in whether a partition that leaves and comes back is still paused; so one that has just come is paused
    or resumed by name.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._paused: set[Position] = set()
        self._new: set[Position] = set()

    def add(self, positions: Iterable[Position]) -> None:
        """Take partitions that come with the poll that is under way, or have just come."""
        self._new.update(positions)

    def remove(self, positions: Iterable[Position], *, lost: bool) -> None:
        """Forget partitions that go; unless they are lost already, leave them resumed."""
        gone = set(positions)
        if not lost and (paused := self._paused & gone):
            self._consumer.resume(sorted(paused))
        self._paused -= gone
        self._new -= gone

    def become(self, wanted: Set[Position]) -> None:
        """Pause exactly these."""
        if begun := wanted - self._paused:
            self._consumer.pause(sorted(begun))
        if ended := (self._paused | self._new) - wanted:
            self._consumer.resume(sorted(ended))
        self._paused = set(wanted)
        self._new.clear()
