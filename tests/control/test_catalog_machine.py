"""The catalog against a model of dicts, and against its own compacted records."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skyband.control.changes import missing_changes
from skyband.control.commands import (
    Command,
    CreateGroup,
    CreateQuery,
    CreateStream,
    DeleteGroup,
    DeleteQuery,
    DeleteStream,
    PauseQuery,
    RegenerateGroup,
    ResumeQuery,
    UpdateGroup,
    UpdateQuery,
    UpdateStream,
)
from skyband.control.decisions import decide
from skyband.errors import AlreadyExistsError, ConflictError, DefinitionError, NotFoundError, SkybandError
from skyband.model.catalog import QueryChange
from skyband.model.query import Algorithm, QueryState
from tests.control.catalog_driver import Driver, query, spec, stream

STREAMS = st.sampled_from(["a", "b", "c"])
GROUPS = st.sampled_from(["g", "h"])
QUERIES = st.sampled_from(["q", "r"])


class CatalogMachine(RuleBasedStateMachine):
    """Each rule predicts from plain dicts what a command must do or refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.streams: dict[str, float] = {}
        self.groups: dict[str, tuple[tuple[str, ...], int, int]] = {}
        self.queries: dict[tuple[str, str], tuple[int, QueryState]] = {}
        self.last_generation: dict[str, int] = {}
        self.requests: list[tuple[str, Command]] = []

    def expect(self, command: Command, *refusals: tuple[bool, type[SkybandError]]) -> bool:
        """Run a command; return whether it was done. The first refusal that applies must be the one raised."""
        error = next((kind for applies, kind in refusals if applies), None)
        before = len(self.driver.records)
        if error is not None:
            with pytest.raises(error):
                self.driver.do(command)
            assert len(self.driver.records) == before
            return False
        dry = decide(self.driver.catalog, command, now_us=0, new_uid="dry", validate_only=True)
        assert dry.events == ()
        request_id = f"request {len(self.requests)}"
        self.driver.do(command, request_id=request_id)
        self.requests.append((request_id, command))
        return True

    @initialize(groups=st.integers(0, 2))
    def begin_with_something(self, groups: int) -> None:
        # From nothing, most commands would be refused.
        for name in "ab":
            self.create_stream(name, 1.0)
        for name in "gh"[:groups]:
            self.create_group(name, ["a", "b"], 1)
            self.create_query(name, "q", "a", 1)

    @rule(name=STREAMS, hi=st.sampled_from([1.0, 2.0]))
    def create_stream(self, name: str, hi: float) -> None:
        if self.expect(CreateStream(stream(name, hi)), (name in self.streams, AlreadyExistsError)):
            self.streams[name] = hi

    @rule(name=STREAMS, hi=st.sampled_from([1.0, 2.0]))
    def update_stream(self, name: str, hi: float) -> None:
        if self.expect(UpdateStream(stream(name, hi), ("hi",)), (name not in self.streams, NotFoundError)):
            self.streams[name] = hi

    @rule(name=STREAMS)
    def delete_stream(self, name: str) -> None:
        used = any(name in streams for streams, _, _ in self.groups.values())
        if self.expect(DeleteStream(name), (name not in self.streams, NotFoundError), (used, ConflictError)):
            del self.streams[name]

    @rule(name=GROUPS, streams=st.lists(STREAMS, min_size=1, max_size=2, unique=True), drift=st.integers(1, 2))
    def create_group(self, name: str, streams: list[str], drift: int) -> None:
        unknown = not set(streams) <= set(self.streams)
        command = CreateGroup(spec(name, *streams, max_drift_us=drift))
        if self.expect(command, (name in self.groups, AlreadyExistsError), (unknown, NotFoundError)):
            self.last_generation[name] = self.last_generation.get(name, 0) + 1
            self.groups[name] = (tuple(streams), self.last_generation[name], drift)

    @rule(name=GROUPS, drift=st.integers(1, 2), shards=st.integers(1, 2))
    def update_group(self, name: str, drift: int, shards: int) -> None:
        streams, generation, _ = self.groups.get(name, (("a",), 0, 0))
        command = UpdateGroup(spec(name, *streams, max_drift_us=drift, shards=shards))
        if self.expect(command, (name not in self.groups, NotFoundError), (shards != 1, DefinitionError)):
            self.groups[name] = (streams, generation, drift)

    @rule(name=GROUPS, more=st.lists(STREAMS, max_size=1))
    def regenerate(self, name: str, more: list[str]) -> None:
        streams, generation, drift = self.groups.get(name, ((), 0, 0))
        longer = (*streams, *more) if more else streams
        twice = len(set(longer)) < len(longer)
        unknown = not set(longer) <= set(self.streams)
        command = RegenerateGroup(name, spec(name, *longer, max_drift_us=drift) if more else None)
        refusals = (name not in self.groups, NotFoundError), (unknown, NotFoundError), (twice, DefinitionError)
        if self.expect(command, *refusals):
            self.last_generation[name] = generation + 1
            self.groups[name] = (longer, generation + 1, drift)

    @rule(name=GROUPS, force=st.booleans())
    def delete_group(self, name: str, force: bool) -> None:
        mine = [key for key in self.queries if key[0] == name]
        refusals = (name not in self.groups, NotFoundError), (bool(mine) and not force, ConflictError)
        if self.expect(DeleteGroup(name, force), *refusals):
            del self.groups[name]
            for key in mine:
                del self.queries[key]

    @rule(group=GROUPS, name=QUERIES, score=STREAMS, k=st.integers(1, 2))
    def create_query(self, group: str, name: str, score: str, k: int) -> None:
        unknown = score not in self.groups.get(group, ((), 0, 0))[0]
        refusals = (
            (group not in self.groups, NotFoundError),
            ((group, name) in self.queries, AlreadyExistsError),
            (unknown, DefinitionError),
        )
        if self.expect(CreateQuery(group, query(name, score, k)), *refusals):
            self.queries[group, name] = (k, QueryState.ACTIVE)

    @rule(group=GROUPS, name=QUERIES, k=st.integers(1, 3))
    def update_query(self, group: str, name: str, k: int) -> None:
        command = UpdateQuery(group, query(name, "a", k), ("k",))
        if self.expect(command, ((group, name) not in self.queries, NotFoundError)):
            self.queries[group, name] = (k, self.queries[group, name][1])

    @rule(group=GROUPS, name=QUERIES, pause=st.booleans())
    def pause_or_resume(self, group: str, name: str, pause: bool) -> None:
        command = PauseQuery(group, name) if pause else ResumeQuery(group, name)
        if self.expect(command, ((group, name) not in self.queries, NotFoundError)):
            state = QueryState.PAUSED if pause else QueryState.ACTIVE
            self.queries[group, name] = (self.queries[group, name][0], state)

    @rule(group=GROUPS, name=QUERIES)
    def delete_query(self, group: str, name: str) -> None:
        if self.expect(DeleteQuery(group, name), ((group, name) not in self.queries, NotFoundError)):
            del self.queries[group, name]

    @rule(data=st.data())
    def repeat_a_request(self, data: st.DataObject) -> None:
        if not self.requests:
            return
        request_id, command = data.draw(st.sampled_from(self.requests))
        before = dict(self.driver.records)
        refusal = None
        try:
            events = self.driver.do(command, request_id=request_id).events
        except ConflictError as error:
            events, refusal = (), str(error)
        assert events == ()
        assert refusal is None or "has been deleted since" in refusal
        assert self.driver.records == before

    @invariant()
    def is_as_the_model_says(self) -> None:
        catalog = self.driver.catalog
        catalog._check()
        assert {r.name for r in catalog.page("streams").resources} == {f"streams/{name}" for name in self.streams}
        for name, hi in self.streams.items():
            assert catalog.stream(name).stream.attributes[0].hi == hi
        assert {r.name for r in catalog.page("groups").resources} == {f"groups/{name}" for name in self.groups}
        for name, (streams, generation, drift) in self.groups.items():
            found = catalog.group(name)
            assert tuple(s.name for s in found.group.streams) == streams
            assert (found.generation, found.group.max_drift_us) == (generation, drift)
        found_queries = {(r.group, r.query.name): (r.query.k, r.state) for r in catalog.queries()}
        assert found_queries == self.queries

    @invariant()
    def the_latest_record_of_each_key_is_enough(self) -> None:
        assert self.driver.rebuilt() == self.driver.catalog

    @invariant()
    def shards_that_heard_all_changes_run_just_the_live_queries(self) -> None:
        newest: dict[str, QueryChange] = {}
        for change in self.driver.changes:
            assert change.uid not in newest or change.revision > newest[change.uid].revision
            assert change.query.algorithm is not Algorithm.AUTO
            newest[change.uid] = change
        live = [change for change in newest.values() if change.state is not QueryState.DELETED]
        found = {(change.group, change.query.name): (change.query.k, change.state) for change in live}
        assert found == self.queries
        assert missing_changes(self.driver.catalog, newest) == []


TestCatalogMachine = CatalogMachine.TestCase
TestCatalogMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
