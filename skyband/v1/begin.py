"""Where a group begins to read its source topics."""

from typing import Final, Literal

__all__ = ["EARLIEST", "LATEST", "Begin"]

# An end of each topic; or the first record whose Kafka timestamp is not before a time in microseconds.
Begin = Literal["earliest", "latest"] | int

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
