"""How align, engine and fanout of a group are doing."""

from dataclasses import replace

import pytest

from services.doctor.checks_groups import check_align, check_engine, check_fanout
from services.doctor.facts import GroupFacts, Lag, Reported, Reports, SourceTopic
from services.doctor.finding import Finding, Level
from skyband.files.definitions import load_definitions
from skyband.model.partials import MergeProgress
from skyband.model.resources import GroupResource, SourceStart, Stamp
from skyband.model.status import Holder, ShardReport, SourceReport

S = 1_000_000
NOW = 1_782_907_200 * S
GROUP = load_definitions("""\
group:
  name: factory
  retention: 1m
  shards: 2
  streams:
    - {name: heat, topic: factory.heat}
    - {name: shake, idle: {then: hold}}
""").group
RESOURCE = GroupResource(
    group=GROUP,
    generation=3,
    sources=(SourceStart("heat", 0, 0, "id-h"), SourceStart("heat", 1, 0, "id-h"), SourceStart("shake", 0, 0, "id-s")),
    stamp=Stamp("u", 1, 0, 0),
)


def source(stream: str, partition: int, **more: object) -> SourceReport:
    fields = {"unread_rows": 0, "rows_per_second": 0.0, "reader": "align-1", **more}
    return SourceReport(group="factory", generation=3, stream=stream, partition=partition, **fields)  # type: ignore[arg-type]


def shard(number: int, **more: object) -> ShardReport:
    fields = {"frontier_us": NOW - S, "newest_us": NOW, "objects": 7, **more}
    return ShardReport(group="factory", generation=3, shard=number, **fields)  # type: ignore[arg-type]


def merge(behind_s: int = 0) -> MergeProgress:
    return MergeProgress("factory", 3, NOW - S - behind_s * S, {})


def facts(
    *,
    heat: SourceTopic | None = None,
    sources: dict[tuple[str, int], SourceReport | None] | None = None,
    shards: dict[int, ShardReport | None] | None = None,
    merged: MergeProgress | None = None,
    age_s: float = 0.5,
) -> GroupFacts:
    """Return a group that is well but for what is given (None: no report)."""
    at = NOW - int(age_s * S)
    told = {("heat", 0): source("heat", 0), ("heat", 1): source("heat", 1), ("shake", 0): source("shake", 0)}
    reports = Reports(
        {n: Reported(r, at) for n, r in ({0: shard(0), 1: shard(1)} | (shards or {})).items() if r is not None},
        {k: Reported(r, at) for k, r in (told | (sources or {})).items() if r is not None},
        Reported(merged or merge(), at),
    )
    lag = Lag(0, 100, 100)
    topics = (
        heat or SourceTopic("heat", "factory.heat", "id-h", (lag, lag)),
        SourceTopic("shake", "shake", "id-s", (lag,)),
    )
    return GroupFacts(RESOURCE, topics, reports)


def test_a_group_that_is_well_has_a_line_for_each_stream_shard_and_merge() -> None:
    found = [finding for check in (check_align, check_engine, check_fanout) for finding in check(facts(), NOW)]
    assert {finding.level for finding in found} == {Level.OK}
    assert [finding.text.split(": ")[0] for finding in found] == [
        "factory/heat",
        "factory/shake",
        "factory, shard 0 of 2",
        "factory, shard 1 of 2",
        "factory",
    ]
    assert found[0].text == "factory/heat: topic factory.heat, 2 partitions, read to the end"


def sole(found: list[Finding], level: Level) -> Finding:
    (one,) = [finding for finding in found if finding.level is not Level.OK]
    assert one.level is level
    return one


LAG = Lag(0, 100, 100)


@pytest.mark.parametrize(
    ("broken", "level", "said", "do"),
    [
        (
            facts(heat=SourceTopic("heat", "factory.heat", None)),
            Level.WRONG,
            "factory/heat: its topic factory.heat does not exist",
            "regenerate factory",
        ),
        (
            facts(heat=SourceTopic("heat", "factory.heat", "other", (LAG, LAG))),
            Level.WRONG,
            "factory/heat: topic factory.heat was made anew since this generation began",
            "skyband groups regenerate factory",
        ),
        (
            facts(heat=SourceTopic("heat", "factory.heat", "id-h", (LAG, Lag(50, 100, 20)))),
            Level.WRONG,
            "factory/heat, partition 1: 30 records were deleted before they were read (offsets 20 to 49)",
            "skyband groups regenerate factory",
        ),
        (
            facts(sources={("heat", 1): None}),
            Level.WRONG,
            "factory/heat, partition 1: its reader has not reported",
            "see that align runs",
        ),
        (
            facts(sources={("heat", 1): source("heat", 1, unread_rows=18_220, rows_per_second=300.0)}),
            Level.WRONG,
            "factory/heat, partition 1: 18,220 unread records; reader align-1 reads 300 records/s, 61 s at this rate",
            "let more processes of align run",
        ),
        (
            facts(sources={("heat", 1): source("heat", 1, unread_rows=5, rows_per_second=0.0)}),
            Level.WRONG,
            "factory/heat, partition 1: 5 unread records; reader align-1 reads 0 records/s",
            "see what the reader waits for",
        ),
        (
            facts(sources={("heat", 1): source("heat", 1, unread_rows=500, paused=True)}),
            Level.NOTE,
            "factory/heat, partition 1: paused, more than 1m ahead of the others (max_drift), and waits",
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_source_is_said(broken: GroupFacts, level: Level, said: str, do: str) -> None:
    found = sole(list(check_align(broken, NOW)), level)
    assert found.text == said
    assert do in found.do


def test_a_reader_that_was_read_to_the_end_before_it_fell_silent_is_no_trouble_a_silent_one_is() -> None:
    assert {finding.level for finding in check_align(facts(age_s=60), NOW)} == {Level.OK}
    behind = SourceTopic("heat", "factory.heat", "id-h", (LAG, Lag(0, 200, 100)))
    found = sole(list(check_align(facts(heat=behind, age_s=60), NOW)), Level.WRONG)
    assert found.text == "factory/heat, partition 1: its reader last reported 60 s ago"


def test_partitions_that_came_later_are_worth_knowing() -> None:
    grown = SourceTopic("heat", "factory.heat", "id-h", (LAG, LAG, LAG))
    found = sole(list(check_align(facts(heat=grown, sources={("heat", 2): source("heat", 2)}), NOW)), Level.NOTE)
    assert found.text.startswith(
        "factory/heat: topic factory.heat has 1 partition more than when this generation began"
    )


def test_a_little_that_is_unread_is_well() -> None:
    some = facts(sources={("heat", 0): source("heat", 0, unread_rows=1_200, rows_per_second=1_000.0)})
    assert next(check_align(some, NOW)).text.endswith("1,200 records unread")


HEAT = Holder(stream="heat", partition=1)


@pytest.mark.parametrize(
    ("broken", "level", "said", "do"),
    [
        (facts(shards={1: None}), Level.WRONG, "has not reported in this generation", "see that the engine runs"),
        (
            facts(shards={1: shard(1, stopped="offsets 5 to 9 are missing")}),
            Level.WRONG,
            "stopped: offsets 5 to 9 are missing",
            "skyband groups regenerate factory",
        ),
        (
            facts(shards={1: shard(1, frontier_us=NOW - 60 * S, holder=HEAT)}),
            Level.NOTE,
            "stream heat, partition 1 holds it 60 s of event time behind the newest row",
            "see skyband doctor align",
        ),
        (
            facts(shards={1: shard(1, frontier_us=NOW - 60 * S, holder=replace(HEAT, stream="shake"))}),
            Level.NOTE,
            "stream shake, partition 1 holds it",
            "stream shake has idle.then: hold, so all wait for its next row; check its producer",
        ),
        (
            facts(shards={1: ShardReport(group="factory", generation=3, shard=1, holder=HEAT)}),
            Level.NOTE,
            "no row has come of every source yet; it waits for stream heat, partition 1",
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_shard_is_said(broken: GroupFacts, level: Level, said: str, do: str) -> None:
    found = sole(list(check_engine(broken, NOW)), level)
    assert found.text.startswith("factory, shard 1 of 2: ")
    assert said in found.text
    assert do in found.do


def test_an_engine_that_fell_silent_is_wrong() -> None:
    found = list(check_engine(facts(age_s=41), NOW))
    assert [finding.text for finding in found] == [f"factory, shard {n} of 2: last reported 41 s ago" for n in (0, 1)]


def test_a_merge_that_stands_still_while_shards_go_on_is_wrong() -> None:
    late = facts(merged=merge(behind_s=30))
    assert next(check_fanout(late, NOW)).level is Level.OK
    assert late.reports.merge is not None
    old = replace(late, reports=replace(late.reports, merge=replace(late.reports.merge, time_us=NOW - 20 * S)))
    found = sole(list(check_fanout(old, NOW)), Level.WRONG)
    assert "told 20 s ago" in found.text
    assert "see that fanout runs" in found.do


def test_without_shards_or_a_merge_there_is_nothing_to_judge() -> None:
    assert sole(list(check_fanout(facts(shards={0: None}), NOW)), Level.NOTE).text.startswith(
        "factory: nothing to merge"
    )
    none = facts()
    none = replace(none, reports=replace(none.reports, merge=None))
    assert sole(list(check_fanout(none, NOW)), Level.NOTE).text.startswith("factory: no merge has told")
