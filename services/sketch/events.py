"""Names of the events that sketch logs."""

__all__ = ["SKETCH_RESTORED", "SKETCH_STOPPED", "STATISTICS_REMOVED"]

SKETCH_RESTORED = "sketch restored"
SKETCH_STOPPED = "sketch stopped"
STATISTICS_REMOVED = "statistics removed"
