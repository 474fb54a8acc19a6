"""What a rebuild plans: the group to come, which rows it needs, and which queries its shards know from when on."""

from dataclasses import replace

import pytest

from skyband.align.source import CATALOG_KEY
from skyband.coverage.aligned_batch import CatalogRecord
from skyband.errors import ConflictError, DefinitionError
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, QueryState, Window
from skyband.model.resources import GroupResource, SourceStart, Stamp
from skyband.model.stream import Aggregate, Attribute, Stream
from spark.rebuild_catalog import CatalogView, known_before
from spark.rebuild_plan import LiveTopic, Wish, check_same_rows, live_topics, moved_of, new_group, since_of, sources_of
from spark.rebuild_survey import Span

A, B = (Stream(name=name, attributes=(Attribute(name=name),)) for name in "ab")
GROUP = Group(name="g", streams=(A, B), retention_us=20_000_000, shards=2)
STARTS = tuple(SourceStart(name, partition, 0, f"t-{name}") for name in "ab" for partition in (0, 1))
OLD = GroupResource(group=GROUP, generation=1, sources=STARTS, stamp=Stamp("u", 1, 0, 0))
VIEW = CatalogView(OLD, {"a": A, "b": B}, (), 0)
QUERY = Query(name="q", k=3, score="a", window=Window(10_000_000, 1_000_000))


def record(offset: int, uid: str, revision: int, state: QueryState = QueryState.ACTIVE) -> CatalogRecord:
    return CatalogRecord(offset, QueryChange(uid=uid, revision=revision, group="g", query=QUERY, state=state))


def test_the_group_to_come_is_that_of_now_but_for_what_is_wished() -> None:
    assert new_group(VIEW, Wish(group="g")) == GROUP
    assert new_group(VIEW, Wish(group="g", shards=5, retention_us=40_000_000)) == replace(
        GROUP, shards=5, retention_us=40_000_000
    )
    changed = replace(A, max_delay_us=5)
    assert new_group(replace(VIEW, streams={"a": changed, "b": B}), Wish(group="g")).streams == (changed, B)
    with pytest.raises(DefinitionError, match="the file defines group 'h', not 'g'"):
        new_group(VIEW, Wish(group="g", definitions=replace(GROUP, name="h")))
    with pytest.raises(DefinitionError, match="group 'g' has streams a, b; others can only be added behind them"):
        new_group(VIEW, Wish(group="g", definitions=replace(GROUP, streams=(B, A))))


def test_only_what_makes_other_rows_needs_the_sources() -> None:
    check_same_rows(GROUP, replace(GROUP, streams=(replace(A, aggregate=Aggregate.SUM, repeat_after_us=7), B)))
    with pytest.raises(ConflictError, match=r"stream 'a' is defined otherwise .* rebuild with --history sources"):
        check_same_rows(GROUP, replace(GROUP, streams=(replace(A, max_delay_us=1), B)))
    with pytest.raises(ConflictError, match="stream 'c' is new"):
        check_same_rows(GROUP, replace(GROUP, streams=(A, B, Stream(name="c", attributes=(Attribute(name="c"),)))))


def test_of_an_archive_only_what_is_needed_is_taken_unless_all_is_asked_for() -> None:
    assert since_of(None, True, 100_000_000, GROUP) == 80_000_000
    assert since_of(None, False, 100_000_000, GROUP) is None
    assert since_of(None, True, MIN_TIME_US, GROUP) is None
    assert since_of(5, True, 100_000_000, GROUP) == 5
    rows = replace(GROUP, retention_rows=10, shards=1)
    assert since_of(None, True, 100_000_000, rows) is None
    with pytest.raises(DefinitionError, match="has count windows"):
        since_of(5, False, 100_000_000, rows)


def test_queries_are_known_as_of_an_offset_and_what_was_compacted_away_as_if_active() -> None:
    changes = [record(2, "kept", 1), record(3, "gone", 2, QueryState.DELETED), record(5, "kept", 2, QueryState.PAUSED)]
    changes += [record(8, "kept", 3), record(9, "lost", 4, QueryState.PAUSED), record(10, "new", 1)]
    assert known_before(changes, 6) == (record(5, "kept", 2, QueryState.PAUSED), record(5, "lost", 3))
    assert [its.change and its.change.uid for its in known_before(changes, 11)] == ["kept", "lost", "new"]
    assert known_before(changes, 0) == ()


def test_topics_made_anew_keep_their_history_under_partitions_of_its_own() -> None:
    topics = live_topics(OLD, {"a": LiveTopic("t-a", {0: 0, 1: 0}), "b": LiveTopic("other", {0: 3, 1: 4})})
    assert [topics[name].is_new for name in "ab"] == [False, True]
    spans = {
        CATALOG_KEY: Span(0, 5),
        (0, 0): Span(0, 7, 70, 71),
        (1, 0): Span(2, 9, 90, 91),
        (1, 1_000_002): Span(0, 4),
    }
    moved = moved_of(GROUP, spans, topics)
    assert list(moved) == [(1, 0)]
    assert (moved[1, 0].to, moved[1, 0].live, moved[1, 0].live_offset) == ((1, 2_000_000), (1, 0), 3)
    found = {(s.stream, s.partition): s for s in sources_of(OLD, GROUP, spans, moved, topics)}
    assert list(found) == [("a", 0), ("b", 0), ("b", 1_000_002), ("b", 2_000_000)]
    live = found["b", 0]
    assert (live.from_offset, live.to_offset, live.watermark_us, live.topic_id) == (3, 3, 90, "other")
    old = found["b", 2_000_000]
    assert (old.from_offset, old.to_offset, old.topic_id, old.joins) == (2, 9, "t-b", True)
    assert found["a", 0].joins is False
    few = {**topics, "b": LiveTopic("other", {}, is_new=True)}
    with pytest.raises(ConflictError, match="topic 'b' has 0 partitions since it was made anew, fewer than before"):
        moved_of(GROUP, spans, few)
