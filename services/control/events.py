"""Names of the events that control logs."""

__all__ = ["GENERATION_PREPARED", "ROLE"]

ROLE = "role"
GENERATION_PREPARED = "generation prepared"
