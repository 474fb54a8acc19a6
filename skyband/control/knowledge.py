"""What is known of a running query at the moment somebody asks."""

from dataclasses import dataclass

from skyband.model.published_statistics import PublishedStatistics
from skyband.model.status import QueryStatus

__all__ = ["Knowledge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What the shards report of a query, and what is published of its group's streams in its window, at `now_us`.

    `status` None: nothing was asked of the shards. `statistics` None: there are none; `why_unknown` says why, in words,
    where that is another reason than that nothing is published. Both are of the generation that the group is in.
    """

    now_us: int
    status: QueryStatus | None = None
    statistics: PublishedStatistics | None = None
    why_unknown: str = ""
