"""Names of the events that fanout logs."""

__all__ = ["CALL_FAILED"]

CALL_FAILED = "call failed"
