"""What the parts of the pipeline hand each other: bytes under the key of the part that takes them."""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from skyband.model.catalog import CATALOG_STREAM

__all__ = [
    "LETTERS",
    "MESSAGE_SCHEMA",
    "Message",
    "in_order",
    "pack",
    "pack_offset",
    "shard_of",
    "to_merge",
    "to_shard",
    "unpack",
    "unpack_offset",
]

MESSAGE_SCHEMA = "key string, time_us long, stream int, partition int, part int, data binary"
# Dead letters go through all parts as they are, to whoever writes results.
LETTERS = "letters"
_SHARD, _MERGE = "shard/", "merge/"
_LENGTH = struct.Struct("<I")
_OFFSET = struct.Struct("<q")


class Message(NamedTuple):
    """Bytes for the part of this key.

    Of an aligned batch: the watermark and the source partition of its section, and which of the batches of one flush it
    is. Of what a shard tells: `stream` is the shard, and `part` says what it is.
    """

    key: str
    data: bytes
    time_us: int = 0
    stream: int = 0
    partition: int = 0
    part: int = 0


def to_shard(shard: int) -> str:
    """Return the key of a shard."""
    return f"{_SHARD}{shard}"


def shard_of(key: str) -> int:
    """Return the shard of a key."""
    return int(key.removeprefix(_SHARD))


def to_merge(group: str) -> str:
    """Return the key of a group's merge."""
    return f"{_MERGE}{group}"


def in_order(messages: Iterable[Message]) -> list[Message]:
    """Return aligned batches in one order, whoever brought them: the catalog's, then by watermark.

    Batches of a source partition stay in their order, as its watermark never goes back. By watermark the fewest rows
    wait for others; results do not depend on it.
    """
    return sorted(messages, key=lambda its: (its.stream != CATALOG_STREAM, *its[2:]))


def pack(parts: Iterable[bytes]) -> bytes:
    """Return byte strings joined, each behind its length.

    >>> unpack(pack([b"a", b"", b"bc"]))
    [b'a', b'', b'bc']
    """
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def unpack(data: bytes) -> list[bytes]:
    """Return what `pack` joined."""
    parts, at = [], 0
    while at < len(data):
        begin = at + _LENGTH.size
        at = begin + _LENGTH.unpack_from(data, at)[0]
        parts.append(data[begin:at])
    return parts


def pack_offset(offset: int, data: bytes) -> bytes:
    """Return bytes behind the offset that they were read at."""
    return _OFFSET.pack(offset) + data


def unpack_offset(data: bytes) -> tuple[int, bytes]:
    """Return what `pack_offset` joined."""
    return _OFFSET.unpack_from(data)[0], data[_OFFSET.size :]
