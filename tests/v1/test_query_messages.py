import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given, settings

from skyband.errors import DefinitionError
from skyband.model.query import Query, Window
from skyband.model.resources import QueryResource
from skyband.v1 import types_pb2 as pb
from skyband.v1.messages import read_query, read_query_resource, write_query_resource
from tests.v1 import values

NAME = "groups/g/queries/q"
WINDOW = pb.Window(size=Duration(seconds=60))


@settings(max_examples=40)
@given(values.query_resources)
def test_a_query_comes_back_from_its_message_with_state_and_plan(resource: QueryResource) -> None:
    data = write_query_resource(resource).SerializeToString()
    assert read_query_resource(pb.Query.FromString(data)) == resource


def test_what_is_left_out_takes_the_default() -> None:
    message = pb.Query(name=NAME, k=3, score="a", window=WINDOW)
    assert read_query(message) == Query(name="q", k=3, score="a", window=Window(60_000_000, 60_000_000))


def test_rows_of_a_count_window_follow_one_another_without_a_slide() -> None:
    message = pb.Query(name=NAME, k=3, score="a", window=pb.Window(count=100))
    assert read_query(message).window == Window(100, 100, in_rows=True)


@pytest.mark.parametrize(
    ("message", "field", "words"),
    [
        (pb.Query(name="groups/g", k=1, score="a", window=WINDOW), "query.name", "no name of a query"),
        (pb.Query(name=NAME, score="a", window=WINDOW), "query.k", "at least 1"),
        (pb.Query(name=NAME, k=2_000_000, score="a", window=WINDOW), "query.k", "at most"),
        (pb.Query(name=NAME, k=1, window=WINDOW), "query.score", "missing"),
        (pb.Query(name=NAME, k=1, score="a"), "query.window", "missing"),
        (pb.Query(name=NAME, k=1, score="a", window=pb.Window()), "query.window", "neither"),
        (
            pb.Query(name=NAME, k=1, score="a", window=pb.Window(size=Duration(seconds=1), count=2)),
            "query.window",
            "both",
        ),
        (
            pb.Query(name=NAME, k=1, score="a", window=pb.Window(count=2, slide=Duration(seconds=1))),
            "query.window.slide",
            "slide_rows",
        ),
        (
            pb.Query(name=NAME, k=1, score="a", window=pb.Window(size=Duration(seconds=1), slide_rows=1)),
            "query.window.slide_rows",
            "give slide,",
        ),
        (pb.Query(name=NAME, k=1, score="a", window=pb.Window(size=Duration())), "query.window.size", "above 0"),
        (pb.Query(name=NAME, k=1, score="a", window=pb.Window(count=-1)), "query.window.count", "above 0"),
        (
            pb.Query(name=NAME, k=1, score="a", window=pb.Window(count=5, slide_rows=-1)),
            "query.window.slide_rows",
            "above 0",
        ),
        (pb.Query(name=NAME, k=1, score="a", window=WINDOW, kind=pb.KIND_JOIN), "query.kind", "not served"),
        (pb.Query(name=NAME, k=1, score="a", window=WINDOW, kind=42), "query.kind", "KIND_RANK"),  # type: ignore[arg-type]
        (pb.Query(name=NAME, k=1, score="a", window=WINDOW, require=["a"], require_all=True), "query.require", "both"),
        (pb.Query(name=NAME, k=1, score="a", window=WINDOW, require=["x/a"]), "query.require[0]", "streams/"),
    ],
)
def test_what_is_wrong_is_named_by_its_path_in_the_request(message: pb.Query, field: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        read_query(message)
    assert caught.value.field == field
