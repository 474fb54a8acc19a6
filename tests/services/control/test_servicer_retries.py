"""Etags, retries and dry runs."""

import grpc
from google.protobuf.empty_pb2 import Empty

from skyband.v1 import control_pb2 as pb
from skyband.v1 import types_pb2
from skyband.v1.control_pb2_grpc import ControlServiceStub
from tests.services.control.requests import FACTORY, HOTTEST, MINUTE, create_factory, create_hottest, query
from tests.services.serving import refused


def test_an_outdated_etag_stops_a_change(stub: ControlServiceStub) -> None:
    made = create_hottest(stub)
    stub.UpdateQuery(pb.UpdateQueryRequest(query=types_pb2.Query(name=HOTTEST, k=5, etag=made.etag)))
    late = types_pb2.Query(name=HOTTEST, k=6, etag=made.etag)
    for change in (
        lambda: stub.UpdateQuery(pb.UpdateQueryRequest(query=late)),
        lambda: stub.PauseQuery(pb.PauseQueryRequest(name=HOTTEST, etag=made.etag)),
        lambda: stub.DeleteQuery(pb.DeleteQueryRequest(name=HOTTEST, etag=made.etag)),
    ):
        with refused() as refusal:
            change()
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.ABORTED, "ETAG_OUTDATED")
    assert stub.GetQuery(pb.GetQueryRequest(name=HOTTEST)).k == 5


def test_a_fresh_etag_does_not_excuse_the_state_of_things(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    etag = stub.GetGroup(pb.GetGroupRequest(name=FACTORY)).etag
    with refused() as refusal:
        stub.DeleteGroup(pb.DeleteGroupRequest(name=FACTORY, etag=etag))
    assert refusal.code is grpc.StatusCode.FAILED_PRECONDITION


def test_a_retry_does_nothing_twice(stub: ControlServiceStub) -> None:
    create_factory(stub)
    create = pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=query(), request_id="r1")
    assert stub.CreateQuery(create) == stub.CreateQuery(create)
    update = pb.UpdateQueryRequest(query=types_pb2.Query(name="groups/factory/queries/q", k=9), request_id="r2")
    assert stub.UpdateQuery(update).revision == stub.UpdateQuery(update).revision == 2
    delete = pb.DeleteQueryRequest(name="groups/factory/queries/q", request_id="r3")
    assert stub.DeleteQuery(delete) == stub.DeleteQuery(delete) == Empty()


def test_a_retry_of_a_group_does_not_begin_at_what_is_the_latest_by_then(stub: ControlServiceStub) -> None:
    create_factory(stub)
    latest = types_pb2.Begin(edge=types_pb2.Begin.EDGE_LATEST)
    group = types_pb2.Group(streams=["vibration"], retention=MINUTE)
    create = pb.CreateGroupRequest(group_id="g", group=group, begin=latest, request_id="r1")
    assert stub.CreateGroup(create) == stub.CreateGroup(create)
    again = pb.RegenerateGroupRequest(name="groups/g", begin=latest, request_id="r2", group=types_pb2.Group(shards=2))
    assert stub.RegenerateGroup(again) == stub.RegenerateGroup(again)
    assert stub.GetGroup(pb.GetGroupRequest(name="groups/g")).generation == 2


def test_a_request_id_is_for_one_request(stub: ControlServiceStub) -> None:
    create_factory(stub)
    stub.CreateQuery(pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=query(), request_id="r"))
    with refused() as refusal:
        stub.CreateQuery(pb.CreateQueryRequest(parent=FACTORY, query_id="q2", query=query(), request_id="r"))
    assert refusal.code is grpc.StatusCode.FAILED_PRECONDITION


def test_a_dry_run_changes_nothing_and_shows_what_would_be(stub: ControlServiceStub) -> None:
    create_factory(stub)
    plan = stub.CreateQuery(pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=query(), validate_only=True)).plan
    assert plan.reason
    assert not stub.ListQueries(pb.ListQueriesRequest(parent=FACTORY)).queries
    with refused() as refusal:
        stub.CreateQuery(
            pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=query(score="x"), validate_only=True)
        )
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    stub.DeleteGroup(pb.DeleteGroupRequest(name=FACTORY, validate_only=True))
    assert stub.GetGroup(pb.GetGroupRequest(name=FACTORY)).name == FACTORY
