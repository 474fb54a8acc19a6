"""Packed columns: as small as the numbers allow, and the same bits compiled and interpreted."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from services.runtime.codec_rows import PackedRows, RowColumns, pack_rows, unpack_rows
from tests.services.runtime.values import assert_same

ROOT = Path(__file__).resolve().parents[3]


def rows_of(count: int, spread: int, seed: int = 1) -> tuple[np.ndarray, RowColumns]:
    """Return two sections of rows whose times, delays and ids spread over so many numbers."""
    random = np.random.default_rng(seed)
    first = count // 2
    sections = np.array([[0, 0, 50, 10**9, first, 0, 0, 0], [1, 0, 7, 10**9, count - first, 0, 0, 0]], np.int64)
    steps = random.integers(1, 2 + spread % 1_000, count)
    offset = np.concatenate([49 + np.cumsum(steps[:first]), 6 + np.cumsum(steps[first:])])
    event_time_us = 1_760_000_000_000_000 + random.integers(0, 1 + spread, count)
    lengths = random.integers(0, 1 + spread % 300, count)
    columns = RowColumns(
        offset,
        event_time_us,
        event_time_us + random.integers(0, 1 + spread, count),
        np.cumsum(lengths),
        random.integers(0, 256, lengths.sum()).astype(np.uint8),
        random.integers(0, 2**63, count).astype(np.uint64),
        random.random((count, 2)),
    )
    return sections, columns


@pytest.mark.parametrize("count", [1, 2, 3, 8, 1_001])
@pytest.mark.parametrize(
    ("spread", "size"), [(0, 0), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4), (2**32, 8), (2**60, 8)]
)
def test_columns_come_back_whatever_their_sizes(count: int, spread: int, size: int) -> None:
    sections, columns = rows_of(count, spread)
    packed = pack_rows(sections, columns)
    assert packed.packing[1, 1] <= size
    assert_same(tuple(columns), tuple(unpack_rows(sections, 2, packed)))


@pytest.mark.parametrize(
    ("spread", "size"), [(0, 0), (1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4), (2**32, 8)]
)
def test_a_column_takes_as_few_bytes_as_its_numbers_allow(spread: int, size: int) -> None:
    sections, columns = rows_of(2, 0)
    columns = columns._replace(release_time_us=columns.event_time_us + np.array([10, 10 + spread]))
    assert pack_rows(sections, columns).packing.tolist()[2] == [10, size]


def test_consecutive_offsets_take_no_bytes() -> None:
    sections, columns = rows_of(100, 0)
    assert pack_rows(sections, columns).packing.tolist()[0] == [1, 0]


@pytest.mark.parametrize("size", [-1, 3, 8, 2**40])
def test_sizes_that_do_not_fit_the_bytes_are_refused(size: int) -> None:
    sections, columns = rows_of(10, 200)
    packed = pack_rows(sections, columns)
    packed.packing[1, 1] = size
    with pytest.raises(ValueError, match="fit"):
        unpack_rows(sections, 2, PackedRows(packed.packing, packed.columns[:300]))


def test_lengths_that_point_out_of_the_ids_are_refused() -> None:
    sections, columns = rows_of(10, 200)
    for change in (-300, -1, 1, 2**62):
        packed = pack_rows(sections, columns)
        packed.packing[3, 0] += change
        with pytest.raises(ValueError, match="lengths"):
            unpack_rows(sections, 2, packed)


def digest() -> str:
    """Return a hash of many packed rows, and of what comes back."""
    found = hashlib.sha256()
    for seed, spread in enumerate((0, 7, 255, 256, 70_000, 2**33, 2**60)):
        sections, columns = rows_of(40, spread, seed)
        packed = pack_rows(sections, columns)
        for array in (*packed, *unpack_rows(sections, 2, packed)):
            found.update(array.tobytes())
    return found.hexdigest()


def test_compiled_and_interpreted_give_the_same_bits() -> None:
    program = "from tests.services.runtime.test_codec_rows import digest; print(digest())"
    answer = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == digest()
