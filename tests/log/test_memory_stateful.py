"""A truncating partition of the memory log, and a list of all that was ever sent, say the same."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skyband.errors import CapacityError, LogError
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryConsumer, MemoryLog
from skyband.log.record_log import Position, Record

ROWS = Position("rows", 0)


class MemoryLogMachine(RuleBasedStateMachine):
    """`sent`: all records ever; `committed`: the readers' positions; `lowest`: what was dropped lies below."""

    @initialize(named=st.booleans())
    def begin(self, named: bool) -> None:
        self.log = MemoryLog(ManualClock(7_000))
        self.log.create_topic("rows", 1, capacity=12, truncate=True, readers=("a", "b") if named else ())
        self.lowest = 0
        self.sent: list[Record] = []
        self.committed: dict[str, int] = dict.fromkeys(("a", "b"), 0) if named else {}
        self.consumers: dict[str, MemoryConsumer] = {}
        self.cursors: dict[str, int] = {}

    @property
    def end(self) -> int:
        return self.sent[-1].next_offset if self.sent else 0

    @property
    def kept(self) -> list[Record]:
        low = min(self.committed.values(), default=0)
        first = max(low, self.lowest)
        return [record for record in self.sent if record.next_offset > first]

    @rule(span=st.integers(1, 4))
    def send(self, span: int) -> None:
        record = Record("rows", 0, self.end, None, len(self.sent), 7_000, span)
        if len(self.kept) == 12:
            with pytest.raises(CapacityError):
                self.log.producer().send("rows", 0, record.value, span=span)
        else:
            self.log.producer().send("rows", 0, record.value, span=span)
            self.sent.append(record)

    @rule(group=st.sampled_from("ab"), data=st.data())
    def assign(self, group: str, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end))
        begin = self.kept[0].offset if self.kept else self.end
        consumer = self.log.consumer(group)
        if offset < begin:
            with pytest.raises(LogError, match=f"offset {offset} .* is below {begin}"):
                consumer.assign({ROWS: offset})
            return
        consumer.assign({ROWS: offset})
        self.committed.setdefault(group, begin)
        self.consumers[group], self.cursors[group] = consumer, offset

    @rule(group=st.sampled_from("ab"), limit=st.integers(1, 5))
    def poll(self, group: str, limit: int) -> None:
        if group not in self.consumers:
            return
        cursor = self.cursors[group]
        begin = self.kept[0].offset if self.kept else self.end
        if cursor < begin:
            with pytest.raises(LogError, match="is below"):
                self.consumers[group].poll(limit, 0)
            return
        expected = [record for record in self.sent if record.next_offset > cursor][:limit]
        assert self.consumers[group].poll(limit, 0) == expected
        if expected:
            self.cursors[group] = expected[-1].next_offset

    @rule(group=st.sampled_from("ab"), data=st.data())
    def commit(self, group: str, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end))
        before = self.kept[0].offset if self.kept else self.end
        self.log.consumer(group).commit({ROWS: offset})
        self.committed[group] = offset
        # What was dropped does not come back when a group commits backwards.
        self.lowest = max(before, self.kept[0].offset if self.kept else self.end)

    @invariant()
    def check(self) -> None:
        partition = self.log._partition(ROWS)
        partition._check()
        statistics = self.log.statistics()[ROWS]
        assert statistics.records == len(self.kept)
        assert statistics.begin_offset == (self.kept[0].offset if self.kept else self.end)
        assert statistics.end_offset == self.end


class TestMemoryLog(MemoryLogMachine.TestCase):
    settings = settings(max_examples=60, stateful_step_count=40)
