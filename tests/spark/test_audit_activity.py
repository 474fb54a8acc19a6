"""When a query was evaluated, as far as the aligned log tells."""

from dataclasses import replace

from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import Query, QueryState, Window
from spark.audit_activity import Activity, Passed, Status, Zone, first_after, from_before, zones_of

QUERY = Query(name="q", k=3, score="a", window=Window(50, 10))


def change(revision: int, state: QueryState = QueryState.ACTIVE, k: int = 3) -> QueryChange:
    return QueryChange(uid="u", revision=revision, group="g", query=replace(QUERY, k=k), state=state)


def statuses(activity: Activity, *ends: int) -> list[Status]:
    return [activity.at(end)[0] for end in ends]


def test_a_query_of_the_beginning_is_always_due() -> None:
    zones = zones_of([Passed(change(1), 0, MIN_TIME_US)], 1, may_wait=False)
    assert statuses(Activity(zones, is_whole=True), -(2**40), 0, 2**40) == [Status.DUE] * 3


def test_a_query_begins_at_the_first_end_that_its_last_shard_has_not_passed() -> None:
    zones = zones_of([Passed(change(1), 0, 100), Passed(change(1), 1, 125)], 2, may_wait=False)
    assert statuses(Activity(zones, is_whole=True), 120, 130) == [Status.NOT, Status.DUE]


def test_what_ends_may_end_with_any_shard() -> None:
    told = [Passed(change(1), shard, MIN_TIME_US) for shard in (0, 1)]
    told += [Passed(change(2, QueryState.PAUSED), 0, 100), Passed(change(2, QueryState.PAUSED), 1, 125)]
    activity = Activity(zones_of(told, 2, may_wait=False), is_whole=True)
    assert statuses(activity, 100, 110, 120, 130) == [Status.DUE, Status.MAYBE, Status.MAYBE, Status.NOT]


def test_while_all_is_idle_a_shard_may_have_gone_one_end_further() -> None:
    zones = zones_of([Passed(change(1), 0, 101, settled_us=100)], 1, may_wait=False)
    assert statuses(Activity(zones, is_whole=True), 100, 110, 120) == [Status.NOT, Status.MAYBE, Status.DUE]


def test_two_k_may_hold_while_shards_differ() -> None:
    told = [Passed(change(1), shard, MIN_TIME_US) for shard in (0, 1)]
    told += [Passed(change(2, k=5), 0, 100), Passed(change(2, k=5), 1, 110)]
    activity = Activity(zones_of(told, 2, may_wait=False), is_whole=True)
    assert [activity.at(end) for end in (100, 110, 120)] == [
        (Status.DUE, frozenset({3})),
        (Status.DUE, frozenset({3, 5})),
        (Status.DUE, frozenset({5})),
    ]


def test_beside_what_forgets_a_query_may_wait_for_a_whole_window() -> None:
    zones = zones_of([Passed(change(1), 0, 100)], 1, may_wait=True)
    assert statuses(Activity(zones, is_whole=True), 100, 110, 140, 150) == [
        *(Status.NOT, Status.MAYBE),
        *(Status.MAYBE, Status.DUE),
    ]


def test_before_the_first_change_that_is_kept_nothing_is_known() -> None:
    activity = Activity(zones_of([Passed(change(4), 0, 100)], 1, may_wait=False), is_whole=False)
    assert statuses(activity, 100, 110) == [Status.UNKNOWN, Status.DUE]


def test_a_change_of_before_all_that_is_kept_holds_everywhere() -> None:
    assert statuses(Activity(from_before(change(3, QueryState.PAUSED)), is_whole=True), 0) == [Status.NOT]
    assert statuses(Activity(from_before(change(3)), is_whole=True), 0) == [Status.DUE]


def test_a_revision_that_another_overtakes_never_counts() -> None:
    zones = (Zone(1, MIN_TIME_US, MIN_TIME_US, 3, True), Zone(2, 100, 120, 3, False), Zone(3, 100, 110, 3, True))
    assert statuses(Activity(zones, is_whole=True), 90, 100, 110, 130) == [
        Status.DUE,
        Status.MAYBE,
        Status.DUE,
        Status.DUE,
    ]


def test_multiples_are_those_above() -> None:
    assert [first_after(10, point) for point in (-11, -10, 0, 9)] == [-10, 0, 10, 10]
