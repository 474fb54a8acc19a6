"""What the catalog tells a group's shards: queries that come, change and go."""

from dataclasses import dataclass

from skyband.model.query import Query, QueryState

__all__ = ["CATALOG_STREAM", "QueryChange"]

# The catalog is a source partition of every group; as a stream index it comes before all others in the total order.
CATALOG_STREAM = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChange:
    """A query as of one revision. `uid` never changes; `revision` grows; score, window, order and require never change.

    `query.algorithm` is the planner's choice, never `auto`.
    """

    uid: str
    revision: int
    group: str
    query: Query
    state: QueryState
