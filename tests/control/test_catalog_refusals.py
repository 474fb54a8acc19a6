"""What the catalog refuses, with the sentence that says why and what to do."""
# ruff: noqa: E501 - sentences as they are shown

from dataclasses import replace

import pytest

from skyband.control.catalog_events import from_record
from skyband.control.commands import (
    Command,
    CreateGroup,
    CreateQuery,
    CreateStream,
    DeleteGroup,
    DeleteStream,
    PauseQuery,
    RegenerateGroup,
    UpdateGroup,
    UpdateQuery,
)
from skyband.errors import (
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    LogError,
    NotFoundError,
    NotServedError,
    SkybandError,
)
from skyband.model.query import Algorithm, Window
from skyband.model.resources import SourceStart
from tests.control.catalog_driver import SECOND, Driver, driver_with_a_query, query, spec, stream


@pytest.fixture
def driver() -> Driver:
    return driver_with_a_query()


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
