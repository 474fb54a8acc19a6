"""What a shard and its queries hold and have done, as values."""

from dataclasses import dataclass

from skyband.engine.rankings import Rankings
from skyband.model.approximation import Approximation

__all__ = ["QueryStatistics", "ShardStatistics", "statistics_of"]


@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """What one query holds and has done in a shard; `held` and `state_bytes` are those of the ranking it shares.

    `approximation` None: its algorithm is exact.
    """

    evaluations: int
    last_end_with_rows: int | None
    held: int
    state_bytes: int
    approximation: Approximation | None = None


@dataclass(frozen=True, slots=True)
class ShardStatistics:
    """What a shard holds and has done; `state_bytes` are those of its stores and of its rankings."""

    rows: int
    late_rows: int
    expired_rows: int
    broken_promises: int
    not_finite: int
    objects: int
    entries: int
    held: int
    refills: int
    store_bytes: int
    state_bytes: int
    evaluations: int


def statistics_of(rankings: Rankings, late_rows: int, evaluations: int) -> ShardStatistics:
    """Return counts and sizes of a shard's stores and rankings as of now, with what the shard itself has counted."""
    store, all_rankings = rankings.stores[False], rankings.all()
    store_bytes = sum(each.state_bytes for each in rankings.stores.values())
    return ShardStatistics(
        rows=store.rows_applied,
        late_rows=late_rows,
        expired_rows=store.expired_rows,
        broken_promises=store.broken_promises + sum(each.broken_promises for each in rankings.forgetting()),
        not_finite=sum(ranking.not_finite for ranking in all_rankings),
        objects=store.objects.live,
        entries=sum(each.entries for each in rankings.stores.values()),
        held=sum(ranking.held for ranking in all_rankings),
        refills=sum(ranking.refills for ranking in all_rankings),
        store_bytes=store_bytes,
        state_bytes=store_bytes + sum(each.state_bytes for each in all_rankings),
        evaluations=evaluations,
    )
