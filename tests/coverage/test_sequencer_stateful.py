"""The sequencer and a model of it, a row at a time, see the same batches, whatever comes twice, late or never."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.coverage.sequencer import Sequencer
from skyband.errors import CoverageGapError, LogError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from tests.coverage.batches import Partition, group, listed, make_batch, query_change
from tests.coverage.sequencer_model import ModelSequencer

DELAYS = (5, 20)
STARTS = {(0, 0): 0, (0, 1): 30, (1, 0): 7}
GROWTH = [(0, 2), (1, 1), (0, 3)]

steps = st.lists(st.tuples(st.integers(-25, 12), st.integers(0, 2)), max_size=8)


class SequencerMachine(RuleBasedStateMachine):
    """`history` holds what was done since `base`, from which the sequencer can be built anew."""

    @initialize(holds=st.booleans())
    def begin(self, holds: bool) -> None:
        self.group = group(*DELAYS, holds=holds)
        self.partitions = {place: self.new_partition(place, start) for place, start in STARTS.items()}
        self.clock, self.now = 1_000, 0
        self.catalog_next = 0
        self.real = self.new_sequencer()
        self.model = ModelSequencer(self.group, STARTS)
        self.base: dict[str, Any] | None = None
        self.history: list[tuple[str, Any]] = []
        self.offered: list[AlignedBatch] = []
        self.finished: set[tuple[int, int]] = set()
        self.checkpoint: tuple[dict[str, Any], ModelSequencer, int] | None = None

    def new_partition(self, place: tuple[int, int], start: int) -> Partition:
        return Partition(*place, DELAYS[place[0]], start)

    def new_sequencer(self) -> Sequencer:
        return Sequencer(self.group, 1, 0, STARTS, max_pending_bytes=1_000_000)

    def open_partition(self, data: st.DataObject) -> Partition:
        return data.draw(st.sampled_from([p for place, p in self.partitions.items() if place not in self.finished]))

    def do(self, what: str, argument: Any) -> None:
        self.history.append((what, argument))
        self.apply(self.real, self.model, what, argument)

    def apply(self, real: Sequencer, model: ModelSequencer, what: str, argument: Any) -> None:
        if what == "offer":
            real.offer(argument)
            model.offer(argument)
            assert real.drain_catalog() == model.drain()
        elif what == "take":
            assert listed(real.take(argument)) == model.take(argument)
        else:
            real.add_partition(*argument)
            model.add_partition(*argument)

    def offer(self, parts: list[tuple[Section, list[Any]]], catalog: list[CatalogRecord] | None = None) -> None:
        batch = make_batch(parts, self.clock, catalog or [])
        self.offered.append(batch)
        self.do("offer", batch)

    def read(self, partition: Partition, ahead: int, moves: list[tuple[int, int]]) -> int:
        """Let align read some rows near the common time; return the cursor before."""
        before = partition.cursor
        for delta, skip in moves:
            self.now += 1
            partition.read(self.now + ahead + delta, skip=skip)
        return before

    def open_is_left(self) -> bool:
        return len(self.finished) < len(self.partitions)

    @precondition(open_is_left)
    @rule(data=st.data(), ahead=st.sampled_from([0, 0, 0, 100]), moves=steps, covered=st.integers(0, 3))
    def flush_one_partition(self, data: st.DataObject, ahead: int, moves: list[tuple[int, int]], covered: int) -> None:
        partition = self.open_partition(data)
        before = self.read(partition, ahead, moves)
        partition.cursor += covered
        self.offer([partition.section(before, partition.cursor)])

    @precondition(open_is_left)
    @rule(moves=st.lists(steps, min_size=4, max_size=4), turned=st.booleans())
    def flush_all_partitions(self, moves: list[list[tuple[int, int]]], turned: bool) -> None:
        parts = []
        for (place, partition), some in zip(self.partitions.items(), moves, strict=False):
            if place not in self.finished:
                parts.append(partition.section(self.read(partition, 0, some), partition.cursor))
        self.offer(parts[::-1] if turned else parts)

    @precondition(open_is_left)
    @rule(data=st.data(), first=steps, second=steps)
    def flush_one_partition_in_two_sections(self, data: st.DataObject, first: Any, second: Any) -> None:
        partition = self.open_partition(data)
        low = self.read(partition, 0, first)
        middle = self.read(partition, 0, second)
        self.offer([partition.section(low, middle), partition.section(middle, partition.cursor)])

    @precondition(lambda self: self.offered)
    @rule(data=st.data(), later=st.booleans())
    def repeat_an_old_batch(self, data: st.DataObject, later: bool) -> None:
        batch = data.draw(st.sampled_from(self.offered[-12:]))
        if later:  # a zombie, whose clock goes on
            batch = replace(batch, written_us=self.clock)
        self.do("offer", batch)

    @precondition(open_is_left)
    @rule(data=st.data(), back=st.integers(1, 12), moves=steps)
    def overlap_what_was_covered(self, data: st.DataObject, back: int, moves: list[tuple[int, int]]) -> None:
        partition = self.open_partition(data)
        before = self.read(partition, 0, moves)
        self.offer([partition.section(max(partition.start, before - back), partition.cursor)])

    @rule(data=st.data(), lease=st.sampled_from([0, 5, 50]), shift=st.sampled_from([0, 0, 9, -9]))
    def write_idle_leases(self, data: st.DataObject, lease: int, shift: int) -> None:
        chosen = data.draw(st.sets(st.sampled_from(sorted(self.partitions)), min_size=1))
        parts = []
        until = self.clock + lease if lease else 0
        for place in sorted(chosen - self.finished):
            partition = self.partitions[place]
            section, rows = partition.section(partition.cursor, partition.cursor, idle_until_us=until)
            if section.newest_us > MIN_TIME_US:  # rows that are rejected for their values move time too
                section = replace(section, watermark_us=section.watermark_us + shift)
            parts.append((section, rows))
        if parts:
            self.offer(parts)

    @rule(by=st.sampled_from([0, 1, 6, 60]))
    def let_the_clocks_of_writers_go_on(self, by: int) -> None:
        self.clock += by

    @precondition(open_is_left)
    @rule(data=st.data())
    def finish_a_partition(self, data: st.DataObject) -> None:
        partition = self.open_partition(data)
        self.finished.add((partition.stream, partition.partition))
        self.offer([partition.section(partition.cursor, partition.cursor, watermark_us=MAX_TIME_US)])

    @precondition(lambda self: len(self.partitions) < len(STARTS) + len(GROWTH))
    @rule(start=st.integers(0, 5))
    def add_a_partition(self, start: int) -> None:
        place = GROWTH[len(self.partitions) - len(STARTS)]
        self.partitions[place] = self.new_partition(place, start)
        self.do("add", (place, start))

    @rule(n=st.integers(1, 3), back=st.integers(0, 2))
    def change_queries(self, n: int, back: int) -> None:
        low, high = max(0, self.catalog_next - back), self.catalog_next + n
        records = [CatalogRecord(o, query_change(o) if o % 3 else None) for o in range(low, high)]
        self.catalog_next = high
        self.offer([(Section(stream=-1, partition=0, from_offset=low, to_offset=high, rows=0), [])], records)

    @rule(delta=st.sampled_from([-30, 0, 0, 0, 15]))
    def take(self, delta: int) -> None:
        self.do("take", self.model.frontier + delta if self.model.frontier > MIN_TIME_US else delta)

    @precondition(open_is_left)
    @rule(data=st.data(), missing=st.integers(1, 5))
    def lose_a_batch(self, data: st.DataObject, missing: int) -> None:
        partition = self.open_partition(data)
        found = partition.cursor + missing
        batch = make_batch([partition.section(found, found + 1)], self.clock + 99)
        assert self.model.has_gap(batch)
        with pytest.raises(CoverageGapError) as gap:
            self.real.offer(batch)
        assert (gap.value.expected, gap.value.found) == (partition.cursor, found)
        assert self.real.stopped is gap.value
        self.check()  # nothing else changed
        with pytest.raises(CoverageGapError):
            self.real.offer(self.offered[-1] if self.offered else batch)
        self.start_anew()

    @rule()
    def start_anew(self) -> None:
        """Everything is a function of the sequence of batches."""
        self.real = self.new_sequencer()
        if self.base is not None:
            self.real.restore(self.base)
        for what, argument in self.history:
            if what == "take":
                self.real.take(argument)
            elif what == "add":
                self.real.add_partition(*argument)
            else:
                self.real.offer(argument)
                self.real.drain_catalog()

    @rule()
    def write_a_checkpoint(self) -> None:
        self.checkpoint = (self.real.state(), copy.deepcopy(self.model), len(self.history))

    @precondition(lambda self: self.checkpoint is not None)
    @rule()
    def restore_and_replay(self) -> None:
        state, model, at = self.checkpoint
        was = self.times_of(self.real)
        self.base, self.history, self.checkpoint = state, self.history[at:], None
        self.model = model
        model.pending.clear()
        model.rows = model.repeats = model.overtaken = 0
        self.real.restore(state)
        assert self.real.state() == state
        for what, argument in self.history:
            self.apply(self.real, self.model, what, argument)
        assert self.times_of(self.real) == was

    def times_of(self, real: Sequencer) -> tuple[Any, ...]:
        return real.frontier_us, real.settled_us, real.newest_us, real.statistics().next_offsets

    @invariant()
    def check(self) -> None:
        real, model = self.real, self.model
        real._check()
        assert real.frontier_us == model.frontier
        assert real.settled_us == model.settled
        assert real.pending_rows == len(model.pending)
        assert real.next_release_us == model.next_release()
        statistics = real.statistics()
        assert statistics.rows == model.rows
        assert statistics.repeats == model.repeats
        assert statistics.overtaken == model.overtaken
        names = {place: self.group.streams[place[0]].name for place in self.partitions}
        expected = {(name, place[1]): model.partitions[place].next_offset for place, name in names.items()}
        assert statistics.next_offsets == expected | {("catalog", 0): model.partitions[-1, 0].next_offset}
        holder, place = real.holder(), model.holder()
        assert (holder and (holder.stream, holder.partition)) == (place and (names[place], place[1]))

    def teardown(self) -> None:
        if hasattr(self, "real"):
            assert listed(self.real.take(MAX_TIME_US)) == self.model.take(MAX_TIME_US)
            assert self.real.pending_bytes == 0


class TestSequencer(SequencerMachine.TestCase):
    settings = settings(max_examples=40, stateful_step_count=40)


def test_changes_of_the_catalog_that_wait_cannot_be_lost_in_a_checkpoint() -> None:
    sequencer = Sequencer(group(0), 1, 0, {(0, 0): 0}, 1_000)
    section = Section(stream=-1, partition=0, from_offset=0, to_offset=1, rows=0)
    sequencer.offer(make_batch([(section, [])], catalog=[CatalogRecord(0, query_change(1))]))
    with pytest.raises(LogError, match="drain_catalog"):
        sequencer.state()
    assert sequencer.drain_catalog() == [query_change(1)]
    assert sequencer.drain_catalog() == []
    assert sequencer.state()["catalog_next_offset"] == 1
