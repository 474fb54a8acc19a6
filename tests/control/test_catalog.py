"""What commands make of the catalog, how it is listed, and what its records say."""

import pytest

from skyband.control.catalog_events import Removed, from_record, to_record
from skyband.control.commands import (
    CreateGroup,
    CreateQuery,
    CreateStream,
    DeleteGroup,
    DeleteStream,
    PauseQuery,
    RegenerateGroup,
    ResumeQuery,
    UpdateGroup,
    UpdateQuery,
    UpdateStream,
)
from skyband.errors import ConflictError, NotServedError
from skyband.model.query import Algorithm
from skyband.model.resources import SourceStart
from skyband.model.stream import Aggregate
from tests.control.catalog_driver import Driver, driver_with_a_query, query, spec, stream


@pytest.fixture
def driver() -> Driver:
    return driver_with_a_query()


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


def test_queries_are_listed_over_all_groups_too(driver: Driver) -> None:
    driver.do(CreateGroup(spec("h", "a")))
    driver.do(CreateQuery("h", query("p", "a")))
    assert [r.name for r in driver.catalog.page("groups/-/queries").resources] == [
        "groups/g/queries/q",
        "groups/h/queries/p",
    ]
    assert [r.name for r in driver.catalog.page("groups/h/queries").resources] == ["groups/h/queries/p"]


def test_a_removed_key_is_a_record_of_nothing() -> None:
    assert to_record(Removed("streams/a")) is None
    assert from_record("streams/a", None) == Removed("streams/a")
