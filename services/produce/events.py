"""Names of the events that produce logs."""

__all__ = ["ROWS_SENT"]

ROWS_SENT = "rows sent"
