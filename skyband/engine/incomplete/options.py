"""What a user may ask of an approximate ranking."""

from dataclasses import dataclass

from skyband.errors import DefinitionError

__all__ = ["ApproximationOptions"]

_MAX_ERROR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximationOptions:
    """How much may be forgotten.

    `max_error` (epsilon): an instance is given up once the chance that it is ever shown falls below it; 0 forgets only
    what an exact algorithm forgets; None: 0.05, or what a target precision begins with. `memory_budget` in bytes, of
    the instances and their objects: above it more is given up, whatever `max_error` says.
    `target_precision`: epsilon begins at 1 less this and follows what the ranking measures of itself.
    """

    max_error: float | None = None
    memory_budget: int | None = None
    target_precision: float | None = None

    def __post_init__(self) -> None:
        if self.max_error is not None and not 0.0 <= self.max_error < 1.0:
            raise DefinitionError(f"max_error {self.max_error:g} must be at least 0 and below 1", field="max_error")
        if self.memory_budget is not None and self.memory_budget < 1:
            raise DefinitionError("memory_budget must be above 0 bytes", field="memory_budget")
        if self.target_precision is not None and not 0.0 < self.target_precision <= 1.0:
            raise DefinitionError(
                f"target_precision {self.target_precision:g} must be above 0 and at most 1", field="target_precision"
            )

    @property
    def first_error(self) -> float:
        """The epsilon to begin with."""
        if self.max_error is not None:
            return self.max_error
        return _MAX_ERROR if self.target_precision is None else 1.0 - self.target_precision
