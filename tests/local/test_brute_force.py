"""Brute force is what it says: what it may use, each of its steps by hand, and laws that any right answer obeys."""

import ast
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyband.local import brute_force, brute_force_score
from skyband.local.brute_force import Row, accepted, brute_force_results, cleaned, combined, windows
from skyband.model.binding import bind
from skyband.model.group import Group
from skyband.model.query import Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Identity, Late, OutOfRange, Stream
from tests import lockstep
from tests.local.replays import Rows, workload

S = 1_000_000


def stream(name: str = "a", **options: Any) -> Stream:
    bounds = {key: options.pop(key) for key in ("lo", "hi", "missing", "out_of_range") if key in options}
    return Stream(name=name, attributes=(Attribute(name=name, **bounds),), **options)


def group(*streams: Stream, **options: Any) -> Group:
    return Group(name="g", streams=streams, retention_us=60 * S, **options)


def query(score: str = "a", k: int = 10, size: int = 10, slide: int = 10, **options: Any) -> Query:
    return Query(name="q", k=k, score=score, window=Window(size * S, slide * S), **options)


def row(object_id: str, second: float, *values: float) -> Row:
    return Row(object_id, int(second * S), values)


def ranking(result: dict[str, Any]) -> list[tuple[str, float]]:
    return [(line["object_id"], line["score"]) for line in result["rows"]]


# --- what it may use


@pytest.mark.parametrize("module", [brute_force, brute_force_score])
def test_it_uses_nothing_of_what_it_is_compared_with_but_the_model(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    allowed = {f"skyband.model.{name}" for name in ("binding", "group", "query", "stream")}
    own = {name for name in imported if name and name.startswith("skyband")}
    assert own <= {*allowed, "skyband.local.brute_force_score"}
    assert not imported & {"numpy", "numba"}


# --- its steps


def test_a_late_row_is_released_when_its_watermark_was_and_sorts_there() -> None:
    made = group(stream(max_delay_us=2 * S))
    seen = accepted(made, {(0, 0): [row("x", 1, 1.0), row("x", 9, 1.0), row("x", 3, 1.0), row("x", 8, 1.0)]})
    assert [(one.offset, one.release // S, one.event // S) for one in seen] == [
        (0, 1, 1),
        (2, 7, 3),
        (3, 8, 8),
        (1, 9, 9),
    ]


def test_a_rejected_row_moves_its_watermark_all_the_same() -> None:
    made = group(stream(hi=10.0))
    seen = accepted(made, {(0, 0): [row("x", 9, 11.0), row("", 12, 1.0), row("x", 3, 1.0)]})
    assert [(one.offset, one.release // S) for one in seen] == [(2, 12)]


def test_a_late_row_that_is_to_be_dropped_is_not_seen() -> None:
    made = group(stream(late=Late.DROP))
    assert [one.offset for one in accepted(made, {(0, 0): [row("x", 9, 1.0), row("x", 8, 1.0), row("x", 9, 1.0)]})] == [
        0,
        2,
    ]


def test_partitions_have_watermarks_of_their_own() -> None:
    made = group(stream())
    rows = {(0, 1): [row("x", 9, 1.0)], (0, 0): [row("y", 3, 1.0)]}
    assert [(one.partition, one.release // S) for one in accepted(made, rows)] == [(0, 3), (1, 9)]
    assert accepted(made, rows) == accepted(made, dict(reversed(rows.items())))


@pytest.mark.parametrize(
    ("value", "reject", "clamp"),
    [
        (5.0, 5.0, 5.0),
        (0.0, 0.0, 0.0),
        (10.0, 10.0, 10.0),
        (-0.0, 0.0, 0.0),
        (10.1, None, 10.0),
        (-1e300, None, 0.0),
        (math.inf, None, None),
        (-math.inf, None, None),
        (math.nan, None, None),
    ],
)
def test_values_are_cleaned_as_their_attribute_says(value: float, reject: float | None, clamp: float | None) -> None:
    for way, expected in ((OutOfRange.REJECT, reject), (OutOfRange.CLAMP, clamp)):
        clean = cleaned(stream(hi=10.0, out_of_range=way), (value,))
        assert clean == (None if expected is None else (expected,))
        assert clean is None or math.copysign(1.0, clean[0]) == 1.0


def test_time_windows_end_at_multiples_of_the_slide_from_the_first_row_to_the_first_end_past_the_last() -> None:
    seen = accepted(group(stream()), {(0, 0): [row("x", second, 1.0) for second in (-3, 4, 5, 10)]})
    found = [
        (start // S, end // S, [one.event // S for one in rows])
        for start, end, rows in windows(Window(7 * S, 5 * S), seen)
    ]
    assert found == [(-7, 0, [-3]), (-2, 5, [4]), (3, 10, [4, 5]), (8, 15, [10])]


def test_count_windows_end_at_multiples_of_the_slide_and_begin_below_zero_while_there_are_few_rows() -> None:
    seen = accepted(group(stream()), {(0, 0): [row("x", second, 1.0) for second in range(7)]})
    found = [
        (start, end, [one.offset for one in rows]) for start, end, rows in windows(Window(4, 2, in_rows=True), seen)
    ]
    assert found == [(-2, 2, [0, 1]), (0, 4, [0, 1, 2, 3]), (2, 6, [2, 3, 4, 5])]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (Aggregate.BEST, 0.5),  # the score is -a: small is good
        (Aggregate.MAX, 0.7),
        (Aggregate.MIN, 0.5),
        (Aggregate.LATEST, 0.6),
        (Aggregate.FIRST, 0.5),
        (Aggregate.COUNT, 4.0),
        (Aggregate.SUM, (0.7 + 0.5) + (0.6 + 0.6)),
    ],
)
def test_observations_combine_as_their_stream_says(aggregate: Aggregate, expected: float) -> None:
    made = group(stream(hi=10.0, aggregate=aggregate, max_delay_us=9 * S))
    seen = accepted(made, {(0, 0): [row("x", 3.1, 0.6), row("x", 0.1, 0.7), row("x", 0.1, 0.5), row("x", 3.1, 0.6)]})
    if aggregate is Aggregate.FIRST:
        expected = 0.7  # of two at one time, the one that came first
    (column,) = bind(made, query("-a")).columns
    assert combined(column, seen, S) == expected


def test_a_sum_adds_the_panes_and_within_a_pane_the_rows_in_order() -> None:
    made = group(stream(aggregate=Aggregate.SUM))
    values = [0.1, 0.2, 0.3, 1e16, 1.0, -1e16]
    seen = accepted(
        made, {(0, 0): [row("x", second, v) for second, v in zip((0, 0.5, 1, 1.5, 2, 2.5), values, strict=True)]}
    )
    (column,) = bind(made, query()).columns
    clean = [one.values[0] for one in seen]
    assert clean == [0.1, 0.2, 0.3, 1e16, 1.0]  # lo is 0
    assert combined(column, seen, S) == (0.1 + 0.2) + (0.3 + 1e16) + 1.0
    assert combined(column, seen, None) == (((0.1 + 0.2) + 0.3) + 1e16) + 1.0
    rows = [row("x", 2, 1.0), row("x", 1, 1.0), row("x", 0, 1e16)]
    backwards = accepted(group(stream(max_delay_us=9 * S)), {(0, 0): rows})[::-1]
    assert combined(column, backwards, S) == (1e16 + 1.0) + 1.0 != 1e16 + (1.0 + 1.0)


def test_ties_are_broken_by_id_in_bytes_and_for_records_then_by_total_order() -> None:
    made = group(stream())
    (result,) = brute_force_results(
        made, [query()], {(0, 0): [row(name, 1, 5.0) for name in ("é", "b", "a\x00", "a", "B")]}
    )
    assert [name for name, _ in ranking(result)] == ["B", "a", "a\x00", "b", "é"]
    records = Stream(
        name="p", attributes=(Attribute(name="a"),), is_object_stream=True, identity=Identity.ROW, max_delay_us=9 * S
    )
    rows = {(0, 1): [row("x", 2, 5.0), row("x", 1, 5.0)], (0, 0): [row("x", 2, 5.0), row("a", 3, 5.0)]}
    (result,) = brute_force_results(group(records), [query()], rows)
    assert [(line["object_id"], line["event_time"] // S) for line in result["rows"]] == [
        ("a", 3),
        ("x", 1),
        ("x", 2),
        ("x", 2),
    ]


def test_results_are_in_order_of_window_end_and_query_with_count_windows_behind() -> None:
    made = group(stream(), retention_rows=10)
    asked = [replace(query(size=5, slide=5), name=name) for name in ("b", "a")]
    asked += [replace(query(), name=name, window=Window(2, 1, in_rows=True)) for name in ("d", "c")]
    results = brute_force_results(made, asked, {(0, 0): [row("x", second, 1.0) for second in (1, 6)]})
    assert [(result["query"], result["window_end"]) for result in results] == [
        *(("a", 5 * S), ("b", 5 * S), ("a", 10 * S), ("b", 10 * S)),
        *(("c", 1), ("d", 1), ("c", 2), ("d", 2)),
    ]


# --- laws


@pytest.mark.parametrize("seed", range(20))
def test_a_smaller_k_shows_the_first_of_a_larger(seed: int) -> None:
    definitions, rows = workload(seed, 120)
    for asked in definitions.queries:
        large = brute_force_results(definitions.group, [replace(asked, k=1_000)], rows)
        small = brute_force_results(definitions.group, [replace(asked, k=2)], rows)
        lockstep.assert_equal([{**result, "rows": result["rows"][:2]} for result in large], small, rows)


@pytest.mark.parametrize("seed", range(20))
def test_lowest_by_a_score_is_highest_by_its_negative(seed: int) -> None:
    definitions, rows = workload(seed, 120)
    for asked in definitions.queries:
        order = Order.LOWEST if asked.order is Order.HIGHEST else Order.HIGHEST
        turned = replace(asked, order=order, score=f"-({asked.score})")
        other = brute_force_results(definitions.group, [turned], rows)
        for result in other:
            for line in result["rows"]:
                line["score"] = 0.0 - line["score"]
        lockstep.assert_equal(brute_force_results(definitions.group, [asked], rows), other, rows)


@pytest.mark.parametrize("seed", range(20))
def test_a_coarser_slide_shows_some_of_the_evaluations_of_a_finer(seed: int) -> None:
    definitions, rows = workload(seed, 120)
    for asked in definitions.queries:
        finer, coarser = (
            by_end(definitions.group, replace(asked, window=replace(asked.window, slide=asked.window.slide * n)), rows)
            for n in (1, 3)
        )
        last = max(finer, default=0)
        assert {end: found for end, found in coarser.items() if found and end <= last} == {
            end: found for end, found in finer.items() if found and end % (3 * asked.window.slide) == 0
        }


def by_end(made: Group, asked: Query, rows: Rows) -> dict[int, list[Any]]:
    return {result["window_end"]: result["rows"] for result in brute_force_results(made, [asked], rows)}


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_objects_that_are_not_shown_do_not_matter(seed: int) -> None:
    definitions, rows = workload(seed, 120)
    asked = replace(definitions.queries[0], k=1_000)
    if asked.window.in_rows:
        asked = replace(asked, window=Window(4 * definitions.group.pane_us, definitions.group.pane_us))
    whole = brute_force_results(definitions.group, [asked], rows)
    kept = {line["object_id"] for result in whole for line in result["rows"]}
    chosen = sorted(kept)[::2]
    # Rows of the others stay where they are, without an id: they still move time.
    fewer = {
        place: [one if one.object_id in chosen else one._replace(object_id="") for one in part]
        for place, part in rows.items()
    }
    found = by_end(definitions.group, asked, fewer)
    last = max((one.event for one in accepted(definitions.group, fewer)), default=-math.inf)
    for result in whole:
        if result["window_end"] - asked.window.slide > last:
            break
        own = [line for line in result["rows"] if line["object_id"] in chosen]
        expected = [{**line, "rank": rank} for rank, line in enumerate(own, start=1)]
        assert found.get(result["window_end"], []) == expected
