"""The oracle is right: against answers worked out by hand, and against properties that hold for every input."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.local.brute_force_score import scorer
from skyband.model.binding import bind
from skyband.model.group import Group
from skyband.model.query import Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Late, OutOfRange, Stream
from tests import golden_cases, lockstep
from tests.oracle import Row, oracle_results
from tests.workloads import definitions, input_files, rows, seeded, source_rows

S = 1_000_000


def stream(name: str, **options: Any) -> Stream:
    bounds = {key: options.pop(key) for key in ("lo", "hi", "missing", "out_of_range") if key in options}
    return Stream(name=name, attributes=(Attribute(name=name, **bounds),), **options)


def group(*streams: Stream, **options: Any) -> Group:
    return Group(name="g", streams=streams, retention_us=600 * S, **options)


# --- by hand


@pytest.mark.parametrize("name", golden_cases.names())
def test_oracle_gives_the_golden_answer(name: str) -> None:
    case = golden_cases.read(name)
    lockstep.assert_equal(case.expected, oracle_results(case.group, case.queries, case.partitions), case.partitions)


def test_worked_example_gives_its_table_sum_by_sum() -> None:
    """The table of the worked example, written down again with other numbers: scores only, by window end in seconds."""
    case = golden_cases.read("factory")
    table: dict[str, dict[int, list[tuple[str, float]]]] = {query.name: {} for query in case.queries}
    for result in oracle_results(case.group, case.queries, case.partitions):
        assert result["window_end"] - result["window_start"] == 5 * S
        ranking = [(row["object_id"], row["score"]) for row in result["rows"]]
        table[result["query"]][result["window_end"] // S] = ranking
        for row in result["rows"]:
            seen = row["attributes"]
            assert row["score"] == 0.7 * seen.get("temperature", 0.0) + 3.0 * seen.get("vibration", 0.0)
    assert table["hottest"] == {
        2: [("m1", 56.0)],
        4: [("m2", 69.0), ("m1", 56.0)],
        6: [("m2", 69.0), ("m1", 62.0)],
        8: [("m4", 66.5), ("m2", 27.0)],
        10: [("m4", 66.5), ("m3", 14.0)],
        12: [("m3", 26.0), ("m4", 3.0)],
        14: [("m5", 35.0), ("m3", 26.0)],
    }
    assert table["hottest-complete"] == {
        4: [("m2", 69.0)],
        6: [("m2", 69.0), ("m1", 62.0)],
        8: [],
        12: [("m3", 26.0)],
        14: [("m3", 26.0)],
    }


def test_release_of_a_row_equal_to_the_window_end_counts_from_the_next() -> None:
    made = group(stream("a"))
    query = Query(name="q", k=5, score="a", window=Window(9 * S, S))
    # y is late: released at 4, so the window that ends at 4 has not seen it, though its event time is 1.
    results = oracle_results(made, [query], {(0, 0): [Row("x", 4 * S, (1.0,)), Row("y", 1 * S, (2.0,))]})
    assert [(r["window_end"] // S, [row["object_id"] for row in r["rows"]]) for r in results] == [(5, ["y", "x"])]


def test_row_at_window_start_is_in_and_at_window_end_is_out() -> None:
    made = group(stream("a"))
    query = Query(name="q", k=5, score="a", window=Window(2 * S, 2 * S))
    times = {"before": 2 * S - 1, "start": 2 * S, "last": 4 * S - 1, "end": 4 * S}
    results = oracle_results(made, [query], {(0, 0): [Row(i, t, (1.0,)) for i, t in times.items()]})
    assert [[row["object_id"] for row in r["rows"]] for r in results] == [["before"], ["last", "start"], ["end"]]


def test_window_ends_before_the_epoch_are_multiples_of_slide() -> None:
    query = Query(name="q", k=1, score="a", window=Window(2 * S, 2 * S))
    results = oracle_results(group(stream("a")), [query], {(0, 0): [Row("x", -3 * S, (1.0,))]})
    assert [(r["window_start"], r["window_end"]) for r in results] == [(-4 * S, -2 * S)]


def test_nan_and_infinities_are_rejected_also_where_values_are_clamped() -> None:
    made = group(stream("a", hi=10.0, out_of_range=OutOfRange.CLAMP))
    query = Query(name="q", k=9, score="a", window=Window(S, S))
    values = {"nan": math.nan, "inf": math.inf, "minus": -math.inf, "high": 11.0, "low": -1.0}
    results = oracle_results(made, [query], {(0, 0): [Row(i, 0, (v,)) for i, v in values.items()]})
    assert [(row["object_id"], row["score"]) for row in results[0]["rows"]] == [("high", 10.0), ("low", 0.0)]


def test_no_rows_no_results() -> None:
    query = Query(name="q", k=1, score="a", window=Window(S, S))
    assert oracle_results(group(stream("a")), [query], {(0, 0): [], (0, 1): []}) == []


def test_unseen_attribute_counts_its_missing_number_and_a_sum_of_nothing_is_zero() -> None:
    made = group(stream("a"), stream("b", missing=7.0), stream("c", aggregate=Aggregate.SUM, missing=5.0))
    query = Query(name="q", k=1, score="a + 10*b + 100*c", window=Window(S, S))
    results = oracle_results(made, [query], {(0, 0): [Row("x", 0, (1.0,))]})
    assert results[0]["rows"] == [{"rank": 1, "object_id": "x", "score": 71.0, "attributes": {"a": 1.0}}]


def test_attribute_that_score_and_require_do_not_name_makes_no_object_valid_and_is_not_shown() -> None:
    made = group(stream("a"), stream("b"), stream("c"))
    query = Query(name="q", k=5, score="a", window=Window(S, S), require=("b",))
    parts = {(0, 0): [Row("x", 0, (1.0,))], (1, 0): [Row("x", 0, (2.0,)), Row("y", 0, (2.0,))]}
    parts[(2, 0)] = [Row("x", 0, (3.0,)), Row("z", 0, (3.0,))]
    found = oracle_results(made, [query], parts)[0]["rows"]
    assert [(row["object_id"], row["score"], row["attributes"]) for row in found] == [
        ("x", 1.0, {"a": 1.0, "b": 2.0}),
        ("y", 0.0, {"b": 2.0}),
    ]


def test_score_that_is_not_finite_makes_an_object_ineligible() -> None:
    query = Query(name="q", k=5, score="1/a", window=Window(S, S), order=Order.HIGHEST)
    made = group(stream("a", missing=1.0, aggregate=Aggregate.LATEST))
    results = oracle_results(made, [query], {(0, 0): [Row("zero", 0, (0.0,)), Row("two", 0, (2.0,))]})
    assert [row["object_id"] for row in results[0]["rows"]] == ["two"]


def test_dropped_late_row_neither_counts_nor_moves_the_last_evaluation() -> None:
    made = group(stream("a", late=Late.DROP))
    query = Query(name="q", k=5, score="a", window=Window(9 * S, S))
    results = oracle_results(made, [query], {(0, 0): [Row("x", 4 * S, (1.0,)), Row("y", 1 * S, (2.0,))]})
    assert [[row["object_id"] for row in r["rows"]] for r in results] == [["x"]]


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        *(("1/x", 0.0, INF), ("-1/x", 0.0, -INF), ("x/x", 0.0, NAN), ("1/(-x)", 0.0, -INF), ("1/(x/x)", 0.0, NAN)),
        *(("sqrt(x)", -1.0, NAN), ("sqrt(x)", INF, INF), ("log1p(x)", -1.0, -INF), ("log1p(x)", -2.0, NAN)),
        *(("exp(x)", 1e9, INF), ("exp(-x)", 1e9, 0.0), ("x*x", 1e200, INF), ("x*x - x*x", 1e200, NAN)),
        *(("x**2", 1e200, INF), ("x**3", -1e200, -INF), ("x**-1", 0.0, INF), ("pow(-x, -1)", 0.0, -INF)),
        *(("pow(x, 0.5)", -1.0, NAN), ("(x/x)**0", 0.0, 1.0), ("pow(-x, -2)", 0.0, INF), ("-x**2", 3.0, -9.0)),
        *(("min(x/x, 1)", 0.0, NAN), ("max(1, x/x)", 0.0, NAN), ("min(3, x, 2)", 5.0, 2.0), ("abs(x)", -2.0, 2.0)),
        *(("10000000000000001 * 3 * x", 1.0, 3e16), ("7/2*x", 1.0, 3.5), ("1 - 0.9 - x", 0.1, 1 - 0.9 - 0.1)),
    ],
)
def test_scores_follow_ieee_where_python_would_raise(text: str, x: float, expected: float) -> None:
    got = scorer(text)({"x": x})
    assert isinstance(got, float)
    assert got == expected or (math.isnan(got) and math.isnan(expected))


# --- properties of every result


def check(made: Group, queries: tuple[Query, ...], results: list[dict[str, Any]]) -> None:
    """Assert what must hold whatever the input."""
    known = {query.name: query for query in queries}
    previous: dict[str, list[Any]] = {}
    order = [(known[r["query"]].window.in_rows, r["window_end"], r["query"]) for r in results]
    assert order == sorted(set(order))
    for result in results:
        query, found = known[result["query"]], result["rows"]
        window, columns = query.window, bind(made, query).columns
        assert result["window_end"] % window.slide == 0
        assert result["window_end"] - result["window_start"] == window.size
        assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
        assert len(found) <= query.k
        assert found or previous.get(query.name)
        previous[query.name] = found
        sign = -1 if query.order is Order.HIGHEST else 1
        keys = [(sign * row["score"], row["object_id"].encode()) for row in found]
        assert keys == sorted(keys)
        assert made.is_row_identity or len({row["object_id"] for row in found}) == len(found)
        for row in found:
            assert math.isfinite(row["score"])
            assert row["attributes"]
            assert list(row["attributes"]) == [c.name for c in columns if c.name in row["attributes"]]
    assert not re.search(r": -0\.0[,}]", json.dumps(results))


@settings(max_examples=60)
@given(st.data())
def test_results_are_ordered_bounded_and_never_negative_zero(data: st.DataObject) -> None:
    made = data.draw(definitions())
    check(made.group, made.queries, oracle_results(made.group, made.queries, data.draw(rows(made, max_rows=25))))


@pytest.mark.parametrize("seed", range(12))
def test_seeded_results_are_ordered_bounded_and_never_negative_zero(seed: int) -> None:
    made, queries, parts = seeded(seed, 150)
    check(made, queries, oracle_results(made, queries, parts))


@pytest.mark.parametrize("seed", range(6))
def test_result_does_not_depend_on_which_query_is_asked_beside(seed: int) -> None:
    made, queries, parts = seeded(seed, 100)
    together = oracle_results(made, queries, parts)
    for query in queries:
        lockstep.assert_equal([r for r in together if r["query"] == query.name], oracle_results(made, [query], parts))


# --- the workloads have the variety they promise


def test_a_seed_always_gives_the_same_workload() -> None:
    assert repr(seeded(7)) == repr(seeded(7))
    assert repr(seeded(7)) != repr(seeded(8))


def test_seeded_workloads_have_every_variety() -> None:
    seen: set[Any] = set()
    for seed in range(80):
        made, queries, parts = seeded(seed, 120)
        results = oracle_results(made, queries, parts)
        seen |= {s.aggregate for s in made.streams} | {s.late for s in made.streams}
        seen |= {("streams", len(made.streams)), ("row identity", made.is_row_identity), ("partitions", len(parts))}
        for query in queries:
            bound, window = bind(made, query), query.window
            seen |= {query.order, ("k", query.k), ("rows", window.in_rows)}
            seen |= {("steady", bound.steady), ("sums", bound.sums)}
            seen |= {("all", query.require_all), ("require", bool(query.require))}
            seen |= {("high", column.prefers_high) for column in bound.columns}
            seen |= {("window", "tumbling" if window.size == window.slide else window.size < window.slide)}
        for result in results:
            scores = [row["score"] for row in result["rows"]]
            seen |= {("ties", len(set(scores)) < len(scores)), ("empty", not scores)}
            seen |= {("negative", any(score < 0.0 for score in scores))}
        for (index, _), part in parts.items():
            newest = -math.inf
            for row in part:
                late = row.event_time_us < newest - made.streams[index].max_delay_us
                seen |= {("late", late), ("id", bool(row.object_id)), ("long", len(row.object_id) >= 40)}
                seen |= {("nan", any(map(math.isnan, row.values)))}
                newest = max(newest, row.event_time_us)
    wanted: set[Any] = {*Aggregate, *Late, *Order, *(("streams", n) for n in (1, 2, 3, 4)), ("high", None)}
    wanted |= {("k", k) for k in (1, 2, 3, 5, 1_000)} | {("window", w) for w in ("tumbling", True, False)}
    names = "high, row identity, rows, steady, sums, all, require, ties, empty, negative, late, id, nan, long"
    wanted |= {(name, value) for name in names.split(", ") for value in (True, False)}
    assert wanted - seen == set()


def test_columns_and_input_lines_hold_the_same_rows() -> None:
    made, _, parts = seeded(3, 40)
    files = input_files(made, parts)
    assert sum(map(len, files)) == sum(map(len, parts.values()))
    for (index, _), part in parts.items():
        columns = source_rows(part, len(made.streams[index].attributes), first_offset=5)
        ends = columns.id_ends.tolist()
        ids = [columns.id_bytes[a:b].tobytes().decode() for a, b in zip([0, *ends], ends, strict=False)]
        assert ids == [row.object_id for row in part]
        assert columns.event_time_us.tolist() == [row.event_time_us for row in part]
        assert repr([tuple(line) for line in columns.values.tolist()]) == repr([row.values for row in part])
        assert columns.offset.tolist() == list(range(5, 5 + len(part)))


# --- lock-step


def result(score: float, end: int = 5, **more: Any) -> dict[str, Any]:
    row = {"rank": 1, "object_id": "x", "score": score, "attributes": {"a": 1.0}} | more
    return {"query": "q", "window_start": 0, "window_end": end, "rows": [row]}


def test_lockstep_takes_equal_results_whatever_the_order_of_keys() -> None:
    one = result(1.0)
    lockstep.assert_equal([one], [dict(reversed(one.items()))])


@pytest.mark.parametrize(
    "other",
    [
        [result(math.nextafter(1.0, 2.0))],
        [result(1.0, attributes={})],
        [result(1.0, event_time=1)],
        [result(1.0, end=6)],
        [result(1.0), result(1.0, end=6)],
        [],
    ],
)
def test_lockstep_finds_any_difference(other: list[dict[str, Any]]) -> None:
    with pytest.raises(AssertionError):
        lockstep.assert_equal([result(1.0)], other)


def test_lockstep_tells_minus_zero_from_zero() -> None:
    with pytest.raises(AssertionError):
        lockstep.assert_equal([result(0.0)], [result(-0.0)])


def test_lockstep_names_the_first_difference_and_the_rows_behind_it() -> None:
    parts = {(0, 0): [Row("x", 4, (1.0,)), Row("y", 4, (2.0,))]}
    with pytest.raises(AssertionError) as caught:
        lockstep.assert_equal([result(1.0), result(2.0, 6)], [result(1.0), result(3.0, 6)], parts)
    message = str(caught.value)
    assert "evaluation 1 differs" in message
    assert "window [0, 6)" in message
    assert '- {"rank": 1, "object_id": "x", "score": 2.0' in message
    assert "4 s0 p0 @0 'x' (1.0,)" in message
    assert "'y'" not in message
