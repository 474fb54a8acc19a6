"""The sequencer a row at a time, in lists and dicts, to be checked by eye."""

from dataclasses import dataclass

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.model.catalog import QueryChange
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.stream import IdleThen
from tests.coverage.batches import Row, rows_of

CATALOG = (-1, 0)


@dataclass
class ModelPartition:
    next_offset: int
    watermark: int = MIN_TIME_US
    newest: int = MIN_TIME_US
    lease: tuple[int, int] = (MIN_TIME_US, 0)  # written, until


class ModelSequencer:
    def __init__(self, group: Group, starts: dict[tuple[int, int], int]) -> None:
        self.group = group
        self.partitions = {place: ModelPartition(start) for place, start in ({CATALOG: 0} | starts).items()}
        self.frontier = self.settled = self.clock = MIN_TIME_US
        self.pending: list[Row] = []
        self.changes: list[QueryChange] = []
        self.rows = self.repeats = self.overtaken = 0

    def add_partition(self, place: tuple[int, int], start: int) -> None:
        self.partitions[place] = ModelPartition(start, self.frontier)

    def has_gap(self, batch: AlignedBatch) -> bool:
        position = {place: p.next_offset for place, p in self.partitions.items()}
        for section in batch.sections:
            place = (section.stream, section.partition)
            if section.from_offset > position[place]:
                return True
            position[place] = max(position[place], section.to_offset)
        return False

    def offer(self, batch: AlignedBatch) -> None:
        frontier_before = self.frontier
        for section, rows in rows_of(batch):
            partition = self.partitions[section.stream, section.partition]
            for row in rows:
                if row.offset < partition.next_offset:
                    self.repeats += 1
                    continue
                self.rows += 1
                if row.release_us < frontier_before:
                    self.overtaken += 1
                    row = row._replace(release_us=frontier_before)
                self.pending.append(row)
            for record in batch.catalog if section.stream == -1 else ():
                if partition.next_offset <= record.offset < section.to_offset and record.change is not None:
                    self.changes.append(record.change)
            if section.to_offset < partition.next_offset:
                continue
            lease = (batch.written_us, section.idle_until_us)
            partition.lease = lease if section.to_offset > partition.next_offset else max(partition.lease, lease)
            partition.next_offset = section.to_offset
            partition.watermark = max(partition.watermark, section.watermark_us)
            partition.newest = max(partition.newest, section.newest_us)
        self.clock = max(self.clock, batch.written_us)
        self.frontier = max(self.frontier, self.least_time())
        if self.everyone_is_done() and self.newest() > MIN_TIME_US:
            self.settled = self.newest()
            boundary = self.settled
            while True:
                boundary += 1
                if boundary % self.group.pane_us == 0:
                    break
            self.frontier = max(self.frontier, boundary)

    def newest(self) -> int:
        return max(p.newest for place, p in self.partitions.items() if place != CATALOG)

    def is_idle(self, place: tuple[int, int]) -> bool:
        if self.group.streams[place[0]].idle_then is IdleThen.HOLD:
            return False
        until = self.partitions[place].lease[1]
        return until != 0 and until > self.clock

    def everyone_is_done(self) -> bool:
        return all(self.is_idle(place) for place in self.times())

    def times(self) -> dict[tuple[int, int], int]:
        """How far each unfinished partition lets the frontier go."""
        times = {}
        for place, partition in self.partitions.items():
            if place == CATALOG or partition.watermark == MAX_TIME_US:
                continue
            times[place] = partition.watermark
            if self.is_idle(place):
                times[place] = max(times[place], self.newest() - self.group.streams[place[0]].max_delay_us)
        return times

    def least_time(self) -> int:
        return min(self.times().values(), default=MIN_TIME_US)

    def holder(self) -> tuple[int, int] | None:
        if self.everyone_is_done():
            return None
        return min(self.times(), key=lambda place: (self.times()[place], place))

    def next_release(self) -> int:
        return min((row.release_us for row in self.pending), default=MAX_TIME_US)

    def take(self, until_us: int) -> list[Row]:
        due = sorted(row for row in self.pending if row.release_us < until_us)
        self.pending = [row for row in self.pending if row.release_us >= until_us]
        return due

    def drain(self) -> list[QueryChange]:
        changes, self.changes = self.changes, []
        return changes
