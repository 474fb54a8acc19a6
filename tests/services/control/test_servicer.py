"""The control service over a stage: every call, pages, masks."""

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.empty_pb2 import Empty
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

import skyband
from skyband.model.status import ShardReport
from skyband.v1 import control_pb2 as pb
from skyband.v1 import types_pb2
from skyband.v1.control_pb2_grpc import ControlServiceStub
from tests.services.control.conftest import Control
from tests.services.control.requests import FACTORY, HOTTEST, MINUTE, create_factory, create_hottest, query, stream
from tests.services.serving import refused


def test_a_server_says_what_it_is_and_where_results_are(stub: ControlServiceStub) -> None:
    assert stub.GetServer(pb.GetServerRequest()) == pb.Server(version=skyband.__version__, results_address="there:1")


# --- streams


def test_a_stream_is_made_and_read_with_all_its_defaults(stub: ControlServiceStub) -> None:
    made = stub.CreateStream(pb.CreateStreamRequest(stream_id="heat", stream=stream(topic="t")))
    assert stub.GetStream(pb.GetStreamRequest(name="streams/heat")) == made
    assert (made.name, made.revision, made.topic) == ("streams/heat", 1, "t")
    assert made.create_time == made.update_time == Timestamp(seconds=1_700_000_000)
    assert (made.lo, made.hi, made.aggregate) == (0.0, 100.0, types_pb2.AGGREGATE_BEST)
    assert made.idle.after == Duration(seconds=10)
    assert made.uid in made.etag


def test_a_name_will_do_for_an_id(stub: ControlServiceStub) -> None:
    made = stub.CreateStream(pb.CreateStreamRequest(stream=stream(name="streams/heat")))
    assert made.name == "streams/heat"


def test_an_update_changes_the_masked_fields_only(stub: ControlServiceStub) -> None:
    create_factory(stub)
    wish = stream(name="streams/temperature", lo=-5, topic="other", idle=types_pb2.Idle(after=MINUTE))
    made = stub.UpdateStream(
        pb.UpdateStreamRequest(stream=wish, update_mask=FieldMask(paths=["lo", "idle.after", "name", "uid"]))
    )
    assert (made.lo, made.hi, made.topic, made.revision) == (-5.0, 100.0, "factory.temperature", 2)
    assert made.idle == types_pb2.Idle(after=MINUTE, then=types_pb2.IDLE_THEN_FLUSH)


def test_an_update_without_a_mask_changes_what_it_sets(stub: ControlServiceStub) -> None:
    create_factory(stub)
    wish = types_pb2.Stream(name="streams/temperature", max_delay=Duration(seconds=2))
    made = stub.UpdateStream(pb.UpdateStreamRequest(stream=wish))
    assert (made.max_delay, made.topic, made.hi) == (Duration(seconds=2), "factory.temperature", 100.0)


def test_an_update_of_everything_resets_what_it_does_not_set(stub: ControlServiceStub) -> None:
    create_factory(stub)
    wish = types_pb2.Stream(name="streams/temperature", lo=1)
    made = stub.UpdateStream(pb.UpdateStreamRequest(stream=wish, update_mask=FieldMask(paths=["*"])))
    assert (made.lo, made.hi, made.topic) == (1.0, float("inf"), "")


def test_a_masked_field_that_is_not_set_is_reset(stub: ControlServiceStub) -> None:
    create_factory(stub)
    mask = FieldMask(paths=["hi", "idle.after"])
    wish = types_pb2.Stream(name="streams/temperature")
    made = stub.UpdateStream(pb.UpdateStreamRequest(stream=wish, update_mask=mask))
    assert (made.hi, made.idle.after) == (float("inf"), Duration(seconds=10))


@pytest.mark.parametrize(
    ("path", "words"), [("hight", "fields are"), ("idle.afte", "idle"), ("lo.x", "lo"), ("attributes.lo", "a list")]
)
def test_a_mask_that_names_no_field_is_refused(stub: ControlServiceStub, path: str, words: str) -> None:
    create_factory(stub)
    wish = stream(name="streams/temperature")
    with refused() as refusal:
        stub.UpdateStream(pb.UpdateStreamRequest(stream=wish, update_mask=FieldMask(paths=[path])))
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.violations == [("update_mask", refusal.message)]
    assert words in refusal.message


def test_a_stream_that_is_used_stays(stub: ControlServiceStub) -> None:
    create_factory(stub)
    with refused() as refusal:
        stub.DeleteStream(pb.DeleteStreamRequest(name="streams/temperature"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "STATE_FORBIDS")
    assert refusal.message.startswith("stream 'temperature' is used by group factory")


def test_a_stream_is_deleted(stub: ControlServiceStub) -> None:
    stub.CreateStream(pb.CreateStreamRequest(stream_id="heat", stream=stream()))
    assert stub.DeleteStream(pb.DeleteStreamRequest(name="streams/heat")) == Empty()
    with refused() as refusal:
        stub.GetStream(pb.GetStreamRequest(name="streams/heat"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert refusal.message == "there is no stream 'heat'; see them with `skyband streams list`"


# --- groups


def test_a_group_carries_generation_sources_and_definitions(stub: ControlServiceStub, control: Control) -> None:
    made = create_factory(stub)
    assert stub.GetGroup(pb.GetGroupRequest(name=FACTORY)) == made
    assert (made.generation, made.shards, made.pane) == (1, 1, Duration(seconds=1))
    assert list(made.streams) == ["streams/temperature", "streams/vibration"]
    assert [(s.stream, s.partition, s.offset, s.topic_id) for s in made.sources] == [
        ("streams/temperature", 0, 0, "t-temperature"),
        ("streams/temperature", 1, 0, "t-temperature"),
        ("streams/vibration", 0, 0, "t-vibration"),
        ("streams/vibration", 1, 0, "t-vibration"),
    ]
    assert [s.topic for s in made.stream_definitions] == ["factory.temperature", "factory.vibration"]
    assert control.asked == [(["temperature", "vibration"], "earliest")]


@pytest.mark.parametrize(
    ("begin", "asked", "offset"),
    [
        (types_pb2.Begin(edge=types_pb2.Begin.EDGE_LATEST), "latest", 101),
        (types_pb2.Begin(time=Timestamp(seconds=5)), 5_000_000, 50),
        (types_pb2.Begin(), "earliest", 0),
    ],
)
def test_a_new_generation_begins_where_it_is_told(
    stub: ControlServiceStub, control: Control, begin: types_pb2.Begin, asked: object, offset: int
) -> None:
    create_factory(stub)
    control.end = 100
    made = stub.RegenerateGroup(pb.RegenerateGroupRequest(name=FACTORY, begin=begin))
    assert made.generation == 2
    assert {source.offset for source in made.sources} == {offset}
    assert control.asked[-1] == (["temperature", "vibration"], asked)


def test_a_new_generation_takes_streams_as_they_are_now_and_what_shall_be_otherwise(stub: ControlServiceStub) -> None:
    create_factory(stub)
    stub.UpdateStream(pb.UpdateStreamRequest(stream=types_pb2.Stream(name="streams/vibration", lo=-7)))
    assert stub.GetGroup(pb.GetGroupRequest(name=FACTORY)).stream_definitions[1].lo == 0
    made = stub.RegenerateGroup(pb.RegenerateGroupRequest(name=FACTORY, group=types_pb2.Group(shards=4)))
    assert (made.shards, made.retention, made.stream_definitions[1].lo) == (4, MINUTE, -7)


def test_only_max_drift_of_a_group_can_be_updated(stub: ControlServiceStub) -> None:
    create_factory(stub)
    wish = types_pb2.Group(name=FACTORY, max_drift=Duration(seconds=5))
    assert stub.UpdateGroup(pb.UpdateGroupRequest(group=wish)).max_drift == Duration(seconds=5)
    with refused() as refusal:
        stub.UpdateGroup(pb.UpdateGroupRequest(group=types_pb2.Group(name=FACTORY, shards=2)))
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.violations[0][0] == "group.shards"
    assert "skyband groups regenerate factory" in refusal.message


def test_a_group_with_queries_is_deleted_by_force_only(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    with refused() as refusal:
        stub.DeleteGroup(pb.DeleteGroupRequest(name=FACTORY))
    assert refusal.code is grpc.StatusCode.FAILED_PRECONDITION
    stub.DeleteGroup(pb.DeleteGroupRequest(name=FACTORY, force=True))
    with refused() as refusal:
        stub.GetQuery(pb.GetQueryRequest(name=HOTTEST))
    assert refusal.code is grpc.StatusCode.NOT_FOUND


def test_a_group_of_unknown_streams_is_refused_before_the_log_is_asked(
    stub: ControlServiceStub, control: Control
) -> None:
    group = types_pb2.Group(streams=["ghost"], retention=MINUTE)
    with refused() as refusal:
        stub.CreateGroup(pb.CreateGroupRequest(group_id="g", group=group))
    assert refusal.code is grpc.StatusCode.NOT_FOUND
    assert control.asked == []


# --- queries


def test_a_query_is_made_with_state_and_plan(stub: ControlServiceStub) -> None:
    made = create_hottest(stub)
    assert stub.GetQuery(pb.GetQueryRequest(name=HOTTEST)) == made
    assert made.state == types_pb2.QUERY_STATE_ACTIVE
    assert made.plan.algorithm == types_pb2.ALGORITHM_TWO_TIER
    assert made.window == types_pb2.Window(size=Duration(seconds=10), slide=Duration(seconds=10))


def test_k_of_a_query_can_change_and_nothing_else(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    assert stub.UpdateQuery(pb.UpdateQueryRequest(query=types_pb2.Query(name=HOTTEST, k=5))).k == 5
    with refused() as refusal:
        stub.UpdateQuery(pb.UpdateQueryRequest(query=types_pb2.Query(name=HOTTEST, score="vibration")))
    assert refusal.violations[0][0] == "query.score"
    with refused() as refusal:
        stub.UpdateQuery(pb.UpdateQueryRequest(query=types_pb2.Query(name=HOTTEST, require_all=True)))
    assert refusal.violations[0][0] == "query.require"


def test_a_query_is_paused_resumed_and_deleted(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    assert stub.PauseQuery(pb.PauseQueryRequest(name=HOTTEST)).state == types_pb2.QUERY_STATE_PAUSED
    assert stub.PauseQuery(pb.PauseQueryRequest(name=HOTTEST)).revision == 2
    assert stub.ResumeQuery(pb.ResumeQueryRequest(name=HOTTEST)).state == types_pb2.QUERY_STATE_ACTIVE
    assert stub.DeleteQuery(pb.DeleteQueryRequest(name=HOTTEST)) == Empty()
    with refused() as refusal:
        stub.ResumeQuery(pb.ResumeQueryRequest(name=HOTTEST))
    assert refusal.code is grpc.StatusCode.NOT_FOUND


def test_a_query_is_explained(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    text = stub.ExplainQuery(pb.ExplainQueryRequest(name=HOTTEST)).text
    assert text.startswith("hottest: the 3 objects with the highest temperature\n")


def test_a_query_is_described_in_words_and_values(stub: ControlServiceStub, control: Control) -> None:
    create_hottest(stub)
    producer = control.log.producer()
    producer.send("progress", 0, ShardReport(group="factory", generation=1, shard=0, rows_in=7, stopped="a gap"))
    control.call(lambda stage: stage.poll())
    found = stub.DescribeQuery(pb.DescribeQueryRequest(name=HOTTEST))
    assert found.headline == "hottest  STOPPED"
    assert [line.label for line in found.lines] == ["why", "do", "plan", "rows"]
    assert (found.status.rows_in, found.status.shards[0].stopped) == (7, "a gap")
    assert not found.status.shards[0].HasField("frontier_us")


def test_a_description_tells_times_in_the_zone_asked_for(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    stub.PauseQuery(pb.PauseQueryRequest(name=HOTTEST))
    found = stub.DescribeQuery(pb.DescribeQueryRequest(name=HOTTEST, time_zone="Asia/Tokyo"))
    assert "PAUSED since 07:13:20+09:00" in found.headline
    with refused() as refusal:
        stub.DescribeQuery(pb.DescribeQueryRequest(name=HOTTEST, time_zone="Nowhere/At all"))
    assert refusal.violations[0][0] == "time_zone"


# --- lists


def test_lists_come_in_pages(stub: ControlServiceStub) -> None:
    create_factory(stub)
    first = stub.ListStreams(pb.ListStreamsRequest(page_size=1))
    second = stub.ListStreams(pb.ListStreamsRequest(page_size=1, page_token=first.next_page_token))
    assert [s.name for s in (*first.streams, *second.streams)] == ["streams/temperature", "streams/vibration"]
    assert second.next_page_token == ""
    assert [g.name for g in stub.ListGroups(pb.ListGroupsRequest()).groups] == [FACTORY]


def test_queries_are_listed_by_group_or_all(stub: ControlServiceStub) -> None:
    create_hottest(stub)
    group = types_pb2.Group(streams=["vibration"], retention=MINUTE)
    stub.CreateGroup(pb.CreateGroupRequest(group_id="other", group=group))
    stub.CreateQuery(pb.CreateQueryRequest(parent="groups/other", query_id="q", query=query(score="vibration")))
    of_one = stub.ListQueries(pb.ListQueriesRequest(parent=FACTORY)).queries
    of_all = stub.ListQueries(pb.ListQueriesRequest(parent="groups/-")).queries
    assert [q.name for q in of_one] == [HOTTEST]
    assert [q.name for q in of_all] == [HOTTEST, "groups/other/queries/q"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ListQueriesRequest(parent="factory"), "parent"),
        (pb.ListQueriesRequest(parent="groups/-", page_size=-1), "page_size"),
        (pb.ListQueriesRequest(parent="groups/-", page_token="?"), "page_token"),
    ],
)
def test_a_wrong_page_is_refused(stub: ControlServiceStub, request_: pb.ListQueriesRequest, field: str) -> None:
    with refused() as refusal:
        stub.ListQueries(request_)
    assert (refusal.code, refusal.violations[0][0]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
