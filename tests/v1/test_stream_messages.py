import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given, settings

from skyband.errors import DefinitionError, NotServedError
from skyband.model.resources import StreamResource
from skyband.model.stream import Attribute, Stream
from skyband.v1 import types_pb2 as pb
from skyband.v1.messages import read_stream, read_stream_resource, write_stream, write_stream_resource
from tests.v1 import values


@settings(max_examples=40)
@given(values.stream_resources)
def test_a_stream_comes_back_from_its_message_as_it_was(resource: StreamResource) -> None:
    data = write_stream_resource(resource).SerializeToString()
    assert read_stream_resource(pb.Stream.FromString(data)) == resource


def test_what_is_left_out_takes_the_default() -> None:
    expected = Stream(name="heat", attributes=(Attribute(name="heat"),))
    assert read_stream(pb.Stream(name="streams/heat")) == expected


def test_an_object_stream_has_attributes_and_combines_by_the_latest() -> None:
    message = pb.Stream(name="streams/m", attributes=[pb.Attribute(name="heat", hi=3), pb.Attribute(name="load")])
    stream = read_stream(message)
    assert stream.is_object_stream
    assert stream.aggregate == "latest"
    assert [a.hi for a in stream.attributes] == [3.0, float("inf")]


def test_what_the_server_alone_sets_is_ignored_in_a_definition() -> None:
    message = pb.Stream(name="streams/heat", uid="u", revision=7, etag="u.7")
    message.create_time.seconds = -(2**62)
    assert read_stream(message) == read_stream(pb.Stream(name="streams/heat"))


def test_an_update_can_tell_a_bound_of_zero_from_none() -> None:
    written = write_stream(Stream(name="a", attributes=(Attribute(name="a", lo=0.0, hi=1.0, missing=0.0),)))
    assert written.HasField("lo")
    assert written.HasField("missing")
    written.ClearField("missing")
    assert read_stream(written).attributes[0].missing is None


@pytest.mark.parametrize(
    ("message", "field", "words"),
    [
        (pb.Stream(), "stream.name", "is missing"),
        (pb.Stream(name="groups/a"), "stream.name", "no name of a stream"),
        (pb.Stream(name="streams/9"), "stream.name", "beginning with a letter"),
        (pb.Stream(name="streams/a", lo=2, hi=1), "stream.lo", "not below hi"),
        (pb.Stream(name="streams/a", hi=-1), "stream.hi", "not below hi"),
        (pb.Stream(name="streams/a", lo=float("nan")), "stream.lo", "NaN"),
        (pb.Stream(name="streams/a", missing=float("inf")), "stream.missing", "finite"),
        (pb.Stream(name="streams/a", lo=1, attributes=[pb.Attribute(name="b")]), "stream.lo", "move it there"),
        (pb.Stream(name="streams/a", attributes=[pb.Attribute(name="b", hi=-1)]), "stream.attributes[0].hi", "hi"),
        (pb.Stream(name="streams/a", attributes=[pb.Attribute()]), "stream.attributes[0].name", "name"),
        (pb.Stream(name="streams/a", aggregate=99), "stream.aggregate", "AGGREGATE_BEST"),  # type: ignore[arg-type]
        (pb.Stream(name="streams/a", max_delay=Duration(seconds=-1)), "stream.max_delay", "negative"),
        (pb.Stream(name="streams/a", max_delay=Duration(nanos=1)), "stream.max_delay", "part of a microsecond"),
        (pb.Stream(name="streams/a", max_ahead=Duration(seconds=2**40)), "stream.max_ahead", "ten years"),
        (pb.Stream(name="streams/a", idle=pb.Idle(after=Duration(nanos=5))), "stream.idle.after", "microsecond"),
        (pb.Stream(name="streams/a", idle=pb.Idle(then=9)), "stream.idle.then", "IDLE_THEN"),  # type: ignore[arg-type]
        (pb.Stream(name="streams/a", repeat_after=pb.RepeatAfter()), "stream.repeat_after", "promises nothing"),
        (pb.Stream(name="streams/a", repeat_after=pb.RepeatAfter(never=False)), "stream.repeat_after.never", "false"),
        (
            pb.Stream(name="streams/a", repeat_after=pb.RepeatAfter(duration=Duration())),
            "stream.repeat_after",
            "above 0",
        ),
        (
            pb.Stream(name="streams/a", fields=pb.Fields(value="x"), attributes=[pb.Attribute(name="b")]),
            "stream.fields.value",
            "remove value",
        ),
        (
            pb.Stream(
                name="streams/a",
                identity=pb.IDENTITY_ROW,
                aggregate=pb.AGGREGATE_SUM,
                attributes=[pb.Attribute(name="b")],
            ),
            "stream.aggregate",
            "nothing combines",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_path_in_the_request(message: pb.Stream, field: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        read_stream(message)
    assert caught.value.field == field


def test_records_as_objects_need_an_object_stream() -> None:
    with pytest.raises(NotServedError) as caught:
        read_stream(pb.Stream(name="streams/a", identity=pb.IDENTITY_ROW))
    assert caught.value.field == "stream.identity"
