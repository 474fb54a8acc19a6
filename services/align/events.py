"""Names of the events that align logs."""

__all__ = ["SOURCE_GAP"]

SOURCE_GAP = "source partition cannot be read"
