"""What align tells the others of its source partitions."""

from collections.abc import Iterator, Mapping, Sequence, Set

from skyband.align.counts import StreamCounts
from skyband.align.source import SourceKey
from skyband.model.group import Group
from skyband.model.status import SourceReport

__all__ = ["SourceReports"]

_US_PER_S = 1_000_000


class SourceReports:
    """Makes a `SourceReport` of each source partition in turn; rates are those since its report before.

    A stream's rejects go with the first of its partitions here: a sum over partitions, and over all who read some of
    them, counts each once.
    """

    def __init__(self, group: Group, generation: int, reader: str) -> None:
        self._group = group
        self._generation = generation
        self._reader = reader
        self._before: dict[SourceKey, tuple[int, int]] = {}

    def reports(
        self,
        now_us: int,
        cursors: Mapping[SourceKey, int],
        ends: Mapping[SourceKey, int],
        paused: Set[SourceKey],
        counts: Sequence[StreamCounts],
        stopped: Mapping[SourceKey, str],
    ) -> Iterator[SourceReport]:
        """Yield the reports of the source partitions in `cursors`, with where their topics end and why some stopped."""
        rejected = {its.stream: its.rejected for its in counts}
        before, self._before = self._before, {key: (now_us, cursor) for key, cursor in cursors.items()}
        for key, cursor in cursors.items():
            stream = self._group.streams[key[0]].name
            yield SourceReport(
                group=self._group.name,
                generation=self._generation,
                stream=stream,
                partition=key[1],
                rejected=tuple((reason.label, count) for reason, count in rejected.pop(stream, {}).items()),
                paused=key in paused,
                unread_rows=ends[key] - cursor,
                rows_per_second=_rate(before.get(key), now_us, cursor),
                reader=self._reader,
                stopped=stopped.get(key, ""),
            )


def _rate(before: tuple[int, int] | None, now_us: int, cursor: int) -> float | None:
    """Return offsets read per second since `before`, a time and a cursor; None if unknown."""
    if before is None or now_us <= before[0]:
        return None
    # A partition that went and came back begins where it was committed, which may be below.
    return max(0, cursor - before[1]) * _US_PER_S / (now_us - before[0])
