"""How far the results of each group go, told by whichever replica merges it."""

from collections.abc import Callable, Mapping

from skyband.fanout.committer import GroupKey
from skyband.log.record_log import Position, RecordLog
from skyband.model.partials import MergeProgress

__all__ = ["ProgressBoard"]

_MAX_RECORDS = 1_000


class ProgressBoard:
    """Follows the progress topic from where it ends now.

    Words: a group's progress is *reached* once this replica has read the results that it speaks of. Initially nothing
    is known. Invariant: of each group at most one progress waits to be reached, and the newest one behind it.
    """

    def __init__(self, log: RecordLog, topic: str = "progress") -> None:
        self._consumer = log.consumer()
        places = [Position(topic, partition) for partition in range(log.partitions(topic))]
        self._consumer.assign(dict[Position, int | None](self._consumer.end_offsets(places)))
        self._waiting: dict[GroupKey, list[MergeProgress]] = {}
        self._reached: dict[GroupKey, int] = {}

    def reached(self, key: GroupKey) -> int | None:
        """Return up to which window end this replica has all results of a group, None if it was not told."""
        return self._reached.get(key)

    def poll(self, generations: Mapping[str, int], has_read: Callable[[Mapping[int, int]], bool]) -> dict[str, int]:
        """Take what was told of these generations of groups; return by group what was reached anew.

        `has_read` says whether the results below offsets, by partition, were read.
        """
        for record in self._consumer.poll(_MAX_RECORDS, 0.0):
            value = record.value
            if isinstance(value, MergeProgress) and generations.get(value.group) == value.generation:
                # Were the newest one to replace what waits, a replica that lags a little would never tell any.
                waiting = self._waiting.setdefault((value.group, value.generation), [])
                waiting[1:] = [value]
        found: dict[str, int] = {}
        for key, waiting in list(self._waiting.items()):
            if generations.get(key[0]) != key[1]:
                del self._waiting[key]
                continue
            while waiting and has_read(waiting[0].results_to):
                frontier_us = waiting.pop(0).frontier_us
                if frontier_us > self._reached.get(key, frontier_us - 1):
                    self._reached[key] = found[key[0]] = frontier_us
        for key in [key for key in self._reached if generations.get(key[0]) != key[1]]:
            del self._reached[key]
        return found

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()
