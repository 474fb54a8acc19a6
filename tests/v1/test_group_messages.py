import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.model.resources import GroupResource, GroupSpec
from skyband.v1 import types_pb2 as pb
from skyband.v1.begin import Begin
from skyband.v1.messages import (
    read_begin,
    read_group_resource,
    read_group_spec,
    write_begin,
    write_group_resource,
    write_group_spec,
)
from tests.v1 import values

MINUTE = Duration(seconds=60)


@settings(max_examples=40)
@given(values.specs())
def test_a_wish_for_a_group_comes_back_from_its_message_as_it_was(spec: GroupSpec) -> None:
    assert read_group_spec(pb.Group.FromString(write_group_spec(spec).SerializeToString())) == spec


@settings(max_examples=40)
@given(values.group_resources())
def test_a_group_comes_back_with_its_generation_its_sources_and_its_definitions(resource: GroupResource) -> None:
    data = write_group_resource(resource).SerializeToString()
    assert read_group_resource(pb.Group.FromString(data)) == resource


@settings(max_examples=40)
@given(st.sampled_from(["earliest", "latest"]) | values.times)
def test_where_to_begin_comes_back_from_its_message(begin: Begin) -> None:
    assert read_begin(write_begin(begin)) == begin


def test_what_is_left_out_takes_the_default() -> None:
    message = pb.Group(name="groups/g", streams=["streams/a"], retention=MINUTE)
    assert read_group_spec(message) == GroupSpec(name="g", streams=("a",), retention_us=60_000_000)
    assert read_begin(pb.Begin()) == "earliest"


def test_a_stream_may_be_named_by_its_id_alone() -> None:
    message = pb.Group(name="groups/g", streams=["a", "streams/b"], retention=MINUTE)
    assert read_group_spec(message).streams == ("a", "b")


def test_no_shard_is_not_the_same_as_no_word_about_shards() -> None:
    message = pb.Group(name="groups/g", streams=["a"], retention=MINUTE, shards=0)
    assert read_group_spec(message).shards == 0


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.Group(name="streams/g", retention=MINUTE), "group.name"),
        (pb.Group(name="groups/g"), "group.retention"),
        (pb.Group(name="groups/g", retention=Duration(nanos=1)), "group.retention"),
        (pb.Group(name="groups/g", retention=MINUTE, pane=Duration(seconds=-1)), "group.pane"),
        (pb.Group(name="groups/g", retention=MINUTE, streams=["a", "groups/b"]), "group.streams[1]"),
        (pb.Group(name="groups/g", retention=MINUTE, streams=[""]), "group.streams[0]"),
    ],
)
def test_what_is_wrong_is_named_by_its_path_in_the_request(message: pb.Group, field: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_group_spec(message)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.Begin(edge=7), "begin.edge"),  # type: ignore[arg-type]
        (pb.Begin(time=Timestamp(nanos=1)), "begin.time"),
        (pb.Begin(time=Timestamp(seconds=2**50)), "begin.time"),
    ],
)
def test_a_beginning_that_is_none_is_refused(message: pb.Begin, field: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_begin(message)
    assert caught.value.field == field
