import pytest

from skyband.errors import DefinitionError
from skyband.v1.names import group_id, query_ids, stream_id, stream_reference


def test_names_are_paths_of_ids() -> None:
    assert stream_id("streams/a") == "a"
    assert group_id("groups/g") == "g"
    assert query_ids("groups/g/queries/q") == ("g", "q")
    assert stream_reference("a", "f") == stream_reference("streams/a", "f") == "a"


@pytest.mark.parametrize("name", ["", "a", "streams/", "streams/a/b", "groups/a", "/streams/a"])
def test_what_is_no_name_is_refused_with_the_pattern_of_one(name: str) -> None:
    with pytest.raises(DefinitionError, match=r"write streams/\{stream\}") as caught:
        stream_id(name, "stream.name")
    assert caught.value.field == "stream.name"


@pytest.mark.parametrize("name", ["groups/g", "groups//queries/q", "groups/g/queries/", "g/q", "groups/g/queries/q/x"])
def test_a_query_is_named_with_its_group(name: str) -> None:
    with pytest.raises(DefinitionError, match=r"groups/\{group\}/queries/\{query\}"):
        query_ids(name)
