"""The fanout stage over a log: exactly once across restarts, and what subscribers see."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.errors import ConflictError, DefinitionError, LogError, NotFoundError
from skyband.fanout.committer import Commit, Committed, PlainCommitter
from skyband.fanout.resume_token import ResultPosition, ResumeToken
from skyband.fanout.stage import FanoutStage, ServedGroup
from skyband.fanout.subscription import Mode, Subscription, Update, UpdateKind
from skyband.log.clock import ManualClock
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import QueryState
from skyband.model.result import Result
from tests.fanout.fake_log import FakeLog
from tests.fanout.partials import Row, batch, query_change

LONG_AGO = -(2**62)
GROUP = ServedGroup("g", 1, 1)
Q = query_change("u1", name="q")


def activated(first_us: int, query: QueryChange = Q, shard: int = 0) -> Activated:
    return Activated("g", 1, shard, query.uid, query.revision, first_us)


def progress(frontier_us: int, shard: int = 0) -> Progress:
    return Progress("g", 1, shard, frontier_us, LONG_AGO)


def part(window_end: int, names: str, query: QueryChange = Q, shard: int = 0) -> PartialBatch:
    return batch(shard, [(query, window_end, [Row(name, 10.0 - rank) for rank, name in enumerate(names)])])


def new_log(results: int = 1) -> FakeLog:
    return FakeLog(partials=1, catalog=1, results=results)


def drain(stage: FanoutStage) -> None:
    while stage.step(0.0):
        pass


class Place:
    """A stage with one query under way."""

    def __init__(self, results: int = 1) -> None:
        self.log = new_log(results)
        self.clock = ManualClock(1000)
        self.committer = PlainCommitter(self.log, self.clock)
        self.log.send("catalog", Q)
        self.log.send("partials", activated(10))
        self.stage = self.start()

    def start(self) -> FanoutStage:
        return FanoutStage(self.log, self.clock, [GROUP], committer=self.committer)

    def show(self, window_end: int, names: str) -> None:
        self.log.send("partials", part(window_end, names))
        self.log.send("partials", progress(window_end))
        drain(self.stage)


def taken(subscription: Subscription) -> Update:
    update = subscription.take()
    assert update is not None
    return update


def names(result: object) -> str:
    assert isinstance(result, Result)
    return "".join(row.object_id for row in result.rows)


def test_partials_become_results_with_their_key_and_offsets_are_committed() -> None:
    place = Place()
    place.show(10, "ab")
    place.show(20, "ba")
    assert [names(value) for value in place.log.values("results")] == ["ab", "ba"]
    assert {record.key for record in place.log.topics["results"][0]} == {b"u1"}
    assert place.log.committed == {Position("partials", 0): 5, Position("catalog", 0): 1}


def test_a_query_created_while_running_is_known_before_its_partials_are_taken() -> None:
    place = Place()
    late = query_change("u2")
    place.log.send("catalog", late)
    for value in (activated(10, late), part(10, "x", late), progress(10)):
        place.log.send("partials", value)
    drain(place.stage)
    assert [names(value) for value in place.log.values("results")] == ["x"]


def test_values_of_groups_and_generations_not_served_are_counted_and_do_not_hold_offsets() -> None:
    place = Place()
    place.log.send("partials", Progress("other", 1, 0, 5, 5))
    place.log.send("partials", Progress("g", 2, 0, 5, 5))
    drain(place.stage)
    place.stage.close()
    assert place.stage.statistics()["stage"] == {"ignored_values": 2}
    assert place.log.committed[Position("partials", 0)] == 3


def test_several_groups_share_the_topics() -> None:
    log = new_log()
    other = query_change("u2", name="q", group="h")
    stage = FanoutStage(log, ManualClock(), [GROUP, ServedGroup("h", 4, 1)])
    log.send("catalog", Q)
    log.send("catalog", other)
    log.send("partials", Activated("h", 4, 0, "u2", 1, 10))
    for value in (activated(10), part(10, "a"), progress(10)):
        log.send("partials", value)
    drain(stage)
    assert [names(value) for value in log.values("results")] == ["a"]
    with pytest.raises(DefinitionError, match=r"is in several groups \(g, h\); name the group"):
        stage.subscribe("q")
    assert stage.subscribe("q", group="h").uid == "u2"


class Unreliable:
    """A committer that stores all or nothing, then may fail either way: the outcome is unknown to the stage."""

    def __init__(self, log: FakeLog, fails: Callable[[], str]) -> None:
        self._plain = PlainCommitter(log, ManualClock())
        self._fails = fails

    def load(self) -> Committed:
        return self._plain.load()

    def commit(self, commit: Commit) -> None:
        outcome = self._fails()
        if outcome != "before":
            self._plain.commit(commit)
        if outcome != "well":
            raise LogError("the outcome of the transaction is unknown; start again")

    def close(self) -> None:
        self._plain.close()


@given(st.data())
def test_results_come_once_and_in_order_whatever_commits_fail_and_however_often_it_restarts(
    data: st.DataObject,
) -> None:
    log, clock = new_log(), ManualClock()
    outcomes = st.sampled_from(["well", "well", "before", "after"])
    committer = Unreliable(log, lambda: data.draw(outcomes))
    served = [ServedGroup("g", 1, 2)]
    log.send("catalog", Q)
    values: list[PartialBatch | Progress | Activated] = [activated(10), activated(10, shard=1)]
    for end in range(10, 60, 10):
        values += [part(end, "ac"), progress(end), part(end, "bd", shard=1), progress(end, 1)]
    stage = FanoutStage(log, clock, served, committer=committer)
    sent = 0
    while sent < len(values):
        count = data.draw(st.integers(1, 5))
        for value in values[sent : sent + count]:
            log.send("partials", value)
        sent += count
        clock.advance(data.draw(st.sampled_from([0, 2_000_000])))
        try:
            stage.step(0.0)
            restarts = data.draw(st.booleans())
        except LogError:
            restarts = True
        if restarts:
            stage = FanoutStage(log, clock, served, committer=committer)
    committer._fails = lambda: "well"
    drain(stage)
    found = [(value.window_end, names(value)) for value in log.values("results") if isinstance(value, Result)]
    assert found == [(end, "abc") for end in range(10, 60, 10)]


def test_a_deleted_query_is_forgotten_for_good_also_by_a_restart() -> None:
    place = Place()
    place.show(10, "a")
    deleted = query_change("u1", name="q", revision=2, state=QueryState.DELETED)
    place.log.send("catalog", deleted)
    place.log.send("partials", activated(20, deleted))
    drain(place.stage)
    place.stage.close()
    assert place.committer.load().marks == {}
    place.stage = place.start()
    for value in (activated(10), part(10, "a"), part(20, "a"), progress(30)):
        place.log.send("partials", value)
    drain(place.stage)
    assert len(place.log.values("results")) == 1


def test_a_group_served_for_the_first_time_after_a_restart_reads_from_the_beginning() -> None:
    place = Place()
    other = query_change("u2", group="h")
    place.log.send("catalog", other)
    place.show(10, "a")
    place.stage.close()
    stage = FanoutStage(place.log, place.clock, [GROUP, ServedGroup("h", 1, 1)], committer=place.committer)
    place.log.send("partials", Activated("h", 1, 0, "u2", 1, 10))
    drain(stage)
    stage.subscribe("u2")
    assert len(place.log.values("results")) == 1
    assert stage.statistics()["h.1"]["queries"] == 1


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
    for end, shown in ((10, "ab"), (20, "b")):
        place.show(end, shown)
        update = taken(subscription)
        assert (update.kind, names(update.result)) == (UpdateKind.SNAPSHOT, shown)


def test_a_quiet_query_tells_its_progress() -> None:
    place = Place()
    place.show(10, "ab")
    subscription = place.stage.subscribe("q")
    taken(subscription)
    place.log.send("partials", progress(500))
    drain(place.stage)
    update = taken(subscription)
    assert (update.kind, update.frontier_us, update.age_us) == (UpdateKind.PROGRESS, 500, 500)


def test_progress_is_not_told_before_the_results_it_covers() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.log.hidden = {"results"}
    place.show(10, "ab")
    assert subscription.take() is None
    place.log.hidden = set()
    drain(place.stage)
    update = taken(subscription)
    assert (update.kind, update.frontier_us) == (UpdateKind.SNAPSHOT, 10)


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
    for stage in (place.stage, place.start()):
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
    place.log.send("partials", progress(5))
    drain(place.stage)
    token = taken(subscription).resume_token
    place.show(10, "ab")
    assert taken(place.stage.subscribe("q", resume_token=token)).kind is UpdateKind.SNAPSHOT


def test_an_outdated_token_is_refused_unless_nothing_has_come_since() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.show(10, "ab")
    token = taken(subscription).resume_token
    place.log.trim("results", 0, 1)
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


def test_deletion_ends_a_subscription_after_its_last_result() -> None:
    place = Place()
    subscription = place.stage.subscribe("q")
    place.show(10, "ab")
    place.log.send("catalog", query_change("u1", name="q", revision=2, state=QueryState.DELETED))
    drain(place.stage)
    ended = [subscription.ended, names(taken(subscription).result), subscription.ended]
    assert ended == [False, "ab", True]
    with pytest.raises(NotFoundError):
        place.stage.subscribe("q")


def test_results_of_one_query_stay_in_one_partition() -> None:
    place = Place(results=7)
    for end in range(10, 60, 10):
        place.show(end, "ab")
    assert sorted(len(records) for records in place.log.topics["results"]) == [0, 0, 0, 0, 0, 0, 5]
    subscription = place.stage.subscribe("q")
    assert taken(subscription).result is not None


def test_a_second_replica_without_partitions_serves_from_the_results_alone() -> None:
    place = Place()
    replica = FanoutStage(place.log, place.clock, [GROUP], partitions=[])
    subscription = replica.subscribe("q")
    place.show(10, "ab")
    drain(replica)
    assert names(taken(subscription).result) == "ab"
    assert len(place.log.values("results")) == 1
