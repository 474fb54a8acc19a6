from dataclasses import replace

from hypothesis import given, settings

from skyband.model.deltas import apply_deltas, deltas
from skyband.model.result import Result
from skyband.v1 import results_pb2 as pb
from skyband.v1.messages import read_candidates, read_deltas, read_result, write_delta, write_result
from tests.v1 import values


@settings(max_examples=40)
@given(values.results)
def test_a_result_comes_back_from_its_message_as_it_was(result: Result) -> None:
    assert read_result(pb.Result.FromString(write_result(result).SerializeToString())) == result


@settings(max_examples=40)
@given(values.results, values.results)
def test_deltas_come_back_from_their_message_in_their_order(old: Result, new: Result) -> None:
    found = deltas(old, new)
    message = pb.Delta.FromString(write_delta(new, found).SerializeToString())
    assert read_deltas(message) == tuple(found)
    assert read_candidates(message) == new.candidates
    assert (message.uid, message.window_start, message.window_end) == (new.uid, new.window_start, new.window_end)


@settings(max_examples=40)
@given(values.results, values.results)
def test_deltas_from_a_message_still_lead_to_the_newer_result(old: Result, new: Result) -> None:
    old, new = ranked(old), ranked(new)
    message = write_delta(new, deltas(old, new))
    assert apply_deltas(old.rows, read_deltas(message)) == new.rows


def ranked(result: Result) -> Result:
    return replace(result, rows=tuple(replace(row, rank=rank) for rank, row in enumerate(result.rows, 1)))
