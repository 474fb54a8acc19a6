"""Requests that make a factory: two streams, a group of both, a query over one."""

from google.protobuf.duration_pb2 import Duration

from skyband.v1 import control_pb2 as pb
from skyband.v1 import types_pb2
from skyband.v1.control_pb2_grpc import ControlServiceStub

MINUTE = Duration(seconds=60)
FACTORY = "groups/factory"
HOTTEST = "groups/factory/queries/hottest"


def stream(**fields: object) -> types_pb2.Stream:
    return types_pb2.Stream(hi=100, **fields)  # type: ignore[arg-type]


def query(**fields: object) -> types_pb2.Query:
    given = {"k": 3, "score": "temperature", "window": types_pb2.Window(size=Duration(seconds=10)), **fields}
    return types_pb2.Query(**given)  # type: ignore[arg-type]


def create_factory(stub: ControlServiceStub) -> types_pb2.Group:
    for name in ("temperature", "vibration"):
        stub.CreateStream(pb.CreateStreamRequest(stream_id=name, stream=stream(topic=f"factory.{name}")))
    group = types_pb2.Group(streams=["streams/temperature", "vibration"], retention=MINUTE)
    return stub.CreateGroup(pb.CreateGroupRequest(group_id="factory", group=group))


def create_hottest(stub: ControlServiceStub) -> types_pb2.Query:
    create_factory(stub)
    return stub.CreateQuery(pb.CreateQueryRequest(parent=FACTORY, query_id="hottest", query=query()))
