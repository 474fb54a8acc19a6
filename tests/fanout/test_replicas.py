"""Several replicas on one log: whoever dies, joins or leaves, and wherever, each result is there once, and right."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import LogError
from skyband.fanout.merge_stage import ServedGroup
from skyband.fanout.stage import FanoutStage
from skyband.fanout.subscription import UpdateKind
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from skyband.model.query import QueryState
from skyband.model.result import ResultRow
from tests.fanout.partials import query_change
from tests.fanout.place import SECOND, activated, drain, names, new_log, part, progress, records, results, send, taken
from tests.fanout.watched_log import CrashAt, CrashedError, WatchedLog

Value = QueryChange | PartialBatch | Progress | Activated
Found = dict[tuple[str, int], tuple[tuple[ResultRow, ...], int, int]]

ONE = query_change("u1", name="one")
TWO = query_change("u2", name="two", slide=20)
PAUSED = query_change("u1", name="one", revision=2, state=QueryState.PAUSED)
AGAIN = query_change("u1", name="one", revision=3)
DELETED = query_change("u2", name="two", revision=2, state=QueryState.DELETED)
OLD, NEW = ServedGroup("g", 1, 2), ServedGroup("g", 2, 2)


def both(query: QueryChange, first_us: int, generation: int = 1) -> list[Value]:
    return [activated(first_us, query, shard, generation) for shard in (0, 1)]


def script() -> Iterator[tuple[list[Value], ServedGroup]]:
    """What the shards of a group send, step by step, and which generation is served.

    Query one is paused from 40 to 60, two is deleted at 60; a second generation begins at 10 again, and has nothing
    more at 80. It is heard of before it is served::

        generation 1   one  10 20 30 -- -- 60 70       two  20 40 --
        generation 2   one  10 20 30 40 50 60 70 80 90
    """
    yield [ONE, TWO, *both(ONE, 10), *both(TWO, 20)], OLD
    yield [part(10, "ac", ONE), progress(10), part(10, "bd", ONE, 1), part(20, "a", ONE)], OLD
    yield [progress(10, 1), part(20, "xyz", TWO), part(20, "b", ONE, 1), progress(20, 1)], OLD
    yield [progress(20), part(30, "q", ONE), progress(30), progress(30, 1), PAUSED, *both(PAUSED, 40)], OLD
    yield [part(40, "x", TWO, 1), progress(40), progress(45, 1), AGAIN], OLD
    yield [*both(AGAIN, 60), DELETED, *both(DELETED, 60), part(60, "d", ONE), progress(60), progress(60, 1)], OLD
    yield [part(70, "ef", ONE, 1), progress(70, 1), *both(ONE, 10, 2), part(10, "n", ONE, generation=2)], OLD
    yield [progress(70), part(70, "n", ONE, generation=2), progress(70, 0, "g", 2)], OLD
    yield [part(80, "late", ONE)], NEW
    yield [progress(80, 0, "g", 2), progress(80, 1, "g", 2), part(90, "m", ONE, 1, generation=2)], NEW
    yield [progress(90, 0, "g", 2), progress(90, 1, "g", 2)], NEW


RIGHT = [
    ("u1", 10, "abc"),
    ("u1", 20, "ab"),
    ("u1", 30, "q"),
    ("u1", 60, "d"),
    ("u1", 70, "ef"),
    ("u1", 80, ""),
    ("u1", 90, "m"),
    ("u2", 20, "xyz"),
    ("u2", 40, "x"),
]


def found(log: MemoryLog) -> Found:
    """Return what is in the results, by query and window end; fail if anything is there twice."""
    written = results(log)
    by_end = {(r.uid, r.window_end): (r.rows, r.window_start, r.revision) for r in written}
    assert len(by_end) == len(written)
    for uid in {r.uid for r in written}:
        ends = [r.window_end for r in written if r.uid == uid]
        assert ends == sorted(ends)
    return by_end


def feed(log: MemoryLog, values: list[Value]) -> None:
    for value in values:
        send(log, "catalog" if isinstance(value, QueryChange) else "partials", value)


def run(dies_at: int | None = None) -> tuple[Found, bool]:
    """Run the script with a replica that dies at its n-th call, and another one from there on."""
    memory, clock = new_log(), ManualClock()
    log = WatchedLog(memory, CrashAt(dies_at or 1_000_000))
    stage: FanoutStage | None = None
    serves, died = OLD, False
    for values, group in script():
        feed(memory, values)
        clock.advance(SECOND)
        while True:
            try:
                if stage is None:
                    stage = FanoutStage(memory if died else log, clock, [group])
                elif group != serves:
                    stage.serve([group])
                serves = group
                drain(stage)
                break
            except CrashedError:
                log.expire()
                stage, died = None, True
    return found(memory), died


def test_a_replica_that_dies_between_any_two_calls_leaves_nothing_out_and_nothing_twice() -> None:
    whole, died = run()
    assert [
        (uid, end, "".join(row.object_id for row in rows)) for (uid, end), (rows, _, _) in sorted(whole.items())
    ] == RIGHT
    number = 0
    died = True
    while died:
        number += 1
        again, died = run(number)
        assert again == whole, number
    assert number > 200


def test_a_replica_that_was_taken_over_unknowingly_fails_and_nothing_of_it_is_visible() -> None:
    memory, clock = new_log(), ManualClock()
    feed(memory, [ONE, *both(ONE, 10), part(10, "a", ONE), progress(10), progress(10, 1)])
    zombie = FanoutStage(WatchedLog(memory, apart=True), clock, [OLD])
    drain(zombie)
    heir = FanoutStage(memory, clock, [OLD])
    heir.step(0.0)
    feed(memory, [part(20, "b", ONE), progress(20), progress(20, 1)])
    with pytest.raises(LogError, match=r"'skyband\.fanout\.0' has taken over"):
        drain(zombie)
    zombie.close()
    assert [end for _, end in found(memory)] == [10]
    drain(heir)
    assert [end for _, end in found(memory)] == [10, 20]


@pytest.mark.parametrize("quiet", [True, False])
def test_a_zombie_can_neither_store_marks_nor_tell_progress(quiet: bool) -> None:
    memory, clock = new_log(), ManualClock()
    feed(memory, [ONE, *both(ONE, 10)])
    zombie = FanoutStage(WatchedLog(memory, apart=True), clock, [OLD])
    drain(zombie)
    clock.advance(SECOND)
    drain(zombie)
    FanoutStage(memory, clock, [OLD]).step(0.0)
    feed(memory, [] if quiet else [progress(5), progress(5, 1)])
    before = len(records(memory, "marks"))
    clock.advance(SECOND)
    if quiet:
        drain(zombie)
    else:
        with pytest.raises(LogError):
            drain(zombie)
    assert len(records(memory, "marks")) == before
    assert records(memory, "progress") == []


def test_subscribers_of_a_replica_that_merges_nothing_get_results_and_progress() -> None:
    memory, clock = new_log(), ManualClock()
    merging, serving = (FanoutStage(memory, clock, [OLD]) for _ in range(2))
    for stage in (merging, serving):
        stage.step(0.0)
    assert (merging.merged_partitions, serving.merged_partitions) == ([0], [])
    feed(memory, [ONE, *both(ONE, 10)])
    drain(serving)
    subscription = serving.subscribe("one")
    feed(memory, [part(10, "a", ONE), progress(10), progress(10, 1)])
    drain(merging)
    drain(serving)
    assert names(taken(subscription).result) == "a"
    feed(memory, [progress(500), progress(500, 1)])
    clock.advance(SECOND)
    for stage in (merging, serving):
        drain(stage)
    update = taken(subscription)
    assert (update.kind, update.frontier_us) == (UpdateKind.PROGRESS, 500)
    assert len(results(memory)) == 1


def test_a_replica_that_leaves_has_committed_what_was_complete() -> None:
    memory, clock = new_log(partials=2), ManualClock()
    group = ServedGroup("g", 1, 1)
    home = partition_of("g", 2)
    first = FanoutStage(memory, clock, [group])
    drain(first)
    send(memory, "catalog", ONE)
    send(memory, "partials", activated(10, ONE), part(10, "a", ONE), progress(10), partition=home)
    drain(first)
    second = FanoutStage(memory, clock, [group])
    for _ in range(3):
        for stage in (first, second):
            drain(stage)
    assert sorted(first.merged_partitions + second.merged_partitions) == [0, 1]
    assert first.merged_partitions != []
    first.close()
    send(memory, "partials", part(20, "b", ONE), progress(20), partition=home)
    drain(second)
    assert second.merged_partitions == [0, 1]
    assert [end for _, end in found(memory)] == [10, 20]


@pytest.mark.parametrize("lost", [True, False])
def test_a_partition_given_up_is_committed_unless_it_is_lost(lost: bool) -> None:
    memory = new_log()
    stage = FanoutStage(memory, ManualClock(), [OLD])
    feed(memory, [ONE, *both(ONE, 10), part(10, "a", ONE), progress(15), progress(5, 1)])
    drain(stage)
    assert records(memory, "marks") == []
    stage.on_revoked([Position("partials", 0)], lost=lost)
    assert (stage.merged_partitions, len(records(memory, "marks"))) == ([], 0 if lost else 2)


GROUPS = ["a", "b", "c", "d", "e", "f"]
PARTITIONS = 3


@settings(max_examples=60)
@given(st.data())
def test_replicas_that_join_leave_and_die_write_each_result_once_and_all_of_them_serve_it(data: st.DataObject) -> None:
    memory, clock = new_log(partials=PARTITIONS, results=2), ManualClock()
    served = [ServedGroup(group, 1, 1) for group in GROUPS]
    queries = {group: query_change(f"u-{group}", group=group) for group in GROUPS}
    for group, query in queries.items():
        send(memory, "catalog", query)
        send(memory, "partials", activated(10, query), partition=partition_of(group, PARTITIONS))
    replicas: list[tuple[FanoutStage, WatchedLog]] = []
    ends = dict.fromkeys(GROUPS, 0)
    actions = st.sampled_from(["join", "leave", "die", "step", "step", "step", "feed", "feed", "wait"])
    for action in data.draw(st.lists(actions, min_size=10, max_size=60)):
        if action == "join" and len(replicas) < 4:
            log = WatchedLog(memory)
            replicas.append((FanoutStage(log, clock, served), log))
        elif action == "feed":
            group = data.draw(st.sampled_from(GROUPS))
            ends[group] += 10
            values = part(ends[group], "ab", queries[group]), progress(ends[group], group=group)
            send(memory, "partials", *values, partition=partition_of(group, PARTITIONS))
        elif action == "wait":
            clock.advance(SECOND)
        elif replicas:
            which = data.draw(st.integers(0, len(replicas) - 1))
            stage, log = replicas[which]
            if action == "step":
                stage.step(0.0)
                continue
            log.hook = CrashAt(data.draw(st.integers(1, 30))) if action == "die" else log.hook
            try:
                stage.step(0.0)
                stage.close()
            except CrashedError:
                pass
            log.expire()
            del replicas[which]
    replicas += [(FanoutStage(memory, clock, served), WatchedLog(memory))]
    subscriptions = {uid: [r.subscribe(uid) for r, _ in replicas] for uid in [q.uid for q in queries.values()]}
    clock.advance(SECOND)
    for _ in range(4 + len(replicas)):
        for stage, _ in replicas:
            drain(stage)
    assert sorted(partition for stage, _ in replicas for partition in stage.merged_partitions) == list(
        range(PARTITIONS)
    )
    expected = {(f"u-{group}", end) for group in GROUPS for end in range(10, ends[group] + 1, 10)}
    assert found(memory).keys() == expected
    for group in GROUPS:
        for subscription in subscriptions[f"u-{group}"]:
            update = subscription.take()
            latest = update.result if update is not None else None
            assert (latest.window_end if latest is not None else 0) == ends[group]
        if ends[group]:
            for stage, _ in replicas:
                assert stage.get_result(f"u-{group}").window_end == ends[group]
                assert stage.get_result(f"u-{group}", window_end=10).window_end == 10
