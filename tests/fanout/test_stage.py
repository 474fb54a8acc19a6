"""One replica: what it writes, and what subscribers see. Several of them are in test_replicas.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.errors import ConflictError, DefinitionError, LogError, NotFoundError
from skyband.fanout.merge_stage import ServedGroup
from skyband.fanout.resume_token import ResultPosition, ResumeToken
from skyband.fanout.stage import FanoutStage
from skyband.fanout.subscription import Mode, UpdateKind
from skyband.log.clock import ManualClock
from skyband.log.record_log import Position
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import QueryState
from tests.fanout.partials import query_change
from tests.fanout.place import (
    GROUP,
    SECOND,
    Place,
    Q,
    activated,
    drain,
    names,
    new_log,
    part,
    progress,
    records,
    results,
    send,
    shown,
    taken,
    trim,
)
from tests.fanout.watched_log import CrashAt, WatchedLog


def test_partials_become_results_with_their_key_and_readers_know_how_far_they_were_needed() -> None:
    place = Place()
    place.show(10, "ab")
    place.show(20, "ba")
    place.send("partials", part(30, "a"))
    place.after_a_second()
    assert shown(results(place.memory)) == [(10, "ab"), (20, "ba")]
    assert {record.key for record in records(place.memory, "results")} == {b"u1"}
    at = Position("partials", 0)
    assert place.memory.consumer("skyband.fanout").committed([at])[at].offset == 5


def test_a_query_created_while_running_is_known_before_its_partials_are_taken() -> None:
    place = Place()
    late = query_change("u2")
    place.send("catalog", late)
    place.send("partials", activated(10, late), part(10, "x", late), progress(10))
    drain(place.stage)
    assert shown(results(place.memory)) == [(10, "x")]


def test_values_of_groups_and_generations_not_served_are_counted() -> None:
    place = Place()
    place.send("partials", Progress("other", 1, 0, 5, 5), Progress("g", 2, 0, 5, 5))
    drain(place.stage)
    assert place.stage.statistics()["stage"] == {"ignored_values": 2}


def test_several_groups_share_the_topics() -> None:
    log = new_log()
    other = query_change("u2", name="q", group="h")
    stage = FanoutStage(log, ManualClock(), [GROUP, ServedGroup("h", 4, 1)])
    send(log, "catalog", Q, other)
    send(log, "partials", Activated("h", 4, 0, "u2", 1, 10), activated(10), part(10, "a"), progress(10))
    drain(stage)
    assert shown(results(log)) == [(10, "a")]
    with pytest.raises(DefinitionError, match=r"is in several groups \(g, h\); name the group"):
        stage.subscribe("q")
    assert stage.subscribe("q", group="h").uid == "u2"


@given(st.data())
def test_results_come_once_and_in_order_wherever_it_dies_and_however_often_it_restarts(data: st.DataObject) -> None:
    memory, clock = new_log(), ManualClock()
    served = [ServedGroup("g", 1, 2)]
    send(memory, "catalog", Q)
    values: list[PartialBatch | Progress | Activated] = [activated(10), activated(10, shard=1)]
    for end in range(10, 60, 10):
        values += [part(end, "ac"), progress(end), part(end, "bd", shard=1), progress(end, 1)]
    stage: FanoutStage | None = None
    log = WatchedLog(memory)
    sent = 0
    while sent < len(values):
        count = data.draw(st.integers(1, 5))
        send(memory, "partials", *values[sent : sent + count])
        sent += count
        clock.advance(data.draw(st.sampled_from([0, 2 * SECOND])))
        try:
            if stage is None:
                log = WatchedLog(memory, CrashAt(data.draw(st.integers(20, 90))))
                stage = FanoutStage(log, clock, served)
            stage.step(0.0)
        except LogError:
            log.expire()
            stage = None
    log.expire()
    drain(FanoutStage(memory, clock, served))
    # Rows at one rank on both shards have one score.
    assert shown(results(memory)) == [(end, "abc") for end in range(10, 60, 10)]


def test_a_stage_that_failed_does_nothing_more_and_can_be_closed() -> None:
    place = Place()
    place.show(10, "a")
    place.send("partials", part(20, "b"), progress(20))
    place.log.hook = CrashAt(3)
    with pytest.raises(LogError, match="dead"):
        drain(place.stage)
    place.log.hook = lambda call: None
    with pytest.raises(LogError, match="this fanout stage has failed before; close it, and build a new one"):
        place.stage.step(0.0)
    place.stage.close()
    assert shown(results(place.memory)) == [(10, "a")]
    drain(place.start())
    assert shown(results(place.memory)) == [(10, "a"), (20, "b")]


def test_a_deleted_query_is_forgotten_for_good_also_by_a_restart() -> None:
    place = Place()
    place.show(10, "a")
    deleted = query_change("u1", name="q", revision=2, state=QueryState.DELETED)
    place.send("catalog", deleted)
    place.send("partials", activated(20, deleted))
    drain(place.stage)
    place.restart()
    place.send("partials", activated(10), part(10, "a"), part(20, "a"), progress(30))
    drain(place.stage)
    assert len(results(place.memory)) == 1
    newest = {record.key: record.value for record in records(place.memory, "marks")}
    assert newest[b"g/1/u1"] is None


def test_a_group_that_is_served_later_misses_nothing_of_what_came_before() -> None:
    place = Place()
    other = query_change("u2", group="h")
    early = Activated("h", 1, 0, "u2", 1, 10), part(10, "x", other)
    place.send("catalog", other)
    place.show(10, "a")
    place.send("partials", *early)
    drain(place.stage)
    place.restart()
    place.send("partials", part(20, "y", other), progress(20, group="h"))
    drain(place.stage)
    assert shown(results(place.memory)) == [(10, "a")]
    place.stage.serve([GROUP, ServedGroup("h", 1, 1)])
    drain(place.stage)
    assert shown(results(place.memory)) == [(10, "a"), (10, "x"), (20, "y")]
    assert place.stage.statistics()["h.1"]["queries"] == 1


def test_nothing_is_merged_before_the_groups_are_known() -> None:
    place = Place()
    place.stage.close()
    stage = FanoutStage(place.memory, place.clock)
    place.send("partials", part(10, "a"), progress(10))
    assert not stage.step(0.0)
    with pytest.raises(NotFoundError):
        stage.subscribe("q")
    stage.serve([GROUP])
    subscription = stage.subscribe("q")
    drain(stage)
    assert names(taken(subscription).result) == "a"


def test_a_subscriber_gets_a_snapshot_then_deltas() -> None:
    place = Place()
    place.show(10, "ab")
    subscription = place.stage.subscribe("q")
    first = taken(subscription)
    assert (first.kind, names(first.result)) == (UpdateKind.SNAPSHOT, "ab")
    place.show(20, "b")
    second = taken(subscription)
    assert second.kind is UpdateKind.DELTA
    assert [(delta.change, delta.row.object_id) for delta in second.deltas] == [("left", "a"), ("moved", "b")]
    assert (second.frontier_us, second.age_us) == (20, 980)


def test_a_snapshot_subscriber_gets_whole_results() -> None:
    place = Place()
    subscription = place.stage.subscribe("q", mode=Mode.SNAPSHOT)
    assert subscription.take() is None
    for end, objects in ((10, "ab"), (20, "b")):
        place.show(end, objects)
        update = taken(subscription)
        assert (update.kind, names(update.result)) == (UpdateKind.SNAPSHOT, objects)


def test_a_quiet_query_tells_its_progress_also_to_who_comes_later() -> None:
    place = Place()
    place.show(10, "ab")
    subscription = place.stage.subscribe("q")
    taken(subscription)
    place.send("partials", progress(500))
    place.after_a_second()
    update = taken(subscription)
    assert (update.kind, update.frontier_us, update.age_us) == (UpdateKind.PROGRESS, 500, SECOND + 500)
    assert subscription.take() is None
    late = place.stage.subscribe("q")
    assert (taken(late).frontier_us, late.take()) == (500, None)


def test_progress_is_told_at_most_once_a_second() -> None:
    place = Place()
    for frontier_us in (100, 200, 300):
        place.send("partials", progress(frontier_us))
        place.after_a_second()
        place.send("partials", progress(frontier_us + 10))
        drain(place.stage)
    assert [record.value.frontier_us for record in records(place.memory, "progress")] == [100, 200, 300]


def test_progress_is_not_told_before_the_results_it_covers() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.log.hidden = {"results"}
    place.show(10, "ab")
    place.send("partials", progress(500))
    place.after_a_second()
    assert subscription.take() is None
    place.log.hidden = set()
    drain(place.stage)
    update = taken(subscription)
    assert (update.kind, update.frontier_us) == (UpdateKind.SNAPSHOT, 500)


def test_a_window_end_that_waits_for_an_activation_holds_the_progress_that_is_told() -> None:
    log, clock = new_log(), ManualClock()
    stage = FanoutStage(log, clock, [ServedGroup("g", 1, 2)])
    drain(stage)
    clock.advance(SECOND)
    send(log, "catalog", Q)
    send(log, "partials", activated(10), part(10, "a"), progress(20), progress(20, shard=1))
    drain(stage)
    assert [record.value.frontier_us for record in records(log, "progress")] == [9]


def test_a_slow_subscriber_is_given_the_newest_state_and_slows_nobody() -> None:
    place = Place()
    slow, quick = place.stage.subscribe("q"), place.stage.subscribe("q")
    for end in range(10, 110, 10):
        place.show(end, "ab" if end % 20 else "ba")
        assert taken(quick).skipped == 0
    update = taken(slow)
    assert (update.kind, update.skipped, names(update.result)) == (UpdateKind.SNAPSHOT, 9, "ba")


def test_a_subscriber_resumes_with_one_delta_from_the_result_its_token_names() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.show(10, "ab")
    token = taken(subscription).resume_token
    place.stage.unsubscribe(subscription)
    up_to_date = place.stage.subscribe("q", resume_token=token)
    assert up_to_date.take() is None
    place.show(20, "abc")
    place.show(30, "bc")
    for stage in (place.stage, place.start(), place.start(tail_offsets=1), place.start(tail_offsets=0)):
        update = taken(stage.subscribe("q", resume_token=token))
        assert update.kind is UpdateKind.DELTA
        assert [(delta.change, delta.row.object_id) for delta in update.deltas] == [
            ("left", "a"),
            ("entered", "c"),
            ("moved", "b"),
        ]
    assert subscription.take() is None


def test_a_token_from_before_the_first_result_resumes_with_a_snapshot() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.send("partials", progress(5))
    place.after_a_second()
    token = taken(subscription).resume_token
    place.show(10, "ab")
    assert taken(place.stage.subscribe("q", resume_token=token)).kind is UpdateKind.SNAPSHOT


def test_an_outdated_token_is_refused_unless_nothing_has_come_since() -> None:
    place = Place(truncate=True)
    subscription = place.stage.subscribe("q")
    place.show(10, "ab")
    token = taken(subscription).resume_token
    trim(place.memory, "results", 0, 1)
    assert place.stage.subscribe("q", resume_token=token).take() is None
    place.show(20, "b")
    with pytest.raises(ConflictError, match="resume token is older than the results still kept; subscribe without it"):
        place.stage.subscribe("q", resume_token=token)


@pytest.mark.parametrize(
    ("token", "error", "message"),
    [
        (ResumeToken("u2", 1, ResultPosition(0, 0), 10), DefinitionError, "belongs to another query"),
        (ResumeToken("u1", 2, ResultPosition(0, 0), 10), ConflictError, "of generation 2, the group now runs"),
        (ResumeToken("u1", 1, ResultPosition(0, 9), 10), ConflictError, "older than the results still kept"),
        (ResumeToken("u1", 1, ResultPosition(0, 0), 99), ConflictError, "older than the results still kept"),
    ],
)
def test_a_token_that_does_not_fit_is_refused(token: ResumeToken, error: type[Exception], message: str) -> None:
    place = Place()
    place.show(10, "ab")
    place.show(20, "ab")
    with pytest.raises(error, match=message):
        place.stage.subscribe("q", resume_token=token.encode())


def test_a_query_nobody_knows_cannot_be_subscribed_to() -> None:
    with pytest.raises(NotFoundError, match="no query 'nothing' in group 'g'; see the list of queries"):
        Place().stage.subscribe("nothing", group="g")


def test_deletion_stops_output_at_once_and_says_so() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.show(10, "ab")
    place.send("catalog", query_change("u1", name="q", revision=2, state=QueryState.DELETED))
    drain(place.stage)
    assert not subscription.ended
    update = taken(subscription)
    assert (update.kind, update.state, update.result) == (UpdateKind.STATE, QueryState.DELETED, None)
    assert (subscription.ended, subscription.take()) == (True, None)
    with pytest.raises(NotFoundError):
        place.stage.subscribe("q")


def test_a_pause_is_told_behind_the_results_before_it_and_to_who_comes_later() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.show(10, "ab")
    for revision, state in ((2, QueryState.PAUSED), (3, QueryState.ACTIVE)):
        place.send("catalog", query_change("u1", name="q", revision=revision, state=state))
        drain(place.stage)
        for told in (subscription, place.stage.subscribe("q")):
            if told is not subscription or state is QueryState.PAUSED:
                assert taken(told).kind is UpdateKind.SNAPSHOT
            if told is subscription or state is QueryState.PAUSED:
                update = taken(told)
                assert (update.kind, update.state) == (UpdateKind.STATE, state)
            assert told.take() is None


def test_closing_ends_a_subscription_after_its_last_result() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.show(10, "ab")
    place.stage.close()
    ended = [subscription.ended, names(taken(subscription).result), subscription.ended]
    assert ended == [False, "ab", True]


def test_a_group_that_is_gone_ends_its_subscriptions() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.stage.serve([])
    assert taken(subscription).state is QueryState.DELETED
    with pytest.raises(NotFoundError):
        place.stage.get_result("q")


def test_results_of_one_query_stay_in_one_partition() -> None:
    place = Place(results=7)
    for end in range(10, 60, 10):
        place.show(end, "ab")
    assert sorted(len(records(place.memory, "results", number)) for number in range(7)) == [0, 0, 0, 0, 0, 0, 5]
    subscription = place.stage.subscribe("q")
    assert taken(subscription).result is not None
