"""The merge against a model: whatever shards send, repeat or lag, each result comes once, whole, in order.

The model is a dict of every part ever evaluated. A window end counts if all shards evaluated it; its result is the k
best rows of all (the smallest k sent), written if it has rows or the one written before it had.

One freedom: while all is idle, a shard may tell that it is done with a window end that it left out because of a pause,
then resume and evaluate it after all. Whether that end was dropped meanwhile depends on who was read first.
"""

import random
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.fanout.merger import Merger
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import QueryState
from skyband.model.result import Result
from tests.fanout.partials import Row, batch, query_change

LONG_AGO = -(2**62)
SIZE = 30
Value = PartialBatch | Progress | Activated


@dataclass
class Member:
    """A query on one shard."""

    change: QueryChange
    passed: int
    reopened_to: int = LONG_AGO
    had_rows: bool = False


@dataclass
class Shard:
    """An engine: takes the catalog at its own pace, evaluates, and can send again what it sent."""

    number: int
    frontier: int = 0
    settled: int = LONG_AGO
    catalog_to: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    told: Progress | None = None
    sent: list[tuple[int, Value]] = field(default_factory=list)


@dataclass
class Stored:
    """What the last commit holds."""

    checkpoint: MergeCheckpoint
    marks: dict[str, Mark]
    offsets: dict[int, int]
    results: int


class MergeMachine(RuleBasedStateMachine):
    @initialize(shards=st.integers(1, 3), partitions=st.integers(1, 2), seed=st.integers(0, 2**16))
    def start(self, shards: int, partitions: int, seed: int) -> None:
        self.seed = seed
        self.shards = [Shard(number) for number in range(shards)]
        self.logs: list[list[Value]] = [[] for _ in range(partitions)]
        self.at = [0] * partitions
        self.catalog: list[QueryChange] = []
        self.newest: dict[str, QueryChange] = {}
        self.evaluated: dict[tuple[str, int], dict[int, tuple[int, bool, list[Row]]]] = {}
        self.reopened: set[tuple[str, int]] = set()
        self.merger = self.fresh()
        self.results: list[Result] = []
        self.stored = Stored(self.merger.checkpoint(), {}, dict.fromkeys(range(partitions), 0), 0)

    def fresh(self) -> Merger:
        return Merger("g", 1, len(self.shards), partitions=range(len(self.logs)))

    # What operators do.

    @rule(slide=st.sampled_from([10, 20]), k=st.integers(1, 4))
    def create(self, slide: int, k: int) -> None:
        if len(self.newest) < 5:
            self.tell(query_change(f"q{len(self.newest)}", k=k, slide=slide, size=SIZE))

    @rule(which=st.integers(0, 4), k=st.integers(1, 4), state=st.sampled_from(QueryState))
    def change(self, which: int, k: int, state: QueryState) -> None:
        old = self.newest.get(f"q{which}")
        if old is not None and old.state is not QueryState.DELETED:
            query = replace(old.query, k=k)
            self.tell(replace(old, revision=old.revision + 1, query=query, state=state))

    def tell(self, change: QueryChange) -> None:
        self.catalog.append(change)
        self.newest[change.uid] = change

    # What shards do.

    @rule(shard=st.integers(0, 2), changes=st.integers(0, 3), steps=st.integers(0, 4), settles=st.booleans())
    def advance(self, shard: int, changes: int, steps: int, settles: bool) -> None:
        if shard >= len(self.shards):
            return
        engine = self.shards[shard]
        for change in self.catalog[engine.catalog_to : engine.catalog_to + changes]:
            self.activate(engine, change)
        engine.catalog_to = min(len(self.catalog), engine.catalog_to + changes)
        engine.frontier += 10 * steps
        if settles:
            engine.settled = max(engine.settled, engine.frontier + 10)
        self.evaluate(engine)

    def activate(self, engine: Shard, change: QueryChange) -> None:
        slide = change.query.window.slide
        member = engine.members.get(change.uid)
        first = ((member.passed if member else engine.frontier) // slide + 1) * slide
        if change.state is not QueryState.ACTIVE:
            engine.members.pop(change.uid, None)
            engine.paused.add(change.uid)
        elif member is None:
            told = engine.told if change.uid in engine.paused else None
            reopened_to = max(told.frontier_us, told.settled_us + slide) if told else LONG_AGO
            engine.members[change.uid] = Member(change, first - slide, reopened_to)
        else:
            member.change = change
        self.send(engine, change.uid, Activated("g", 1, engine.number, change.uid, change.revision, first))

    def evaluate(self, engine: Shard) -> None:
        progress = Progress("g", 1, engine.number, engine.frontier, engine.settled)
        ends = sorted(
            (end, uid)
            for uid, member in engine.members.items()
            for slide in [member.change.query.window.slide]
            for end in range(member.passed + slide, max(engine.frontier, engine.settled + slide) + 1, slide)
            if progress.covers(end, slide)
        )
        batches: dict[tuple[int, int], list[tuple[QueryChange, int, list[Row]]]] = {}
        for end, uid in ends:
            member = engine.members[uid]
            rows = self.rows(uid, end, engine.number)[: member.change.query.k]
            told = bool(rows) or member.had_rows
            member.passed, member.had_rows = end, bool(rows)
            # Beyond the frontier, an end may be evaluated again after a pause: the first that was sent counts.
            parts = self.evaluated.setdefault((uid, end), {})
            if not parts.get(engine.number, (0, False, []))[1]:
                parts[engine.number] = member.change.query.k, told, rows
            if end <= member.reopened_to:
                self.reopened.add((uid, end))
            if told:
                batches.setdefault((end, self.home(uid)), []).append((member.change, end, rows))
        for (_, home), parts_of_end in batches.items():
            self.append(engine, home, batch(engine.number, parts_of_end))
        for partition in range(len(self.logs)):
            self.append(engine, partition, progress)
        engine.told = progress

    def rows(self, uid: str, end: int, shard: int) -> list[Row]:
        dice = random.Random(f"{self.seed} {uid} {end} {shard}")
        if dice.random() < 0.4:
            return []
        names = [f"{number}" for number in range(12) if number % len(self.shards) == shard]
        rows = [Row(name, float(dice.randint(1, 4))) for name in dice.sample(names, dice.randint(1, 4))]
        return sorted(rows, key=lambda row: (-row.score, row.object_id))

    def home(self, uid: str) -> int:
        return int(uid[1:]) % len(self.logs)

    def send(self, engine: Shard, uid: str, value: Value) -> None:
        self.append(engine, self.home(uid), value)

    def append(self, engine: Shard, partition: int, value: Value) -> None:
        self.logs[partition].append(value)
        engine.sent.append((partition, value))

    @rule(shard=st.integers(0, 2), tenths=st.integers(0, 10))
    def repeat(self, shard: int, tenths: int) -> None:
        """An engine restarts from a checkpoint: what it sent since comes again, in the same order."""
        if shard < len(self.shards):
            sent = self.shards[shard].sent
            for partition, value in sent[len(sent) * tenths // 10 :]:
                self.logs[partition].append(value)

    # What fanout does.

    @rule(partition=st.integers(0, 1), count=st.integers(1, 12), often=st.booleans())
    def read(self, partition: int, count: int, often: bool = False) -> None:
        if partition >= len(self.logs):
            return
        for offset, change in enumerate(self.catalog):
            self.merger.change_query(change, offset)
        for _ in range(min(count, len(self.logs[partition]) - self.at[partition])):
            self.merger.accept(self.logs[partition][self.at[partition]], partition, self.at[partition])
            self.at[partition] += 1
            if often:
                self.take()
        self.take()

    def take(self) -> None:
        taken = self.merger.take()
        assert [(r.window_end, r.query) for r in taken] == sorted((r.window_end, r.query) for r in taken)
        self.results += taken

    @rule()
    def commit(self) -> None:
        marks = {**self.stored.marks, **self.merger.take_changed_marks()}
        self.stored = Stored(
            self.merger.checkpoint(),
            {uid: mark for uid, mark in marks.items() if mark is not None},
            self.merger.needed(),
            len(self.results),
        )
        assert self.stored.marks == self.merger.marks()

    @rule()
    def crash(self) -> None:
        del self.results[self.stored.results :]
        self.merger = self.fresh()
        self.merger.restore(self.stored.checkpoint, self.stored.marks)
        self.at = [self.stored.offsets[partition] for partition in range(len(self.logs))]

    # What must hold.

    @invariant()
    def is_consistent(self) -> None:
        if hasattr(self, "merger"):
            self.merger._check()

    def expected(self, uid: str, found: set[int]) -> list[tuple[int, list[tuple[str, float]]]]:
        written: list[tuple[int, list[tuple[str, float]]]] = []
        for (other, end), parts in sorted(self.evaluated.items(), key=lambda item: item[0][1]):
            if other != uid or len(parts) < len(self.shards) or ((uid, end) in self.reopened and end not in found):
                continue
            told = [(k, rows) for k, was_told, rows in parts.values() if was_told]
            k = min((k for k, _ in told), default=0)
            ranked = sorted((row for _, rows in told for row in rows), key=lambda row: (-row.score, row.object_id))
            shown = [(row.object_id, row.score) for row in ranked[:k]]
            if shown or (written and written[-1][1]):
                written.append((end, shown))
        return written

    def teardown(self) -> None:
        if not hasattr(self, "merger"):
            return
        last = max(engine.frontier for engine in self.shards) + 200
        for engine in self.shards:
            self.advance(engine.number, len(self.catalog), (last - engine.frontier) // 10, False)
        for partition, log in enumerate(self.logs):
            self.read(partition, len(log))
        self.merger._check()
        for uid, change in self.newest.items():
            found = [
                (result.window_end, [(row.object_id, row.score) for row in result.rows])
                for result in self.results
                if result.uid == uid
            ]
            assert found == self.expected(uid, {end for end, _ in found}), uid
            assert change.state is not QueryState.DELETED or uid not in self.merger.marks()
        assert self.merger.statistics()["pending_rows"] == 0
        assert self.merger.needed() == {partition: len(log) for partition, log in enumerate(self.logs)}


TestMergeMachine = MergeMachine.TestCase
TestMergeMachine.settings = settings(max_examples=100, stateful_step_count=40)
