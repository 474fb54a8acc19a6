"""The client against servers of this process, some of which die and come back."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from skyband.client import Client, Update
from skyband.control.commands import DeleteQuery, PauseQuery
from skyband.errors import (
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    LogError,
    NotFoundError,
    NotServedError,
    SkybandError,
)
from skyband.fanout.resume_token import ResumeToken
from skyband.model.query import QueryState
from tests.client.conftest import Deployment
from tests.services.fanout.conftest import START, S

PATH = "factory/hottest"


def ids(rows: object) -> list[str]:
    return [row.object_id for row in rows]  # type: ignore[attr-defined]


# --- resources


def test_a_question_of_ones_own_is_asked_in_three_calls(client: Client) -> None:
    stream = client.create_stream("cold", lo=-50, hi=50, max_delay="2s", idle={"after": timedelta(minutes=1)})
    assert (stream.stream.max_delay_us, stream.stream.idle_after_us) == (2 * S, 60 * S)
    group = client.create_group("lab", streams=["cold"], retention="10m", shards=2, begin="latest")
    assert (group.group.retention_us, group.group.shards, group.generation) == (600 * S, 2, 1)
    assert group.sources[0].offset == 7
    query = client.create_query("lab", name="coldest", k=5, score="cold", order="lowest", window="60s", slide="10s")
    assert query.path == "lab/coldest"
    assert query.resource.plan.reason
    assert query.explain().startswith("coldest: the 5 objects with the lowest cold")
    assert query.describe().headline.startswith("coldest  STARTING")
    assert [q.name for q in client.list_queries("lab")] == ["groups/lab/queries/coldest"]
    query.update(k=7)
    assert query.resource.query.k == 7
    query.pause()
    assert query.resource.state is QueryState.PAUSED
    query.resume()
    assert client.query("lab/coldest").resource.state is QueryState.ACTIVE
    query.delete()
    assert list(client.list_queries("lab")) == []
    client.delete_group("lab")
    client.delete_stream("cold")
    assert [s.stream.name for s in client.list_streams()] == ["heat"]


def test_a_window_in_rows_is_a_whole_number(client: Client) -> None:
    client.create_stream("load")
    client.create_group("lab", streams=["load"], retention="1m", retention_rows=100)
    query = client.create_query("lab", name="q", k=1, score="load", window=50, slide=10)
    assert (query.resource.query.window.size, query.resource.query.window.in_rows) == (50, True)


def test_an_update_names_only_what_changes(client: Client) -> None:
    before = client.get_stream("heat").stream
    after = client.update_stream("heat", max_delay="3s", lo=-1).stream
    assert (after.max_delay_us, after.attributes[0].lo) == (3 * S, -1)
    assert (after.attributes[0].hi, after.aggregate) == (before.attributes[0].hi, before.aggregate)
    assert client.update_group("factory", max_drift="5s").group.max_drift_us == 5 * S
    with pytest.raises(DefinitionError, match="nothing is said that shall change"):
        client.update_stream("heat")


def test_a_generation_begins_as_the_group_is_or_otherwise(client: Client, deployment: Deployment) -> None:
    same = client.regenerate_group("factory")
    assert (same.generation, same.group.retention_us) == (2, 60 * S)
    other = client.regenerate_group("factory", shards=3, begin=datetime(2026, 1, 1, tzinfo=UTC))
    assert (other.generation, other.group.shards, other.group.retention_us) == (3, 3, 60 * S)
    assert deployment.begins == ["earliest", 1_767_225_600 * S]


def test_a_dry_run_shows_a_plan_and_keeps_nothing(client: Client) -> None:
    tried = client.create_query("factory", name="q", k=1, score="heat", window="5s", validate_only=True)
    assert tried.resource.plan.cost
    assert [q.query.name for q in client.list_queries()] == ["coolest", "hottest"]


def test_lists_of_any_length_are_read_through(client: Client) -> None:
    for number in range(60):
        client.create_query("factory", name=f"q{number:02}", k=1, score="heat", window="5s")
    assert len(list(client.list_queries("factory"))) == 62
    assert [g.group.name for g in client.list_groups()] == ["factory"]


# --- errors


def test_errors_are_those_of_the_server_with_their_sentences(client: Client) -> None:
    with pytest.raises(NotFoundError, match="there is no group 'none'; see them with `skyband groups list`"):
        client.get_group("none")
    with pytest.raises(AlreadyExistsError):
        client.create_stream("heat")
    with pytest.raises(ConflictError, match="is used by group factory"):
        client.delete_stream("heat")
    with pytest.raises(ConflictError, match="changed since"):
        client.pause_query(PATH, etag="old")
    with pytest.raises(NotServedError):
        client.create_stream("row", identity="row")
    with pytest.raises(NotFoundError, match="no query 'none' in group 'factory'"):
        client.get_result("factory/none")


def test_a_mistake_in_a_score_is_pointed_at(client: Client) -> None:
    with pytest.raises(DefinitionError) as caught:
        client.create_query("factory", name="q", k=1, score="heat + speed", window="5s")
    assert caught.value.field == "query.score"
    assert caught.value.pointer() == "heat + speed\n       ^^^^^"


def test_what_is_wrong_by_itself_is_refused_before_it_is_sent() -> None:
    with Client("localhost:1", retry_s=0.01) as client:
        with pytest.raises(DefinitionError, match="k must be at least 1"):
            client.create_query("factory", name="q", k=0, score="heat", window="5s")
        with pytest.raises(DefinitionError, match="group/query"):
            client.get_result("hottest")


def test_nobody_at_home_is_said_with_the_address() -> None:
    with Client("localhost:1", retry_s=0.01) as client:
        with pytest.raises(SkybandError, match=r"cannot reach Skyband at localhost:1 \(Connection refused"):
            client.get_group("factory")
        with pytest.raises(SkybandError, match="cannot reach Skyband at localhost:1"):
            next(client.subscribe(PATH))


def test_a_call_is_tried_again_while_the_log_is_away(client: Client, deployment: Deployment) -> None:
    deployment.failures += [LogError("the log is away; wait")] * 2
    assert client.get_group("factory").generation == 1
    assert deployment.failures == []


def test_trouble_that_lasts_is_told_in_the_servers_words(deployment: Deployment) -> None:
    deployment.failures += [LogError("the log is away; wait")] * 100
    with Client(deployment.address, retry_s=0.01) as client, pytest.raises(LogError, match="the log is away; wait"):
        client.get_group("factory")


# --- results


def test_updates_have_the_whole_ranking_and_what_changed(client: Client, deployment: Deployment) -> None:
    deployment.feed(0, a=1, b=2, c=3)
    deployment.feed(1.5, a=5)
    updates = client.subscribe(PATH)
    first = next(updates)
    assert (ids(first.rows), ids(first.entered), first.is_snapshot) == (["c", "b"], ["c", "b"], True)
    assert (first.window_start, first.window_end) == (START - 9 * S, START + S)
    assert first.frontier_us is not None
    assert first.age is not None
    deployment.feed(2.5, b=2)
    second = next(updates)
    assert (ids(second.rows), ids(second.entered), ids(second.left)) == (["a", "c"], ["a"], ["b"])
    assert [(move.row.object_id, move.old_rank) for move in second.moved] == [("c", 1)]
    assert client.get_result(PATH).rows == second.rows
    assert client.get_result(PATH, first.window_end).rows == first.rows


def test_a_subscription_survives_its_server(client: Client, deployment: Deployment) -> None:
    deployment.feed(0, a=1, b=2, c=3)
    deployment.feed(1.5, a=5)
    updates = client.query(PATH).watch()
    assert ids(next(updates).rows) == ["c", "b"]
    deployment.stop()
    deployment.feed(2.5, b=9)
    deployment.feed(3.5, c=1)
    deployment.start()
    mended = next(updates)
    assert not mended.is_snapshot
    assert (ids(mended.rows), mended.window_end) == (["b", "a"], START + 3 * S)
    assert (ids(mended.entered), ids(mended.left)) == (["a"], ["c"])
    assert [(move.row.object_id, move.old_rank) for move in mended.moved] == [("b", 2)]


def test_a_quiet_subscription_survives_its_server_too(deployment: Deployment) -> None:
    with Client(deployment.address, retry_s=0.5) as client:
        deployment.feed(0.5, a=1)
        updates = client.subscribe(PATH)
        found: list[Update] = []
        reader = threading.Thread(target=lambda: found.append(next(updates)))
        reader.start()
        deployment.source.wait_for(live=1)
        deployment.stop()
        deployment.start()
        deployment.source.wait_for(live=1, made=2)
        deployment.feed(1.5, a=1)
        reader.join(10)
    assert [ids(update.rows) for update in found] == [["a"]]


def test_a_subscription_with_an_outdated_token_begins_anew(
    client: Client, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.feed(0, a=1, b=2, c=3)
    deployment.feed(1.5, a=5)
    updates = client.subscribe(PATH)
    next(updates)
    deployment.stop()
    deployment.feed(2.5, b=9)
    decode = ResumeToken.decode

    def of_before(text: str) -> ResumeToken:
        token = decode(text)
        return ResumeToken(token.uid, token.generation + 1, token.position, token.window_end)

    monkeypatch.setattr("skyband.fanout.result_tail.ResumeToken.decode", of_before)
    deployment.start()
    anew = next(updates)
    assert (anew.is_snapshot, ids(anew.rows)) == (True, ["a", "c"])


def test_progress_and_pauses_are_told_to_who_asks(client: Client, deployment: Deployment) -> None:
    deployment.feed(0.5, a=1)
    deployment.feed(20, b=1)
    updates = client.subscribe(PATH, progress=True)
    shown = next(updates)
    deployment.pipeline.control.execute(PauseQuery("factory", "hottest"))
    deployment.work()
    update = next(updates)
    while update.state is QueryState.ACTIVE:
        update = next(updates)
    assert (update.state, update.is_progress, update.rows) == (QueryState.PAUSED, True, shown.rows)


def test_a_subscription_to_a_query_that_is_deleted_says_so(client: Client, deployment: Deployment) -> None:
    deployment.feed(0.5, a=1)
    deployment.feed(1.5, a=1)
    updates = client.subscribe(PATH)
    next(updates)
    deployment.pipeline.control.execute(DeleteQuery("factory", "hottest"))
    deployment.work()
    with pytest.raises(NotFoundError, match="was deleted"):
        next(updates)


def test_who_stops_watching_is_forgotten(client: Client, deployment: Deployment) -> None:
    deployment.feed(0.5, a=1)
    deployment.feed(1.5, a=1)
    for _ in client.subscribe(PATH):
        break
    deployment.source.wait_for(live=0, made=1)


def test_results_are_found_where_control_says_they_are() -> None:
    deployment = Deployment(apart=True)
    deployment.feed(0.5, a=1)
    deployment.feed(1.5, a=1)
    with Client(deployment.address) as client:
        assert ids(client.get_result(PATH).rows) == ["a"]
        assert ids(next(client.subscribe(PATH)).rows) == ["a"]
    with Client(deployment.address, results=deployment.servers[0].address) as client:
        assert ids(client.get_result(PATH).rows) == ["a"]
    deployment.close()
