"""How a query will be answered, decided once and stored with it."""

from dataclasses import dataclass

from skyband.model.query import Algorithm

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The planner's choice for one query, in a value and in words.

    `algorithm` is never `auto`; `reason` says why it fits, `relies_on` which promises of producers it needs (empty:
    none), `cost` what it takes in state and time.
    """

    algorithm: Algorithm
    reason: str
    relies_on: tuple[str, ...]
    cost: str
