"""What a shard tells of itself, for `describe`."""

from skyband.engine.shard import Shard
from skyband.model.status import Holder, QueryReport, ShardReport

__all__ = ["Reporter"]


class Reporter:
    """Makes reports of one shard. When a query's last result came is known to the interval between reports."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._seen: dict[str, tuple[int, int]] = {}

    def report(self, now_us: int, stopped: str = "") -> ShardReport:
        """Return the shard's state as of now. Cost: its queries and source partitions."""
        shard = self._shard
        statistics = shard.statistics()
        held = shard.sequencer.holder()
        holder = None
        if held is not None:
            holder = Holder(stream=held.stream, partition=held.partition, watermark_us=held.watermark_us)
        return ShardReport(
            group=shard.group.name,
            generation=shard.generation,
            shard=shard.shard,
            frontier_us=shard.sequencer.frontier_us,
            newest_us=shard.sequencer.newest_us,
            holder=holder,
            stopped=stopped,
            rows_in=shard.sequencer.statistics().rows,
            rows_late=statistics.late_rows,
            objects=statistics.objects,
            state_bytes=statistics.store_bytes,
            queries=tuple(self._query(uid, now_us, statistics.broken_promises) for uid in shard.uids()),
        )

    def _query(self, uid: str, now_us: int, broken_promises: int) -> QueryReport:
        state = self._shard.query_statistics(uid)
        last_end, last_us = state.last_end_with_rows, None
        if last_end is not None:
            end, last_us = self._seen.get(uid, (None, now_us))
            if end != last_end:
                last_us = now_us
            self._seen[uid] = (last_end, last_us)
        return QueryReport(
            uid=uid,
            evaluations=state.evaluations,
            last_result_us=last_us,
            last_window_end=last_end,
            hot=state.held,
            state_bytes=state.state_bytes,
            broken_promises=broken_promises,
            approximation=state.approximation,
        )
