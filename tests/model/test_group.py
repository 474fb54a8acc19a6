"""Groups refuse what no stage could serve."""

import pytest

from skyband.errors import NotServedError
from skyband.model.group import Group
from skyband.model.stream import Attribute, Stream


def stream(name: str, topic: str = "") -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name),), topic=topic)


def test_two_streams_of_a_group_do_not_read_the_same_topic() -> None:
    with pytest.raises(NotServedError, match="streams 'a' and 'b' read the same topic 'readings'"):
        Group(name="g", streams=(stream("a", "readings"), stream("b", "readings")), retention_us=1_000_000)


def test_a_topic_is_the_stream_s_name_where_none_is_given() -> None:
    with pytest.raises(NotServedError, match="streams 'a' and 'b' read the same topic 'a'"):
        Group(name="g", streams=(stream("a"), stream("b", "a")), retention_us=1_000_000)
    Group(name="g", streams=(stream("a", "b"), stream("b", "a")), retention_us=1_000_000)
