"""What topics.yaml says is whole, and is made so."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from services.runtime.codecs import VALUES
from services.runtime.topics import MAX_MESSAGE_BYTES, Topics, aligned_config, apply
from skyband.errors import LogError
from skyband.model.group import Group
from skyband.model.stream import Attribute, Stream

TOPICS = Topics()
STAGES = {"align", "sketch", "engine", "fanout", "control"}
# Who is no stage, but writes for one: the topics in which it may have keys of its own.
JOBS = {"spark": {"checkpoints", "statistics"}}


class Admin:
    """Topics in a dict; `made` lists what was created."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[int, dict[str, str]]] = {}
        self.made: list[str] = []
        self.broken = False

    def create_topic(self, name: str, partitions: int, *, config: Mapping[str, str]) -> None:
        if self.broken:
            raise LogError("the cluster is not there")
        if name not in self.topics:
            self.topics[name] = partitions, dict(config)
            self.made.append(name)
        elif self.topics[name][0] != partitions:
            raise LogError("has another number of partitions")

    def partitions(self, name: str) -> int:
        if self.broken:
            raise LogError("the cluster is not there")
        return self.topics[name][0]

    def topic_config(self, name: str) -> Mapping[str, str]:
        return self.topics[name][1]


def group_of(retention_us: int) -> Group:
    stream = Stream(name="a", attributes=(Attribute(name="a", lo=0.0, hi=1.0),))
    return Group(name="factory", streams=(stream,), retention_us=retention_us)


def test_every_topic_names_a_schema_stages_and_records_of_it() -> None:
    for topic in TOPICS.all:
        assert topic.schema in VALUES
        assert {space.writer for space in topic.keys} <= STAGES | {
            job for job, its in JOBS.items() if topic.name in its
        }
        assert {space.value for space in topic.keys} == {codec.name for codec in VALUES[topic.schema]}
        assert topic.cleanup in {"delete", "compact"}
        assert topic.if_damaged
        assert topic.notes


def test_a_key_space_has_one_writer() -> None:
    for topic in TOPICS.all:
        writers: dict[str, set[str]] = {}
        for space in topic.keys:
            if space.key != "none":
                writers.setdefault(space.key, set()).add(space.writer)
        assert all(len(its) == 1 for its in writers.values())


def test_a_compacted_topic_has_keys_and_no_retention() -> None:
    for topic in TOPICS.all:
        if topic.cleanup == "compact":
            assert all(space.key != "none" for space in topic.keys)
            assert "retention.ms" not in topic.config
        elif not topic.is_pattern:
            assert int(topic.config["retention.ms"]) > 0


def test_no_message_is_larger_than_a_producer_may_send() -> None:
    for topic in TOPICS.all:
        assert int(topic.config.get("max.message.bytes", 0)) in {0, MAX_MESSAGE_BYTES}


def test_marks_have_as_many_partitions_as_partials() -> None:
    assert TOPICS.partitions()["marks"] == TOPICS.partitions()["partials"] == 8
    assert TOPICS.partitions({"partials": 3, "results": 2}) == {
        "catalog": 1,
        "progress": 1,
        "partials": 3,
        "results": 2,
        "marks": 3,
        "checkpoints": 4,
        "dead-letters": 4,
        "statistics": 4,
    }


@pytest.mark.parametrize("name", ["marks", "aligned.g.1", "temperature"])
def test_partitions_that_follow_others_cannot_be_chosen(name: str) -> None:
    with pytest.raises(LogError, match=f"the partitions of '{name}' cannot be chosen"):
        TOPICS.partitions({name: 3})


def test_missing_topics_are_made_once() -> None:
    admin = Admin()
    apply(admin)
    assert admin.made == list(TOPICS.partitions())
    assert admin.topics["catalog"][0] == 1
    assert admin.topics["catalog"][1]["cleanup.policy"] == "compact"
    assert admin.topics["progress"][1]["retention.ms"] == "3600000"
    apply(admin)
    assert len(admin.made) == len(set(admin.made))


def test_what_differs_is_said_in_one_sentence_and_the_rest_is_made() -> None:
    admin = Admin()
    admin.topics["catalog"] = 1, {"cleanup.policy": "delete"}
    admin.topics["results"] = 12, {"cleanup.policy": "delete"}
    with pytest.raises(LogError) as raised:
        apply(admin)
    assert str(raised.value) == (
        "topic 'catalog' has cleanup.policy delete, not compact, and topic 'results' has 12 partitions, not 6; alter "
        "the topics, or the settings where they say so"
    )
    assert set(admin.topics) == set(TOPICS.partitions())
    admin.topics["catalog"] = 1, {"cleanup.policy": "compact"}
    apply(admin, {"results": 12})


def test_a_cluster_that_does_not_answer_is_no_difference() -> None:
    admin = Admin()
    apply(admin)
    admin.broken = True
    with pytest.raises(LogError, match="the cluster is not there"):
        apply(admin)


@pytest.mark.parametrize(("retention_s", "kept_s"), [(60, 6 * 3600), (2 * 3600, 6 * 3600), (3 * 3600, 9 * 3600)])
def test_an_aligned_topic_keeps_three_retentions_and_at_least_six_hours(retention_s: int, kept_s: int) -> None:
    config = aligned_config(group_of(retention_s * 1_000_000))
    assert config["retention.ms"] == str(kept_s * 1_000)
    assert config["cleanup.policy"] == "delete"
    assert config["max.message.bytes"] == str(MAX_MESSAGE_BYTES)


def test_names_of_groups_topics_are_told_from_others() -> None:
    assert TOPICS.topic_of("aligned.a-b_c.12").schema == "aligned_batch"
    assert TOPICS.topic_of("dead-letters").schema == "dead_letter"
    for name in ("aligned", "aligned..1", "Aligned.g.1", "results.1", "", "xaligned.g.1"):
        with pytest.raises(LogError, match="no internal topic"):
            TOPICS.topic_of(name)


@pytest.mark.parametrize("text", [None, "topics: [{name: x}]", "topics: 3", "- a: [", "other: []"])
def test_a_file_that_lists_no_topics_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "topics.yaml").write_text(text)
    with pytest.raises(LogError, match=r"topics\.yaml .*; \w+|topics\.yaml cannot be read"):
        Topics(tmp_path)
