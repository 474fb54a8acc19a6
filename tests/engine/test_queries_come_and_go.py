"""Queries are added, changed, paused, resumed and deleted while rows flow; each is right from its first window end."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skyband.engine.query_set import first_multiple_after
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import Algorithm, Query, QueryState, Window
from tests.engine.pure_pipeline import PurePipeline, as_dict, planned
from tests.engine.reference import Asked, Reference
from tests.engine.traits import fits
from tests.lockstep import assert_equal
from tests.oracle import Seen, accepted
from tests.workloads import definitions, rows

MOST_QUERIES = 6


class QueriesComeAndGo(RuleBasedStateMachine):
    """One group whose rows flow in flushes; the reference looks at all rows so far after each."""

    @initialize(data=st.data(), shards=st.sampled_from((1, 2)), catalog=st.booleans())
    def begin(self, data: st.DataObject, shards: int, catalog: bool) -> None:
        made = data.draw(definitions(counts=shards == 1))
        self.rows = data.draw(rows(made, max_rows=80))
        self.pool = made.queries
        self.group = replace(made.group, shards=shards)
        self.pipeline = PurePipeline(self.group, sorted(self.rows), check=True, catalog=catalog)
        self.reference = Reference(self.group)
        self.sent = dict.fromkeys(self.rows, 0)
        self.states: dict[str, tuple[int, QueryState]] = {}
        self.promised: list[tuple[str, int, int]] = []
        self.seen = self.applied = 0

    @rule(data=st.data(), most=st.sampled_from((1, 3, 10)))
    def flow(self, data: st.DataObject, most: int) -> None:
        """Carry some rows of each source partition through to results."""
        for place, part in self.rows.items():
            count = min(data.draw(st.integers(0, most)), len(part) - self.sent[place])
            if count:
                self.pipeline.add(place, part[self.sent[place] : self.sent[place] + count], self.sent[place])
                self.sent[place] += count
        self.carry()

    @precondition(lambda self: len(self.states) < MOST_QUERIES)
    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        """Ask one of the workload's questions, often with another k or window, under any algorithm that fits."""
        query = data.draw(st.sampled_from(self.pool))
        query = replace(query, name=f"n{len(self.reference.asked)}", k=data.draw(st.sampled_from((query.k, 1, 3, 9))))
        if data.draw(st.booleans()):
            query = replace(query, window=self.other_window(data, query))
        algorithms = [a for a in Algorithm if fits(self.group, query, a)]
        query = planned(self.group, query, data.draw(st.sampled_from(algorithms)))
        self.reference.asked[query.name] = Asked(query)
        self.put(query, QueryState.ACTIVE)

    @precondition(lambda self: self.states)
    @rule(data=st.data(), k=st.sampled_from((1, 2, 5, 1_000)))
    def change_k(self, data: st.DataObject, k: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.states)))
        query = self.reference.asked[name].query
        if query.algorithm.forgets:
            k = min(k, query.k)  # what a larger one needs is forgotten
        self.put(replace(query, k=k), self.states[name][1])

    @precondition(lambda self: self.states)
    @rule(data=st.data(), state=st.sampled_from((QueryState.PAUSED, QueryState.ACTIVE, QueryState.DELETED)))
    def pause_resume_or_delete(self, data: st.DataObject, state: QueryState) -> None:
        name = data.draw(st.sampled_from(sorted(self.states)))
        self.put(self.reference.asked[name].query, state)
        if state is QueryState.DELETED:
            del self.states[name]

    @invariant()
    def every_result_is_that_of_brute_force(self) -> None:
        """Compare what came since the last time."""
        if not hasattr(self, "pipeline"):
            return
        got = [as_dict(result, self.group.is_row_identity) for result in self.pipeline.results[self.seen :]]
        self.seen += len(got)
        truth = self.reference.advance(self.accepted, self.covered, self.accepted[: self.applied])
        assert_equal(truth, sorted(got, key=self.reference.place), self.rows)

    def teardown(self) -> None:
        """End all sources: what is known is shown up to the first window end past the newest row."""
        if not hasattr(self, "pipeline"):
            return
        for place in self.rows:
            self.pipeline.aligner.finish(*place)
        self.carry()
        self.applied = len(self.accepted)
        self.every_result_is_that_of_brute_force()

    def other_window(self, data: st.DataObject, query: Query) -> Window:
        window = query.window
        tick = 1 if window.in_rows else self.group.pane_us
        size, slide = data.draw(st.integers(1, 12)), data.draw(st.sampled_from((1, 2, 3, 5, 15)))
        return Window(size * tick, slide * tick, in_rows=window.in_rows)

    def put(self, query: Query, state: QueryState) -> None:
        """Tell the pipeline and the reference; what counts is what had passed before."""
        asked = self.reference.asked[query.name]
        revision, before = self.states.get(query.name, (0, QueryState.PAUSED))
        first = self.next_end(query)
        if before is state is QueryState.PAUSED or (before, state) == (QueryState.PAUSED, QueryState.DELETED):
            first = self.frontier + 1  # what nobody evaluates ends at once
        self.states[query.name] = revision + 1, state
        asked.query = query
        asked.turn(first, state is QueryState.ACTIVE, query.k)
        self.promised.append((query.name, revision + 1, first))
        self.pipeline.change(query, revision + 1, state)

    @property
    def frontier(self) -> int:
        """How far all shards have read; they stand at the same place, since they are told of the same sections."""
        (frontier,) = {shard.sequencer.frontier_us for shard in self.pipeline.shards}
        return frontier

    @property
    def accepted(self) -> list[Seen]:
        """The rows sent so far that count, in total order."""
        return accepted(self.group, {place: part[: self.sent[place]] for place, part in self.rows.items()})

    def next_end(self, query: Query) -> int:
        """Return the first window end that has not passed."""
        if query.window.in_rows:
            return first_multiple_after(query.window.slide, self.applied)
        return MIN_TIME_US if self.frontier == MIN_TIME_US else first_multiple_after(query.window.slide, self.frontier)

    def carry(self) -> None:
        """Flush; each shard then says of each change where it begins."""
        self.pipeline.flush()
        told = [(a.uid, a.revision, a.first_us) for a in self.pipeline.activated]
        self.pipeline.activated.clear()
        if told:
            self.begin_later(told)
            assert sorted(told) == sorted(self.promised * self.group.shards)
            self.promised.clear()
        self.applied = sum(row.release < self.frontier for row in self.accepted)

    def begin_later(self, told: list[tuple[str, int, int]]) -> None:
        """Where a window reaches back beyond what a ranking has seen, let the query begin when the last shard says.

        That is by a window and a slide at most, and only while, or since, some query forgets.
        """
        for place, (name, revision, first) in enumerate(self.promised):
            says = [at for uid, its, at in told if (uid, its) == (name, revision)]
            latest = max(says, default=first)
            if latest == first:
                continue
            query = self.reference.asked[name].query
            assert any(asked.query.algorithm.forgets for asked in self.reference.asked.values())
            assert len(says) == self.group.shards
            seen = max((row.event for row in self.accepted), default=0) + self.group.pane_us
            assert query.window.in_rows or latest <= seen + query.window.size + query.window.slide
            self.reference.asked[name].begin_later(first, latest)
            self.promised[place] = (name, revision, latest)
            told[:] = [(uid, its, latest if (uid, its) == (name, revision) else at) for uid, its, at in told]

    def covered(self, slide: int) -> int:
        """Return up to where the window ends of a slide are shown."""
        settled = self.pipeline.shards[0].sequencer.settled_us
        return self.frontier if settled == MIN_TIME_US else max(self.frontier, first_multiple_after(slide, settled))


TestQueriesComeAndGo = QueriesComeAndGo.TestCase
TestQueriesComeAndGo.settings = settings(max_examples=60, stateful_step_count=20)
