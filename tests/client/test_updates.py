from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.client.updates import Follower
from skyband.model.deltas import deltas
from skyband.model.query import QueryState
from skyband.model.result import Candidate, Result
from skyband.v1 import results_pb2 as pb
from skyband.v1 import types_pb2
from skyband.v1.messages import write_delta, write_result
from tests.v1 import values

HEADER = pb.SubscribeResponse(header=pb.Header(uid="u"))


def ranked(result: Result) -> Result:
    return replace(result, rows=tuple(replace(row, rank=rank) for rank, row in enumerate(result.rows, 1)))


def whole(result: Result, token: str = "t") -> pb.SubscribeResponse:
    return pb.SubscribeResponse(resume_token=token, snapshot=pb.Snapshot(result=write_result(result)))


@settings(max_examples=40)
@given(st.lists(values.results.map(ranked), min_size=1, max_size=4))
def test_a_snapshot_and_deltas_show_each_result(results: list[Result]) -> None:
    follower = Follower()
    assert follower.take(HEADER) is None
    first = follower.take(whole(results[0]))
    assert first is not None
    assert first.rows == first.entered == results[0].rows
    assert first.candidates == results[0].candidates
    for number, (old, new) in enumerate(pairwise(results)):
        message = pb.SubscribeResponse(resume_token=str(number), delta=write_delta(new, deltas(old, new)))
        update = follower.take(message)
        assert update is not None
        assert (update.rows, update.window_end, update.candidates) == (new.rows, new.window_end, new.candidates)
        assert follower.token == str(number)


def test_where_to_go_on_is_what_was_taken_last() -> None:
    follower = Follower()
    follower.take(whole(Result("q", "u", 0, 1, ()), "one"))
    assert follower.token == "one"
    # A header of a stream that went on tells the same; one of a stream that did not, nothing.
    follower.take(HEADER)
    assert follower.token == "one"
    follower.begin_anew()
    assert follower.token == ""


def test_progress_shows_the_result_that_still_holds_and_nothing_before_the_first() -> None:
    follower = Follower()
    progress = pb.SubscribeResponse(resume_token="p", frontier_us=7, progress=pb.Progress())
    assert follower.take(progress) is None
    assert follower.token == "p"
    candidate = Candidate("a", None, 7.0, ("x",), 5)
    shown = follower.take(whole(Result("q", "u", 0, 1, (), candidates=(candidate,))))
    update = follower.take(progress)
    assert shown is not None
    assert update is not None
    assert (update.is_progress, update.rows, update.window_end, update.frontier_us) == (True, shown.rows, 1, 7)
    assert update.candidates == shown.candidates == (candidate,)


def test_a_query_is_active_again_when_a_new_stream_says_nothing_else() -> None:
    follower = Follower()
    paused = pb.StateChange(state=types_pb2.QUERY_STATE_PAUSED)
    follower.take(pb.SubscribeResponse(resume_token="s", state_change=paused))
    assert follower.state is QueryState.PAUSED
    follower.take(HEADER)
    assert follower.state is QueryState.ACTIVE


def test_what_a_newer_server_may_say_is_passed_over() -> None:
    follower = Follower()
    assert follower.take(pb.SubscribeResponse(resume_token="new")) is None
    assert follower.token == ""
