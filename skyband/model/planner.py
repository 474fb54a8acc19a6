"""The planner: which algorithm answers a query, why, at what cost, and on whose promises.

==================  ================================================================  ====================
algorithm           fits                                                              `auto` chooses it
==================  ================================================================  ====================
skyband             each record is an object, or comes at most once in a window       if identity is row
two-tier            every attribute of the score is steady                            … and none is a sum
view                every score                                                       otherwise
sla                 every attribute ranks better in one direction                     never
eaa, eaa-relaxed    every attribute is steady, with a best value that is known        never
eaa-expected        the same; approximate                                             never
eaa-tail            the same; approximate, or exact within a budget of memory         with a budget or an
                                                                                      error that is allowed
==================  ================================================================  ====================
"""

from typing import NoReturn

from skyband.errors import NotServedError
from skyband.model.ability import why_not_forget, why_not_listed, why_unsteady
from skyband.model.binding import BoundQuery, bind, promised_once
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.group import Group
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Query
from skyband.model.stream import Aggregate

__all__ = ["plan"]

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
    Algorithm.SLA: (
        "state: the observations or sums of each object per pane, kept once for all queries of the group, one sorted "
        "list of all objects for each attribute, and a few times k candidates; time: an evaluation moves the objects "
        "that changed within the lists; when fewer than k candidates remain, it walks down the lists"
    ),
    Algorithm.EAA: (
        "state: the objects that can still come into the result, and no window; a share of the window's rows that "
        "depends on how complete objects are; time: each row is compared with all of them"
    ),
    Algorithm.EAA_RELAXED: (
        "state: the objects that can still come into the result, and no window; a share of the window's rows that "
        "depends on how complete objects are; time: constant for each row, and a sweep over the state now and then"
    ),
    Algorithm.EAA_EXPECTED: (
        "state: the objects that are expected to come into the result, and no window; a sample of 5 kB for each "
        "stream; time: constant for each row, and a sweep over the state now and then"
    ),
    Algorithm.EAA_TAIL: (
        "state: the objects that come into the result with more than the probability allowed, and no window; a sample "
        "of 5 kB for each stream; time: a few dozen scores for each row, and a sweep over the state now and then"
    ),
}
_ONCE_STEADY = "every attribute is steady, and its best value known"


def plan(group: Group, query: Query) -> Plan:
    """Return how `query` over `group` will be answered.

    Raises DefinitionError if it does not fit the group at all, NotServedError if it names an algorithm that cannot
    answer it. Cost: the length of the score.
    """
    bound = bind(group, query)
    _check_limits(query)
    match query.algorithm:
        case Algorithm.AUTO:
            return _choose(group, bound)
        case Algorithm.TWO_TIER:
            return _two_tier(group, bound)
        case Algorithm.SKYBAND:
            return _skyband(group, bound)
        case Algorithm.VIEW:
            return _made(Algorithm.VIEW, "asked for by name; the view answers every score")
        case Algorithm.SLA:
            return _sla(group, bound)
        case _:
            return _forgetting(group, bound, query.algorithm, f"asked for by name; {_ONCE_STEADY}")


def _check_limits(query: Query) -> None:
    algorithm = query.algorithm
    if query.memory_budget is not None and algorithm is not Algorithm.AUTO and not algorithm.forgets:
        _refuse(
            f"query {query.name!r} has a memory_budget, but algorithm {algorithm} keeps the whole window; use auto, or "
            "leave the budget away"
        )
    is_lax = query.max_error is not None or query.target_precision is not None
    if is_lax and algorithm is not Algorithm.AUTO and not algorithm.is_approximate:
        _refuse(
            f"query {query.name!r} allows an error, but algorithm {algorithm} is exact; use auto or eaa-tail, or leave "
            "max_error and target_precision away"
        )


def _choose(group: Group, bound: BoundQuery) -> Plan:
    if bound.query.is_bounded:
        return _forgetting(group, bound, Algorithm.EAA_TAIL, _why_tail(bound.query))
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


def _sla(group: Group, bound: BoundQuery) -> Plan:
    why = why_not_listed(group, bound)
    if why:
        _refuse(f"query {bound.query.name!r} cannot use sla, because {why}; use algorithm view or auto")
    return _made(Algorithm.SLA, "asked for by name; each attribute ranks objects better in one direction")


def _why_tail(query: Query) -> str:
    if query.memory_budget is not None and query.max_error is None and query.target_precision is None:
        return f"a memory_budget is set: exact while the state fits; {_ONCE_STEADY}"
    return f"an error is allowed, so that no window has to be kept; {_ONCE_STEADY}"


def _forgetting(group: Group, bound: BoundQuery, algorithm: Algorithm, reason: str) -> Plan:
    why = why_not_forget(group, bound)
    if why:
        instead = "use algorithm view or auto"
        if bound.query.algorithm is Algorithm.AUTO:
            instead = "leave max_error, target_precision and memory_budget away"
        _refuse(f"query {bound.query.name!r} cannot use {algorithm}, because {why}; {instead}")
    window = bound.query.window
    promises = []
    for place in sorted({column.stream for column in bound.columns}):
        stream = group.streams[place]
        after = stream.repeat_after_us or 0
        if after >= (MAX_TIME_US if window.in_rows else window.size):
            promises.append(f"the producer of stream {stream.name!r} promises that an object {_promise(after)}")
    return Plan(algorithm, reason, tuple(f"{promise} (repeat_after)" for promise in promises), _COSTS[algorithm])


def _promise(after_us: int) -> str:
    return "never comes again" if after_us >= MAX_TIME_US else f"does not come again within {format_duration(after_us)}"


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
    return Plan(
        Algorithm.SKYBAND,
        "asked for by name; an object comes at most once in a window, so its score does not change while it lives",
        (f"the producer of stream {stream.name!r} promises that an object {_promise(after)} (repeat_after)",),
        _COSTS[Algorithm.SKYBAND],
    )


def _unsteady(group: Group, bound: BoundQuery) -> list[str]:
    columns = [column for column in bound.columns if column.in_score]
    return [f"{c.name!r} {why}" for c in columns if (why := why_unsteady(group, bound, c))]


def _made(algorithm: Algorithm, reason: str) -> Plan:
    return Plan(algorithm, reason, (), _COSTS[algorithm])


def _refuse(message: str) -> NoReturn:
    raise NotServedError(message, field="algorithm")
