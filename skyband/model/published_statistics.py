"""Statistics of a group as its shards have published them, put together."""

from dataclasses import dataclass

from skyband.model.statistics import GroupStatistics

__all__ = ["PublishedStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedStatistics:
    """What is known of a generation of a group, over all shards that have published.

    `streams` holds the streams' names and `attributes` those of their values, in the order of the statistics;
    `observations` is how many rows each stream has in the window, which is counted and no estimate. No row
    before `from_us` was seen, so that a window that begins earlier is not full yet. `published_us`: when the oldest of
    the publications was written; `source`: who made them; `silent_shards`: shards that have published nothing;
    `other_sources`: who else has published statistics of this generation.
    """

    group: str
    generation: int
    streams: tuple[str, ...]
    attributes: tuple[tuple[str, ...], ...]
    observations: tuple[int, ...]
    from_us: int
    published_us: int
    source: str
    silent_shards: tuple[int, ...]
    statistics: GroupStatistics
    other_sources: tuple[str, ...] = ()
