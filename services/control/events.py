"""Names of the events that control logs."""

__all__ = ["CALL_FAILED", "GENERATION_PREPARED", "ROLE"]

ROLE = "role"
GENERATION_PREPARED = "generation prepared"
CALL_FAILED = "call failed"
