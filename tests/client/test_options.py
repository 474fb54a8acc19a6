from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings

from skyband.client.options import begin_of, changed_stream, group_spec, query_of, query_path, stream_of
from skyband.errors import DefinitionError
from skyband.model.query import Order, Query, Window
from skyband.model.resources import GroupSpec
from skyband.model.stream import Aggregate, Attribute, Stream
from tests.v1 import values

MINUTE = timedelta(minutes=1)
M = 60_000_000


def test_options_mean_what_the_keys_of_a_definitions_file_mean() -> None:
    stream = stream_of("m", {"attributes": [{"name": "heat", "hi": 5}], "max_delay": MINUTE, "repeat_after": "never"})
    assert stream.aggregate is Aggregate.LATEST
    assert (stream.max_delay_us, stream.attributes[0].hi) == (M, 5)
    assert stream.repeat_after_us is not None


def test_a_query_has_its_window_in_time_or_in_rows() -> None:
    assert query_of("q", 3, "a", MINUTE, {"slide": "10s"}).window == Window(M, 10_000_000)
    assert query_of("q", 3, "a", 100, {"slide": 10}).window == Window(100, 10, in_rows=True)
    found = query_of("q", 3, "a", "1m", {"order": "lowest", "require": ["a", "b"]})
    assert found == Query(name="q", k=3, score="a", window=Window(M, M), order=Order.LOWEST, require=("a", "b"))


def test_a_group_has_the_defaults_of_the_model() -> None:
    found = group_spec("g", {"streams": ["a"], "retention": MINUTE})
    assert found == GroupSpec(name="g", streams=("a",), retention_us=M)


@pytest.mark.parametrize("options", [{"streams": ["a"]}, {"retention": "1m"}])
def test_a_group_needs_streams_and_retention(options: Any) -> None:
    with pytest.raises(DefinitionError, match=r"give (streams|retention)="):
        group_spec("g", options)


@settings(max_examples=30)
@given(values.streams())
def test_a_change_leaves_all_else_as_it_was(stream: Stream) -> None:
    changed = changed_stream(stream, {"max_delay": "7s", "repeat_after": None})
    assert changed.max_delay_us == 7_000_000
    assert changed.repeat_after_us is None
    assert changed.attributes == stream.attributes
    assert (changed.fields, changed.aggregate, changed.idle_after_us) == (
        stream.fields,
        stream.aggregate,
        stream.idle_after_us,
    )


def test_a_bound_can_be_changed_alone() -> None:
    stream = Stream(name="a", attributes=(Attribute(name="a", lo=-1, hi=9),))
    assert changed_stream(stream, {"hi": 10}).attributes == (Attribute(name="a", lo=-1, hi=10),)


@pytest.mark.parametrize(
    ("start", "begin"),
    [
        ("latest", "latest"),
        (datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC), 1_000_005),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
    ],
)
def test_a_start_is_an_end_of_the_topics_or_a_time(start: Any, begin: object) -> None:
    assert begin_of(start) == begin


def test_a_start_that_is_none_is_refused() -> None:
    with pytest.raises(DefinitionError, match="earliest, latest or a datetime"):
        begin_of("yesterday")  # type: ignore[arg-type]


def test_a_query_is_named_with_its_group() -> None:
    assert query_path("g/q") == query_path("groups/g/queries/q") == ("g", "q")
    for path in ("q", "g/", "/q", "a/b/c", ""):
        with pytest.raises(DefinitionError, match="group/query"):
            query_path(path)
