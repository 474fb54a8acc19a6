"""The planner: which algorithm answers a query, why, at what cost, and on whose promises.

==================  ================================================================  ====================
algorithm           fits                                                              `auto` chooses it
==================  ================================================================  ====================
skyband             each record is an object, or comes at most once in a window       if identity is row
two-tier            every attribute of the score is steady                            … and none is a sum
view                every score                                                       otherwise
==================  ================================================================  ====================
"""

from typing import NoReturn

from skyband.errors import NotServedError
from skyband.model.binding import BoundColumn, BoundQuery, bind, promised_once
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.group import Group
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Query
from skyband.model.stream import Aggregate

__all__ = ["plan", "why_unsteady"]

_COSTS = {
    Algorithm.TWO_TIER: (
        "state: the valid observations of the window, kept once for all queries of the group, and about "
        "k*(1 + ln(objects/k)) hot rows; time: an evaluation looks again at the objects that changed since the last, "
        "never at all of them"
    ),
    Algorithm.VIEW: (
        "state: the observations or sums of each object per pane, kept once for all queries of the group, and a few "
        "times k candidates; time: an evaluation scores again the objects that changed since the last; when fewer than "
        "k candidates remain, one scan of all objects"
    ),
    Algorithm.SKYBAND: (
        "state: the rows of the window, kept once for all queries of the group, and about k*(1 + ln(rows/k)) of them "
        "in rank order; time: a new row is compared with those alone, an evaluation reads the first k"
    ),
}


def plan(group: Group, query: Query) -> Plan:
    """Return how `query` over `group` will be answered.

    Raises DefinitionError if it does not fit the group at all, NotServedError if it names an algorithm that cannot
    answer it. Cost: the length of the score.
    """
    bound = bind(group, query)
    match query.algorithm:
        case Algorithm.AUTO:
            return _choose(group, bound)
        case Algorithm.TWO_TIER:
            return _two_tier(group, bound)
        case Algorithm.SKYBAND:
            return _skyband(group, bound)
        case Algorithm.VIEW:
            return _made(Algorithm.VIEW, "asked for by name; the view answers every score")


def why_unsteady(group: Group, bound: BoundQuery, column: BoundColumn) -> str | None:
    """Return why `column` is unsteady, in words that follow its name, or None if it is steady."""
    attribute = group.streams[column.stream].attributes[column.value]
    if column.steady or group.is_row_identity:
        return None
    if column.prefers_high is None:
        return "moves the score both up and down"
    if column.aggregate in (Aggregate.LATEST, Aggregate.FIRST):
        return f"is combined by {column.aggregate}: a good value can give way to a worse one"
    if column.aggregate is Aggregate.COUNT:
        return "is counted, and every further observation ranks its object lower"
    if column.aggregate is Aggregate.SUM:
        if attribute.lo < 0 < attribute.hi:
            return f"is summed, and its values may have either sign ({attribute.lo:g} to {attribute.hi:g})"
        return "is summed, and every further observation ranks its object lower"
    best = Aggregate.MAX if column.prefers_high else Aggregate.MIN
    if column.aggregate in (Aggregate.MAX, Aggregate.MIN) and column.aggregate is not best:
        better = "larger" if column.prefers_high else "smaller"
        return f"is combined by {column.aggregate}, but {better} values rank better: an observation can only harm"
    return f"counts {column.missing:g} while unseen, not its worst value: an observation can rank its object lower"


def _choose(group: Group, bound: BoundQuery) -> Plan:
    if group.is_row_identity:
        return _skyband(group, bound)
    unsteady = _unsteady(group, bound)
    if unsteady:
        return _made(Algorithm.VIEW, f"attribute {unsteady[0]}, so only the view is exact")
    sums = [c.name for c in bound.columns if c.in_score and c.aggregate in (Aggregate.SUM, Aggregate.COUNT)]
    if sums:
        return _made(
            Algorithm.VIEW,
            f"attribute {sums[0]!r} is summed or counted: most observations change a score, where the view costs less",
        )
    reason = "every attribute of the score is steady: no observation can make an object rank lower"
    return _made(Algorithm.TWO_TIER, reason)


def _two_tier(group: Group, bound: BoundQuery) -> Plan:
    unsteady = _unsteady(group, bound)
    if unsteady:
        _refuse(
            f"query {bound.query.name!r} cannot use two-tier, because attribute {unsteady[0]}; "
            "use algorithm view or auto"
        )
    return _made(Algorithm.TWO_TIER, "asked for by name; every attribute of the score is steady")


def _skyband(group: Group, bound: BoundQuery) -> Plan:
    if group.is_row_identity:
        return _made(Algorithm.SKYBAND, "every record is an object of its own, whose score never changes")
    query, stream = bound.query, group.streams[0]
    need = "needs each object at most once in a window"
    if len(group.streams) > 1 or not stream.is_object_stream:
        _refuse(
            f"query {query.name!r} cannot use skyband, which {need}, all attributes in one record; "
            f"group {group.name!r} is no single object stream; use algorithm view or auto"
        )
    if not promised_once(group, query):
        size = "never" if query.window.in_rows else format_duration(query.window.size)
        _refuse(
            f"query {query.name!r} cannot use skyband, which {need}; set identity: row on stream {stream.name!r}, or "
            f"repeat_after: {size} if its producer promises that, or use algorithm view or auto"
        )
    after = stream.repeat_after_us or 0
    promise = "never comes again" if after >= MAX_TIME_US else f"does not come again within {format_duration(after)}"
    return Plan(
        Algorithm.SKYBAND,
        "asked for by name; an object comes at most once in a window, so its score does not change while it lives",
        (f"the producer of stream {stream.name!r} promises that an object {promise} (repeat_after)",),
        _COSTS[Algorithm.SKYBAND],
    )


def _unsteady(group: Group, bound: BoundQuery) -> list[str]:
    columns = [column for column in bound.columns if column.in_score]
    return [f"{c.name!r} {why}" for c in columns if (why := why_unsteady(group, bound, c))]


def _made(algorithm: Algorithm, reason: str) -> Plan:
    return Plan(algorithm, reason, (), _COSTS[algorithm])


def _refuse(message: str) -> NoReturn:
    raise NotServedError(message, field="algorithm")
