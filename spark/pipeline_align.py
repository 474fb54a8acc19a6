"""Align in the pipeline: records of one source partition in, aligned batches for every shard out.

A partition is *quiet* while it brings nothing usable. Quiet for `idle.after` it is idle: a micro-batch brings something
of every partition that is not at its end.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from services.runtime.payloads import Payloads
from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, LEAST_LEASE_US, SourceKey, SourceStart
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.stream import IdleThen
from spark.pipeline_codecs import codecs, decoder_of
from spark.pipeline_messages import LETTERS, Message, to_shard
from spark.pipeline_plan import PipelinePlan
from spark.pipeline_state import Table, read_facts, write_facts

__all__ = ["Records", "SourcePart"]

_WRITER = "spark"
_DEAD_LETTERS = "dead-letters"
_CATALOG = "catalog"


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one source partition: int64[n] offsets, ascending, int64[n] timestamps, and n values."""

    offset: npt.NDArray[np.int64]
    time_us: npt.NDArray[np.int64]
    values: Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a source partition stands between micro-batches.

    It brought something usable last at `heard_us`, and is to be looked at again at `due_us`, 0 for never.
    """

    offset: int
    watermark_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US
    heard_us: int = 0
    due_us: int = 0
    is_idle: bool = False


class SourcePart:
    """One source partition during one micro-batch, planned at `now_us`; (-1, 0) is the catalog.

    Its standing is in `table`. Initially, that of the generation's start, heard of at that moment.
    """

    def __init__(self, plan: PipelinePlan, key: SourceKey, table: Table, now_us: int) -> None:
        self._plan, self._key, self._table, self._now_us = plan, key, table, now_us
        facts = read_facts(table)
        self._was = _Standing(plan.start_of(key), heard_us=now_us) if facts is None else _Standing(**facts)
        start = SourceStart(self._was.offset, self._was.watermark_us, self._was.newest_us)
        group = plan.group
        self._aligner = Aligner(
            group, plan.generation, group.shards, {key: start}, writer=_WRITER, max_rows=plan.max_rows
        )
        self._aligner.tick(self._was.heard_us, set())

    @property
    def due_us(self) -> int:
        """When it is to be looked at next if it brings nothing until then; 0: never."""
        return self._was.due_us

    def begin(self) -> None:
        """Know it from now on, though it has brought nothing."""
        self._keep(self._was.heard_us, self._first_due(self._was.heard_us))

    def take(self, records: Records) -> list[Message]:
        """Take its records of the micro-batch. Raises LogError if a schema cannot be asked for."""
        next_offset = int(records.offset[-1]) + 1
        if self._key == CATALOG_KEY:
            self._take_catalog(records, next_offset)
        else:
            stream = self._plan.group.streams[self._key[0]]
            decoder = decoder_of(stream, self._plan.registry)
            its = records.values
            payloads = its if isinstance(its, Payloads) else Payloads.of(its)
            rows = decoder.decode(records.offset, records.time_us, payloads)
            self._aligner.add(*self._key, self._aligner.cursor(self._key), next_offset, rows)
        if self._was.is_idle and not self._aligner.has_heard(self._key):
            # Poison wakes nobody; a section that says nothing of the lease would end it.
            return self._lease()
        heard_us = self._now_us if self._aligner.has_heard(self._key) else self._was.heard_us
        messages = self._messages()
        self._keep(heard_us, self._first_due(heard_us))
        return messages

    def look(self) -> list[Message]:
        """Grant or renew the idle lease, if it is due."""
        return self._lease() if 0 < self._was.due_us <= self._now_us else []

    def _lease(self) -> list[Message]:
        self._aligner.tick(self._now_us, {self._key})
        messages = self._messages()
        lease_us = max(LEAST_LEASE_US, self._plan.group.streams[self._key[0]].idle_after_us)
        # Renewed early enough to be written before it ends, unless micro-batches take longer than that.
        self._keep(self._was.heard_us, self._now_us + lease_us // 2, is_idle=True)
        return messages

    def _take_catalog(self, records: Records, next_offset: int) -> None:
        shift, name = self._plan.catalog_shift, self._plan.group.name
        changes = []
        for offset, data in zip(records.offset.tolist(), records.values, strict=True):
            value = codecs().decode(_CATALOG, data)
            is_ours = isinstance(value, QueryChange) and value.group == name
            changes.append(CatalogRecord(offset + shift, value if isinstance(value, QueryChange) and is_ours else None))
        self._aligner.add_catalog(self._aligner.cursor(CATALOG_KEY), next_offset + shift, changes)

    def _messages(self) -> list[Message]:
        letters = [
            Message(LETTERS, codecs().encode(_DEAD_LETTERS, letter) or b"")
            for letter in self._aligner.drain_dead_letters()
        ]
        topic = f"aligned.{self._plan.name}"
        batches = [
            Message(
                to_shard(batch.shard),
                codecs().encode(topic, batch) or b"",
                batch.sections[0].watermark_us,
                *self._key,
                number,
            )
            for number, batch in enumerate(self._aligner.flush(self._now_us))
        ]
        return [*letters, *batches]

    def _keep(self, heard_us: int, due_us: int, *, is_idle: bool = False) -> None:
        start = self._aligner.reached(self._key)
        self._was = _Standing(start.offset, start.watermark_us, start.newest_us, heard_us, due_us, is_idle)
        write_facts(self._table, asdict(self._was))

    def _first_due(self, heard_us: int) -> int:
        """Return when it becomes idle if it stays quiet; 0: never."""
        if self._key == CATALOG_KEY:
            return 0
        stream = self._plan.group.streams[self._key[0]]
        return heard_us + stream.idle_after_us if stream.idle_then is IdleThen.FLUSH else 0
