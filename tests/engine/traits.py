"""What a workload has in it, as words: so that a sweep can say that it has seen everything."""

from collections.abc import Mapping, Sequence
from typing import Any

from skyband.errors import NotServedError
from skyband.local.brute_force import cleaned
from skyband.model.binding import bind
from skyband.model.group import Group
from skyband.model.query import Algorithm, Order, Query
from skyband.model.stream import Aggregate, Late
from tests.engine.pure_pipeline import planned
from tests.oracle import Partitions, accepted

# Those that are exact; the first three are what `auto` chooses from.
ALGORITHMS = tuple(algorithm for algorithm in Algorithm if not algorithm.is_approximate)[1:]

REQUIRED = {
    *(f"aggregate {aggregate}" for aggregate in Aggregate),
    *(f"order {order}" for order in Order),
    *(f"chosen {algorithm}" for algorithm in ALGORITHMS[:3]),
    *("require any", "require listed", "require all", "require listed, never met"),
    *("count window", "gaps", "tumbling", "sliding", "slide of one pane", "pane of 1 us"),
    *("row identity", "one row of several attributes", "several partitions", "missing is a number", "negative times"),
    *("late rows dropped", "late rows applied", "rejected rows", "clamped rows", "no rows at all", "an empty stretch"),
    *(
        "k = 1",
        "k beyond the objects",
        "first empty result",
        "ties",
        "lowest with ties",
        "negative scores",
        "two queries",
    ),
}


def traits(
    group: Group, queries: Sequence[Query], partitions: Partitions, results: Sequence[Mapping[str, Any]]
) -> set[str]:
    """Return what is in a workload; of a query only if it ever had rows."""
    found = _of_input(group, partitions) | ({"two queries"} if len(queries) > 1 else set())
    for query in queries:
        own = [result["rows"] for result in results if result["query"] == query.name]
        if any(own):
            found |= _of_query(group, query) | _of_rankings(query, own)
        elif query.require and any(partitions.values()):
            found.add("require listed, never met")
    return found


def _of_input(group: Group, partitions: Partitions) -> set[str]:
    found = {"pane of 1 us"} if group.pane_us == 1 else set()
    seen = accepted(group, partitions)
    total = sum(map(len, partitions.values()))
    if not total:
        return found | {"no rows at all"}
    if len(seen) < total:
        found.add("rejected rows")
    if any(row.event < 0 for row in seen):
        found.add("negative times")
    if len(partitions) > len(group.streams):
        found.add("several partitions")
    if group.is_row_identity:
        found.add("row identity")
    if any(row.release > row.event for row in seen):
        found.add("late rows applied")
    for (index, _), rows in partitions.items():
        stream, watermark = group.streams[index], None
        if len(stream.attributes) > 1:
            found.add("one row of several attributes")
        for row in rows:
            clean = cleaned(stream, row.values)
            if clean is not None and row.object_id:
                if watermark is not None and row.event_time_us < watermark and stream.late is Late.DROP:
                    found.add("late rows dropped")
                if clean != row.values:
                    found.add("clamped rows")
            time = row.event_time_us - stream.max_delay_us
            watermark = time if watermark is None else max(watermark, time)
    return found


def _of_query(group: Group, query: Query) -> set[str]:
    bound, window = bind(group, query), query.window
    found = {f"aggregate {column.aggregate}" for column in bound.columns if column.in_score}
    found |= {f"order {query.order}", f"chosen {planned(group, query).algorithm}"}
    found.add("require all" if query.require_all else "require listed" if query.require else "require any")
    if query.k == 1:
        found.add("k = 1")
    if any(group.streams[c.stream].attributes[c.value].missing is not None and c.in_score for c in bound.columns):
        found.add("missing is a number")
    if window.in_rows:
        return found | {"count window"}
    if window.slide == group.pane_us:
        found.add("slide of one pane")
    shape = "gaps" if window.slide > window.size else "tumbling" if window.slide == window.size else "sliding"
    return found | {shape}


def _of_rankings(query: Query, rankings: Sequence[Sequence[Mapping[str, Any]]]) -> set[str]:
    found = set()
    for before, rows in zip(((), *rankings), rankings, strict=False):
        scores = [row["score"] for row in rows]
        if not rows:
            found |= {"first empty result"} | ({"an empty stretch"} if before else set())
        if len(set(scores)) < len(scores):
            found |= {"ties"} | ({"lowest with ties"} if query.order is Order.LOWEST else set())
        if any(score < 0 for score in scores):
            found.add("negative scores")
        if 0 < len(rows) < query.k:
            found.add("k beyond the objects")
    return found


def fits(group: Group, query: Query, algorithm: Algorithm) -> bool:
    """Return whether the planner lets `algorithm` answer the query, and the answer is exact."""
    if algorithm.is_approximate:
        return False
    try:
        planned(group, query, algorithm)
    except NotServedError:
        return False
    return True
