"""How far the answers of a query may be off, in words: what was allowed, what is in force, and what it measured."""

from dataclasses import replace

from skyband.control.knowledge import Knowledge
from skyband.control.wording import plural, size
from skyband.model.approximation import Approximation
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Query
from skyband.model.status import QueryStatus

__all__ = ["accuracy"]

_Rows = list[tuple[str, str]]


def accuracy(query: Query, plan: Plan, knowledge: Knowledge) -> _Rows:
    """Return broken promises where the plan stands on any, the error, and what an approximate query measured.

    An approximate query learns from its own sample of the rows it is given (decision 0017): statistics that others
    publish do not change what it forgets.
    """
    status = knowledge.status
    if status is not None and status.rows_in is None:
        status = None
    promises = _promises(status) if plan.relies_on else []
    if not plan.algorithm.is_approximate:
        return [*promises, ("error", _exact(plan, status))]
    found = None if status is None else status.approximation
    return [
        *promises,
        ("error", _allowed(query, plan)),
        *_in_force(plan, found),
        ("recall", "not known yet: no shard has reported" if found is None else replace(found, error=None).describe()),
        ("learns from", "its own sample of the rows it is given; the statistics inform you, not what it forgets"),
    ]


def _promises(status: QueryStatus | None) -> _Rows:
    if status is None:
        return [("broken", "not known yet: no shard has reported")]
    if not status.broken_promises:
        return [("broken", "never")]
    times = plural(status.broken_promises, "time")
    return [("broken", f"{times}, over the streams of its group (the result may be inexact)")]


def _exact(plan: Plan, status: QueryStatus | None) -> str:
    if not plan.relies_on:
        return "none, it is exact"
    if status is not None and status.broken_promises:
        return "not known: it is exact only while what it relies on holds, and that was broken"
    return "none, it is exact while what it relies on holds"


def _allowed(query: Query, plan: Plan) -> str:
    """Return what the query allows, as its algorithm takes it."""
    if plan.algorithm is Algorithm.EAA_EXPECTED:
        text = "no bound: it forgets what is not expected to be shown; only its recall tells"
    elif query.max_error is not None:
        text = (
            f"what it forgets comes into a result after all with a chance below {query.max_error:g} (max_error)"
            if query.max_error
            else "none, it forgets only what cannot come into a result (max_error 0)"
        )
    elif query.target_precision is not None:
        text = f"steered so that {query.target_precision:.1%} of the exact rows are shown (target_precision)"
    elif query.memory_budget is not None:
        return f"none while the state fits into {size(query.memory_budget)} in each shard (memory_budget)"
    else:
        # Asked for by name alone: the algorithm's own default.
        text = "what it forgets comes into a result after all with a chance below the algorithm's own bound"
    if query.memory_budget is not None:
        text += f"; more is forgotten where the state exceeds {size(query.memory_budget)} in a shard (memory_budget)"
    return text


def _in_force(plan: Plan, found: Approximation | None) -> _Rows:
    if found is None:
        return (
            [] if plan.algorithm is Algorithm.EAA_EXPECTED else [("in force", "not known yet: no shard has reported")]
        )
    rows = []
    if found.error is not None:
        rows = [("in force", f"forgets what matters with less than {found.error:.3g}")]
    if found.is_over_budget:
        rows.append(("warning", "the state does not fit into memory_budget, so more is forgotten than was allowed"))
    return rows
