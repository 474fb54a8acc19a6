"""How a snapshot is laid out in bytes: little endian, one version number, a digest of all that follows it.

::

    magic "SKYF" │ version │ digest │ length of the head │ head: JSON, padded to 8 bytes │ array │ array │ …

The head says what it is a snapshot of, and names the arrays with their kinds and shapes, those of wide numbers first,
so that each lies at a multiple of its width. The digest is the SHA-256 of the SHA-256s of pieces: the head with its
length, and each array in steps of 4 MiB. Pieces are independent, so that several cores share the work.
"""

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.errors import LogError

__all__ = ["digest_of", "read_snapshot", "write_snapshot_bytes"]

_MAGIC = b"SKYF"
_VERSION = 1
_BEGIN = struct.Struct("<4sI32s")
_LENGTH = struct.Struct("<Q")
_PIECE = 4 << 20
_MOST_THREADS = 8
_KINDS = {np.dtype(kind).str: np.dtype(kind) for kind in ("<i4", "<i8", "<u8", "<f8", "|u1")}


def write_snapshot_bytes(head: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return `head` and arrays as bytes; the same content is always the same bytes. Cost: a digest and a copy."""
    listed = sorted(arrays.items(), key=lambda each: (-each[1].dtype.itemsize, each[0]))
    little = [(name, array.astype(array.dtype.newbyteorder("<"), copy=False)) for name, array in listed]
    index = [[name, array.dtype.str, list(array.shape)] for name, array in little]
    text = json.dumps({"head": head, "arrays": index}, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    begin = _LENGTH.pack(len(text)) + text
    parts = [memoryview(begin), *(array.reshape(-1).view(np.uint8).data for _, array in little)]
    return b"".join((_BEGIN.pack(_MAGIC, _VERSION, _digest(parts)), *parts))


def read_snapshot(data: bytes) -> tuple[Mapping[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the head and the arrays, which are read-only and share the memory of `data`. Cost: a digest.

    Raises LogError for another version, or what is damaged.
    """
    digest = bytes.fromhex(digest_of(data))
    view, at = memoryview(data), _BEGIN.size
    try:
        (length,) = _LENGTH.unpack_from(data, at)
        document = json.loads(data[at + _LENGTH.size : at + _LENGTH.size + length])
        parts, arrays = [view[at : at + _LENGTH.size + length]], {}
        at += _LENGTH.size + length
        for name, kind, shape in document["arrays"]:
            array = np.frombuffer(data, _KINDS[kind], math.prod(shape), at)
            parts.append(view[at : at + array.nbytes])
            at += array.nbytes
            arrays[name] = array.reshape(shape).astype(array.dtype.newbyteorder("="), copy=False)
        head: Mapping[str, Any] = document["head"]
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise _damaged(f"{type(error).__name__}: {error}") from error
    if at != len(data):
        raise _damaged(f"{len(data)} bytes, but {at} are described")
    if _digest(parts) != digest:
        raise _damaged("its digest does not fit")
    return head, arrays


def digest_of(data: bytes) -> str:
    """Return the digest that a snapshot carries, as hexadecimal digits, without checking it.

    Raises LogError for what does not begin as a snapshot, or is one of another version.
    """
    if len(data) < _BEGIN.size + _LENGTH.size or data[:4] != _MAGIC:
        raise _damaged("it does not begin as one")
    _, version, digest = _BEGIN.unpack_from(data)
    if version != _VERSION:
        raise LogError(
            f"a snapshot has version {version}, this release reads {_VERSION}; start the release that wrote it, or "
            "delete it, so that the shard reads its aligned log instead"
        )
    return bytes(digest).hex()


def _digest(parts: Sequence[memoryview]) -> bytes:
    pieces = [part[at : at + _PIECE] for part in parts for at in range(0, len(part), _PIECE)]
    # hashlib lets go of the interpreter while it works; for less than a few pieces threads are not worth their start.
    threads = min(_MOST_THREADS, os.cpu_count() or 1, sum(map(len, pieces)) // _PIECE)
    if threads <= 1:
        return hashlib.sha256(b"".join(map(_sha256, pieces))).digest()
    with ThreadPoolExecutor(threads) as pool:
        return hashlib.sha256(b"".join(pool.map(_sha256, pieces))).digest()


def _sha256(piece: memoryview) -> bytes:
    return hashlib.sha256(piece).digest()


def _damaged(why: str) -> LogError:
    return LogError(
        f"a snapshot is damaged ({why}); delete it, so that the shard reads its aligned log instead, or write it anew"
    )
