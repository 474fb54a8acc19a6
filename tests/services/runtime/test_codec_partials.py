"""Partials that the engine makes, through bytes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from services.runtime.codecs import Codecs
from skyband.errors import LogError
from skyband.model.partials import Contender, Evaluation, PartialBatch
from tests.services.runtime.values import assert_free, assert_same, partial_batches, partials_by_engine

CODECS = Codecs()

# What version 1 of the schema made of `fixed_batch`.
VERSION_1 = (
    "01000e666163746f7279060201041674656d706572617475726512766962726174696f6e000406752d3106752d3200c001010000000000"
    "000002000000000000000000ceeeb5400600008761f2b54006000000000000000000020000000000000004000000000000000a00000000"
    "00000080c397f0b5400600008761f2b5400600020000000000000005000000000000002802000000000000000200000000000000010000"
    "000c616162c3bc633002000000000000000500000000000000060000000000000030000000000000f83f000000000000d03f9c7500883c"
    "e4377e30050000000000000006000000000000000700000000000000300800000000000000090000000000000000000000000100006000"
    "0000000000e03f000000000000f83f00000000000004c000000000000000009c7500883ce4377e000000000000f03f0c010101000101"
)

# What version 2 made of `foreseeing_batch`.
VERSION_2 = (
    "02000e666163746f7279060201041674656d706572617475726512766962726174696f6e000406752d3106752d3200c001010000000000"
    "000002000000000000000000ceeeb5400600008761f2b54006000000000000000000020000000000000004000000000000000a00000000"
    "00000080c397f0b5400600008761f2b5400600020000000000000005000000000000002802000000000000000200000000000000010000"
    "000c616162c3bc633002000000000000000500000000000000060000000000000030000000000000f83f000000000000d03f9c7500883c"
    "e4377e30050000000000000006000000000000000700000000000000300800000000000000090000000000000000000000000100006000"
    "0000000000e03f000000000000f83f00000000000004c000000000000000009c7500883ce4377e000000000000f03f0c01010100010130"
    "000000000000f83f000000000000f87f000000000000f07f040204616102000000000000d03f0200000000000023400080aadac2beada0"
    "06020264000002020080b8a8dfbeada00600"
)


def through(batch: PartialBatch) -> PartialBatch:
    back = CODECS.decode("partials", CODECS.encode("partials", batch))
    assert isinstance(back, PartialBatch)
    return back


@pytest.mark.parametrize("seed", range(12))
def test_what_the_engine_makes_comes_back_as_it_was(seed: int) -> None:
    for batch in partials_by_engine(seed):
        back = through(batch)
        assert list(back.evaluations) == list(batch.evaluations)
        columns = (
            "ranking",
            "id_bytes",
            "id_ends",
            "score",
            "event_time_us",
            "sequence",
            "attributes",
            "present",
            "best",
        )
        for name in columns:
            assert_same(getattr(batch, name), getattr(back, name))


@settings(max_examples=40)
@given(partial_batches())
def test_arrays_that_come_back_can_be_written_and_stand_alone(batch: PartialBatch) -> None:
    assert_free(through(batch))


@pytest.mark.parametrize(
    ("name", "value"),
    [("ranking", 99), ("ranking", -1), ("id_ends", 10_000), ("id_ends", -5)],
)
def test_indexes_that_point_out_of_a_batch_are_refused(name: str, value: int) -> None:
    batch = through(next(batch for batch in partials_by_engine(1) if len(batch.ranking)))
    getattr(batch, name)[-1] = value
    with pytest.raises(LogError, match=r"damaged .*; "):
        through(batch)


def fixed_batch() -> PartialBatch:
    """Return the rankings of two queries, in which three rows take part; one lacks an attribute."""
    return PartialBatch(
        group="factory",
        generation=3,
        shard=1,
        descending=True,
        attribute_names=("temperature", "vibration"),
        evaluations=(
            Evaluation("u-1", 1, 2, 1_760_000_000_000_000, 1_760_000_060_000_000, 0, 2),
            Evaluation("u-2", 4, 10, 1_760_000_030_000_000, 1_760_000_060_000_000, 2, 5),
        ),
        ranking=np.array([2, 0, 2, 0, 1], np.int32),
        id_bytes=np.frombuffer(b"aab\xc3\xbcc", np.uint8),
        id_ends=np.array([2, 5, 6], np.int64),
        score=np.array([1.5, 0.25, 1e300]),
        event_time_us=np.array([5, 6, 7], np.int64),
        sequence=np.array([8, 9, 2**40], np.int64),
        attributes=np.array([[0.5, 1.5], [-2.5, 0.0], [1e300, 1.0]]),
        present=np.array([[True, True], [True, False], [True, True]]),
    )


def foreseeing_batch() -> PartialBatch:
    """Return the fixed batch with what its rows could reach, and two contenders of the second query."""
    batch = fixed_batch()
    first, second = batch.evaluations
    contenders = (
        Contender("aa", 0.25, 9.5, (), 1_760_000_090_000_000),
        Contender("d", None, None, (1,), 1_760_000_120_000_000),
    )
    return replace(
        batch, evaluations=(first, replace(second, contenders=contenders)), best=np.array([1.5, np.nan, np.inf])
    )


def test_version_1_never_changes() -> None:
    assert_same(fixed_batch(), CODECS.decode("partials", bytes.fromhex(VERSION_1)))


def test_version_2_never_changes_and_is_written() -> None:
    assert_same(foreseeing_batch(), CODECS.decode("partials", bytes.fromhex(VERSION_2)))
    assert (CODECS.encode("partials", foreseeing_batch()) or b"").hex() == VERSION_2


@pytest.mark.parametrize("wrong", [{"lacks": (2,)}, {"lacks": (-1,)}])
def test_what_a_contender_lacks_is_an_attribute_of_its_batch(wrong: dict[str, tuple[int, ...]]) -> None:
    batch = foreseeing_batch()
    first, second = batch.evaluations
    damaged = replace(second, contenders=(replace(second.contenders[0], **wrong),))
    with pytest.raises(LogError, match="lacks an attribute that is not one of 2"):
        through(replace(batch, evaluations=(first, damaged)))
