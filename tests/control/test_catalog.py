"""The catalog against a model of dicts, and against its own compacted records."""
# ruff: noqa: E501 - sentences as they are shown

import json
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skyband.control.catalog import Catalog
from skyband.control.catalog_events import Removed, from_record, to_record
from skyband.control.changes import changes_for, missing_changes
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
from skyband.control.decisions import Decision, decide
from skyband.errors import (
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    LogError,
    NotFoundError,
    NotServedError,
    SkybandError,
)
from skyband.model.catalog import QueryChange
from skyband.model.query import Algorithm, Query, QueryState, Window
from skyband.model.resources import GroupSpec, SourceStart
from skyband.model.stream import Aggregate, Attribute, Stream

SECOND = 1_000_000
STREAMS = st.sampled_from(["a", "b", "c"])
GROUPS = st.sampled_from(["g", "h"])
QUERIES = st.sampled_from(["q", "r"])


def stream(name: str, hi: float = 100.0, **changes: object) -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name, hi=hi),), **changes)  # type: ignore[arg-type]


def spec(name: str, *streams: str, **changes: object) -> GroupSpec:
    return GroupSpec(name=name, streams=streams, retention_us=600 * SECOND, **changes)  # type: ignore[arg-type]


def query(name: str, score: str, k: int = 10, **changes: object) -> Query:
    return Query(name=name, k=k, score=score, window=Window(60 * SECOND, 10 * SECOND), **changes)  # type: ignore[arg-type]


class Driver:
    """A catalog with the records and changes it has written, and a clock and uids that count."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.records: dict[str, str | None] = {}
        self.changes: list[QueryChange] = []
        self.steps = 0

    def do(self, command: Command, **options: object) -> Decision:
        self.steps += 1
        decision = decide(self.catalog, command, now_us=self.steps, new_uid=f"uid{self.steps}", **options)  # type: ignore[arg-type]
        for event in decision.events:
            self.records[event.key] = json.dumps(to_record(event), allow_nan=False)
            self.catalog.apply(event)
        self.changes += changes_for(decision.events)
        return decision

    def heard(self) -> dict[str, QueryChange]:
        return {change.uid: change for change in self.changes}

    def rebuilt(self) -> Catalog:
        catalog = Catalog()
        # Compaction keeps the order of the latest records, but nothing may depend on it.
        for key, record in sorted(self.records.items(), reverse=True):
            catalog.apply(from_record(key, json.loads(record) if record else None))
        return catalog


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


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    for command in (
        CreateStream(stream("a")),
        CreateStream(stream("b")),
        CreateGroup(spec("g", "a", "b")),
        CreateQuery("g", query("q", "a + b")),
    ):
        driver.do(command)
    return driver


REFUSALS: list[tuple[str, Command, type[SkybandError], str]] = [
    (
        "a name that is taken",
        CreateQuery("g", query("q", "a")),
        AlreadyExistsError,
        "group 'g' has a query 'q' already; update it, or choose another name",
    ),
    (
        "a group that is taken",
        CreateGroup(spec("g", "a")),
        AlreadyExistsError,
        "there is a group 'g' already; update it, or choose another name",
    ),
    (
        "a stream that is taken",
        CreateStream(stream("a")),
        AlreadyExistsError,
        "there is a stream 'a' already; update it, or choose another name",
    ),
    (
        "a stream of nobody",
        CreateGroup(spec("h", "z")),
        NotFoundError,
        "there is no stream 'z'; see them with `skyband streams list`",
    ),
    (
        "no such group",
        CreateQuery("h", query("q", "a")),
        NotFoundError,
        "there is no group 'h'; see them with `skyband groups list`",
    ),
    (
        "no such query",
        PauseQuery("g", "z"),
        NotFoundError,
        "there is no query 'z' in group 'g'; see them with `skyband queries list g`",
    ),
    (
        "a stream in use",
        DeleteStream("a"),
        ConflictError,
        "stream 'a' is used by group g; delete the group first",
    ),
    (
        "a group with queries",
        DeleteGroup("g"),
        ConflictError,
        "group 'g' has 1 query (q); delete them first, or delete the group with force",
    ),
    (
        "another score",
        UpdateQuery("g", query("q", "a", 11)),
        DefinitionError,
        "score of query 'g/q' cannot change; create a query of another name with the new score, then delete this one",
    ),
    (
        "another window",
        UpdateQuery("g", replace(query("q", "a + b"), window=Window(SECOND, SECOND)), ("window.size",)),
        DefinitionError,
        "window of query 'g/q' cannot change; create a query of another name with the new window, then delete this one",
    ),
    (
        "another require",
        UpdateQuery("g", query("q", "a + b", require_all=True)),
        DefinitionError,
        "require of query 'g/q' cannot change; create a query of another name with the new require, then delete this one",
    ),
    (
        "another algorithm",
        UpdateQuery("g", query("q", "a + b", algorithm=Algorithm.VIEW)),
        DefinitionError,
        "algorithm of query 'g/q' cannot change; create a query of another name with the new algorithm, then delete this one",
    ),
    (
        "a field that is none",
        UpdateQuery("g", query("q", "a + b"), ("scores",)),
        DefinitionError,
        "update_mask names 'scores', which a query does not have; did you mean score?",
    ),
    (
        "another pane",
        UpdateGroup(spec("g", "a", "b", pane_us=2 * SECOND)),
        DefinitionError,
        "pane of group 'g' is fixed within a generation; begin a new one with it: skyband groups regenerate g",
    ),
    (
        "a stream taken out",
        RegenerateGroup("g", spec("g", "b", "a")),
        DefinitionError,
        "streams of group 'g' can only be added behind a, b; for other streams create another group",
    ),
    (
        "a generation that a query does not fit",
        RegenerateGroup("g", replace(spec("g", "a", "b"), retention_us=SECOND)),
        NotServedError,
        "a new generation of group 'g' would end its query 'q': window size 1m is above the group's retention 1s; "
        "raise retention or ask for a smaller window; or delete the query first",
    ),
    (
        "an old etag",
        PauseQuery("g", "q", "uid4.7"),
        ConflictError,
        "groups/g/queries/q has changed since it was read; read it again, then repeat the change",
    ),
    (
        "a source twice",
        CreateGroup(spec("h", "a"), (SourceStart("a", 0, 5), SourceStart("a", 0, 6))),
        DefinitionError,
        "sources[1] names partition 0 of stream 'a' a second time; keep one",
    ),
    (
        "a delay that no file could say",
        CreateStream(stream("z", max_delay_us=3_661 * 86_400 * SECOND)),
        DefinitionError,
        "max_delay '3661d' is longer than ten years",
    ),
]


@pytest.mark.parametrize(
    ("command", "kind", "message"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
def test_a_refusal_says_what_is_wrong_and_what_to_do(
    driver: Driver, command: Command, kind: type[SkybandError], message: str
) -> None:
    before = dict(driver.records)
    with pytest.raises(kind) as caught:
        driver.do(command)
    assert str(caught.value) == message
    assert type(caught.value) is kind
    assert driver.records == before


def test_a_plan_stays_when_the_planner_would_choose_another(driver: Driver) -> None:
    assert driver.catalog.query("g", "q").plan.algorithm is Algorithm.TWO_TIER
    driver.do(UpdateStream(stream("a", aggregate=Aggregate.MAX), ("aggregate",)))
    driver.do(RegenerateGroup("g"))
    assert driver.catalog.group("g").group.streams[0].aggregate is Aggregate.MAX
    assert driver.catalog.query("g", "q").plan.algorithm is Algorithm.TWO_TIER
    driver.do(UpdateStream(stream("a", aggregate=Aggregate.LATEST), ("aggregate",)))
    with pytest.raises(NotServedError, match="would end its query 'q': query 'q' cannot use two-tier"):
        driver.do(RegenerateGroup("g"))


def test_a_stream_changes_in_its_group_only_with_a_new_generation(driver: Driver) -> None:
    driver.do(UpdateStream(stream("a", 7.0, max_delay_us=5), ("hi",)))
    assert driver.catalog.group("g").group.streams[0].attributes[0].hi == 100.0
    regenerated = driver.do(RegenerateGroup("g", sources=(SourceStart("b", 1, 9), SourceStart("a", 0, 8)))).resource
    assert regenerated == driver.catalog.group("g")
    found = driver.catalog.group("g")
    assert found.generation == 2
    assert found.group.streams[0].attributes[0].hi == 7.0
    assert found.group.streams[0].max_delay_us == 0
    assert [(s.stream, s.partition, s.offset) for s in found.sources] == [("a", 0, 8), ("b", 1, 9)]


def test_a_group_of_a_name_used_before_begins_behind_its_last_generation(driver: Driver) -> None:
    driver.do(RegenerateGroup("g"))
    driver.do(DeleteGroup("g", force=True))
    driver.do(CreateGroup(spec("g", "a")))
    assert driver.catalog.group("g").generation == 3
    assert driver.rebuilt() == driver.catalog


def test_what_changes_nothing_writes_nothing(driver: Driver) -> None:
    etag = driver.catalog.query("g", "q").stamp.etag
    for command in (
        UpdateQuery("g", query("q", "a + b")),
        UpdateQuery("g", query("q", "a + b", 99), ("score",)),
        ResumeQuery("g", "q"),
        UpdateGroup(spec("g", "a", "b")),
        UpdateStream(stream("a")),
    ):
        assert driver.do(command).events == ()
    assert driver.do(UpdateQuery("g", query("q", "a + b", 11), etag=etag)).resource is not None
    assert driver.catalog.query("g", "q").stamp.etag != etag


def test_the_oldest_request_is_forgotten_first(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skyband.control.decisions.REMEMBERED", 3)
    for number in range(5):
        driver.do(UpdateQuery("g", query("q", "a + b", number + 1)), request_id=f"r{number}")
    assert [driver.catalog.remembered(f"r{number}") is not None for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert driver.rebuilt() == driver.catalog
    with pytest.raises(ConflictError, match="request_id 'r4' was used for another request"):
        driver.do(PauseQuery("g", "q"), request_id="r4")


def test_a_page_token_stays_good_while_resources_come_and_go(driver: Driver) -> None:
    for name in "bdfhj":
        driver.do(CreateStream(stream(f"s{name}")))
    first = driver.catalog.page("streams", 3)
    assert [r.name for r in first.resources] == ["streams/a", "streams/b", "streams/sb"]
    driver.do(DeleteStream("sb"))
    driver.do(CreateStream(stream("sa")))
    driver.do(CreateStream(stream("se")))
    second = driver.catalog.page("streams", 3, first.next_page_token)
    assert [r.name for r in second.resources] == ["streams/sd", "streams/se", "streams/sf"]
    last = driver.catalog.page("streams", 3, second.next_page_token)
    assert [r.name for r in last.resources] == ["streams/sh", "streams/sj"]
    assert last.next_page_token == ""


@pytest.mark.parametrize(
    ("collection", "size", "token", "message"),
    [
        ("groups/z/queries", 0, "", "there is no group 'z'; see them with `skyband groups list`"),
        (
            "things",
            0,
            "",
            "'things' is no list; lists are streams, groups, groups/<group>/queries and groups/-/queries",
        ),
        ("streams", -1, "", "page_size must not be negative"),
        ("streams", 0, "nonsense", "page_token is not one of a list of streams; begin again without it"),
        ("groups", 0, "WyJzdHJlYW1zIiwgImEiXQ==", "page_token is not one of a list of groups; begin again without it"),
    ],
)
def test_a_list_that_cannot_be_is_refused(driver: Driver, collection: str, size: int, token: str, message: str) -> None:
    with pytest.raises(SkybandError) as caught:
        driver.catalog.page(collection, size, token)
    assert str(caught.value) == message


def test_queries_are_listed_over_all_groups_too(driver: Driver) -> None:
    driver.do(CreateGroup(spec("h", "a")))
    driver.do(CreateQuery("h", query("p", "a")))
    assert [r.name for r in driver.catalog.page("groups/-/queries").resources] == [
        "groups/g/queries/q",
        "groups/h/queries/p",
    ]
    assert [r.name for r in driver.catalog.page("groups/h/queries").resources] == ["groups/h/queries/p"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"version": 2, "kind": "stream"}, "is of version 2 and kind 'stream'; this control reads version 1"),
        ({"version": 1, "kind": "planet"}, "is of version 1 and kind 'planet'"),
        ({"version": 1, "kind": "stream"}, "is damaged"),
    ],
)
def test_a_record_that_is_not_understood_stops_control(record: dict[str, object], message: str) -> None:
    with pytest.raises(LogError, match=message):
        from_record("streams/a", record)


def test_a_removed_key_is_a_record_of_nothing() -> None:
    assert to_record(Removed("streams/a")) is None
    assert from_record("streams/a", None) == Removed("streams/a")
