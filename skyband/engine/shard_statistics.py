"""What a shard and its queries hold and have done, as values."""

from dataclasses import dataclass

from skyband.model.approximation import Approximation

__all__ = ["QueryStatistics", "ShardStatistics"]


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
