"""A query and its plan in words: what each attribute does, how it will be answered, and what that takes.

Of a query that runs also what is known of it: its state now and as expected, how far it may be off, its streams.
"""

from skyband.control.accuracy import accuracy
from skyband.control.expected import expected_state, state_now
from skyband.control.knowledge import Knowledge
from skyband.control.known_streams import known_streams
from skyband.control.wording import lines
from skyband.model.ability import why_unsteady
from skyband.model.binding import BoundColumn, BoundQuery, bind
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.group import Group
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Order, Query
from skyband.model.stream import Aggregate

__all__ = ["explain"]


def explain(group: Group, query: Query, plan: Plan, knowledge: Knowledge | None = None) -> str:
    """Return what `query` asks, attribute by attribute, why and how `plan` answers it, and what is known of it.

    Without `knowledge` nothing is said of how it runs. Raises DefinitionError if the query does not fit the group.
    Cost: the length of the score, with `knowledge` for each of its attributes, about 20 us an operation.
    """
    bound = bind(group, query)
    end = "highest" if query.order is Order.HIGHEST else "lowest"
    text = [
        f"{query.name}: the {query.k:,} {_objects(group)} with the {end} {query.score}",
        f"  over the {query.window.describe()}; {_eligible(group, bound)}",
        "",
        "attributes",
        *lines([_attribute(group, bound, column, plan) for column in bound.columns]),
        "",
        f"plan {plan.algorithm}",
        *lines([*_plan(group, bound, plan, knowledge)]),
    ]
    if knowledge is not None:
        text += ["", *known_streams(group, bound, knowledge)]
    return "\n".join(text)


def _plan(group: Group, bound: BoundQuery, plan: Plan, knowledge: Knowledge | None) -> list[tuple[str, str]]:
    cost = plan.cost.removeprefix("state: ").split("; time: ")
    rows = [("why", plan.reason), ("state", cost[0])]
    if knowledge is not None:
        rows += [*state_now(plan, knowledge), *expected_state(group, bound, plan, knowledge)]
    rows += [("time", part) for part in cost[1:]]
    rows += [("relies on", promise) for promise in plan.relies_on] or [("relies on", "no promise of any producer")]
    return rows if knowledge is None else rows + accuracy(bound.query, plan, knowledge)


def _objects(group: Group) -> str:
    return "records" if group.is_row_identity else "objects"


def _eligible(group: Group, bound: BoundQuery) -> str:
    if group.is_row_identity:
        return "every record is an object of its own"
    if not bound.required_streams:
        return "an object counts while any attribute of the score is in the window"
    names = " and ".join(group.streams[i].name for i in bound.required_streams)
    return f"an object counts while it has an observation of {names} in the window"


def _attribute(group: Group, bound: BoundQuery, column: BoundColumn, plan: Plan) -> tuple[str, ...]:
    if not column.in_score:
        return column.name, "not in the score", "required only"
    better = {True: "larger ranks better", False: "smaller ranks better", None: "neither direction ranks better"}
    cells = [column.name, better[column.prefers_high]]
    if group.is_row_identity:
        return (*cells, "always there")
    cells += [_combined(group, column), f"unseen counts {column.missing:g}{_which(group, column)}"]
    if plan.algorithm is Algorithm.SKYBAND:
        # An object is seen once: nothing can replace, add to, or outlive anything.
        return tuple(cells)
    why = why_unsteady(group, bound, column)
    return (*cells, f"unsteady: it {why}" if why else "steady")


def _combined(group: Group, column: BoundColumn) -> str:
    repeat = group.streams[column.stream].repeat_after_us
    promise = ""
    if repeat is not None:
        promise = ", never repeated" if repeat >= MAX_TIME_US else f", not repeated within {format_duration(repeat)}"
    return f"combined by {column.aggregate}{promise}"


def _which(group: Group, column: BoundColumn) -> str:
    attribute = group.streams[column.stream].attributes[column.value]
    if column.aggregate in (Aggregate.SUM, Aggregate.COUNT) or column.prefers_high is None:
        return ""
    worst = attribute.lo if column.prefers_high else attribute.hi
    if column.missing != worst:
        return ""
    return f" ({'lo' if column.prefers_high else 'hi'}, its worst)"
