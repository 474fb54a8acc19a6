"""Control over a log: what was answered survives, and the shards hear all of it."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.control.commands import (
    Command,
    CreateGroup,
    CreateQuery,
    CreateStream,
    DeleteGroup,
    DeleteQuery,
    PauseQuery,
    RegenerateGroup,
    ResumeQuery,
    UpdateQuery,
)
from skyband.control.stage import ControlStage
from skyband.errors import LogError, NotFoundError, SkybandError
from skyband.log.clock import ManualClock
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.query import Algorithm, Query, QueryState, Window
from skyband.model.resources import GroupResource, GroupSpec, QueryResource
from skyband.model.status import ShardReport
from skyband.model.stream import Attribute, Stream
from tests.control.list_log import ListLog, empty_log

SECOND = 1_000_000
CATALOG = Position("catalog", 0)


def stream(name: str) -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name),))


def spec(*streams: str) -> GroupSpec:
    return GroupSpec(name="g", streams=streams, retention_us=600 * SECOND)


def query(name: str, k: int = 10) -> Query:
    return Query(name=name, k=k, score="a", window=Window(60 * SECOND, 10 * SECOND))


SETUP: list[Command] = [CreateStream(stream("a")), CreateGroup(spec("a")), CreateQuery("g", query("q"))]
UIDS = itertools.count()


def opened(log: ListLog) -> ControlStage:
    return ControlStage(log, ManualClock(1000 * SECOND), lambda: f"uid{next(UIDS)}")


def started(log: ListLog) -> ControlStage:
    stage = opened(log)
    for command in SETUP:
        stage.execute(command)
    return stage


def heard(log: ListLog) -> dict[str, QueryChange]:
    values = [record.value for record in log.topics[CATALOG]]
    return {value.uid: value for value in values if isinstance(value, QueryChange)}


def test_a_command_is_in_the_topic_before_it_is_answered(log: ListLog) -> None:
    stage = started(log)
    keys = [record.key for record in log.topics[CATALOG]]
    found = stage.catalog.query("g", "q")
    assert keys == [b"opened", b"streams/a", b"groups/g", b"groups/g/queries/q", b"changes/" + found.stamp.uid.encode()]
    assert heard(log)[found.stamp.uid] == QueryChange(
        uid=found.stamp.uid,
        revision=1,
        group="g",
        query=Query(name="q", k=10, score="a", window=query("q").window, algorithm=Algorithm.TWO_TIER),
        state=QueryState.ACTIVE,
    )


def test_a_control_that_starts_again_knows_what_it_knew(log: ListLog) -> None:
    stage = started(log)
    stage.execute(PauseQuery("g", "q"), request_id="r")
    log.compact("catalog")
    again = opened(log)
    assert again.catalog == stage.catalog
    before = len(log.topics[CATALOG])
    assert again.execute(PauseQuery("g", "q"), request_id="r") == stage.catalog.query("g", "q")
    assert len(log.topics[CATALOG]) == before


def test_a_dry_run_writes_nothing(log: ListLog) -> None:
    stage = started(log)
    before = len(log.topics[CATALOG])
    would = stage.execute(UpdateQuery("g", query("q", 5)), validate_only=True, request_id="r")
    assert isinstance(would, QueryResource)
    assert (would.query.k, would.stamp.revision) == (5, 2)
    assert stage.catalog.query("g", "q").query.k == 10
    assert len(log.topics[CATALOG]) == before


def test_a_failed_write_is_not_applied_and_refuses_what_follows(log: ListLog) -> None:
    stage = started(log)
    log.refuse = 1
    with pytest.raises(LogError, match="the log is away"):
        stage.execute(PauseQuery("g", "q"))
    assert stage.catalog.query("g", "q").state is QueryState.ACTIVE
    log.refuse = None
    with pytest.raises(LogError, match="an earlier write failed \\(the log is away\\); restart it"):
        stage.execute(PauseQuery("g", "q"))
    # The first of its two records was written: the next control finds it, and writes the second.
    again = opened(log)
    assert again.catalog.query("g", "q").state is QueryState.PAUSED
    assert [change.state for change in heard(log).values()] == [QueryState.PAUSED]


COMMANDS: list[Command] = [
    CreateStream(stream("b")),
    CreateQuery("g", query("r")),
    CreateQuery("g", query("q")),
    UpdateQuery("g", query("q", 3)),
    UpdateQuery("g", query("q", 4)),
    PauseQuery("g", "q"),
    ResumeQuery("g", "q"),
    DeleteQuery("g", "q"),
    RegenerateGroup("g"),
    DeleteGroup("g", force=True),
    CreateGroup(spec("a")),
]


@given(st.lists(st.tuples(st.sampled_from(COMMANDS), st.none() | st.integers(0, 3), st.booleans()), max_size=12))
@settings(max_examples=120, deadline=None)
def test_wherever_control_dies_the_next_one_tells_the_shards_just_what_is(
    script: list[tuple[Command, int | None, bool]],
) -> None:
    log = empty_log()
    stage = started(log)
    for command, refuse, compact in script:
        log.refuse = refuse
        try:
            stage.execute(command)
        except LogError:
            log.refuse = None
            stage = opened(log)
        except SkybandError:
            pass
        log.refuse = None
        if compact:
            log.compact("catalog")
    again = opened(log)
    again.catalog._check()
    assert again.catalog == stage.catalog
    live = {c.uid: (c.query.name, c.query.k, c.state) for c in heard(log).values() if c.state is not QueryState.DELETED}
    assert live == {r.stamp.uid: (r.query.name, r.query.k, r.state) for r in again.catalog.queries()}


def test_reports_become_words(log: ListLog) -> None:
    stage = started(log)
    assert stage.describe("g", "q").headline == "q  STARTING"
    value = ShardReport(group="g", generation=1, shard=0, rows_in=0)
    log.send("progress", 1, value)
    log.send("progress", 0, "of no concern")
    assert stage.poll() == 2
    assert stage.poll() == 0
    assert stage.describe("g", "q").headline == "q  ACTIVE, no data yet"
    assert stage.explain("g", "q").startswith("q: the 10 objects with the highest a\n")
    stage.execute(DeleteGroup("g", force=True))
    with pytest.raises(NotFoundError):
        stage.describe("g", "q")
    group = stage.execute(CreateGroup(spec("a")))
    assert isinstance(group, GroupResource)
    assert group.generation == 2
    stage.execute(CreateQuery("g", query("q")))
    assert stage.describe("g", "q").headline == "q  STARTING"


def test_lists_come_in_pages(log: ListLog) -> None:
    stage = started(log)
    stage.execute(CreateQuery("g", query("r")))
    page = stage.page("groups/g/queries", 1)
    assert [r.name for r in page.resources] == ["groups/g/queries/q"]
    assert [r.name for r in stage.page("groups/g/queries", 1, page.next_page_token).resources] == ["groups/g/queries/r"]
    stage.close()


def test_a_topic_that_keeps_nothing_is_no_catalog(log: ListLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ListLog, "send", lambda *args, **kwargs: None)
    with pytest.raises(LogError, match="does not give back what was just written"):
        opened(log)


def test_a_control_that_does_not_write_follows_the_one_that_does(log: ListLog) -> None:
    writer = started(log)
    reader = ControlStage(log, ManualClock(1000 * SECOND), lambda: "never", writes=False)
    reader.poll()
    assert reader.catalog == writer.catalog
    writer.execute(UpdateQuery("g", query("q", 20)))
    writer.execute(CreateQuery("g", query("other")))
    assert reader.catalog != writer.catalog
    reader.poll()
    assert reader.catalog == writer.catalog
    writer.execute(DeleteGroup("g", force=True))
    reader.poll()
    assert reader.catalog == writer.catalog


def test_a_control_that_does_not_write_refuses_commands_and_writes_nothing(log: ListLog) -> None:
    started(log)
    before = list(log.topics[CATALOG])
    reader = ControlStage(log, ManualClock(1000 * SECOND), lambda: "never", writes=False)
    reader.poll()
    assert not reader.writes
    with pytest.raises(LogError, match="only reads"):
        reader.execute(PauseQuery("g", "q"))
    assert log.topics[CATALOG] == before


def test_each_generation_is_prepared_once_and_before_the_catalog_names_it(log: ListLog) -> None:
    prepared: list[tuple[int, bool]] = []

    def prepare(resource: GroupResource) -> None:
        named = any(
            isinstance(r.value, dict) and r.value.get("generation") == resource.generation for r in log.topics[CATALOG]
        )
        prepared.append((resource.generation, named))

    stage = ControlStage(log, ManualClock(1000 * SECOND), lambda: f"uid{next(UIDS)}", prepare=prepare)
    for command in SETUP:
        stage.execute(command)
    stage.execute(UpdateQuery("g", query("q", 3)))
    stage.execute(RegenerateGroup("g"), validate_only=True)
    assert prepared == [(1, False)]
    stage.execute(RegenerateGroup("g"))
    assert prepared == [(1, False), (2, False)]


def test_a_generation_that_cannot_be_prepared_is_not_written(log: ListLog) -> None:
    def prepare(resource: GroupResource) -> None:
        raise LogError("no topic for you")

    stage = ControlStage(log, ManualClock(1000 * SECOND), lambda: f"uid{next(UIDS)}", prepare=prepare)
    stage.execute(SETUP[0])
    with pytest.raises(LogError, match="no topic"):
        stage.execute(SETUP[1])
    with pytest.raises(NotFoundError):
        stage.catalog.group("g")
    assert [record.key for record in log.topics[CATALOG]] == [b"opened", b"streams/a"]
    stage.execute(CreateStream(stream("b")))
