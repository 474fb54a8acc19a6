"""When a query may forget, when it does without being told, and the words that refuse it."""
# ruff: noqa: E501 - sentences as they are shown

from dataclasses import replace

import pytest

from skyband.control.planner import plan
from skyband.errors import DefinitionError, NotServedError
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Algorithm, Order, Query, Window
from skyband.model.query_form import dump_query, read_query
from skyband.model.stream import Aggregate, Attribute, Identity, Stream

SECOND = 1_000_000
FORGETTING = (Algorithm.EAA, Algorithm.EAA_RELAXED, Algorithm.EAA_EXPECTED, Algorithm.EAA_TAIL)


def stream(
    name: str, aggregate: Aggregate = Aggregate.BEST, repeat_after_us: int | None = None, **bounds: float
) -> Stream:
    attributes = (Attribute(name=name, **bounds),)
    return Stream(name=name, attributes=attributes, aggregate=aggregate, repeat_after_us=repeat_after_us)


def group(*streams: Stream) -> Group:
    return Group(name="g", streams=streams, retention_us=60 * SECOND, retention_rows=100)


def query(score: str, algorithm: Algorithm = Algorithm.AUTO, **more: object) -> Query:
    window = more.pop("window", Window(60 * SECOND, SECOND))
    return Query(name="q", k=3, score=score, window=window, algorithm=algorithm, **more)  # type: ignore[arg-type]


A, B = stream("a", hi=10.0), stream("b", hi=5.0, repeat_after_us=MAX_TIME_US)


@pytest.mark.parametrize("algorithm", FORGETTING)
def test_steady_attributes_with_bounds_may_be_forgotten(algorithm: Algorithm) -> None:
    made = plan(group(A, B), query("a + 2*b", algorithm))
    assert made.algorithm is algorithm
    assert made.reason == "asked for by name; every attribute is steady, and its best value known"
    assert made.relies_on == ("the producer of stream 'b' promises that an object never comes again (repeat_after)",)
    assert "no window" in made.cost


@pytest.mark.parametrize(
    ("streams", "score", "order", "words"),
    [
        ((stream("a", Aggregate.LATEST, hi=1.0),), "a", Order.HIGHEST, "attribute 'a' is combined by latest: a good value can give way to a worse one"),
        ((stream("a"),), "a", Order.HIGHEST, "the best case of attribute 'a' has no bound; declare hi on stream 'a'"),
        ((stream("a", lo=float("-inf"), hi=3.0, missing=3.0),), "a", Order.LOWEST, "the best case of attribute 'a' has no bound; declare lo on stream 'a'"),
        ((stream("a", Aggregate.SUM, hi=1.0),), "a", Order.HIGHEST, "attribute 'a' is combined by sum of all that an object has in the window; promise repeat_after: 1m on stream 'a' if it comes but once"),
        ((stream("a", hi=10.0),), "exp(100*a)", Order.HIGHEST, "score 'exp(100*a)' is not finite everywhere within the bounds of its attributes; narrow them"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("algorithm", FORGETTING)
def test_what_cannot_be_forgotten_is_refused_with_the_reason(
    algorithm: Algorithm, streams: tuple[Stream, ...], score: str, order: Order, words: str
) -> None:
    with pytest.raises(NotServedError) as caught:
        plan(group(*streams), query(score, algorithm, order=order))
    assert caught.value.message == f"query 'q' cannot use {algorithm}, because {words}; use algorithm view or auto"


def test_a_sum_of_objects_that_come_once_in_a_window_may_be_forgotten() -> None:
    once = stream("a", Aggregate.SUM, 60 * SECOND, hi=1.0)
    assert plan(group(once), query("a", Algorithm.EAA_RELAXED)).algorithm is Algorithm.EAA_RELAXED
    rows = query("a", Algorithm.EAA_RELAXED, window=Window(10, 1, in_rows=True))
    with pytest.raises(NotServedError, match="promise repeat_after: never on stream 'a'"):
        plan(group(once), rows)


def test_records_that_are_objects_miss_nothing() -> None:
    rows = Stream(name="p", attributes=(Attribute(name="x", hi=1.0),), is_object_stream=True, identity=Identity.ROW)
    with pytest.raises(
        NotServedError, match="because every record is an object of its own, of which nothing is missing"
    ):
        plan(group(rows), query("x", Algorithm.EAA))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"memory_budget": 1 << 20}, "a memory_budget is set: exact while the state fits"),
        ({"max_error": 0.05}, "an error is allowed, so that no window has to be kept"),
        ({"target_precision": 0.9, "memory_budget": 1 << 20}, "an error is allowed, so that no window has to be kept"),
    ],
)
def test_auto_forgets_when_a_limit_is_set(limits: dict[str, float], reason: str) -> None:
    made = plan(group(A, B), query("a + b", **limits))
    assert made.algorithm is Algorithm.EAA_TAIL
    assert made.reason.startswith(reason)


def test_a_limit_that_cannot_be_kept_is_refused() -> None:
    latest = group(stream("a", Aggregate.LATEST, hi=1.0))
    with pytest.raises(NotServedError, match="leave max_error, target_precision and memory_budget away"):
        plan(latest, query("a", max_error=0.1))
    with pytest.raises(NotServedError, match="has a memory_budget, but algorithm view keeps the whole window"):
        plan(latest, query("a", Algorithm.VIEW, memory_budget=1 << 20))
    with pytest.raises(NotServedError, match="allows an error, but algorithm eaa-relaxed is exact"):
        plan(group(A), query("a", Algorithm.EAA_RELAXED, max_error=0.1))
    assert plan(group(A), query("a", Algorithm.EAA_RELAXED, memory_budget=1 << 20)).algorithm is Algorithm.EAA_RELAXED


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_error": 0.6}, "max_error must be a probability from 0 to 0.5, not 0.6"),
        ({"target_precision": 1.0}, "target_precision must be at least 0.5 and below 1, not 1"),
        ({"max_error": 0.1, "target_precision": 0.9}, "max_error and target_precision both say how much may be missed"),
        ({"memory_budget": 1000}, "memory_budget must be at least 65,536 bytes, not 1,000"),
        ({"candidates": -1}, "candidates must be from 0 to 1,000, not -1"),
    ],
)
def test_limits_have_limits(limits: dict[str, float], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        query("a", **limits)


@pytest.mark.parametrize(
    ("text", "size"), [("64MB", 64_000_000), ("1.5 GB", 1_500_000_000), ("512kB", 512_000), (70_000, 70_000)]
)
def test_a_budget_is_read_with_its_unit(text: object, size: int) -> None:
    document = dump_query(query("a")) | {"memory_budget": text}
    assert read_query(document) == replace(query("a"), memory_budget=size)
    assert read_query(dump_query(read_query(document))) == read_query(document)


def test_a_budget_that_is_no_size_is_refused() -> None:
    with pytest.raises(DefinitionError, match="memory_budget must be a size such as 64MB, not the text 'much'"):
        read_query(dump_query(query("a")) | {"memory_budget": "much"})


def test_sorted_lists_need_an_order_for_each_attribute() -> None:
    wavy = group(stream("a", Aggregate.LATEST, lo=-1.0, hi=1.0, missing=0.0))
    with pytest.raises(
        NotServedError, match=r"cannot use sla, because the score both rises and falls with attribute 'a'"
    ):
        plan(wavy, query("a*a", Algorithm.SLA))
    assert plan(group(A, B), query("a - b", Algorithm.SLA)).algorithm is Algorithm.SLA
