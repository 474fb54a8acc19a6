"""The results service over a pipeline: what a subscriber is sent, how it goes on after a break, how it ends."""

import json
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.json_format import MessageToJson

from skyband.control.commands import DeleteQuery, PauseQuery
from skyband.errors import LogError
from skyband.fanout.resume_token import ResultPosition, ResumeToken
from skyband.model.deltas import apply_deltas
from skyband.v1 import results_pb2 as pb
from skyband.v1 import types_pb2
from skyband.v1.messages import read_deltas, read_result
from skyband.v1.results_pb2_grpc import ResultsServiceStub
from tests.oracle import Row
from tests.services.fanout.conftest import START, Factory, S
from tests.services.serving import refused

HOTTEST = "groups/factory/queries/hottest"
DEADLINE_S = 20.0


def subscribe(stub: ResultsServiceStub, **options: object) -> Iterator[pb.SubscribeResponse]:
    request = pb.SubscribeRequest(**{"query": HOTTEST, **options})  # type: ignore[arg-type]
    return stub.Subscribe(request, timeout=DEADLINE_S)


def following(stream: Iterator[pb.SubscribeResponse], kind: str) -> pb.SubscribeResponse:
    """Return the next message of a kind, passing over progress."""
    for message in stream:
        found = message.WhichOneof("message")
        if found == kind:
            return message
        assert found == "progress", f"{found} came before any {kind}"
    raise AssertionError(f"the stream ended without any {kind}")


def end_of(second: float) -> int:
    return START + int(second * S)


def names(rows: object) -> list[str]:
    return [row.object_id for row in rows]  # type: ignore[attr-defined]


def test_a_subscriber_gets_a_header_then_the_newest_result_then_what_changes(
    factory: Factory, stub: ResultsServiceStub
) -> None:
    factory.feed(0, a=1, b=2, c=3)
    factory.feed(1.5, a=5)
    stream = subscribe(stub)
    first = next(stream)
    assert first.header.query == HOTTEST
    assert (first.header.generation, first.header.mode, first.resume_token) == (1, pb.MODE_CHANGES, "")
    snapshot = following(stream, "snapshot")
    assert names(snapshot.snapshot.result.rows) == ["c", "b"]
    assert snapshot.snapshot.result.window_end == end_of(1)
    assert snapshot.snapshot.result.uid == first.header.uid
    assert snapshot.frontier_us >= end_of(1)
    factory.feed(2.5, b=2.5)
    change = following(stream, "delta")
    assert (names(change.delta.entered), names(change.delta.left)) == (["a"], ["b"])
    assert [(moved.row.object_id, moved.old_rank, moved.row.rank) for moved in change.delta.moved] == [("c", 1, 2)]
    factory.feed(3.5, a=6, c=3)
    factory.feed(4.5, b=2.5)
    rescored: list[str] = []
    while not rescored:
        rescored = names(following(stream, "delta").delta.rescored)
    assert rescored == ["a"]


def test_every_message_but_the_first_header_has_a_token(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    factory.feed(1.5, a=2)
    stream = subscribe(stub)
    assert next(stream).HasField("header")
    factory.feed(30, a=2)
    token = next(stream).resume_token
    assert token
    again = subscribe(stub, resume_token=token)
    assert next(again).resume_token == token


def test_whole_results_are_sent_to_who_wants_them(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    factory.feed(1.5, a=2)
    stream = subscribe(stub, mode=pb.MODE_SNAPSHOTS)
    assert next(stream).header.mode == pb.MODE_SNAPSHOTS
    assert following(stream, "snapshot").snapshot.result.rows[0].score == 1
    factory.feed(2.5, a=3)
    assert following(stream, "snapshot").snapshot.result.rows[0].score == 2


def test_a_subscriber_hears_of_progress_while_nothing_changes(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    factory.feed(20, b=1)
    stream = subscribe_behind_header(stub)
    following(stream, "snapshot")
    factory.feed(20.7, b=1)
    # What brings no result is told once a second.
    factory.clock.advance(S)
    factory.work()
    message = following(stream, "progress")
    while message.frontier_us < end_of(20.7):
        message = following(stream, "progress")
    assert message.frontier_us == end_of(20.7)
    assert message.HasField("age")


def test_a_subscriber_that_comes_back_gets_exactly_what_it_missed(factory: Factory) -> None:
    factory.feed(0, a=1, b=2, c=3)
    factory.feed(1.5, a=5)
    first = factory.serve()
    with grpc.insecure_channel(first.address) as channel:
        stream = subscribe(ResultsServiceStub(channel))
        next(stream)
        last = following(stream, "snapshot")
        first.stop()
        with refused() as refusal:
            for _ in stream:
                pass
        assert refusal.code is grpc.StatusCode.UNAVAILABLE
    factory.feed(2.5, b=9)
    factory.feed(3.5, c=1)
    with grpc.insecure_channel(factory.serve(first.port).address) as channel:
        stub = ResultsServiceStub(channel)
        stream = subscribe(stub, resume_token=last.resume_token)
        assert next(stream).resume_token == last.resume_token
        change = following(stream, "delta")
        newest = stub.GetResult(pb.GetResultRequest(query=HOTTEST))
    shown = apply_deltas(read_result(last.snapshot.result).rows, read_deltas(change.delta))
    assert shown == read_result(newest).rows
    assert change.delta.window_end == newest.window_end == end_of(3)
    assert names(newest.rows) == ["b", "a"]


def test_nothing_is_sent_twice_to_who_has_missed_nothing(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    factory.feed(1.5, a=2)
    stream = subscribe(stub)
    next(stream)
    token = following(stream, "snapshot").resume_token
    again = subscribe(stub, resume_token=token)
    next(again)
    factory.feed(2.5, a=3)
    change = following(again, "delta").delta
    assert (change.window_end, names(change.rescored)) == (end_of(2), ["a"])


def test_a_subscriber_that_leaves_is_forgotten(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    streams = [subscribe(stub), subscribe(stub)]
    for stream in streams:
        next(stream)
    factory.source.wait_for(live=2)
    streams[0].cancel()  # type: ignore[attr-defined]
    factory.source.wait_for(live=1)
    streams[1].cancel()  # type: ignore[attr-defined]
    factory.source.wait_for(live=0)


def test_a_subscriber_that_leaves_while_it_is_written_to_is_forgotten(
    factory: Factory, stub: ResultsServiceStub
) -> None:
    feed_large(factory, 0)
    stream = subscribe(stub, mode=pb.MODE_SNAPSHOTS)
    next(stream)
    for second in range(1, 15):
        feed_large(factory, second)
    stream.cancel()  # type: ignore[attr-defined]
    factory.source.wait_for(live=0)


def test_a_subscriber_that_leaves_while_its_token_is_looked_up_is_forgotten(
    factory: Factory, stub: ResultsServiceStub
) -> None:
    factory.source.gate.clear()
    stream = subscribe(stub)
    assert factory.source.reached.wait(10)
    stream.cancel()  # type: ignore[attr-defined]
    with refused() as refusal:
        next(stream)
    assert refusal.code is grpc.StatusCode.CANCELLED
    factory.source.gate.set()
    factory.source.wait_for(live=0, made=1)


def feed_large(factory: Factory, second: int) -> None:
    """Let two machines of very long names report."""
    rows = [Row(name * 500_000, end_of(second + 0.5), (float(second),)) for name in "ab"]
    factory.feed_rows(rows)


def test_a_slow_subscriber_is_brought_to_the_newest_result(factory: Factory) -> None:
    server = factory.serve()
    with grpc.insecure_channel(server.address, options=[("grpc.max_receive_message_length", -1)]) as channel:
        stream = subscribe(ResultsServiceStub(channel), mode=pb.MODE_SNAPSHOTS)
        next(stream)
        for second in range(30):
            feed_large(factory, second)
        ends, passed_over = [], 0
        while not ends or ends[-1] < end_of(29):
            message = following(stream, "snapshot")
            ends.append(message.snapshot.result.window_end)
            passed_over += message.skipped
    assert ends == sorted(set(ends))
    assert len(ends) + passed_over == 29
    assert len(ends) < 25


def test_a_pause_is_told(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    stream = subscribe(stub)
    next(stream)
    factory.pipeline.control.execute(PauseQuery("factory", "hottest"))
    factory.work()
    assert following(stream, "state_change").state_change.state == types_pb2.QUERY_STATE_PAUSED
    assert following(subscribe_behind_header(stub), "state_change")


def subscribe_behind_header(stub: ResultsServiceStub) -> Iterator[pb.SubscribeResponse]:
    stream = subscribe(stub)
    next(stream)
    return stream


def test_a_stream_ends_when_its_query_is_deleted(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    stream = subscribe_behind_header(stub)
    factory.pipeline.control.execute(DeleteQuery("factory", "hottest"))
    factory.work()
    assert following(stream, "state_change").state_change.state == types_pb2.QUERY_STATE_DELETED
    with refused() as refusal:
        next(stream)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert refusal.message == f"query {HOTTEST!r} was deleted"
    factory.source.wait_for(live=0)


def test_a_stream_of_a_query_that_lives_ends_with_the_advice_to_come_again(
    factory: Factory, stub: ResultsServiceStub
) -> None:
    factory.feed(0.5, a=1)
    stream = subscribe_behind_header(stub)
    factory.pipeline.fanout.close()
    with refused() as refusal:
        for _ in stream:
            pass
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "LOG_UNAVAILABLE")
    assert "subscribe again" in refusal.message


def token_of(factory: Factory, uid: str, generation: int = 1, offset: int = 0) -> str:
    return ResumeToken(uid, generation, ResultPosition(0, offset), end_of(1)).encode()


def test_an_outdated_token_is_out_of_range(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    factory.feed(1.5, a=1)
    uid = stub.GetResult(pb.GetResultRequest(query=HOTTEST)).uid
    for token in (token_of(factory, uid, generation=7), token_of(factory, uid, offset=10**6)):
        with refused() as refusal:
            next(subscribe(stub, resume_token=token))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.OUT_OF_RANGE, "RESUME_TOKEN_OUTDATED")
        assert "subscribe without it" in refusal.message


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"resume_token": "garbage"}, "resume_token"),
        ({"resume_token": ResumeToken("other", 1, ResultPosition(0, 0), None).encode()}, "resume_token"),
        ({"query": ""}, "query"),
        ({"query": "factory/hottest"}, "query"),
        ({"mode": 9}, "mode"),
    ],
)
def test_a_wrong_request_is_refused_with_its_field(
    factory: Factory, stub: ResultsServiceStub, options: dict[str, object], field: str
) -> None:
    with refused() as refusal:
        next(subscribe(stub, **options))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "DEFINITION_INVALID")
    assert refusal.violations == [(field, refusal.message)]
    factory.source.wait_for(live=0)


def test_a_query_that_is_not_there_is_not_found(stub: ResultsServiceStub) -> None:
    with refused() as refusal:
        next(subscribe(stub, query="groups/factory/queries/none"))
    assert refusal.code is grpc.StatusCode.NOT_FOUND
    with refused() as refusal:
        stub.GetResult(pb.GetResultRequest(query="nobody"))
    assert refusal.code is grpc.StatusCode.NOT_FOUND


def test_one_result_is_read_by_name_or_uid_the_newest_or_an_older_one(
    factory: Factory, stub: ResultsServiceStub
) -> None:
    factory.feed(0, a=1, b=2)
    factory.feed(2.5, a=5)
    factory.feed(3.5, a=5)
    newest = stub.GetResult(pb.GetResultRequest(query=HOTTEST))
    assert (newest.window_end, names(newest.rows)) == (end_of(3), ["a", "b"])
    assert stub.GetResult(pb.GetResultRequest(query=newest.uid)) == newest
    older = stub.GetResult(pb.GetResultRequest(query=HOTTEST, window_end=end_of(1)))
    assert (older.window_end, names(older.rows)) == (end_of(1), ["b", "a"])
    with refused() as refusal:
        stub.GetResult(pb.GetResultRequest(query=HOTTEST, window_end=1))
    assert refusal.code is grpc.StatusCode.NOT_FOUND


def test_a_source_in_trouble_is_told_with_its_sentence(
    factory: Factory, stub: ResultsServiceStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LogError("the log is away; wait")

    monkeypatch.setattr(factory.source, "source", type("Broken", (), {"subscribe": fail, "get_result": fail})())
    with refused() as refusal:
        next(subscribe(stub))
    assert (refusal.code, refusal.message) == (grpc.StatusCode.UNAVAILABLE, "the log is away; wait")
    with refused() as refusal:
        stub.GetResult(pb.GetResultRequest(query=HOTTEST))
    assert refusal.code is grpc.StatusCode.UNAVAILABLE


def test_messages_read_well_as_json(factory: Factory, stub: ResultsServiceStub) -> None:
    factory.feed(0.5, a=1)
    factory.feed(1.5, a=2)
    result = stub.GetResult(pb.GetResultRequest(query=HOTTEST))
    document = json.loads(MessageToJson(result, preserving_proto_field_name=True))
    attributes = {"heat": 1.0}
    assert document["rows"] == [
        {"rank": 1, "object_id": "a", "score": 1.0, "attributes": attributes, "best_score": 100.0}
    ]
