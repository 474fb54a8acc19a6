"""What the tests of the audit share: a pipeline over the memory log, whose aligned log and results become frames."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from services.runtime.codecs import Codecs
from skyband.align.stage import AlignSettings, aligned_topic
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.local.pipeline import LocalPipeline
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.read_range import read_all, read_range
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.definitions import Definitions
from skyband.model.resources import GroupResource, Stamp
from skyband.model.result import Result
from spark.archive_aligned import row_table, section_table
from spark.archive_layout import ROW_SCHEMA, SECTION_SCHEMA
from spark.audit_catalog import Catalog
from spark.audit_input import AlignedFrames
from spark.audit_job import Audit, Audited
from spark.audit_results import FOUND_SCHEMA, found_row
from tests.oracle import Row
from tests.workloads import source_rows

S = 1_000_000
START = 1_700_000_000 * S
CODECS = Codecs()
# Tests have few rows and many queries: compiling these would take most of the time.
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Let a session compile nothing for a while."""
    before = {key: spark.conf.get(key) for key in _INTERPRETED}
    for key, value in _INTERPRETED.items():
        spark.conf.set(key, value)
    try:
        yield spark
    finally:
        for key, found in before.items():
            spark.conf.set(key, str(found))


class Ran:
    """A pipeline that is fed bit by bit, by a clock in the test's hand."""

    def __init__(self, definitions: Definitions, places: Sequence[tuple[int, int]]) -> None:
        self.group = definitions.group
        self.clock = ManualClock(START)
        self.log = MemoryLog(self.clock)
        align = AlignSettings(flush_interval_us=0)
        self.pipeline = LocalPipeline(definitions, self.log, self.clock, places, align=align)
        self.results: list[Result] = []
        self._fed = Counter[tuple[int, int]]()

    def feed(self, place: tuple[int, int], *rows: Row) -> None:
        """Append rows to a source partition, and work."""
        first = self._fed[place]
        self._fed[place] += len(rows)
        width = len(self.group.streams[place[0]].attributes)
        self.pipeline.feed(place, first, first + len(rows), source_rows(rows, width, first))
        self.work()

    def tick(self, seconds: float) -> None:
        """Let time pass, and work."""
        self.clock.advance(int(seconds * S))
        self.work()

    def finish(self) -> None:
        """End all input, and work."""
        self.pipeline.finish()
        self.work()

    def work(self) -> None:
        """Step until nothing is left to do."""
        while self.pipeline.step():
            pass
        self.results += self.pipeline.results()

    def aligned(self) -> list[tuple[int, int, AlignedBatch]]:
        """Return shard, offset and batch of the aligned log."""
        topic = aligned_topic(self.group.name, 1)
        found = []
        for shard in range(self.group.shards):
            at = Position(topic, shard)
            consumer = self.log.consumer()
            for record in read_range(consumer, at, 0, consumer.end_offsets([at])[at]):
                assert isinstance(record.value, AlignedBatch)
                found.append((shard, record.offset, record.value))
            consumer.close()
        return found

    def catalog(self) -> Catalog:
        """Return what the catalog says at the end."""
        changes = {
            record.value.uid: record.value
            for record in read_all(self.log, "catalog")
            if isinstance(record.value, QueryChange)
        }
        return Catalog(GroupResource(group=self.group, generation=1, sources=(), stamp=Stamp("u", 1, 0, 0)), changes)


def ran(definitions: Definitions, rows: Mapping[tuple[int, int], Sequence[Row]], chunk: int = 40) -> Ran:
    """Return a pipeline through which all rows went, in pieces of every source partition in turn."""
    pipeline = Ran(definitions, sorted(rows))
    longest = max(map(len, rows.values()))
    for low in range(0, longest, chunk):
        for place in sorted(rows):
            if part := rows[place][low : low + chunk]:
                pipeline.feed(place, *part)
    pipeline.finish()
    return pipeline


def frames_of(spark: SparkSession, batches: Iterable[tuple[int, int, AlignedBatch]], *, repeats: bool) -> AlignedFrames:
    """Return an aligned log as the frames that the audit reads."""
    rows, sections = [], []
    for shard, offset, batch in batches:
        data = CODECS.encode(aligned_topic(batch.group, batch.generation), batch)
        kept = partial(_with_catalog, data)
        rows += [_of_shard(row_table([(offset, batch)]), shard)] if batch.rows else []
        sections += [_of_shard(section_table([(offset, batch)], kept), shard)] if batch.sections else []
    row_frame = _frame(spark, rows, ROW_SCHEMA)
    return AlignedFrames(lambda low_us, high_us: row_frame, _frame(spark, sections, SECTION_SCHEMA), repeats=repeats)


def _with_catalog(data: bytes | None, batch: AlignedBatch) -> bytes | None:
    return data if batch.catalog else None


def _frame(spark: SparkSession, tables: Sequence[pa.Table], schema: pa.Schema) -> DataFrame:
    empty = schema.append(pa.field("shard", pa.int32())).empty_table()
    return spark.createDataFrame(pa.concat_tables([empty, *tables])).coalesce(1)


def _of_shard(table: pa.Table, shard: int) -> pa.Table:
    return table.append_column(pa.field("shard", pa.int32()), pa.array([shard] * table.num_rows, pa.int32()))


def results_of(spark: SparkSession, results: Sequence[Result]) -> Callable[[Iterable[str]], DataFrame]:
    """Return results as the frame that the audit reads."""
    rows = [found_row(result, 0, offset, START) for offset, result in enumerate(results)]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, FOUND_SCHEMA))
    return lambda uids: frame.where(frame.uid.isin(list(uids)))


def audited(
    spark: SparkSession,
    pipeline: Ran,
    results: Sequence[Result] | None = None,
    *,
    from_us: int = -(2**60),
    to_us: int = 2**60,
    names: Iterable[str] = (),
    batches: Sequence[tuple[int, int, AlignedBatch]] | None = None,
) -> Audited:
    """Audit what a pipeline wrote, or `results` instead."""
    frames = frames_of(spark, pipeline.aligned() if batches is None else batches, repeats=batches is not None)
    written = results_of(spark, pipeline.results if results is None else results)
    return Audit(pipeline.catalog(), frames, written).run(from_us, to_us, names)


def told(found: Audited) -> list[tuple[str, int, str, str | None]]:
    """Return the differences as (query, window end, kind, object)."""
    names = {asked.uid: asked.name for asked in found.queries}
    its = found.tally.told
    return [(names[x.uid], x.window_end, x.difference.kind.value, x.difference.object_id) for x in its]
