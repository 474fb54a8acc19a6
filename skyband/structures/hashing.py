"""Hashes of object ids: which shard an id belongs to, and the 64-bit hash stored beside it.

Ids lie in an *arena*: bytes one after another, with the end of each (`ends`); an id begins where the one before ends.
Both hashes are stored (one places rows in partitions, the other travels in batches), so neither may ever change.

All arithmetic is done in uint64 with factors below 2**32 wherever a product is kept whole: nothing wraps, so that the
kernels give the same bits interpreted.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["hash_id", "hash_ids", "murmur2", "murmur2_of", "shard_of", "shards_of"]

_LOW_32 = np.uint64(0xFFFFFFFF)
_LOW_31 = np.uint64(0x7FFFFFFF)
_U8 = np.uint64(8)
_U16 = np.uint64(16)
_U24 = np.uint64(24)
_U32 = np.uint64(32)

# Seed, multiplier and shifts of the Kafka producer's murmur2.
_MURMUR_SEED = np.uint64(0x9747B28C)
_MURMUR_M = np.uint64(0x5BD1E995)
_U13 = np.uint64(13)
_U15 = np.uint64(15)

# The first 256 bits of the fraction of pi in four words, each made odd.
_SECRET_0 = np.uint64(0x243F6A8885A308D3)
_SECRET_1 = np.uint64(0xA4093822299F31D1)
_SECRET_2 = np.uint64(0x13198A2E03707345)
_SECRET_3 = np.uint64(0x452821E638D01377)


@njit(cache=True, nogil=True, error_model="numpy")
def murmur2_of(arena: npt.NDArray[np.uint8], start: int, stop: int) -> Any:
    """Return murmur2 of ``arena[start:stop]`` as uint64 below 2**32, like the Java Kafka client. Cost: one pass."""
    h = _MURMUR_SEED ^ (np.uint64(stop - start) & _LOW_32)
    i = start
    while i + 4 <= stop:
        k = (
            np.uint64(arena[i])
            | (np.uint64(arena[i + 1]) << _U8)
            | (np.uint64(arena[i + 2]) << _U16)
            | (np.uint64(arena[i + 3]) << _U24)
        )
        k = (k * _MURMUR_M) & _LOW_32
        k ^= k >> _U24
        k = (k * _MURMUR_M) & _LOW_32
        h = ((h * _MURMUR_M) & _LOW_32) ^ k
        i += 4
    rest = stop - i
    if rest >= 3:
        h ^= np.uint64(arena[i + 2]) << _U16
    if rest >= 2:
        h ^= np.uint64(arena[i + 1]) << _U8
    if rest >= 1:
        h = ((h ^ np.uint64(arena[i])) * _MURMUR_M) & _LOW_32
    h ^= h >> _U13
    h = (h * _MURMUR_M) & _LOW_32
    return h ^ (h >> _U15)


@njit(cache=True, nogil=True, error_model="numpy")
def shard_of(arena: npt.NDArray[np.uint8], start: int, stop: int, shards: int) -> Any:
    """Return the shard of the id ``arena[start:stop]``: what the Java producer's default partitioner does."""
    return np.int64(murmur2_of(arena, start, stop) & _LOW_31) % shards


@njit(cache=True, nogil=True, error_model="numpy")
def _fold(a: Any, b: Any) -> Any:
    """Return both halves of the 128-bit product of `a` and `b` and the factors, folded by exclusive or.

    The factors are folded in so that a factor of zero does not erase the other.
    """
    a_low, a_high = a & _LOW_32, a >> _U32
    b_low, b_high = b & _LOW_32, b >> _U32
    bottom = a_low * b_low
    middle = a_high * b_low + (bottom >> _U32)
    carry = a_low * b_high + (middle & _LOW_32)
    high = a_high * b_high + (middle >> _U32) + (carry >> _U32)
    low = (carry << _U32) | (bottom & _LOW_32)
    return a ^ b ^ low ^ high


@njit(cache=True, nogil=True, error_model="numpy")
def _word(arena: npt.NDArray[np.uint8], start: int, stop: int) -> Any:
    """Return up to 8 bytes from `start` as a little-endian number; bytes at `stop` and behind count as zero."""
    word = np.uint64(0)
    for i in range(min(8, stop - start)):
        word |= np.uint64(arena[start + i]) << np.uint64(8 * i)
    return word


@njit(cache=True, nogil=True, error_model="numpy")
def hash_id(arena: npt.NDArray[np.uint8], start: int, stop: int) -> Any:
    """Return the 64-bit hash of the id ``arena[start:stop]`` as uint64.

    A multiply-and-fold hash over 16 bytes at a time, with fixed secrets. It resists accident, not attack: ids are
    always compared as well. Cost: 4 multiplications for each 8 bytes.
    """
    length = np.uint64(stop - start)
    h = _fold(length ^ _SECRET_0, _SECRET_1)
    i = start
    while i + 16 < stop:
        h = _fold(_word(arena, i, stop) ^ _SECRET_1, _word(arena, i + 8, stop) ^ h)
        i += 16
    h = _fold(_word(arena, i, stop) ^ _SECRET_2, _word(arena, i + 8, stop) ^ h)
    return _fold(h ^ _SECRET_3, length ^ _SECRET_1)


@njit(cache=True, nogil=True, error_model="numpy")
def _murmur2(arena: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], out: npt.NDArray[np.uint32]) -> None:
    start = 0
    for row in range(len(ends)):
        out[row] = np.uint32(murmur2_of(arena, start, ends[row]))
        start = ends[row]


@njit(cache=True, nogil=True, error_model="numpy")
def _hash_ids(arena: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], out: npt.NDArray[np.uint64]) -> None:
    start = 0
    for row in range(len(ends)):
        out[row] = hash_id(arena, start, ends[row])
        start = ends[row]


def murmur2(arena: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return murmur2 of every id of an arena, uint32[n]; `view(np.int32)` is what the Java client returns."""
    out = np.empty(len(ends), np.uint32)
    _murmur2(arena, ends, out)
    return out


def shards_of(arena: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], shards: int) -> npt.NDArray[np.int32]:
    """Return the shard of every id of an arena, int32[n]: ``(murmur2 & 0x7fffffff) % shards``."""
    return ((murmur2(arena, ends) & np.uint32(0x7FFFFFFF)) % np.uint32(shards)).astype(np.int32)


def hash_ids(arena: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the 64-bit hash of every id of an arena, uint64[n]."""
    out = np.empty(len(ends), np.uint64)
    _hash_ids(arena, ends, out)
    return out
