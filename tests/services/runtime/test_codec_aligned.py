"""Aligned batches that align makes, through bytes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from services.runtime.codecs import Codecs
from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.errors import LogError
from skyband.model.catalog import QueryChange
from skyband.model.query import Query, QueryState, Window
from tests.services.runtime.values import aligned_batches, aligned_by_align, assert_free, assert_same

CODECS = Codecs()
TOPIC = "aligned.g.2"

# What version 1 of the schema made of `fixed_batch`.
VERSION_1 = (
    "010e666163746f727906020e616c69676e2d308089ffecbdada0068003ffffffffffffffff000000000000000004000000000000000500"
    "000000000000000000000000000000000000000000c000000000000000c00000000000000000000000000000000000000000000000000a"
    "00000000000000140000000000000002000000000000000000ceeeb54006008084eceeb5400600405457efb54006000100000000000000"
    "020000000000000007000000000000000800000000000000010000000000000000000000000000c000000000000000c000000000000000"
    "0004800101000000000000000100000000000000c0bdbeeeb5400600040000000000000000000000000000000400000000000000010000"
    "0000000000010000000000000002080206752d31040e666163746f7279ae027b226e616d65223a22686f7474657374222c226b696e6422"
    "3a2272616e6b222c226b223a31302c2273636f7265223a2274656d7065726174757265222c226f72646572223a2268696768657374222c"
    "2277696e646f77223a7b2273697a65223a22316d222c22736c696465223a22313073227d2c2272657175697265223a22616e79222c2261"
    "6c676f726974686d223a226175746f227d0c70617573656400fc01000000000000e03f000000000000f83f00000000000004c000000000"
    "000000009c7500883ce4377e00000000000000000100000000000000ffffffffffffffff03000000000000000008000000000000c0c62d"
    "000000000040420f00000000000000000040420f0000000000000000000102000000000000616162c3bc63"
)


def through(batch: AlignedBatch) -> AlignedBatch:
    back = CODECS.decode(TOPIC, CODECS.encode(TOPIC, batch))
    assert isinstance(back, AlignedBatch)
    return back


@pytest.mark.parametrize("seed", range(25))
def test_what_align_makes_comes_back_as_it_was(seed: int) -> None:
    for batch in aligned_by_align(seed):
        assert_same(batch, through(batch))


@settings(max_examples=40)
@given(aligned_batches())
def test_arrays_that_come_back_can_be_written_and_stand_alone(batch: AlignedBatch) -> None:
    assert_free(through(batch))


def test_a_batch_without_rows_has_empty_columns_of_the_right_kinds() -> None:
    batch = next(batch for batch in aligned_by_align(3) if not batch.rows)
    back = through(batch)
    assert back.rows == 0
    assert_free(back)
    assert_same(batch, back)


def test_columns_that_are_slices_or_strided_are_written_as_they_read() -> None:
    batch = next(batch for batch in aligned_by_align(3) if batch.rows > 3)
    wide = np.zeros((batch.rows, 2 * batch.values.shape[1]), np.float64)
    wide[:, ::2] = batch.values
    assert_same(batch, through(replace(batch, values=wide[:, ::2])))


def test_sections_that_do_not_fit_the_rows_are_not_written() -> None:
    batch = next(batch for batch in aligned_by_align(3) if batch.rows > 3)
    with pytest.raises(LogError, match="sections of 0; its writer 'align-0' is at fault"):
        CODECS.encode(TOPIC, replace(batch, sections=()))


def test_a_row_takes_few_bytes_beside_its_id_hash_and_values() -> None:
    batch = max(aligned_by_align(8, 1_500, batch_rows=5_000), key=lambda batch: batch.rows)
    assert batch.rows > 100
    bare = 8 * batch.rows + batch.values.nbytes + len(batch.id_bytes)
    assert len(CODECS.encode(TOPIC, batch) or b"") < bare + 20 * batch.rows + 1_000


def fixed_batch() -> AlignedBatch:
    """Return three rows of two source partitions, one of them late, and a change in the catalog."""
    return AlignedBatch(
        group="factory",
        generation=3,
        shard=1,
        writer="align-0",
        written_us=1_760_000_000_123_456,
        sections=(
            Section(stream=-1, partition=0, from_offset=4, to_offset=5, rows=0),
            Section(
                stream=0,
                partition=0,
                from_offset=10,
                to_offset=20,
                rows=2,
                watermark_us=1_760_000_000_000_000,
                newest_us=1_760_000_002_000_000,
                idle_until_us=1_760_000_009_000_000,
            ),
            Section(stream=1, partition=2, from_offset=7, to_offset=8, rows=1),
        ),
        offset=np.array([10, 19, 7], np.int64),
        event_time_us=np.array([1_760_000_002_000_000, 1_759_999_999_000_000, 1_760_000_000_000_000], np.int64),
        release_time_us=np.array([1_760_000_002_000_000, 1_760_000_000_000_000, 1_760_000_000_000_000], np.int64),
        id_bytes=np.frombuffer(b"aab\xc3\xbcc", np.uint8),
        id_ends=np.array([2, 5, 6], np.int64),
        id_hash=np.array([1, 2**64 - 1, 3], np.uint64),
        values=np.array([[0.5, 1.5], [-2.5, 0.0], [1e300, 0.0]]),
        catalog=(
            CatalogRecord(
                4,
                QueryChange(
                    uid="u-1",
                    revision=2,
                    group="factory",
                    query=Query(name="hottest", k=10, score="temperature", window=Window(60_000_000, 10_000_000)),
                    state=QueryState.PAUSED,
                ),
            ),
        ),
    )


def test_version_1_never_changes() -> None:
    assert_same(fixed_batch(), CODECS.decode(TOPIC, bytes.fromhex(VERSION_1)))


def test_the_newest_version_is_written() -> None:
    assert (CODECS.encode(TOPIC, fixed_batch()) or b"").hex() == VERSION_1
