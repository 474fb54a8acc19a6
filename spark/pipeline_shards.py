"""The engine in the pipeline: aligned batches of one shard in, what it tells the merge out.

A shard's state is its log, as everywhere: the batches since its last snapshot, one entry each, and the snapshot's
chunks, renewed when the log has outgrown it::

    facts          with which source partitions it began, how many batches it has taken, where its log begins
    batch/<n>      the batch before which it had taken n
    chunk/<n>      a piece of the snapshot taken before the first batch of the log
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from skyband.align.source import CATALOG_KEY
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.coverage.sequencer import Sequencer
from skyband.engine.shard import Shard
from skyband.engine.snapshot import Snapshot
from skyband.errors import LogError
from spark.pipeline_codecs import codecs
from spark.pipeline_messages import Message, in_order, pack, pack_offset, shard_of, to_merge
from spark.pipeline_plan import PipelinePlan
from spark.pipeline_state import Live, LiveParts, Table, chained, read_facts, write_facts

__all__ = ["CHANGES", "VALUES", "ShardPart"]

# What a message to the merge holds: changes of queries with their offsets in the catalog; partials and progress.
CHANGES, VALUES = 0, 1
_CHUNK_BYTES = 4 << 20
_PARTIALS, _CATALOG = "partials", "catalog"
_LIVE: LiveParts[Shard] = LiveParts()


@dataclass(frozen=True, slots=True)
class _Facts:
    """Where a shard stands: batches taken and their digest, first batch of the log, bytes of log and snapshot.

    `starts`: the source partitions with which it began, and their first offsets.
    """

    starts: Sequence[tuple[int, int, int]]
    taken: int = 0
    digest: str = ""
    log_from: int = 0
    log_bytes: int = 0
    snapshot_bytes: int = 0
    chunks: int = 0


class ShardPart:
    """One shard during one micro-batch; what lasts is in `table`. Initially it has taken nothing."""

    def __init__(self, plan: PipelinePlan, key: str, table: Table, live: LiveParts[Shard] = _LIVE) -> None:
        self._plan, self._key, self._table, self._live = plan, key, table, live
        self._number = shard_of(key)
        self._topic = f"aligned.{plan.name}"
        facts = read_facts(table)
        starts = [(*key, offset) for key, offset in sorted({**plan.starts, CATALOG_KEY: 0}.items())]
        self._facts = _Facts(starts) if facts is None else _Facts(**facts)
        self._changes: list[bytes] = []
        self._told: list[bytes] = []

    def take(self, messages: Iterable[Message]) -> list[Message]:
        """Take its batches of the micro-batch, evaluate what is due, and return what is to be told.

        Raises CoverageGapError at a gap, CapacityError if too many rows wait.
        """
        batches = [message.data for message in in_order(messages)]
        if not self._facts.taken and self._plan.queries:
            batches.insert(0, codecs().encode(self._topic, self._first()) or b"")
        shard = self._shard()
        for data in batches:
            self._write(data)
            self._read(shard, data, is_told=True)
        if self._facts.log_bytes > max(self._plan.snapshot_bytes, 2 * self._facts.snapshot_bytes):
            self._snapshot(shard)
        write_facts(self._table, asdict(self._facts))
        self._live.keep(self._key, Live(shard, self._facts.taken, self._facts.digest))
        to = to_merge(self._plan.group.name)
        told = ((CHANGES, self._changes), (VALUES, self._told))
        return [Message(to, pack(parts), stream=self._number, part=part) for part, parts in told if parts]

    def _first(self) -> AlignedBatch:
        """Return the queries that are there before all others, as the catalog's first changes."""
        changes, empty = self._plan.queries, np.zeros(0, np.int64)
        stream, partition = CATALOG_KEY
        return AlignedBatch(
            group=self._plan.group.name,
            generation=self._plan.generation,
            shard=self._number,
            writer="spark",
            written_us=0,
            sections=(Section(stream=stream, partition=partition, from_offset=0, to_offset=len(changes), rows=0),),
            offset=empty,
            event_time_us=empty,
            release_time_us=empty,
            id_bytes=np.zeros(0, np.uint8),
            id_ends=empty,
            id_hash=np.zeros(0, np.uint64),
            values=np.zeros((0, self._plan.group.width), np.float64),
            catalog=tuple(CatalogRecord(offset, change) for offset, change in enumerate(changes)),
        )

    def _shard(self) -> Shard:
        """Return the shard as of the batches taken: from memory if it is there and can catch up, else made anew."""
        facts = self._facts
        live = self._live.take(self._plan.run, self._key)
        if live is not None and facts.log_from <= live.version <= facts.taken:
            digest = live.digest
            for data in self._log(live.version):
                digest = chained(digest, data)
                self._read(live.it, data)
            if digest == facts.digest:
                return live.it
        starts = {(stream, partition): offset for stream, partition, offset in facts.starts}
        sequencer = Sequencer(
            self._plan.group, self._plan.generation, self._number, starts, self._plan.max_pending_bytes
        )
        shard = Shard(self._plan.group, self._plan.generation, self._number, sequencer)
        if facts.chunks:
            shard.restore_snapshot(Snapshot.from_bytes(b"".join(map(self._entry, map(_chunk, range(facts.chunks))))))
        for data in self._log(facts.log_from):
            self._read(shard, data)
        return shard

    def _log(self, begin: int) -> Iterator[bytes]:
        return (self._entry(_batch(number)) for number in range(begin, self._facts.taken))

    def _entry(self, name: str) -> bytes:
        data = self._table.get(name)
        if data is None:
            raise LogError(
                f"shard {self._number} of {self._plan.name}: {name} is missing in the state store; begin with a new "
                "checkpoint folder"
            )
        return data

    def _write(self, data: bytes) -> None:
        facts = self._facts
        self._table.put(_batch(facts.taken), data)
        self._facts = replace(
            facts, taken=facts.taken + 1, digest=chained(facts.digest, data), log_bytes=facts.log_bytes + len(data)
        )

    def _read(self, shard: Shard, data: bytes, *, is_told: bool = False) -> None:
        """Let a shard take one batch; what it tells was told before, unless `is_told`."""
        batch = codecs().decode(self._topic, data)
        assert isinstance(batch, AlignedBatch)
        for section in batch.sections:
            # Partitions that came later join where the log first speaks of them.
            if not shard.sequencer.knows((section.stream, section.partition)):
                shard.sequencer.add_partition((section.stream, section.partition), section.from_offset)
        shard.offer(batch)
        values = shard.advance()
        if is_told:
            self._told += [codecs().encode(_PARTIALS, value) or b"" for value in values]
            self._changes += [
                pack_offset(record.offset, codecs().encode(_CATALOG, record.change) or b"")
                for record in batch.catalog
                if record.change is not None
            ]

    def _snapshot(self, shard: Shard) -> None:
        """Put a snapshot in the place of the log."""
        facts = self._facts
        data = shard.snapshot(facts.taken).to_bytes()
        chunks = range(0, len(data), _CHUNK_BYTES)
        for number, begin in enumerate(chunks):
            self._table.put(_chunk(number), data[begin : begin + _CHUNK_BYTES])
        for number in range(len(chunks), facts.chunks):
            self._table.remove(_chunk(number))
        for number in range(facts.log_from, facts.taken):
            self._table.remove(_batch(number))
        self._facts = replace(facts, log_from=facts.taken, log_bytes=0, snapshot_bytes=len(data), chunks=len(chunks))


def _batch(number: int) -> str:
    return f"batch/{number}"


def _chunk(number: int) -> str:
    return f"chunk/{number}"
