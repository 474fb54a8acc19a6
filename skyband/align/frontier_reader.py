"""How far the slowest shard of a group is, read from what the shards report."""

from skyband.log.record_log import Position, RecordLog
from skyband.model.duration import MIN_TIME_US
from skyband.model.status import ShardReport

__all__ = ["FrontierReader"]

_MAX_RECORDS = 1_000


class FrontierReader:
    """Follows the progress topic, from its end on, for one generation of a group.

    Of each shard the newest report counts. Until every shard has reported, and knows a time, nothing is known of the
    group: a partition must not be held back for a shard that has merely not been heard yet.
    """

    def __init__(self, log: RecordLog, topic: str, group: str, generation: int, shards: int) -> None:
        self._group = group
        self._generation = generation
        self._shards = shards
        self._frontiers: dict[int, int] = {}
        self._consumer = log.consumer()
        positions = [Position(topic, partition) for partition in range(log.partitions(topic))]
        self._consumer.assign({**self._consumer.end_offsets(positions)})

    def poll(self) -> int | None:
        """Take in reports; return the least frontier if any came and all shards are known, else None. Never waits."""
        is_new = False
        for record in self._consumer.poll(_MAX_RECORDS, 0.0):
            report = record.value
            if isinstance(report, ShardReport) and self._is_ours(report):
                self._frontiers[report.shard] = report.frontier_us
                is_new = True
        if not is_new or len(self._frontiers) < self._shards:
            return None
        least_us = min(self._frontiers.values())
        return least_us if least_us > MIN_TIME_US else None

    def close(self) -> None:
        """Give up the consumer."""
        self._consumer.close()

    def _is_ours(self, report: ShardReport) -> bool:
        mine = (report.group, report.generation) == (self._group, self._generation)
        return mine and 0 <= report.shard < self._shards
