from hypothesis import given
from hypothesis import strategies as st

from skyband.fanout.resume_token import ResultPosition, ResumeToken
from skyband.fanout.subscription import Mode, Subscription, UpdateKind
from skyband.log.clock import ManualClock
from skyband.model.deltas import apply_deltas
from skyband.model.query import QueryState
from skyband.model.result import Result, ResultRow


def result(end: int, names: str, frontier_us: int | None = None) -> Result:
    rows = tuple(ResultRow(rank, name, 10.0 - rank) for rank, name in enumerate(names, 1))
    return Result("q", "u", end - 30, end, rows, end if frontier_us is None else frontier_us)


def at(offset: int) -> ResultPosition:
    return ResultPosition(0, offset)


def new(mode: Mode = Mode.CHANGES, now_us: int = 0) -> Subscription:
    return Subscription("u", 1, mode, ManualClock(now_us))


def held(subscription: Subscription) -> set[int]:
    """Return the identities of all results that the subscription refers to."""
    return {id(value) for value in vars(subscription).values() if isinstance(value, Result)}


STEPS = st.lists(st.sampled_from(["offer", "offer", "progress", "take", "repeat"]), max_size=40)
NAMES = st.permutations("abcd").flatmap(lambda names: st.integers(0, 4).map(lambda n: "".join(names[:n])))


@given(STEPS, st.sampled_from(Mode), st.data())
def test_updates_lead_to_the_newest_result_and_only_two_are_ever_held(
    steps: list[str], mode: Mode, data: st.DataObject
) -> None:
    subscription = new(mode)
    shown: tuple[ResultRow, ...] = ()
    offered: list[Result] = []
    taken = 0
    for step in steps:
        if step == "offer":
            offered.append(result(10 * len(offered) + 10, data.draw(NAMES)))
            subscription.offer(offered[-1], at(len(offered)))
        elif step == "repeat" and offered:
            place = data.draw(st.integers(0, len(offered) - 1))
            subscription.offer(offered[place], at(place + 1))
        elif step == "progress":
            subscription.offer_progress(10 * len(offered), at(len(offered)))
        elif step == "take":
            update = subscription.take()
            if len(offered) > taken:
                assert update is not None
                assert update.skipped == len(offered) - taken - 1
                first = UpdateKind.SNAPSHOT if taken == 0 or mode is Mode.SNAPSHOT else UpdateKind.DELTA
                assert update.kind is first
                assert update.result == offered[-1]
                shown = apply_deltas(shown, update.deltas) if first is UpdateKind.DELTA else update.result.rows
                assert shown == offered[-1].rows
                assert ResumeToken.decode(update.resume_token) == ResumeToken(
                    "u", 1, at(len(offered)), offered[-1].window_end
                )
                taken = len(offered)
            else:
                assert update is None or update.kind is UpdateKind.PROGRESS
        assert len(held(subscription)) <= 2


def test_a_subscriber_that_never_takes_holds_one_pending_result() -> None:
    subscription = new()
    for number in range(1, 1000):
        subscription.offer(result(10 * number, "ab"), at(number))
        assert len(held(subscription)) == 1
    update = subscription.take()
    assert update is not None
    assert (update.skipped, update.result) == (998, result(9990, "ab"))


def test_a_window_that_moves_without_a_change_is_a_delta_of_nothing() -> None:
    subscription = new()
    subscription.offer(result(10, "ab"), at(1))
    subscription.take()
    subscription.offer(result(20, "ab"), at(2))
    update = subscription.take()
    assert update is not None
    assert (update.kind, update.deltas, update.result) == (UpdateKind.DELTA, (), result(20, "ab"))


def test_progress_is_told_when_quiet_with_its_age_and_keeps_the_base_of_the_next_delta() -> None:
    subscription = new(now_us=100)
    subscription.offer(result(10, "ab"), at(4))
    first = subscription.take()
    subscription.offer_progress(60, at(9))
    update = subscription.take()
    assert first is not None
    assert update is not None
    assert (update.kind, update.frontier_us, update.age_us) == (UpdateKind.PROGRESS, 60, 40)
    assert update.resume_token == first.resume_token
    assert subscription.take() is None


def test_progress_that_does_not_advance_is_not_told() -> None:
    subscription = new()
    subscription.offer_progress(60, at(1))
    assert subscription.take() is not None
    subscription.offer_progress(60, at(2))
    assert subscription.take() is None


def test_progress_before_any_result_has_a_token_without_a_result() -> None:
    subscription = new()
    subscription.offer_progress(60, at(7))
    update = subscription.take()
    assert update is not None
    assert ResumeToken.decode(update.resume_token) == ResumeToken("u", 1, at(7), None)


def test_progress_does_not_hide_a_result_that_is_pending() -> None:
    subscription = new()
    subscription.offer(result(10, "ab"), at(3))
    subscription.offer_progress(60, at(9))
    update = subscription.take()
    assert update is not None
    assert (update.kind, update.frontier_us) == (UpdateKind.SNAPSHOT, 60)
    assert ResumeToken.decode(update.resume_token).position == at(3)


def test_a_resumed_subscriber_gets_the_difference_from_what_it_had() -> None:
    subscription = new()
    subscription.resume_from(result(10, "ab"), at(3))
    subscription.offer(result(10, "ab"), at(3))
    assert subscription.take() is None
    subscription.offer(result(20, "ba"), at(5))
    update = subscription.take()
    assert update is not None
    assert update.kind is UpdateKind.DELTA
    assert apply_deltas(result(10, "ab").rows, update.deltas) == result(20, "ba").rows


def test_a_deleted_query_gives_no_more_results_whenever_they_come() -> None:
    subscription = new()
    subscription.offer(result(10, "ab"), at(3))
    subscription.change_state(QueryState.DELETED)
    subscription.offer(result(20, "ab"), at(4))
    subscription.offer_progress(60, at(9))
    update = subscription.take()
    assert update is not None
    assert (update.kind, update.state, update.result, update.skipped) == (UpdateKind.STATE, QueryState.DELETED, None, 0)
    assert subscription.take() is None
    assert subscription.ended


def test_a_query_that_was_paused_and_resumed_meanwhile_tells_nothing() -> None:
    subscription = new()
    for state in (QueryState.PAUSED, QueryState.ACTIVE):
        subscription.change_state(state)
    assert subscription.take() is None


def test_the_end_of_service_comes_after_the_last_result() -> None:
    woken = []
    subscription = Subscription("u", 1, Mode.CHANGES, ManualClock(), wake=lambda: woken.append(1))
    subscription.offer(result(10, "ab"), at(1))
    subscription.end()
    ended = [subscription.ended, subscription.take() is None, subscription.ended]
    assert ended == [False, False, True]
    assert len(woken) == 2
