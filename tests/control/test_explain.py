"""Plans in words, as golden texts."""
# ruff: noqa: E501 - sentences as they are shown

import textwrap

import pytest

from skyband.control.explain import explain
from skyband.control.planner import plan
from skyband.model.group import Group
from skyband.model.query import Algorithm, Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Identity, Stream

SECOND = 1_000_000


def attribute_stream(name: str, aggregate: Aggregate = Aggregate.BEST, **bounds: float) -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name, **bounds),), aggregate=aggregate)


def points(**changes: object) -> Stream:
    attributes = Attribute(name="x", hi=1.0), Attribute(name="y", hi=1.0)
    return Stream(name="points", attributes=attributes, is_object_stream=True, aggregate=Aggregate.LATEST, **changes)  # type: ignore[arg-type]


def group(*streams: Stream) -> Group:
    return Group(name="factory", streams=streams, retention_us=600 * SECOND, retention_rows=1000)


MINUTE = Window(60 * SECOND, 10 * SECOND)

CASES = [
    (
        "two-tier",
        group(attribute_stream("temperature", hi=100.0), attribute_stream("vibration", hi=10.0)),
        Query(name="hottest", k=1000, score="0.7*temperature - vibration", window=MINUTE, require_all=True),
        """\
        hottest: the 1,000 objects with the highest 0.7*temperature - vibration
          over the last 1m, every 10s; an object counts while it has an observation of temperature and vibration in the window

        attributes
          temperature  larger ranks better   combined by best  unseen counts 0 (lo, its worst)   steady
          vibration    smaller ranks better  combined by best  unseen counts 10 (hi, its worst)  steady

        plan two-tier
          why        every attribute of the score is steady: no observation can make an object rank lower
          state      the valid observations of the window, kept once for all queries of the group, and about k*(1 + ln(objects/k)) hot rows
          time       an evaluation looks again at the objects that changed since the last, never at all of them
          relies on  no promise of any producer""",
    ),
    (
        "view",
        group(
            attribute_stream("temperature", Aggregate.LATEST, missing=5.0),
            attribute_stream("n", Aggregate.COUNT),
            attribute_stream("state"),
        ),
        Query(name="coldest", k=3, score="temperature + n", window=MINUTE, order=Order.LOWEST, require=("state",)),
        """\
        coldest: the 3 objects with the lowest temperature + n
          over the last 1m, every 10s; an object counts while it has an observation of state in the window

        attributes
          temperature  smaller ranks better  combined by latest  unseen counts 5  unsteady: it is combined by latest: a good value can give way to a worse one
          n            smaller ranks better  combined by count   unseen counts 0  unsteady: it is counted, and every further observation ranks its object lower
          state        not in the score      required only

        plan view
          why        attribute 'temperature' is combined by latest: a good value can give way to a worse one, so only the view is exact
          state      the observations or sums of each object per pane, kept once for all queries of the group, and a few times k candidates
          time       an evaluation scores again the objects that changed since the last; when fewer than k candidates remain, one scan of all objects
          relies on  no promise of any producer""",
    ),
    (
        "rows",
        group(points(identity=Identity.ROW)),
        Query(name="far", k=5, score="x*y", window=Window(1000, 10, in_rows=True)),
        """\
        far: the 5 records with the highest x*y
          over the last 1,000 rows, every 10 rows; every record is an object of its own

        attributes
          x  larger ranks better  always there
          y  larger ranks better  always there

        plan skyband
          why        every record is an object of its own, whose score never changes
          state      the rows of the window, kept once for all queries of the group, and about k*(1 + ln(rows/k)) of them in rank order
          time       a new row is compared with those alone, an evaluation reads the first k
          relies on  no promise of any producer""",
    ),
    (
        "a promise",
        group(points(repeat_after_us=300 * SECOND)),
        Query(name="far", k=5, score="x - y", window=MINUTE, algorithm=Algorithm.SKYBAND),
        """\
        far: the 5 objects with the highest x - y
          over the last 1m, every 10s; an object counts while any attribute of the score is in the window

        attributes
          x  larger ranks better   combined by latest, not repeated within 5m  unseen counts 0 (lo, its worst)
          y  smaller ranks better  combined by latest, not repeated within 5m  unseen counts 1 (hi, its worst)

        plan skyband
          why        asked for by name; an object comes at most once in a window, so its score does not change while it lives
          state      the rows of the window, kept once for all queries of the group, and about k*(1 + ln(rows/k)) of them in rank order
          time       a new row is compared with those alone, an evaluation reads the first k
          relies on  the producer of stream 'points' promises that an object does not come again within 5m (repeat_after)""",
    ),
]


@pytest.mark.parametrize(("where", "what", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_plan_is_explained_in_words(where: Group, what: Query, expected: str) -> None:
    assert explain(where, what, plan(where, what)) == textwrap.dedent(expected)
