"""The planner as control uses it: a plan is made once, and kept while it still answers its query."""

from dataclasses import replace

from skyband.model.group import Group
from skyband.model.plan import Plan
from skyband.model.planner import plan
from skyband.model.query import Query

__all__ = ["check_plan", "plan"]


def check_plan(group: Group, query: Query, chosen: Plan) -> None:
    """Raise, as `plan` does, if `chosen` does not answer `query` over a changed `group`."""
    plan(group, replace(query, algorithm=chosen.algorithm))
