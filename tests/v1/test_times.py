import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given

from skyband.errors import DefinitionError
from skyband.v1.times import duration, duration_us, timestamp, timestamp_us
from tests.v1 import values


@given(values.lengths)
def test_a_duration_is_exact_to_the_microsecond(us: int) -> None:
    assert duration_us(duration(us), "slide") == us


@given(values.times)
def test_a_time_is_exact_to_the_microsecond(us: int) -> None:
    assert timestamp_us(timestamp(us), "time") == us


def test_a_time_before_1970_has_nanos_that_count_forward() -> None:
    assert timestamp(-1) == Timestamp(seconds=-1, nanos=999_999_000)
    assert timestamp_us(timestamp(-1), "time") == -1


def test_ten_years_is_the_longest_duration() -> None:
    longest = duration(values.TEN_YEARS_US)
    assert duration_us(longest, "size") == values.TEN_YEARS_US
    longest.nanos = 1_000
    with pytest.raises(DefinitionError, match="longer than ten years"):
        duration_us(longest, "size")


@pytest.mark.parametrize(
    "message",
    [
        Duration(seconds=-1),
        Duration(nanos=-1_000),
        Duration(seconds=1, nanos=-1_000),
        Duration(nanos=1_000_000_000),
        Duration(nanos=999),
    ],
)
def test_a_malformed_duration_is_refused_with_its_field(message: Duration) -> None:
    with pytest.raises(DefinitionError, match=r"^query\.window\.size ") as caught:
        duration_us(message, "query.window.size")
    assert caught.value.field == "query.window.size"


@pytest.mark.parametrize("message", [Timestamp(nanos=-1), Timestamp(seconds=2**40), Timestamp(nanos=1)])
def test_a_malformed_time_is_refused_with_its_field(message: Timestamp) -> None:
    with pytest.raises(DefinitionError) as caught:
        timestamp_us(message, "begin.time")
    assert caught.value.field == "begin.time"
