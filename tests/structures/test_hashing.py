"""Hashes of ids: the Java client's partitions, and a 64-bit hash that never changes."""

import hashlib
import os
import random
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest

from skyband.structures.hashing import hash_ids, murmur2, shards_of

# What org.apache.kafka.common.utils.Utils.murmur2 returns.
JAVA = {
    b"": 275646681,
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}

PINNED = [
    "475e5d1af7c8c374",
    "da2eeb62060c6ccf",
    "2a8b8df3c995797d",
    "b86913321f481600",
    "fdfd10c1bfd31e92",
    "acd32ed426bfd375",
    "751afd26a55bdc00",
    "4f27f538d3ff308f",
]


def arena(ids: list[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return ids as an arena and its ends."""
    ends = np.cumsum([len(object_id) for object_id in ids]).astype(np.int64)
    return np.frombuffer(bytearray(b"".join(ids)), np.uint8), ends


def test_murmur2_is_that_of_the_java_client() -> None:
    assert murmur2(*arena(list(JAVA))).view(np.int32).tolist() == list(JAVA.values())


@pytest.mark.parametrize("shards", [1, 3, 64])
def test_a_shard_is_the_partition_that_the_java_client_would_choose(shards: int) -> None:
    expected = [(value & 0x7FFFFFFF) % shards for value in JAVA.values()]
    assert shards_of(*arena(list(JAVA)), shards).tolist() == expected


def test_the_id_hash_never_changes_because_it_is_stored() -> None:
    ids = [b"", b"21", b"abc", b"foobar", b"x" * 8, b"x" * 16, b"x" * 17, b"0123456789abcdef0123456789abcdefg"]
    assert [f"{value:016x}" for value in hash_ids(*arena(ids))] == PINNED


def test_neither_hash_depends_on_where_in_the_arena_an_id_lies() -> None:
    for object_id in JAVA:
        alone, among = arena([object_id]), arena([b"before", object_id, b"after"])
        assert hash_ids(*alone)[0] == hash_ids(*among)[1]
        assert murmur2(*alone)[0] == murmur2(*among)[1]


def test_ids_that_differ_in_zero_bytes_only_have_different_hashes() -> None:
    ids = [b"\0" * length for length in range(40)]
    assert len(set(hash_ids(*arena(ids)).tolist())) == 40


def test_a_hundred_thousand_counted_ids_have_different_hashes_that_fill_every_low_and_high_byte_alike() -> None:
    hashes = hash_ids(*arena([b"object-%d" % i for i in range(100_000)]))
    assert len(np.unique(hashes)) == 100_000
    for byte in (hashes & np.uint64(255), hashes >> np.uint64(56)):
        counts = np.bincount(byte.astype(np.int64), minlength=256)
        chi_squared = float(((counts - 100_000 / 256) ** 2 / (100_000 / 256)).sum())
        assert 170 < chi_squared < 350  # 255 degrees of freedom: four standard deviations each way


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 17, 40])
def test_every_bit_of_an_id_flips_about_half_of_the_bits_of_its_hash(length: int) -> None:
    draw = random.Random(length)
    for bit in range(0, 8 * length, 5):
        ids = [draw.randbytes(length) for _ in range(200)]
        flipped = [_flip(object_id, bit) for object_id in ids]
        difference = hash_ids(*arena(ids)) ^ hash_ids(*arena(flipped))
        shares = np.unpackbits(difference.view(np.uint8)).reshape(len(ids), 64).mean(axis=0)
        assert 0.47 < shares.mean() < 0.53
        assert shares.min() > 0.3
        assert shares.max() < 0.7


def _flip(object_id: bytes, bit: int) -> bytes:
    changed = bytearray(object_id)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def digest() -> str:
    """Return a digest of both hashes of seeded ids."""
    draw = random.Random(3)
    columns = arena([draw.randbytes(draw.randrange(50)) for _ in range(2_000)])
    return hashlib.sha256(murmur2(*columns).tobytes() + hash_ids(*columns).tobytes()).hexdigest()


def test_interpreted_kernels_give_the_same_bits() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", "-c", "from tests.structures import test_hashing as t; print(t.digest())"]
    interpreted = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert interpreted.stdout.strip() == digest()
