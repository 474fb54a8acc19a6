"""Results of long ago, quiet queries, and how much is kept: what a replica answers beside its subscriptions."""

import pytest

from skyband.errors import NotFoundError
from skyband.fanout.live_query import LiveQuery
from skyband.fanout.result_tail import ResultTail
from skyband.fanout.subscription import Mode
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.model.result import Result, ResultRow
from tests.fanout.place import new_log, send, taken, trim


class Ticking(ManualClock):
    """Each look at it takes a while."""

    def now_us(self) -> int:
        self.advance(1_000)
        return super().now_us()


def result(uid: str, end: int) -> Result:
    return Result(uid, uid, end - 30, end, (ResultRow(1, f"{uid}{end}", 1.0),), end)


def tail(log: MemoryLog, *uids: str, tail_offsets: int = 5, search_us: int = 5_000_000) -> ResultTail:
    made = ResultTail(log, Ticking(), tail_offsets=tail_offsets, search_us=search_us)
    for uid in uids:
        made.begin(uid, 1)
    made.poll()
    return made


def log_of(*values: Result, truncate: bool = False) -> MemoryLog:
    log = new_log(truncate=truncate)
    send(log, "results", *values)
    return log


BUSY = [result("busy", end) for end in range(10, 100_010, 10)]


def test_the_latest_result_of_a_busy_query_is_there_at_once() -> None:
    assert tail(log_of(*BUSY), "busy").latest("busy", "busy").window_end == 100_000


@pytest.mark.parametrize("place", [0, 1, 3_000, 9_994, 9_995, 9_999])
def test_the_latest_result_of_a_quiet_query_is_looked_for_once(place: int) -> None:
    log = log_of(*BUSY[:place], result("quiet", 5), *BUSY[place:])
    kept = tail(log, "quiet", "busy")
    assert kept.latest("quiet", "quiet").window_end == 5
    assert taken(kept.subscribe("quiet", 1, resume_token=None, mode=Mode.CHANGES)).result == result("quiet", 5)


def test_a_search_finds_the_latest_result_not_the_first_and_that_of_other_quiet_queries_too() -> None:
    log = log_of(result("a", 10), result("b", 10), result("a", 20), result("b", 20), *BUSY)
    kept = tail(log, "a", "b")
    assert kept.latest("a", "a").window_end == 20
    assert kept._live["b"].latest is not None
    assert kept.latest("b", "b").window_end == 20


def test_a_query_that_becomes_live_later_finds_what_the_tail_has_passed() -> None:
    log = log_of(*BUSY, result("late", 10), result("late", 20))
    kept = tail(log, "busy")
    kept.begin("late", 1)
    assert kept.latest("late", "late").window_end == 20


def test_a_search_takes_no_longer_than_allowed_and_the_next_goes_on_from_there() -> None:
    kept = tail(log_of(result("quiet", 5), *BUSY), "quiet", search_us=500)
    with pytest.raises(NotFoundError, match=r"query 'quiet' was not found within 0\.0005 s; ask again, or for a later"):
        kept.latest("quiet", "quiet")
    kept._search_us = 1_500
    for _ in range(10):
        try:
            found = kept.latest("quiet", "quiet")
            break
        except NotFoundError:
            pass
    assert found.window_end == 5


def test_a_query_without_results_is_said_to_have_none() -> None:
    kept = tail(log_of(*BUSY), "none")
    for _ in range(2):
        with pytest.raises(NotFoundError, match="query 'none' has no result that is still kept; see whether"):
            kept.latest("none", "none")


def test_a_result_at_a_window_end_is_found_in_the_tail_in_the_index_and_by_search() -> None:
    log = log_of(*BUSY)
    kept = tail(log, "busy", tail_offsets=3_000)
    for end in (100_000, 99_990, 80_000, 70_010, 70_000, 50_000, 10):
        assert kept.at("busy", "busy", end) == result("busy", end)


@pytest.mark.parametrize("end", [100_005, 99_985, 70_015, 50_005, 5])
def test_a_window_end_without_a_result_is_not_found(end: int) -> None:
    kept = tail(log_of(*BUSY), "busy", tail_offsets=3_000)
    with pytest.raises(NotFoundError, match=rf"has no result with window end {end} .*its latest is at 100000"):
        kept.at("busy", "busy", end)


def test_what_is_no_longer_kept_is_not_found() -> None:
    log = log_of(*BUSY, truncate=True)
    kept = tail(log, "busy", tail_offsets=3_000)
    trim(log, "results", 0, 8_000)
    assert kept.at("busy", "busy", 80_010) == result("busy", 80_010)
    for end in (80_000, 70_010, 10):
        with pytest.raises(NotFoundError, match="that is still kept"):
            kept.at("busy", "busy", end)


def test_a_search_for_a_window_end_takes_no_longer_than_allowed() -> None:
    kept = tail(log_of(result("busy", 5), *(result("other", end) for end in range(10, 50_000, 10)), *BUSY), "busy")
    kept._search_us = 2_500
    with pytest.raises(NotFoundError, match="ask again, or for a later one"):
        kept.at("busy", "busy", 5)


def test_the_index_keeps_the_last_results_and_is_bounded() -> None:
    live = LiveQuery(0, 0)
    for number in range(5_000):
        live.take(result("q", 10 * number), number)
        assert len(live._ends) == len(live._offsets) <= 2_048
        oldest = max(0, number - 1_023)
        assert live.offset_of(10 * oldest) == oldest
        assert live.indexed_from <= oldest
    assert live.offset_of(5) is None
    assert (live.spans(49_985), live.spans(5)) == (True, False)
