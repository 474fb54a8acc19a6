"""What the control service refuses, and how it says so."""

from concurrent import futures

import grpc
import pytest
import structlog
from google.protobuf.duration_pb2 import Duration

from skyband.errors import CapacityError, LogError
from skyband.v1 import control_pb2 as pb
from skyband.v1 import types_pb2
from skyband.v1.control_pb2_grpc import ControlServiceStub
from tests.services.control.conftest import Control
from tests.services.control.requests import FACTORY, HOTTEST, MINUTE, create_factory, create_hottest, query
from tests.services.serving import refused


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=query(k=0)), "query.k"),
        (pb.CreateQueryRequest(parent=FACTORY, query_id="9", query=query()), "query_id"),
        (pb.CreateQueryRequest(parent=FACTORY, query=query(name="groups/factory/queries/9")), "query.name"),
        (pb.CreateQueryRequest(parent="factory", query_id="q", query=query()), "parent"),
        (pb.CreateQueryRequest(parent="groups/x", query=query(name=HOTTEST)), "parent"),
        (pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=query(name=HOTTEST)), "query_id"),
        (pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=query(score="speed")), "query.score"),
        (
            pb.CreateQueryRequest(
                parent=FACTORY,
                query_id="q",
                query=query(window=types_pb2.Window(size=Duration(nanos=700_000_000))),
            ),
            "query.window.size",
        ),
    ],
)
def test_a_wrong_field_is_named_by_its_path_in_the_request(
    stub: ControlServiceStub, given: pb.CreateQueryRequest, field: str
) -> None:
    create_factory(stub)
    with refused() as refusal:
        stub.CreateQuery(given)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "DEFINITION_INVALID")
    assert refusal.violations == [(field, refusal.message)]
    assert refusal.metadata["field"] == field


def test_a_wrong_id_of_a_group_is_named_as_such(stub: ControlServiceStub) -> None:
    create_factory(stub)
    group = types_pb2.Group(streams=["vibration"], retention=MINUTE)
    with refused() as refusal:
        stub.CreateGroup(pb.CreateGroupRequest(group_id="9", group=group))
    assert refusal.violations[0][0] == "group_id"


def test_a_mistake_in_a_score_is_pointed_at(stub: ControlServiceStub) -> None:
    create_factory(stub)
    wish = query(score="0.7*temperature + speed")
    with refused() as refusal:
        stub.CreateQuery(pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=wish))
    assert refusal.metadata["source_text"] == "0.7*temperature + speed"
    assert (refusal.metadata["column"], refusal.metadata["length"]) == ("18", "5")
    assert refusal.message.startswith("score uses 'speed', which is not a stream of group 'factory'")


def test_a_name_that_is_taken_is_refused(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    with refused() as refusal:
        stub.CreateQuery(pb.CreateQueryRequest(parent=FACTORY, query_id="hottest", query=query()))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS")


def test_what_cannot_be_served_is_a_failed_precondition(stub: ControlServiceStub) -> None:
    create_factory(stub)
    wish = query(score="temperature - 2*temperature*vibration")
    with refused() as refusal:
        stub.CreateQuery(pb.CreateQueryRequest(parent=FACTORY, query_id="q", query=wish))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_SERVED")
    assert refusal.metadata["field"] == "query.score"


def test_a_generation_that_would_end_a_query_is_refused_for_the_group(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    shorter = types_pb2.Group(retention=Duration(seconds=5))
    with refused() as refusal:
        stub.RegenerateGroup(pb.RegenerateGroupRequest(name=FACTORY, group=shorter))
    assert (refusal.code, refusal.metadata["field"]) == (grpc.StatusCode.FAILED_PRECONDITION, "group")


@pytest.mark.parametrize(
    ("failure", "code", "reason"),
    [
        (LogError("the log is away; wait"), grpc.StatusCode.UNAVAILABLE, "LOG_UNAVAILABLE"),
        (CapacityError("the catalog is full; wait"), grpc.StatusCode.RESOURCE_EXHAUSTED, "CAPACITY_EXCEEDED"),
    ],
)
def test_a_log_in_trouble_is_told_with_its_sentence(
    stub: ControlServiceStub, control: Control, failure: Exception, code: grpc.StatusCode, reason: str
) -> None:
    control.failure = failure
    with refused() as refusal:
        stub.GetStream(pb.GetStreamRequest(name="streams/a"))
    assert (refusal.code, refusal.reason, refusal.message) == (code, reason, str(failure))


def test_a_mistake_of_the_server_is_logged_and_not_shown(stub: ControlServiceStub, control: Control) -> None:
    control.failure = KeyError("a secret")
    with structlog.testing.capture_logs() as logged, refused() as refusal:
        stub.GetStream(pb.GetStreamRequest(name="streams/a"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in refusal.message
    assert [repr(entry["exc_info"]) for entry in logged if entry["event"] == "call failed"] == ["KeyError('a secret')"]


def test_a_server_of_threads_alone_refuses_in_the_same_way(control: Control) -> None:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    control.add_to(server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    with grpc.insecure_channel(f"localhost:{port}") as channel, refused() as refusal:
        ControlServiceStub(channel).GetGroup(pb.GetGroupRequest(name="groups/none"))
    server.stop(None)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
