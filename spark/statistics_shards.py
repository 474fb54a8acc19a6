"""What a task does: aligned batches of a shard in, in aligned order, and what its sketch publishes out.

The sketch is the service's own, so that both publish the same bytes for the same rows. Who made a publication and when
is put in here and on the driver; a sketch depends on neither.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from services.runtime.codecs import Codecs
from skyband.align.topics import aligned_topic
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import SkybandError
from skyband.model.duration import MIN_TIME_US
from skyband.sketch.publication import Publication
from spark.archive_store import ArchiveStore
from spark.statistics_plan import StatisticsPlan

__all__ = [
    "REPORT_SCHEMA",
    "STATISTICS_TOPIC",
    "Sketching",
    "Step",
    "codecs",
    "go_on",
    "sketch_archived",
    "sketch_records",
]

STATISTICS_TOPIC = "statistics"
# What is told of a shard: `publication` null before the group's first row, `error` null if all went well.
REPORT_SCHEMA = "shard int, publication binary, rows long, repeats long, seconds double, error string"
_REPORT = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("publication", pa.binary()),
        pa.field("rows", pa.int64()),
        pa.field("repeats", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("error", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Step:
    """A shard after some more batches: as what it is kept, what it publishes (None: nothing yet), and what was new."""

    standing: bytes
    publication: bytes | None
    rows: int
    repeats: int


@lru_cache(maxsize=1)
def codecs() -> Codecs:
    """Return the codecs of all topics; a worker makes them once."""
    return Codecs()


def sketch_archived(plan: StatisticsPlan, uri: str, frames: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sketch archived shards, whose numbers are the column `id`, and yield reports.

    What is wrong is reported, not raised: Spark would try again, and tell it as a trace.
    """
    for frame in frames:
        for number in frame.column("id").to_pylist():
            began_s = time.monotonic()
            its = Sketching(plan, number)
            try:
                _read_archive(its, ArchiveStore(uri))
            except SkybandError as error:
                its.error = str(error)
            yield _report(its, time.monotonic() - began_s)


def sketch_records(
    plan: StatisticsPlan, begins: Mapping[int, int], frames: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Sketch records of an aligned topic, columns partition, offset and value, those of each partition in order.

    `begins`: the first offset of each partition that is there. Reports as `sketch_archived` does.
    """
    began_s = time.monotonic()
    shards: dict[int, Sketching] = {}
    for frame in frames:
        columns = (frame.column(name) for name in ("partition", "offset", "value"))
        for number, offset, value in zip(*columns, strict=True):
            its = shards.get(number.as_py())
            if its is None:
                its = shards[number.as_py()] = Sketching(plan, number.as_py(), begins[number.as_py()])
            if its.error is None:
                try:
                    its.offer(offset.as_py(), codecs().decode(its.topic, value.as_py()))
                except SkybandError as error:
                    its.error = str(error)
    for its in shards.values():
        yield _report(its, time.monotonic() - began_s)


def go_on(
    plan: StatisticsPlan, number: int, standing: bytes | None, begin: int, records: Iterable[tuple[int, bytes | None]]
) -> Step:
    """Let a shard that is kept as `standing` (None: it is new, and its log begins at `begin`) take records in order.

    Raises CoverageGapError at a gap, LogError for what does not belong there.
    """
    its = Sketching(plan, number, begin)
    if standing is not None:
        kept = codecs().decode(STATISTICS_TOPIC, standing)
        assert isinstance(kept, Publication)
        its.restore(kept)
    for offset, value in records:
        if offset >= its.next_offset:
            its.offer(offset, codecs().decode(its.topic, value))
    return Step(its.standing(), its.publication(), its.shard.rows, its.shard.repeats)


class Sketching:
    """One shard on its way through its aligned log, which begins at `begin`.

    `next_offset` is the first that it has not taken, `error` what has stopped it.
    """

    def __init__(self, plan: StatisticsPlan, number: int, begin: int = 0) -> None:
        self.plan, self.number = plan, number
        self.topic = aligned_topic(plan.group.name, plan.generation)
        self.shard = plan.shard(number, begin)
        self.next_offset = begin
        self.error: str | None = None

    def restore(self, kept: Publication) -> None:
        """Be as the one that was kept."""
        self.shard.restore(kept)
        self.next_offset = kept.aligned_offset

    def offer(self, offset: int, batch: object) -> None:
        """Take what stands at an offset of the aligned log."""
        if isinstance(batch, AlignedBatch):
            self.shard.offer(self.plan.within(batch))
        self.next_offset = offset + 1

    def standing(self) -> bytes:
        """Return what it is kept as: a publication without a time, before the group's first row too."""
        made = replace(self.shard.standing(self.next_offset, 0), source=self.plan.source)
        data = codecs().encode(STATISTICS_TOPIC, made)
        assert data is not None
        return data

    def publication(self) -> bytes | None:
        """Return what it publishes; None before the group's first row."""
        return None if self.shard.newest_us == MIN_TIME_US else self.standing()


def _read_archive(its: Sketching, store: ArchiveStore) -> None:
    """Let a shard take all that is archived of it and lies in the range."""
    name, generation, span = its.plan.group.name, its.plan.generation, its.plan.range
    low, high = (None, None) if span is None else (span.from_us, span.to_us)
    is_first = True
    for offset, batch in store.batches(name, generation, its.number, from_us=low, to_us=high):
        if is_first:
            its.shard = its.plan.shard(its.number, offset)
            is_first = False
        its.offer(offset, batch)
    # Behind the last batch there may be some that brought nothing.
    its.next_offset = store.next_offset(name, generation, its.number)


def _report(its: Sketching, seconds: float) -> pa.RecordBatch:
    row = {
        "shard": its.number,
        "publication": None if its.error else its.publication(),
        "rows": its.shard.rows,
        "repeats": its.shard.repeats,
        "seconds": seconds,
        "error": its.error,
    }
    return pa.RecordBatch.from_pylist([row], _REPORT)
