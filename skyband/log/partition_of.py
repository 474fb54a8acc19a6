"""Which partition a name belongs to: the same in every process, and for ever."""

import zlib

__all__ = ["partition_of"]


def partition_of(name: str, partitions: int) -> int:
    """Return the partition, of so many, that holds what belongs to `name`: results of a query, partials of a group."""
    return zlib.crc32(name.encode()) % partitions
