"""Which algorithm, why, and why not."""
# ruff: noqa: E501 - sentences as they are shown

from dataclasses import replace

import pytest

from skyband.control.planner import check_plan, plan
from skyband.errors import DefinitionError, NotServedError
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Algorithm, Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Identity, Stream

SECOND = 1_000_000


def attribute_stream(name: str, aggregate: Aggregate = Aggregate.BEST, **bounds: float) -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name, **bounds),), aggregate=aggregate)


def object_stream(**changes: object) -> Stream:
    attributes = Attribute(name="x", hi=1.0), Attribute(name="y", hi=1.0)
    return Stream(name="points", attributes=attributes, is_object_stream=True, aggregate=Aggregate.LATEST, **changes)  # type: ignore[arg-type]


def group(*streams: Stream) -> Group:
    return Group(name="g", streams=streams, retention_us=60 * SECOND, retention_rows=100)


def query(score: str, algorithm: Algorithm = Algorithm.AUTO, order: Order = Order.HIGHEST) -> Query:
    return Query(name="q", k=3, score=score, window=Window(60 * SECOND, SECOND), algorithm=algorithm, order=order)


A = attribute_stream("a", hi=10.0)
ROWS = group(object_stream(identity=Identity.ROW))

CHOICES = [
    (
        "best",
        group(A),
        query("a"),
        Algorithm.TWO_TIER,
        "every attribute of the score is steady: no observation can make an object rank lower",
    ),
    (
        "best falling",
        group(A),
        query("-a"),
        Algorithm.TWO_TIER,
        "every attribute of the score is steady: no observation can make an object rank lower",
    ),
    (
        "max rising",
        group(attribute_stream("a", Aggregate.MAX)),
        query("a"),
        Algorithm.TWO_TIER,
        "every attribute of the score is steady: no observation can make an object rank lower",
    ),
    (
        "min lowest",
        group(attribute_stream("a", Aggregate.MIN, hi=9.0)),
        query("a", order=Order.LOWEST),
        Algorithm.TWO_TIER,
        "every attribute of the score is steady: no observation can make an object rank lower",
    ),
    (
        "rising sum",
        group(attribute_stream("a", Aggregate.SUM)),
        query("a"),
        Algorithm.VIEW,
        "attribute 'a' is summed or counted: most observations change a score, where the view costs less",
    ),
    (
        "count beside best",
        group(A, attribute_stream("n", Aggregate.COUNT)),
        query("a + n"),
        Algorithm.VIEW,
        "attribute 'n' is summed or counted: most observations change a score, where the view costs less",
    ),
    (
        "falling sum",
        group(attribute_stream("a", Aggregate.SUM)),
        query("-a"),
        Algorithm.VIEW,
        "attribute 'a' is summed, and every further observation ranks its object lower, so only the view is exact",
    ),
    (
        "signed sum",
        group(attribute_stream("a", Aggregate.SUM, lo=-5.0)),
        query("a"),
        Algorithm.VIEW,
        "attribute 'a' is summed, and its values may have either sign (-5 to inf), so only the view is exact",
    ),
    (
        "falling count",
        group(attribute_stream("a", Aggregate.COUNT)),
        query("a", order=Order.LOWEST),
        Algorithm.VIEW,
        "attribute 'a' is counted, and every further observation ranks its object lower, so only the view is exact",
    ),
    (
        "latest",
        group(attribute_stream("a", Aggregate.LATEST)),
        query("a"),
        Algorithm.VIEW,
        "attribute 'a' is combined by latest: a good value can give way to a worse one, so only the view is exact",
    ),
    (
        "min rising",
        group(attribute_stream("a", Aggregate.MIN)),
        query("a"),
        Algorithm.VIEW,
        "attribute 'a' is combined by min, but larger values rank better: an observation can only harm, so only the view is exact",
    ),
    (
        "missing 5",
        group(attribute_stream("a", missing=5.0)),
        query("a"),
        Algorithm.VIEW,
        "attribute 'a' counts 5 while unseen, not its worst value: an observation can rank its object lower, so only the view is exact",
    ),
    (
        "neither",
        group(attribute_stream("a", Aggregate.MAX, hi=9.0, missing=5.0)),
        query("abs(a - 5)"),
        Algorithm.VIEW,
        "attribute 'a' moves the score both up and down, so only the view is exact",
    ),
    ("rows", ROWS, query("x*y"), Algorithm.SKYBAND, "every record is an object of its own, whose score never changes"),
    (
        "rows by view",
        ROWS,
        query("x", Algorithm.VIEW),
        Algorithm.VIEW,
        "asked for by name; the view answers every score",
    ),
    (
        "rows by two-tier",
        ROWS,
        query("x", Algorithm.TWO_TIER),
        Algorithm.TWO_TIER,
        "asked for by name; every attribute of the score is steady",
    ),
    (
        "sum by two-tier",
        group(attribute_stream("a", Aggregate.SUM)),
        query("a", Algorithm.TWO_TIER),
        Algorithm.TWO_TIER,
        "asked for by name; every attribute of the score is steady",
    ),
]


@pytest.mark.parametrize(
    ("where", "what", "algorithm", "reason"), [c[1:] for c in CHOICES], ids=[c[0] for c in CHOICES]
)
def test_the_plan_says_why(where: Group, what: Query, algorithm: Algorithm, reason: str) -> None:
    found = plan(where, what)
    assert (found.algorithm, found.reason, found.relies_on) == (algorithm, reason, ())
    assert found.cost.startswith("state: ")
    assert "; time: " in found.cost


REFUSALS = [
    (
        "two-tier over latest",
        group(A, attribute_stream("b", Aggregate.LATEST)),
        query("a + b", Algorithm.TWO_TIER),
        "query 'q' cannot use two-tier, because attribute 'b' is combined by latest: a good value can give way to a worse one; use algorithm view or auto",
    ),
    (
        "two-tier over a falling sum",
        group(attribute_stream("a", Aggregate.SUM)),
        query("-a", Algorithm.TWO_TIER),
        "query 'q' cannot use two-tier, because attribute 'a' is summed, and every further observation ranks its object lower; use algorithm view or auto",
    ),
    (
        "skyband over attribute streams",
        group(A),
        query("a", Algorithm.SKYBAND),
        "query 'q' cannot use skyband, which needs each object at most once in a window, all attributes in one record; group 'g' is no single object stream; use algorithm view or auto",
    ),
    (
        "skyband without a promise",
        group(object_stream()),
        query("x", Algorithm.SKYBAND),
        "query 'q' cannot use skyband, which needs each object at most once in a window; set identity: row on stream 'points', or repeat_after: 1m if its producer promises that, or use algorithm view or auto",
    ),
    (
        "skyband with too short a promise",
        group(object_stream(repeat_after_us=60 * SECOND - 1)),
        query("x", Algorithm.SKYBAND),
        "query 'q' cannot use skyband, which needs each object at most once in a window; set identity: row on stream 'points', or repeat_after: 1m if its producer promises that, or use algorithm view or auto",
    ),
    (
        "skyband over rows of a count window",
        group(object_stream(repeat_after_us=60 * SECOND)),
        replace(query("x", Algorithm.SKYBAND), window=Window(10, 1, in_rows=True)),
        "query 'q' cannot use skyband, which needs each object at most once in a window; set identity: row on stream 'points', or repeat_after: never if its producer promises that, or use algorithm view or auto",
    ),
]


@pytest.mark.parametrize(
    ("where", "what", "message"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
def test_an_algorithm_that_does_not_fit_is_refused_with_the_reason(where: Group, what: Query, message: str) -> None:
    with pytest.raises(NotServedError) as caught:
        plan(where, what)
    assert str(caught.value) == message
    assert caught.value.field == "algorithm"


@pytest.mark.parametrize(
    ("repeat_after_us", "promise"),
    [
        (
            60 * SECOND,
            "the producer of stream 'points' promises that an object does not come again within 1m (repeat_after)",
        ),
        (MAX_TIME_US, "the producer of stream 'points' promises that an object never comes again (repeat_after)"),
    ],
)
def test_a_skyband_over_objects_says_which_promise_it_relies_on(repeat_after_us: int, promise: str) -> None:
    found = plan(group(object_stream(repeat_after_us=repeat_after_us)), query("x", Algorithm.SKYBAND))
    assert found.algorithm is Algorithm.SKYBAND
    assert found.relies_on == (promise,)


def test_a_promise_alone_does_not_make_auto_choose_the_skyband() -> None:
    assert plan(group(object_stream(repeat_after_us=MAX_TIME_US)), query("x")).algorithm is Algorithm.VIEW


def test_a_query_that_does_not_fit_its_group_has_no_plan() -> None:
    with pytest.raises(DefinitionError, match="'speed', which is not a stream"):
        plan(group(A), query("speed"))


def test_a_plan_is_kept_while_it_answers_and_refused_when_it_does_not() -> None:
    steady, sums, latest = (
        group(attribute_stream("a", kind)) for kind in (Aggregate.MAX, Aggregate.SUM, Aggregate.LATEST)
    )
    chosen = plan(steady, query("a"))
    check_plan(sums, query("a"), chosen)
    with pytest.raises(NotServedError, match="cannot use two-tier"):
        check_plan(latest, query("a"), chosen)
