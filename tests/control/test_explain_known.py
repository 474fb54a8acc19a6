"""What is known of a running query, in words: golden texts, and each line by hand-made statistics and reports."""
# ruff: noqa: E501 - sentences as they are shown

from collections.abc import Mapping
from dataclasses import replace

import pytest

from skyband.control.explain import explain
from skyband.control.knowledge import Knowledge
from skyband.control.planner import plan
from skyband.model.approximation import Approximation
from skyband.model.group import Group
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.query import Algorithm, Query, Window
from skyband.model.statistics import Appearance, Estimate, GroupStatistics, PairStatistics, StreamStatistics
from skyband.model.status import QueryStatus, ShardStatus
from skyband.model.stream import Aggregate, Attribute, Identity, Stream

S = 1_000_000
NOW = 1_373_480_530 * S  # 2013-07-10 18:22:10 UTC
MINUTE = Window(60 * S, 10 * S)
STATUS = QueryStatus(
    shards=(ShardStatus(shard=0),), rows_in=41_000, evaluations=7, hot=74, objects=1_310, state_bytes=910_000
)


def stream(name: str, repeat_after_us: int | None = None, aggregate: Aggregate = Aggregate.BEST) -> Stream:
    attributes = (Attribute(name=name, hi=100.0),)
    return Stream(name=name, attributes=attributes, aggregate=aggregate, repeat_after_us=repeat_after_us)


def group(*streams: Stream, shards: int = 1) -> Group:
    return Group(name="factory", streams=streams, retention_us=60 * S, retention_rows=1_000, shards=shards)


def query(score: str = "temperature + vibration", **more: object) -> Query:
    return Query(**{"name": "hottest", "k": 10, "score": score, "window": MINUTE, **more})  # type: ignore[arg-type]


FACTORY = group(stream("temperature"), stream("vibration"))
THREE = group(stream("temperature"), stream("vibration"), stream("noise"))


def published(
    where: Group,
    appearances: Mapping[tuple[int, int], Appearance] | None = None,
    lags: Mapping[tuple[int, int], int] | None = None,
    medians: tuple[float, ...] = (),
    **told: object,
) -> PublishedStatistics:
    """Return statistics in which stream i has (i + 1) * 1,000 observations of half as many objects."""
    number = len(where.streams)
    appearances, lags = appearances or {}, lags or {}
    streams = tuple(
        StreamStatistics(
            Estimate((i + 1) * 500.0, (i + 1) * 42.5), Estimate(9.0, 1.0), 3.0, ((0.0, 1.0, m, 60.0, 90.0),)
        )
        for i, m in enumerate(medians or (50.0,) * number)
    )
    pairs = [(i, j) for i in range(number) for j in range(number) if i != j]
    made = GroupStatistics(
        at_us=NOW - 2 * S,
        window_us=60 * S,
        rate=0.25,
        sampled_objects=310,
        streams=streams,
        pairs=tuple(
            PairStatistics(*p, appearances.get(p), (lags[p] - S, lags[p], lags[p] + S) if p in lags else ()) for p in pairs
        ),
    )  # fmt: skip
    return PublishedStatistics(
        group=where.name,
        generation=1,
        streams=tuple(each.name for each in where.streams),
        attributes=tuple(tuple(a.name for a in each.attributes) for each in where.streams),
        observations=tuple((i + 1) * 1_000 for i in range(number)),
        from_us=0,
        published_us=NOW - S,
        source="service",
        silent_shards=(),
        statistics=replace(made, **told),  # type: ignore[arg-type]
    )


KNOWN = published(
    FACTORY,
    {(0, 1): Appearance(0.6, 0.03, 260), (1, 0): Appearance(1.0, 0.0, 150)},
    {(0, 1): 1_500_000, (1, 0): -200_000},
)


def told(
    where: Group = FACTORY,
    what: Query | None = None,
    status: QueryStatus | None = STATUS,
    statistics: PublishedStatistics | None = KNOWN,
    why_unknown: str = "",
) -> str:
    what = what or query()
    known = Knowledge(now_us=NOW, status=status, statistics=statistics, why_unknown=why_unknown)
    return explain(where, what, plan(where, what), known)


def row(text: str, label: str) -> str:
    """Return what a line of the plan says, and the lines without a label after it."""
    lines = text.split("\nplan ")[1].split("\n\n")[0].splitlines()[1:]
    at = next(i for i, line in enumerate(lines) if line.startswith(f"  {label}  "))
    found = [lines[at].removeprefix(f"  {label}").strip()]
    for line in lines[at + 1 :]:
        if not line.startswith("     "):
            break
        found.append(line.strip())
    return " | ".join(found)


def statistics_of(text: str) -> list[str]:
    return text.split("\n\n")[3].splitlines()


EXACT = """\
hottest: the 10 objects with the highest temperature + vibration
  over the last 1m, every 10s; an object counts while any attribute of the score is in the window

attributes
  temperature  larger ranks better  combined by best  unseen counts 0 (lo, its worst)  steady
  vibration    larger ranks better  combined by best  unseen counts 0 (lo, its worst)  steady

plan two-tier
  why        every attribute of the score is steady: no observation can make an object rank lower
  state      the valid observations of the window, kept once for all queries of the group, and about k*(1 + ln(objects/k)) hot rows
  now        74 hot instances, 1,310 objects, 910.0 kB of state with its group's store; after 41,000 rows
  expected   about 58 hot instances where scores come in random order: k*(1 + ln(n/k)), n = 1,240 ± 61 objects; more where objects have several instances, and between sweeps, fewer where many share a pane
             the group's store: at most an entry for each of the 3,000 observations of the window
  time       an evaluation looks again at the objects that changed since the last, never at all of them
  relies on  no promise of any producer
  error      none, it is exact

statistics of the 1m up to 18:22:08Z, published 1.0 s ago; ± is a standard error
  temperature  500 ± 42 objects    1,000 observations
  vibration    1,000 ± 85 objects  2,000 observations
  vibration → temperature  1.00 ± 0.00 of its objects come there too (150 sampled)  median 200 ms earlier
  temperature → vibration  0.60 ± 0.03 of its objects come there too (260 sampled)  median 1.5 s later"""

APPROXIMATE = """\
hottest: the 10 objects with the highest temperature + vibration
  over the last 1m, every 10s; an object counts while any attribute of the score is in the window

attributes
  temperature  larger ranks better  combined by best                          unseen counts 0 (lo, its worst)  steady
  vibration    larger ranks better  combined by best, not repeated within 1m  unseen counts 0 (lo, its worst)  steady

plan eaa-tail
  why          an error is allowed, so that no window has to be kept; every attribute is steady, and its best value known
  state        the objects that come into the result with more than the probability allowed, and no window; a sample of 5 kB for each stream
  now          74 instances, 910.0 kB of state with its group's store; after 41,000 rows
  expected     at most an instance for each of the 3,000 observations of the window, and for those since its last evaluation; how many fewer is not known beforehand
  time         a few dozen scores for each row, and a sweep over the state now and then
  relies on    the producer of stream 'vibration' promises that an object does not come again within 1m (repeat_after)
  broken       3 times, over the streams of its group (the result may be inexact)
  error        what it forgets comes into a result after all with a chance below 0.05 (max_error); more is forgotten where the state exceeds 64.0 MB in a shard (memory_budget)
  in force     forgets what matters with less than 0.08
  warning      the state does not fit into memory_budget, so more is forgotten than was allowed
  recall       88.8% to 97.8% of the exact rows shown (380 of 400 sampled, of 100 objects)
  learns from  its own sample of the rows it is given; the statistics inform you, not what it forgets

"""

LAX = query(max_error=0.05, memory_budget=64_000_000)
MEASURED = Approximation(shown=380, due=400, objects=100, error=0.08, is_over_budget=True)


def test_an_exact_query_is_told_with_all_that_is_known() -> None:
    assert told() == EXACT


def test_an_approximate_query_is_told_with_its_recall_and_its_broken_promises() -> None:
    where = group(stream("temperature"), stream("vibration", 60 * S))
    found = told(where, LAX, replace(STATUS, objects=0, approximation=MEASURED, broken_promises=3))
    assert found.split("statistics of")[0] == APPROXIMATE
    assert found.split("statistics of")[1] == EXACT.split("statistics of")[1]


def test_without_knowledge_nothing_is_said_of_how_it_runs() -> None:
    what = query()
    text = explain(FACTORY, what, plan(FACTORY, what))
    assert "statistics" not in text
    assert EXACT.startswith(text[: text.index("  time")])


# --- what the streams are like


def test_nothing_published_is_one_line_that_says_who_makes_it() -> None:
    text = told(statistics=None)
    assert statistics_of(text) == [
        "statistics",
        "  unknown: nothing is published of these streams yet; the sketch service makes statistics, every 5 s once rows come",
    ]
    assert row(text, "expected") == "not known yet: it takes statistics of the streams"


def test_statistics_that_cannot_be_read_say_why() -> None:
    assert statistics_of(told(statistics=None, why_unknown="the topic is away"))[1:] == ["  unknown: the topic is away"]


@pytest.mark.parametrize(
    ("appearance", "words"),
    [
        (Appearance(0.5, 0.09, 30), "0.50 ± 0.09 of its objects come there too (30 sampled)  lag unknown"),
        (Appearance(0.5, 0.14, 12), "unknown: 12 objects tell so, 30 are needed"),
        (Appearance(0.5, 0.14, 1), "unknown: 1 object tells so, 30 are needed"),
        (None, "unknown: too few objects tell so, 30 are needed"),
    ],
)
def test_a_chance_that_rests_on_few_objects_is_not_used_and_says_so(appearance: Appearance | None, words: str) -> None:
    found = published(FACTORY, {(0, 1): appearance} if appearance else {})
    lines = [line.strip() for line in statistics_of(told(statistics=found))]
    assert f"temperature → vibration  {words}" in [" ".join(line.split("    ")) for line in lines]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"from_us": NOW - 32 * S}, "  not a full window yet: no more than its last 30 s is known"),
        ({"silent_shards": (1, 3)}, "  without the objects of shards that have published nothing yet: 1, 3"),
    ],
)
def test_what_the_statistics_leave_out_is_said(changes: dict[str, object], words: str) -> None:
    assert statistics_of(told(statistics=replace(KNOWN, **changes)))[1] == words  # type: ignore[arg-type]
    assert words not in told()


def test_statistics_of_another_length_than_the_window_say_so() -> None:
    head = statistics_of(told(what=query(window=Window(50 * S, 10 * S))))[0]
    assert "statistics of the 1m up to 18:22:08Z (the query's window is 50s), published 1.0 s ago" in head


def test_of_many_streams_and_pairs_those_that_move_the_score_most_are_shown() -> None:
    many = group(*(stream(f"s{i}") for i in range(29)))
    chances = {(i, j): Appearance(0.5, 0.01, 90) for i in range(29) for j in range(29) if i != j}
    chances[7, 28] = Appearance(0.9, 0.01, 90)
    found = published(many, chances, medians=tuple(float(i) for i in range(29)))
    score = "100*s3 + " + " + ".join(f"s{i}" for i in range(29) if i != 3)
    lines = statistics_of(told(many, query(score), statistics=found))
    names = [line.split()[0] for line in lines[1:] if "→" not in line]
    assert names == ["s3", *(f"s{i}" for i in range(22, 29)), "…"]
    pairs = [line.split("  ")[1] for line in lines if "→" in line]
    assert [pair.strip() for pair in pairs] == [f"s{i} → s3" for i in (0, 1, 2, 4, 5, 6)]
    assert "… 21 streams and 806 pairs more: skyband streams stats factory (shown is what moves" in lines[-1]
    even = statistics_of(told(many, query(score.replace("100*s3", "s3")), statistics=found))
    assert next(line for line in even if "→" in line).startswith("  s7 → s28  0.90")


def test_pairs_are_those_of_the_score_and_required_streams_are_counted() -> None:
    lines = statistics_of(told(THREE, query(require=("noise",)), statistics=published(THREE)))
    assert [line.split("  ")[1].strip() for line in lines[1:]] == [
        *("temperature", "vibration", "noise"),
        *("temperature → vibration", "vibration → temperature"),
    ]


def test_attributes_of_an_object_stream_are_named_and_an_empty_stream_too() -> None:
    attributes = Attribute(name="x", hi=1.0), Attribute(name="y", hi=1.0)
    where = group(Stream(name="points", attributes=attributes, is_object_stream=True, aggregate=Aggregate.MAX))
    assert statistics_of(told(where, query("x + y"), statistics=published(where)))[1] == (
        "  points (x, y)  500 ± 42 objects  1,000 observations"
    )
    empty = replace(published(where), observations=(0,))
    text = told(where, query("x + y"), statistics=empty)
    assert statistics_of(text)[1] == "  points (x, y)  no observation"
    assert row(text, "expected") == "nothing yet: no observation in the window"


# --- the state


@pytest.mark.parametrize(
    ("where", "what", "expected"),
    [
        (THREE, query(), "56 to 58 hot instances where scores come in random order: k*(1 + ln(n/k)), n = 1,000 to 1,240 objects;"),
        (THREE, query("vibration"), "about 56 hot instances where scores come in random order: k*(1 + ln(n/k)), n = 1,000 ± 85 objects;"),
        (group(stream("temperature"), stream("vibration"), shards=2), query(), "about 103 hot instances where scores come in random order: k*(1 + ln(n/k)) in each of 2 shards, n/2 for n, n = 1,240 ± 61 objects;"),
        (FACTORY, query(k=2_000), "about 1,240 hot instances where"),
        (FACTORY, query(window=Window(1_000, 10, in_rows=True)), "up to about 56 hot instances where scores come in random order: k*(1 + ln(n/k)), n = at most 1,000 objects;"),
        (FACTORY, query(algorithm=Algorithm.VIEW), "from k = 10 to a few times k candidates, or some dozens, in each shard, of 1,240 ± 61 objects | the group's store: at most an entry for each of the 3,000 observations of the window"),
        (THREE, query(algorithm=Algorithm.SLA), "1,500 ± 128 entries of the sorted lists, or fewer where streams are required, and from k = 10"),
        (FACTORY, query(algorithm=Algorithm.EAA_RELAXED), "at most an instance for each of the 3,000 observations of the window, and for those since its last evaluation; how many fewer is not known beforehand"),
        (FACTORY, query(algorithm=Algorithm.EAA, window=Window(500, 10, in_rows=True)), "at most an instance for each of the 500 rows of a full window"),
    ],
)  # fmt: skip
def test_the_state_is_expected_as_far_as_the_statistics_tell(where: Group, what: Query, expected: str) -> None:
    found = row(told(where, what, statistics=published(where)), "expected")
    assert found.startswith(expected)


def test_the_store_holds_more_than_the_window_of_the_query_where_its_group_keeps_more() -> None:
    words = "and what else it keeps, 1m of every stream"
    assert words in row(told(THREE, query(), statistics=published(THREE)), "expected")
    assert words in row(told(what=query(window=Window(30 * S, 10 * S))), "expected")
    assert words not in row(told(), "expected")


def test_too_small_a_sample_tells_no_number_of_objects() -> None:
    found = published(FACTORY, sampled_objects=29)
    assert row(told(statistics=found), "expected").startswith("not known yet: too few objects were seen")
    whole = published(FACTORY, sampled_objects=29, rate=1.0)
    assert "n = 29 objects;" in row(told(statistics=whole), "expected")


def test_records_are_counted_where_each_is_an_object() -> None:
    attributes = (Attribute(name="x", hi=1.0),)
    where = group(
        Stream(
            name="x", attributes=attributes, is_object_stream=True, aggregate=Aggregate.LATEST, identity=Identity.ROW
        )
    )
    text = told(where, query("x"), replace(STATUS, hot=1), published(where))
    assert statistics_of(text)[1:] == ["  x  1,000 records"]
    assert row(text, "expected").startswith("about 56 rows in rank order where scores come in random order")
    assert "n = the 1,000 records of the window" in row(text, "expected")
    assert row(text, "now").startswith("1 row in rank order, 1,310 objects")


def test_the_state_now_is_unknown_until_a_shard_reports() -> None:
    for status in (None, QueryStatus(silent_shards=(0,))):
        assert row(told(status=status), "now") == "not known yet: no shard has reported"
    part = replace(STATUS, silent_shards=(1,))
    assert row(told(status=part), "now").endswith("after 41,000 rows; 1 shard not heard of yet")


# --- how far it may be off


@pytest.mark.parametrize(
    ("what", "approximation", "error", "in_force", "recall"),
    [
        (query(max_error=0.05), Approximation(shown=9, due=9, objects=9, error=0.05), "what it forgets comes into a result after all with a chance below 0.05 (max_error)", "forgets what matters with less than 0.05", "unknown yet: 9 of the 30 sampled objects that it takes"),
        (query(max_error=0.0), Approximation(error=0.0), "none, it forgets only what cannot come into a result (max_error 0)", "forgets what matters with less than 0", "unknown yet: 0 of the 30 sampled objects that it takes"),
        (query(target_precision=0.95), Approximation(shown=100, due=100, objects=100, error=0.02), "steered so that 95.0% of the exact rows are shown (target_precision)", "forgets what matters with less than 0.02", "96.3% to 100.0% of the exact rows shown (100 of 100 sampled, of 100 objects)"),
        (query(memory_budget=64_000_000), None, "none while the state fits into 64.0 MB in each shard (memory_budget)", "not known yet: no shard has reported", "not known yet: no shard has reported"),
    ],
)  # fmt: skip
def test_an_approximate_query_says_what_was_allowed_what_is_in_force_and_what_it_measured(
    what: Query, approximation: Approximation | None, error: str, in_force: str, recall: str
) -> None:
    text = told(what=what, status=replace(STATUS, approximation=approximation))
    assert [row(text, label) for label in ("error", "in force", "recall")] == [error, in_force, recall]


def test_an_expected_bound_promises_nothing() -> None:
    text = told(what=query(algorithm=Algorithm.EAA_EXPECTED), status=replace(STATUS, approximation=Approximation()))
    assert row(text, "error") == "no bound: it forgets what is not expected to be shown; only its recall tells"
    assert "in force" not in text


@pytest.mark.parametrize(
    ("status", "broken", "error"),
    [
        (STATUS, "never", "none, it is exact while what it relies on holds"),
        (replace(STATUS, broken_promises=1), "1 time, over the streams of its group (the result may be inexact)", "not known: it is exact only while what it relies on holds, and that was broken"),
        (None, "not known yet: no shard has reported", "none, it is exact while what it relies on holds"),
    ],
)  # fmt: skip
def test_an_exact_plan_that_relies_on_promises_says_whether_they_were_broken(
    status: QueryStatus | None, broken: str, error: str
) -> None:
    where = group(stream("temperature"), stream("vibration", 60 * S))
    text = told(where, query(algorithm=Algorithm.EAA), status)
    assert (row(text, "broken"), row(text, "error")) == (broken, error)


def test_a_plan_without_promises_counts_none_broken() -> None:
    assert told(status=replace(STATUS, broken_promises=9)) == EXACT
