"""The parts of a pipeline run without Spark: micro-batches, workers that know little, and a store that can forget."""

import copy
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from services.runtime.codecs import Codecs
from skyband.align.source import CATALOG_KEY, SourceKey
from skyband.engine.shard import Shard
from skyband.fanout.merger import Merger
from skyband.model.catalog import QueryChange
from skyband.model.planner import plan as planned
from skyband.model.query import Query, QueryState
from skyband.model.result import Result
from spark.pipeline_align import Records, SourcePart
from spark.pipeline_merge import RESULTS, MergePart
from spark.pipeline_messages import LETTERS, Message, unpack
from spark.pipeline_plan import PipelinePlan
from spark.pipeline_shards import ShardPart
from spark.pipeline_state import LiveParts, MemoryTable
from tests.kafka.scenarios import Answer, Scenario

CODECS = Codecs()
S = 1_000_000
NOW_US = 1_800_000_000 * S


def change_of(group: str, query: Query, scenario: Scenario, state: QueryState = QueryState.ACTIVE) -> QueryChange:
    algorithm = planned(scenario.group, query).algorithm
    revision = 1 if state is QueryState.ACTIVE else 2
    return QueryChange(
        uid=query.name, revision=revision, group=group, query=replace(query, algorithm=algorithm), state=state
    )


def plan_of(scenario: Scenario, **options: object) -> PipelinePlan:
    asked: dict[str, object] = {"run": "test", "generation": 1, "starts": dict.fromkeys(scenario.partitions, 0)}
    return PipelinePlan(group=scenario.group, **{**asked, **options})  # type: ignore[arg-type]


@dataclass
class Worker:
    """What a worker process remembers."""

    shards: LiveParts[Shard] = field(default_factory=LiveParts)
    merges: LiveParts[Merger] = field(default_factory=LiveParts)


class Runs:
    """Micro-batches of one pipeline, each part of them on one of `workers`."""

    def __init__(self, plan: PipelinePlan, workers: Sequence[Worker], seed: int = 0) -> None:
        self.plan, self.workers = plan, list(workers)
        self.tables: dict[str, MemoryTable] = defaultdict(MemoryTable)
        self.now_us = NOW_US
        self.results: list[Result] = []
        self.told: list[Message] = []  # by the last micro-batch
        self._next: dict[SourceKey, int] = defaultdict(int)
        self._random = random.Random(seed)
        for key in plan.starts:
            SourcePart(plan, key, self.tables[f"{key}"], self.now_us).begin()

    def take(self, brought: Mapping[SourceKey, Sequence[bytes | None]], *, twice: bool = False) -> list[Result]:
        """Run a micro-batch with the next records of some source partitions, the first time in vain if `twice`."""
        before = copy.deepcopy(self.tables)
        out = self._run(brought)
        if twice:
            self.tables = before
            assert sorted(self._run(brought)) == sorted(out)
        for key, values in brought.items():
            self._next[key] += len(values)
        results = [
            result
            for message in out
            if message.key == RESULTS
            for result in (CODECS.decode("results", data) for data in unpack(message.data))
            if isinstance(result, Result)
        ]
        self.told = out
        self.results += results
        return results

    def _run(self, brought: Mapping[SourceKey, Sequence[bytes | None]]) -> list[Message]:
        messages: list[Message] = []
        for key, values in brought.items():
            begin = self._next[key]
            offsets = np.arange(begin, begin + len(values), dtype=np.int64)
            records = Records(offsets, np.full(len(values), self.now_us, np.int64), values)
            messages += self._source(key).take(records)
        for key in self.plan.starts:
            messages += self._source(key).look()
        self._random.shuffle(messages)
        for kind in (ShardPart, MergePart):
            keyed: dict[str, list[Message]] = defaultdict(list)
            for message in messages:
                keyed[message.key].append(message)
            messages = keyed.pop(LETTERS, [])
            for name, its in keyed.items():
                worker = self._random.choice(self.workers)
                table = self.tables[name]
                part = (
                    ShardPart(self.plan, name, table, worker.shards)
                    if kind is ShardPart
                    else MergePart(self.plan, name, table, worker.merges)
                )
                messages += part.take(its)
        return messages

    def _source(self, key: SourceKey) -> SourcePart:
        return SourcePart(self.plan, key, self.tables[f"{key}"], self.now_us)


def values_of(scenario: Scenario) -> dict[SourceKey, list[bytes | None]]:
    """Return the records of each source partition."""
    index = {scenario.topic(number): number for number in range(len(scenario.group.streams))}
    values: dict[SourceKey, list[bytes | None]] = {place: [] for place in scenario.partitions}
    for record in scenario.records():
        values[index[record.topic], record.partition].append(record.value)
    return values


def answers(results: Sequence[Result]) -> dict[tuple[str, int], Answer]:
    """Return results as the oracle gives them; each may be there once."""
    found: dict[tuple[str, int], Answer] = {}
    for result in results:
        key = result.query, result.window_end
        assert key not in found, f"{key} came twice"
        found[key] = tuple(
            (r.rank, r.object_id, r.score, tuple(sorted(r.attributes.items())), r.event_time_us) for r in result.rows
        )
    return found


def catalog_of(changes: Sequence[QueryChange | None]) -> dict[SourceKey, list[bytes | None]]:
    """Return changes as records of the catalog."""
    return {CATALOG_KEY: [None if its is None else CODECS.encode("catalog", its) for its in changes]}
