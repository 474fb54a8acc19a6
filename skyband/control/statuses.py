"""Reports of the stages, folded into the status of each query."""

from collections import Counter
from collections.abc import Iterable

from skyband.model.approximation import Approximation
from skyband.model.partials import Progress
from skyband.model.resources import GroupResource, QueryResource
from skyband.model.status import Holder, QueryStatus, ShardReport, ShardStatus, SourceReport

__all__ = ["StatusBoard"]

_Sender = tuple[str, int, int]
_Source = tuple[str, int, str, int]


class StatusBoard:
    """The newest report of each shard and source of each group.

    A report replaces the one before from the same sender; `Progress` moves only the frontier. When a report of a newer
    generation comes, those of older ones of its group are dropped.
    """

    def __init__(self) -> None:
        self._shards: dict[_Sender, ShardReport] = {}
        self._frontiers: dict[_Sender, int] = {}
        self._sources: dict[_Source, SourceReport] = {}
        self._generations: dict[str, int] = {}

    def fold(self, value: object) -> None:
        """Take in a value of the progress topic; values of other kinds say nothing here."""
        if not isinstance(value, (Progress, ShardReport, SourceReport)) or not self._is_current(value):
            return
        match value:
            case Progress():
                self._frontiers[value.group, value.generation, value.shard] = value.frontier_us
            case ShardReport():
                self._shards[value.group, value.generation, value.shard] = value
            case SourceReport():
                self._sources[value.group, value.generation, value.stream, value.partition] = value

    def forget(self, group: str) -> None:
        """Drop what is known about a group that was deleted."""
        self._keep(group, -1)
        self._generations.pop(group, None)

    def status(self, query: QueryResource, group: GroupResource) -> QueryStatus:
        """Return all that is known about a query in its group's generation."""
        name, generation = group.group.name, group.generation
        numbers = range(group.group.shards)
        reports = {n: r for n in numbers if (r := self._shards.get((name, generation, n)))}
        frontiers = {n: f for n in numbers if (f := self._frontiers.get((name, generation, n))) is not None}
        sources = [r for r in self._sources.values() if (r.group, r.generation) == (name, generation)]
        mine = [q for r in reports.values() for q in r.queries if q.uid == query.stamp.uid]
        return QueryStatus(
            shards=tuple(
                self._shard(n, reports.get(n), frontiers.get(n), sources)
                for n in numbers
                if n in reports or n in frontiers
            ),
            silent_shards=tuple(n for n in numbers if n not in reports and n not in frontiers),
            rows_in=sum(r.rows_in for r in reports.values()) if reports else None,
            rows_late=sum(r.rows_late for r in reports.values()),
            rejected=_rejected(sources),
            paused=tuple(sorted(Counter(r.stream for r in sources if r.paused).items())),
            evaluations=max((q.evaluations for q in mine), default=0),
            last_result_us=_newest(q.last_result_us for q in mine),
            last_window_end=_newest(q.last_window_end for q in mine),
            hot=sum(q.hot for q in mine),
            objects=sum(r.objects for r in reports.values()),
            state_bytes=sum(r.state_bytes for r in reports.values()) + sum(q.state_bytes for q in mine),
            broken_promises=sum(q.broken_promises for q in mine),
            approximation=Approximation.of(q.approximation for q in mine if q.approximation is not None),
        )

    def _shard(
        self, number: int, report: ShardReport | None, frontier_us: int | None, sources: Iterable[SourceReport]
    ) -> ShardStatus:
        if report is None:
            assert frontier_us is not None
            return ShardStatus(shard=number, frontier_us=frontier_us)
        return ShardStatus(
            shard=number,
            frontier_us=max(report.frontier_us, report.frontier_us if frontier_us is None else frontier_us),
            newest_us=report.newest_us,
            holder=_with_reader(report.holder, sources),
            stopped=report.stopped,
        )

    def _is_current(self, value: Progress | ShardReport | SourceReport) -> bool:
        newest = self._generations.get(value.group, 0)
        if value.generation > newest:
            self._generations[value.group] = value.generation
            self._keep(value.group, value.generation)
        return value.generation >= newest

    def _keep(self, group: str, generation: int) -> None:
        self._shards = {k: v for k, v in self._shards.items() if k[0] != group or k[1] == generation}
        self._frontiers = {k: v for k, v in self._frontiers.items() if k[0] != group or k[1] == generation}
        self._sources = {k: v for k, v in self._sources.items() if k[0] != group or k[1] == generation}


def _with_reader(holder: Holder | None, sources: Iterable[SourceReport]) -> Holder | None:
    """Return the holder with what its reader says of it: a shard does not see what has not been read."""
    if holder is None:
        return None
    for source in sources:
        if (source.stream, source.partition) == (holder.stream, holder.partition):
            return Holder(
                stream=holder.stream,
                partition=holder.partition,
                watermark_us=holder.watermark_us,
                unread_rows=source.unread_rows,
                reader=source.reader,
                rows_per_second=source.rows_per_second,
                stopped=source.stopped,
            )
    return holder


def _rejected(sources: Iterable[SourceReport]) -> tuple[tuple[str, int], ...]:
    total: Counter[str] = Counter()
    for source in sources:
        total.update(dict(source.rejected))
    return tuple(sorted(((r, n) for r, n in total.items() if n), key=lambda item: (-item[1], item[0])))


def _newest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
